//! Writes: Begin's barrier, the commit, End, and W.

use super::state::{Action, Entry, Phase, Slot, State};
use super::{FleetCaches, OUTSIDE, Variant};

impl FleetCaches {
    /// Every row has applied the entry, or it is fenced and its member's lease is over; and no lease
    /// of an older identity is left, which is what the wait for an unsettled one is for.
    fn barrier_is_over(&self, state: &State, i: usize) -> bool {
        let position = state.writes[i].position;
        let old = |m: &usize| state.members[*m].lease.is_some_and(|e| e != state.redis.epoch);
        let settled = !(0..2).any(|m| old(&m)) || self.left_out(Variant::UnsettledNotWaited);
        let passed = |m: usize| {
            state.redis.rows[m].is_none_or(|row| {
                row.applied >= position || (row.fenced && state.members[m].lease.is_none())
            })
        };
        self.left_out(Variant::BeginWithoutBarrier) || (settled && (0..2).all(passed))
    }

    pub(super) fn write_actions(&self, state: &State, i: usize, actions: &mut Vec<Action>) {
        let write = state.writes[i];
        let moved = write.epoch != state.redis.epoch;
        match write.phase {
            Phase::Idle => actions.push(Action::EnterOpenSet(i)),
            Phase::Entered => actions.push(Action::Append(i)),
            Phase::Appended => actions.push(Action::PutIntent(i)),
            Phase::Intended | Phase::EndAppended => {
                if moved || self.barrier_is_over(state, i) {
                    actions.push(Action::LastLook(i));
                }
            }
            Phase::Begun => actions.extend([Action::Commit(i), Action::Abort(i)]),
            Phase::Committed | Phase::Aborted => actions.push(Action::ClearIntent(i)),
            Phase::Cleared => actions.push(Action::EndLocally(i)),
            Phase::Repeating | Phase::Returned => actions.push(Action::AppendEnd(i)),
            Phase::Over => {}
        }
        let lingers = state.members.iter().any(|member| member.open & (1 << i) != 0);
        let ended = matches!(write.phase, Phase::Returned | Phase::Over);
        if write.phase.may_expire() || (ended && lingers && !write.expired) {
            actions.push(Action::WindowEnds(i));
        }
    }

    /// What End does in a member.
    pub(super) fn close(&self, state: &mut State, m: usize, i: usize) {
        state.members[m].open &= !(1 << i);
        state.members[m].local = None;
        self.move_generation(state, m);
    }

    pub(super) fn move_generation(&self, state: &mut State, m: usize) {
        for (flight, of) in state.flights.iter_mut().zip(self.flights) {
            flight.current &= *of != m;
        }
    }

    pub(super) fn write_step(&self, state: &mut State, i: usize, action: Action) {
        let writer = self.writers[i];
        let epoch = state.redis.epoch;
        let slot = self.slot_of(epoch);
        match action {
            Action::EnterOpenSet(_) => {
                state.writes[i].phase = Phase::Entered;
                if writer != OUTSIDE {
                    state.members[writer].open |= 1 << i;
                    self.move_generation(state, writer);
                }
            }
            Action::Append(_) => {
                state.redis.log.push(Entry::Begin(i as u8));
                state.writes[i].phase = Phase::Appended;
                state.writes[i].epoch = epoch;
                state.writes[i].position = state.redis.log.len() as u8;
            }
            // Rule B10.
            Action::PutIntent(_) => {
                let others = match state.redis.slots[slot] {
                    Slot::Intent(writes) => writes,
                    _ => 0,
                };
                state.redis.slots[slot] = Slot::Intent(others | 1 << i);
                state.writes[i].phase = Phase::Intended;
            }
            // Rule C19: under another identity, the Begin is void and appended anew; so is the End.
            Action::LastLook(_) => {
                let void = epoch != state.writes[i].epoch;
                state.writes[i].phase = match state.writes[i].phase {
                    Phase::EndAppended if void => Phase::Repeating,
                    Phase::EndAppended => Phase::Over,
                    _ if void => Phase::Entered,
                    _ => Phase::Begun,
                };
                if state.writes[i].phase == Phase::Over {
                    state.floor = state.floor.max(state.writes[i].version);
                }
            }
            Action::Commit(_) => {
                state.row += 1;
                state.writes[i].version = state.row;
                state.writes[i].phase = Phase::Committed;
            }
            Action::Abort(_) => state.writes[i].phase = Phase::Aborted,
            // Rule A5: the shared cache, the local one, the log. Rule B14: no intent, nothing stays.
            Action::ClearIntent(_) => {
                state.redis.slots[slot] = match state.redis.slots[slot] {
                    Slot::Intent(writes) if writes != 1 << i => Slot::Intent(writes & !(1 << i)),
                    _ => Slot::Empty,
                };
                state.writes[i].phase = Phase::Cleared;
                // The answer says under which identity: 1 for another than Begin's.
                state.writes[i].position = u8::from(state.writes[i].epoch != epoch);
            }
            Action::EndLocally(_) => {
                if writer != OUTSIDE {
                    self.close(state, writer, i);
                }
                let moved = state.writes[i].position == 1;
                if moved && !self.left_out(Variant::EndWithoutBarrier) {
                    state.writes[i].phase = Phase::Repeating;
                } else {
                    state.writes[i].phase = Phase::Returned;
                    state.floor = state.floor.max(state.writes[i].version);
                }
            }
            Action::AppendEnd(_) => {
                state.redis.log.push(Entry::End(i as u8));
                let repeats = state.writes[i].phase == Phase::Repeating;
                state.writes[i].phase = if repeats { Phase::EndAppended } else { Phase::Over };
                state.writes[i].epoch = epoch;
                state.writes[i].position = if repeats { state.redis.log.len() as u8 } else { 0 };
            }
            // Rule A6: with what End would have done, in every member.
            _ => {
                for s in &mut state.redis.slots {
                    if let Slot::Intent(writes) = *s {
                        let left = writes & !(1 << i);
                        *s = if left == 0 { Slot::Empty } else { Slot::Intent(left) };
                    }
                }
                for m in 0..2 {
                    if state.members[m].open & (1 << i) != 0 {
                        self.close(state, m, i);
                        state.members[m].cleansing = true;
                    }
                }
                state.floor = state.floor.max(state.writes[i].version);
                state.writes[i].phase = Phase::Over;
                state.writes[i].expired = true;
            }
        }
    }
}
