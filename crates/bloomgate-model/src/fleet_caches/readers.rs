//! Readers: flights, the local cache, the slot under the epoch's prefix.

use super::state::{Action, Slot, Stage, State};
use super::{FleetCaches, Variant};

impl FleetCaches {
    /// Whether a member may use the slot: rules A4, C20 and C26.
    fn uses_shared(&self, state: &State, m: usize) -> bool {
        let member = &state.members[m];
        let leased =
            member.lease == Some(member.epoch) || self.left_out(Variant::SharedUsedWithoutLease);
        leased && member.open == 0 && !member.cleansing && self.knows_all(state, m)
    }

    /// Whether what is sent to the slot reaches a server of the member's identity: rule C17.
    fn reaches(&self, state: &State, epoch: u8) -> bool {
        epoch == state.redis.epoch || self.left_out(Variant::ConnectionUnchecked)
    }

    pub(super) fn flight_actions(&self, state: &State, f: usize, actions: &mut Vec<Action>) {
        let m = self.flights[f];
        let (flight, member) = (state.flights[f], &state.members[m]);
        // A flight of a member that did not know all open writes is of no use to others, even if it
        // knows them by now.
        let current = flight.current && !flight.bypass;
        let calm = current && member.open == 0 && self.knows_all(state, m);
        match flight.stage {
            Stage::Idle => {
                if flight.fill.is_none() {
                    actions.push(Action::StartFlight(f));
                }
            }
            Stage::Started => actions.push(Action::AskSlot(f)),
            Stage::Leased | Stage::Unleased => actions.push(Action::Load(f)),
            Stage::Hit(_) | Stage::Loaded(..) => {
                if calm {
                    actions.push(Action::PublishLocally(f));
                    let leased = matches!(flight.stage, Stage::Loaded(_, true));
                    if leased && self.uses_shared(state, m) {
                        actions.push(Action::SendFill(f));
                    }
                }
                actions.push(Action::Finish(f));
            }
        }
        // Rules A4 and C20.
        let unstarted = matches!(flight.stage, Stage::Leased | Stage::Unleased);
        let leased = member.lease.is_some() || self.left_out(Variant::FlightJoinedWithoutLease);
        if flight.stage != Stage::Idle
            && flight.floor != state.floor
            && (unstarted || (calm && leased))
        {
            actions.push(Action::JoinFlight(f));
        }
        if flight.fill.is_some() {
            actions.push(Action::ExecuteFill(f));
        }
    }

    pub(super) fn flight_step(&self, state: &mut State, f: usize, action: Action) {
        let m = self.flights[f];
        let epoch = state.members[m].epoch;
        let uses_shared = self.uses_shared(state, m) && self.reaches(state, epoch);
        let unaware = state.members[m].open != 0
            || (!self.knows_all(state, m) && !self.left_out(Variant::UnawareFlightUsed));
        let flight = &mut state.flights[f];
        let lease = Slot::Lease(f as u8);
        match (action, flight.stage) {
            (Action::StartFlight(_), _) => {
                flight.stage = if uses_shared { Stage::Started } else { Stage::Unleased };
                flight.floor = state.floor;
                flight.current = true;
                flight.bypass = unaware;
            }
            (Action::JoinFlight(_), _) => flight.floor = state.floor,
            (Action::AskSlot(_), _) => {
                let slot = &mut state.redis.slots[self.slot_of(epoch)];
                flight.stage = match *slot {
                    _ if !uses_shared => Stage::Unleased,
                    Slot::Value(version) => Stage::Hit(version),
                    Slot::Empty => {
                        *slot = lease;
                        Stage::Leased
                    }
                    Slot::Lease(_) | Slot::Intent(_) => Stage::Unleased,
                };
            }
            (Action::Load(_), stage) => {
                flight.stage = Stage::Loaded(state.row, stage == Stage::Leased);
            }
            (Action::PublishLocally(_), Stage::Hit(version) | Stage::Loaded(version, _)) => {
                state.members[m].local = Some(version);
            }
            (Action::SendFill(_), Stage::Loaded(version, _)) => {
                flight.fill = Some((version, epoch));
                flight.stage = Stage::Loaded(version, false);
            }
            (Action::ExecuteFill(_), _) => {
                if let Some((version, epoch)) = flight.fill.take() {
                    let here =
                        epoch == state.redis.epoch || self.left_out(Variant::ConnectionUnchecked);
                    let slot = &mut state.redis.slots[self.slot_of(epoch)];
                    if *slot == lease && here {
                        *slot = Slot::Value(version);
                    }
                }
            }
            _ => {
                for slot in &mut state.redis.slots {
                    if *slot == lease && flight.fill.is_none() {
                        *slot = Slot::Empty;
                    }
                }
                flight.stage = Stage::Idle;
                flight.floor = 0;
                flight.current = false;
                flight.bypass = false;
            }
        }
    }
}
