//! One key in the shared cache and in two members' local caches: writers, readers, flights, a shared
//! cache that loses what it holds. Every member learns of a write before its Begin returns.

mod flights;
mod state;
#[cfg(test)]
mod tests;
mod writes;

use stateright::{Model, Property};

pub use state::{Action, State, Variant};
use state::{Entry, Flight, Phase, Stage, Write};

/// P5: nothing stale outlives a write.
pub const P5: &str = "P5: no reader gets less than what had ended when it came";

/// A key with its writers (each a member's index) and readers (likewise).
#[derive(Clone, Debug)]
pub struct Slot {
    /// Which rule is left out.
    pub variant: Variant,
    /// The member that writes, for each write: one or two.
    pub writers: &'static [usize],
    /// The member of each flight: at most three.
    pub flights: &'static [usize],
    /// 1, or 2: then each member has a schema, and a slot, of its own.
    pub schemas: usize,
    /// Whether the process of the first member may be killed, once. It is then the only one: all
    /// writers and flights are its own.
    pub crash: bool,
}

impl Slot {
    fn left_out(&self, variant: Variant) -> bool {
        self.variant == variant
    }

    fn slot_of(&self, member: usize) -> usize {
        if self.schemas == 1 { 0 } else { member }
    }

    fn all_slots(&self) -> u8 {
        if self.schemas == 1 { 1 } else { 3 }
    }
}

impl Model for Slot {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let write = Write {
            phase: Phase::Idle,
            intents: 0,
            cleared: 0,
            applied: false,
            version: 0,
            abandoned: false,
        };
        vec![State {
            row: 0,
            floor: 0,
            slots: [Entry::Empty; 2],
            writes: [write; 2],
            flights: [Flight::IDLE; 3],
            open: [0; 2],
            local: [None; 2],
            cleansing: [false; 2],
            restarted: false,
            warming: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for i in 0..self.writers.len() {
            self.write_actions(state, i, actions);
        }
        for f in 0..self.flights.len() {
            self.flight_actions(state, f, actions);
        }
        if self.crash && !state.restarted {
            actions.push(Action::Crash);
        }
        let under_way = |write: &Write| write.abandoned && write.phase == Phase::Entered;
        if state.warming && !state.writes.iter().any(under_way) {
            actions.push(Action::WarmUpEnds);
        }
        for (s, slot) in state.slots.iter().enumerate() {
            if *slot != Entry::Empty {
                actions.push(Action::LoseSlot(s));
            }
        }
        for (member, cleansing) in state.cleansing.iter().enumerate() {
            if *cleansing {
                actions.push(Action::ClearAtDeadline(member));
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::CreateFlight(f)
            | Action::StartFlight(f)
            | Action::JoinFlight(f)
            | Action::AskSlot(f)
            | Action::AskFails(f)
            | Action::Load(f)
            | Action::LoadFails(f)
            | Action::PublishLocally(f)
            | Action::SendFill(f)
            | Action::ExecuteFill(f)
            | Action::Finish(f) => self.flight_step(&mut state, f, action),
            _ => self.write_step(&mut state, action),
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(P5, |model, state: &State| {
                let used_while_open = model.left_out(Variant::CachesUsedWhileOpen);
                let local = (0..2).all(|member| {
                    (state.open[member] != 0 && !used_while_open)
                        || state.local[member].is_none_or(|version| version >= state.floor)
                });
                let flights = state.flights.iter().all(|flight| match flight.stage {
                    Stage::Hit(version) | Stage::Loaded(version, _) => version >= flight.floor,
                    _ => true,
                });
                local && flights
            }),
            Property::sometimes("a shared hit of an ended write", |_, state: &State| {
                state.flights.iter().any(|flight| {
                    matches!(flight.stage, Stage::Hit(version) if version > 0 && version == state.floor)
                })
            }),
            Property::sometimes(
                "a value is served locally after a restart",
                |model, state: &State| {
                    let serves = state.open[0] == 0 && state.local[0].is_some() && !state.warming;
                    !model.crash || (state.restarted && serves)
                },
            ),
            Property::sometimes("a member serves an ended write locally", |_, state: &State| {
                state.floor > 0 && (0..2).any(|m| state.open[m] == 0 && state.local[m].is_some())
            }),
        ]
    }
}
