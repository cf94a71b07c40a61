//! Readers: flights, the question to the slot, the fill.

use super::Slot;
use super::state::{Action, Entry, Stage, State, Variant};

impl Slot {
    pub(super) fn flight_actions(&self, state: &State, f: usize, actions: &mut Vec<Action>) {
        let flight = state.flights[f];
        let is_open = state.open[self.flights[f]] != 0;
        let may_publish = flight.current && !flight.bypass && !is_open;
        match flight.stage {
            Stage::Idle if flight.fill.is_none() => actions.push(Action::CreateFlight(f)),
            Stage::Idle => {}
            Stage::Created => actions.push(Action::StartFlight(f)),
            Stage::Started => actions.extend([Action::AskSlot(f), Action::AskFails(f)]),
            Stage::Leased | Stage::Unleased => {
                actions.extend([Action::Load(f), Action::LoadFails(f)]);
            }
            Stage::Hit(_) | Stage::Loaded(..) => {
                let unchecked = matches!(flight.stage, Stage::Hit(_))
                    && self.left_out(Variant::HitCopiedUnchecked);
                if may_publish || unchecked {
                    actions.push(Action::PublishLocally(f));
                }
                // Rule B13: only if the open set lacks the key and the generation has not moved.
                let unchecked = self.left_out(Variant::FillUnchecked);
                if matches!(flight.stage, Stage::Loaded(_, true)) && (may_publish || unchecked) {
                    actions.push(Action::SendFill(f));
                }
                actions.push(Action::Finish(f));
            }
        }
        // Rule A4: anyone may join a flight that has asked nothing, or has yet to read the row.
        let unstarted = matches!(flight.stage, Stage::Created | Stage::Leased | Stage::Unleased);
        let warming = self.flights[f] == 0 && state.warming;
        let joinable =
            flight.current && !is_open && !warming || self.left_out(Variant::AnyFlightJoined);
        if flight.stage != Stage::Idle && flight.floor != state.floor && (unstarted || joinable) {
            actions.push(Action::JoinFlight(f));
        }
        if flight.fill.is_some() {
            actions.push(Action::ExecuteFill(f));
        }
    }

    pub(super) fn flight_step(&self, state: &mut State, f: usize, action: Action) {
        let member = self.flights[f];
        let slot = &mut state.slots[self.slot_of(member)];
        let lease = Entry::Lease(f as u8);
        let flight = &mut state.flights[f];
        // Rule A4: while the key is open, the caches are skipped.
        let skips_caches = state.cleansing[member]
            || (member == 0 && state.warming)
            || (state.open[member] != 0 && !self.left_out(Variant::CachesUsedWhileOpen));
        match (action, flight.stage) {
            (Action::CreateFlight(_), _) => {
                flight.stage = Stage::Created;
                flight.floor = state.floor;
                flight.current = true;
                flight.bypass = skips_caches;
            }
            (Action::StartFlight(_), _) => {
                flight.bypass |= skips_caches && !self.left_out(Variant::SkipDecidedAtCreation);
                flight.stage = if flight.bypass { Stage::Unleased } else { Stage::Started };
            }
            (Action::JoinFlight(_), _) => flight.floor = state.floor,
            (Action::AskSlot(_), _) => match *slot {
                Entry::Value(version) => flight.stage = Stage::Hit(version),
                Entry::Empty => {
                    *slot = lease;
                    flight.stage = Stage::Leased;
                }
                Entry::Lease(_) => flight.stage = Stage::Unleased,
                // Rule B11.
                Entry::Intent(_) => {
                    flight.stage = Stage::Unleased;
                    flight.bypass = !self.left_out(Variant::IntentReaderPublishes);
                }
            },
            (Action::AskFails(_), _) => flight.stage = Stage::Unleased,
            (Action::Load(_), stage) => {
                flight.stage = Stage::Loaded(state.row, stage == Stage::Leased);
            }
            // Rule B12: an error releases the lease, and is no null.
            (Action::LoadFails(_), stage) if self.left_out(Variant::ErrorIsNull) => {
                flight.stage = Stage::Loaded(0, stage == Stage::Leased);
            }
            (Action::PublishLocally(_), Stage::Hit(version) | Stage::Loaded(version, _)) => {
                state.local[member] = Some(version);
            }
            (Action::SendFill(_), Stage::Loaded(version, _)) => {
                flight.fill = Some(version);
                flight.stage = Stage::Loaded(version, false);
            }
            (Action::ExecuteFill(_), _) => {
                if let Some(version) = flight.fill.take()
                    && (*slot == lease || self.left_out(Variant::FillWithoutCompare))
                {
                    *slot = Entry::Value(version);
                }
            }
            _ => {
                if *slot == lease && flight.fill.is_none() {
                    *slot = Entry::Empty;
                }
                flight.stage = Stage::Idle;
                flight.floor = 0;
                flight.current = false;
                flight.bypass = false;
            }
        }
    }
}
