//! The gate of one process: two writes of one key, rebuilds, and a restart with a statement under way.

mod state;

use stateright::{Model, Property};

pub use state::{Action, State, Variant};
use state::{Phase, Rebuild, Restart, Write};

/// P1: no committed id is refused.
pub const P1: &str = "P1: no committed id is refused";

/// A gate and the table it guards.
#[derive(Clone, Debug)]
pub struct Gate {
    /// Which rule is left out.
    pub variant: Variant,
    /// How many generations may be built after the first, failed ones included.
    pub rebuilds: u8,
    /// How many writes there are: 1 to 3, all of the same key.
    pub writes: usize,
    /// How often the process may be killed and started again.
    pub crashes: u8,
}

impl Default for Gate {
    fn default() -> Self {
        Self { variant: Variant::Correct, rebuilds: 2, writes: 2, crashes: 1 }
    }
}

impl Gate {
    fn write_actions(&self, state: &State, i: usize, actions: &mut Vec<Action>) {
        let write = state.writes[i];
        let early = self.variant == Variant::InsertBeforeEntering;
        match write.phase {
            _ if write.abandoned => {}
            Phase::Idle if early => actions.push(Action::NoteGenerations(i)),
            Phase::Idle => actions.push(Action::EnterOpenSet(i)),
            Phase::Entered => actions.push(Action::NoteGenerations(i)),
            Phase::Noted(_) => actions.push(Action::Insert(i)),
            Phase::Begun if early && state.open & (1 << i) == 0 => {
                actions.push(Action::EnterOpenSet(i));
            }
            Phase::Begun => actions.push(Action::SendSql(i)),
            Phase::Committed | Phase::Aborted => actions.push(Action::End(i)),
            Phase::InSocket | Phase::Waiting | Phase::Writing => {
                actions.push(Action::LoseOutcome(i));
                if self.variant == Variant::EndBeforeCommit && state.open & (1 << i) != 0 {
                    actions.push(Action::End(i));
                }
            }
            Phase::Ended => {}
        }
        match write.phase {
            Phase::InSocket => actions.push(Action::StartSql(i)),
            Phase::Waiting => actions.extend([Action::FirstWrite(i), Action::Abort(i)]),
            Phase::Writing => actions.extend([Action::Commit(i), Action::Abort(i)]),
            // One event per write, once its SQL is over.
            Phase::Committed | Phase::Aborted if write.abandoned => {
                actions.push(Action::WindowEnds(i));
            }
            _ => {}
        }
    }

    fn rebuild_actions(&self, state: &State, actions: &mut Vec<Action>) {
        let may_build = state.generations <= self.rebuilds && state.restart == Restart::Over;
        match state.rebuild {
            Rebuild::None if !may_build => {}
            Rebuild::None if self.variant == Variant::CopyBeforeSubscribe => {
                actions.push(Action::CopyOpenSet);
            }
            Rebuild::None | Rebuild::CopiedEarly(_) => actions.push(Action::Subscribe),
            Rebuild::Subscribed => actions.push(Action::CopyOpenSet),
            Rebuild::Copied => actions.extend([Action::Scan, Action::CutScan]),
            Rebuild::Scanned => actions.push(Action::Swap),
        }
    }

    fn restart_actions(&self, state: &State, actions: &mut Vec<Action>) {
        let orphans_in_sockets =
            state.writes.iter().any(|write| write.abandoned && write.phase == Phase::InSocket);
        let over = match state.restart {
            Restart::Over => return,
            Restart::JustStarted => {
                if !orphans_in_sockets || self.variant == Variant::RestartListsAtOnce {
                    actions.push(Action::DrainSockets);
                }
                // W after the start.
                self.variant == Variant::RestartScansAtOnce || state.all_over(u8::MAX)
            }
            Restart::SocketsDrained => {
                actions.push(Action::ListStatements);
                false
            }
            Restart::Listed(listed) => state.all_over(listed),
        };
        if over {
            actions.push(Action::RestartOver);
        }
    }

    fn end(&self, state: &mut State, i: usize) {
        if self.variant == Variant::OpenSetByKeyAlone {
            state.open = 0;
        } else {
            state.open &= !(1 << i);
        }
    }

    fn crash(state: &mut State) {
        for write in &mut state.writes {
            if write.phase.under_way() || matches!(write.phase, Phase::Committed | Phase::Aborted) {
                write.abandoned = true;
            } else if write.phase != Phase::Idle {
                write.phase = Phase::Ended;
            }
        }
        state.open = 0;
        state.current = None;
        state.rebuild = Rebuild::None;
        state.restart = Restart::JustStarted;
        state.crashes += 1;
    }
}

