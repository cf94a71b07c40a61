//! Members: leases, applying, registering, announcing, crashes.

use super::state::{Action, Entry, Row, Slot, Stage, State};
use super::{FleetCaches, Variant};

impl FleetCaches {
    pub(super) fn member_actions(&self, state: &State, m: usize, actions: &mut Vec<Action>) {
        let (member, redis) = (&state.members[m], &state.redis);
        let here = member.registered && member.epoch == redis.epoch;
        if member.lease.is_some() {
            actions.push(Action::LeaseLapses(m));
        }
        if !here && member.registrations < self.registrations[m] {
            let change = member.target.is_some() && member.epoch != redis.epoch;
            actions.push(if change { Action::Resync(m) } else { Action::Register(m) });
        }
        if here && let Some(row) = redis.rows[m] {
            let news = member.lease != Some(member.epoch) || row.applied < member.applied;
            if news || row.fenced {
                actions.push(Action::Renew(m));
            }
            if usize::from(member.applied) < redis.log.len() {
                actions.push(Action::Apply(m));
                if !row.fenced && member.registrations < self.registrations[m] {
                    actions.push(Action::Fence(m));
                }
            }
            if redis.complete && member.pending != 0 {
                actions.push(Action::ReadTail(m));
            }
            if !redis.complete && member.may_announce {
                actions.push(Action::Announce(m));
            }
        }
        if member.cleansing && member.epoch == redis.epoch {
            actions.push(Action::ClearAtDeadline(m));
        }
        if self.crash && m == 1 && member.registrations < self.registrations[m] {
            actions.push(Action::Crash(m));
        }
    }

    pub(super) fn member_step(&self, state: &mut State, m: usize, action: Action) {
        let tail = state.redis.log.len() as u8;
        let epoch = state.redis.epoch;
        let member = &mut state.members[m];
        match action {
            Action::Fence(_) => {
                if let Some(row) = &mut state.redis.rows[m] {
                    row.fenced = true;
                }
            }
            // Rule C20: with the position that it has applied; refused if the row is fenced.
            Action::Renew(_) => match &mut state.redis.rows[m] {
                Some(row) if !row.fenced => {
                    row.applied = member.applied;
                    member.lease = Some(member.epoch);
                }
                _ => member.registered = false,
            },
            Action::LeaseLapses(_) => member.lease = None,
            Action::Register(_) | Action::Resync(_) => self.register(state, m),
            Action::ReadTail(_) => {
                member.target = Some(tail);
                member.pending = 0;
            }
            Action::Apply(_) => {
                let entry = state.redis.log[usize::from(member.applied)];
                member.applied += 1;
                match entry {
                    Entry::Begin(i) => {
                        // Rule A6: past its deadline, what End would have done.
                        if state.writes[usize::from(i)].expired {
                            let ignored = self.left_out(Variant::LateEntryIgnored);
                            state.members[m].cleansing |= !ignored;
                            self.close(state, m, usize::from(i));
                        } else {
                            member.open |= 1 << i;
                            self.move_generation(state, m);
                        }
                    }
                    Entry::End(i) => self.close(state, m, usize::from(i)),
                }
            }
            // Rule C26.
            Action::Announce(_) => {
                for i in (0..2).filter(|i| member.open & (1 << i) != 0) {
                    state.redis.log.push(Entry::Begin(i));
                }
                state.redis.complete = true;
            }
            Action::ClearAtDeadline(_) => {
                member.cleansing = false;
                let slot = &mut state.redis.slots[self.slot_of(epoch)];
                if !matches!(slot, Slot::Intent(_)) {
                    *slot = Slot::Empty;
                }
            }
            _ => {
                member.registered = false;
                member.target = None;
                member.pending = 0;
                member.may_announce = false;
                member.lease = None;
                member.open = 0;
                member.local = None;
                member.cleansing = false;
                member.epoch = epoch;
                for (flight, of) in state.flights.iter_mut().zip(self.flights) {
                    if *of == m {
                        flight.stage = Stage::Idle;
                        flight.floor = 0;
                        flight.current = false;
                        flight.bypass = false;
                    }
                }
            }
        }
    }

    fn register(&self, state: &mut State, m: usize) {
        let open: u8 = (0..state.writes.len())
            .filter(|&i| state.writes[i].phase.is_open())
            .map(|i| 1 << i)
            .sum();
        let tail = state.redis.log.len() as u8;
        let epoch = state.redis.epoch;
        let complete = state.redis.complete;
        let knew = self.knows_all(state, m);
        let member = &mut state.members[m];
        let change = member.epoch != epoch;
        // Rule C26: only a lease that is valid by now shows that it knows all open writes.
        let leased = member.lease.is_some() || self.left_out(Variant::KnowsAllIfCaughtUp);
        member.may_announce = change && knew && leased;
        member.pending = if member.may_announce || complete { 0 } else { open };
        member.target = Some(if member.may_announce { 0 } else { tail });
        if !change {
            member.lease = None;
        }
        member.registrations += 1;
        member.registered = true;
        member.epoch = epoch;
        member.applied = 0;
        if change && self.left_out(Variant::OpenSetForgotten) {
            member.open = 0;
        }
        // Rule C24: the local cache is emptied, and all generations move.
        if !self.left_out(Variant::LocalKeptAtChange) {
            member.local = None;
        }
        if !self.left_out(Variant::GenerationsKeptAtChange) {
            self.move_generation(state, m);
        }
        state.redis.rows[m] = Some(Row { applied: 0, fenced: false });
    }
}