impl Model for Gate {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let write = Write { phase: Phase::Idle, committed: false, abandoned: false };
        vec![State {
            writes: [write; 3],
            open: 0,
            current: Some(0),
            rebuild: Rebuild::None,
            generations: 1,
            contains: 0,
            restart: Restart::Over,
            crashes: 0,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for i in 0..self.writes {
            self.write_actions(state, i, actions);
        }
        self.rebuild_actions(state, actions);
        self.restart_actions(state, actions);
        if state.crashes < self.crashes {
            actions.push(Action::Crash);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            // Rule A1: the open set first, keyed by key and write id.
            Action::EnterOpenSet(i) => {
                state.open |= 1 << i;
                if state.writes[i].phase == Phase::Idle {
                    state.writes[i].phase = Phase::Entered;
                }
            }
            Action::NoteGenerations(i) => {
                let bit = |generation: Option<u8>| generation.map_or(0, |number| 1 << number);
                let noted = bit(state.current) | bit(state.building());
                state.writes[i].phase = Phase::Noted(noted);
            }
            Action::Insert(i) => {
                if let Phase::Noted(noted) = state.writes[i].phase {
                    state.contains |= noted;
                }
                state.writes[i].phase = Phase::Begun;
            }
            Action::SendSql(i) => state.writes[i].phase = Phase::InSocket,
            Action::StartSql(i) => state.writes[i].phase = Phase::Waiting,
            Action::FirstWrite(i) => state.writes[i].phase = Phase::Writing,
            Action::Commit(i) => {
                state.writes[i].phase = Phase::Committed;
                state.writes[i].committed = true;
            }
            Action::Abort(i) => state.writes[i].phase = Phase::Aborted,
            Action::End(i) => {
                if !state.writes[i].phase.under_way() {
                    state.writes[i].phase = Phase::Ended;
                }
                self.end(&mut state, i);
            }
            // Rule A6: the entry of a write of unknown outcome stays until W.
            Action::LoseOutcome(i) => {
                state.writes[i].abandoned = true;
                if self.variant == Variant::EntryEndsWithCaller {
                    self.end(&mut state, i);
                }
            }
            Action::WindowEnds(i) => {
                state.writes[i].phase = Phase::Ended;
                state.writes[i].abandoned = false;
                self.end(&mut state, i);
            }
            // Rule A2: subscribe, copy, scan, swap.
            Action::Subscribe => {
                let early = state.rebuild == Rebuild::CopiedEarly(true);
                let copied = matches!(state.rebuild, Rebuild::CopiedEarly(_));
                state.contains |= u8::from(early) << state.generations;
                state.generations += 1;
                state.rebuild = if copied { Rebuild::Copied } else { Rebuild::Subscribed };
            }
            Action::CopyOpenSet => {
                let open = state.open != 0 && self.variant != Variant::NoCopyOfOpenSet;
                match state.building() {
                    Some(building) => {
                        state.contains |= u8::from(open) << building;
                        state.rebuild = Rebuild::Copied;
                    }
                    None => state.rebuild = Rebuild::CopiedEarly(open),
                }
            }
            Action::Scan => {
                state.contains |= u8::from(state.committed()) << state.building()?;
                state.rebuild = Rebuild::Scanned;
            }
            Action::CutScan => {
                let succeeds = self.variant == Variant::CutScanSucceeds;
                state.rebuild = if succeeds { Rebuild::Scanned } else { Rebuild::None };
            }
            Action::Swap => {
                state.current = state.building();
                state.rebuild = Rebuild::None;
            }
            Action::Crash => Self::crash(&mut state),
            // Rule A8: what a predecessor left under way must be over before the first scan.
            Action::DrainSockets => state.restart = Restart::SocketsDrained,
            Action::ListStatements => {
                let listed = (0..3).filter(|&i| match state.writes[i].phase {
                    Phase::Waiting => self.variant != Variant::RestartWaitsForTransactionIds,
                    Phase::Writing => true,
                    _ => false,
                });
                state.restart = Restart::Listed(listed.map(|i| 1 << i).sum());
            }
            Action::RestartOver => state.restart = Restart::Over,
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(P1, |_, state: &State| !(state.committed() && state.refuses())),
            Property::sometimes("an absent id is refused", |_, state: &State| state.refuses()),
            Property::sometimes(
                "a write ends while a new generation answers",
                |_, state: &State| {
                    state.writes.iter().any(|write| write.committed && write.phase == Phase::Ended)
                        && state.current.is_some_and(|generation| generation > 0)
                },
            ),
            Property::sometimes("a gate refuses after a restart", |_, state: &State| {
                state.crashes > 0 && state.refuses()
            }),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::{Gate, P1, Variant};
    use crate::checks::{breaks, holds};

    #[test]
    fn no_committed_id_is_refused() {
        holds(Gate::default(), 39_000);
    }

    #[test]
    #[ignore = "deep"]
    fn deep_three_writes_and_two_restarts() {
        holds(Gate { rebuilds: 4, writes: 3, crashes: 2, ..Gate::default() }, 10_000_000);
    }

    #[test]
    fn each_rule_left_out_refuses_a_committed_id() {
        for variant in [
            Variant::InsertBeforeEntering,
            Variant::OpenSetByKeyAlone,
            Variant::NoCopyOfOpenSet,
            Variant::CopyBeforeSubscribe,
            Variant::CutScanSucceeds,
            Variant::EndBeforeCommit,
            Variant::EntryEndsWithCaller,
            Variant::RestartScansAtOnce,
            Variant::RestartWaitsForTransactionIds,
            Variant::RestartListsAtOnce,
        ] {
            breaks(Gate { variant, ..Gate::default() }, P1);
        }
    }
}
