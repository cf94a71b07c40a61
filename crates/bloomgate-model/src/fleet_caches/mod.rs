//! The caches of a fleet: local ones under the lease, slots under the epoch's prefix, the open set of
//! all members over a change of identity.
//!
//! Two members, one key. Renewals are one step, and a wait of L is over once the lease that it is for
//! is gone: the model of the gates ([`crate::fleet`]) shows that bits on leases and renewals amount to
//! that. Writers, slots and flights are those of [`crate::slot`], with fewer steps.

mod members;
mod readers;
mod state;
#[cfg(test)]
mod tests;
mod variant;
mod writes;

use stateright::{Model, Property};

pub use state::{Action, After, State};
use state::{Flight, Member, Phase, Redis, Row, Slot, Stage, Write};
pub use variant::Variant;

/// P5: nothing stale outlives a write.
pub const P5: &str = "P5: no reader gets less than what had ended when it came";

/// A writer that is none of the members.
pub const OUTSIDE: usize = usize::MAX;

/// Two members, a key, and what may happen.
#[derive(Clone, Debug)]
pub struct FleetCaches {
    /// Which rule is left out.
    pub variant: Variant,
    /// 2, or 1: then there is no first member.
    pub members: usize,
    /// The member that writes, for each write: one or two. [`OUTSIDE`] is a process that only writes:
    /// a member whose own caches and lease are left out.
    pub writers: &'static [usize],
    /// The member of each flight: at most two.
    pub flights: &'static [usize],
    /// How often each member may register.
    pub registrations: [u8; 2],
    /// Whether the identity may change, once.
    pub changes: u8,
    /// Whether the process of the second member may be killed, once.
    pub crash: bool,
}

impl FleetCaches {
    /// A process that writes once, one reader of the second member, no change of identity.
    pub const SMALLEST: Self = Self {
        variant: Variant::Correct,
        members: 1,
        writers: &[OUTSIDE],
        flights: &[1],
        registrations: [1, 2],
        changes: 0,
        crash: false,
    };

    fn left_out(&self, variant: Variant) -> bool {
        self.variant == variant
    }

    /// The slot that a member uses.
    fn slot_of(&self, epoch: u8) -> usize {
        if self.left_out(Variant::PrefixWithoutEpoch) { 0 } else { usize::from(epoch) }
    }

    /// Rule C26: whether a member knows every open write.
    fn knows_all(&self, state: &State, m: usize) -> bool {
        let member = &state.members[m];
        let over = |i: usize| member.pending & (1 << i) == 0 || !state.writes[i].phase.is_open();
        let aware =
            (0..state.writes.len()).all(over) || self.left_out(Variant::UnawareMemberCaches);
        let replayed = self.left_out(Variant::JoinerWithoutReplay);
        aware && member.target.is_some_and(|target| member.applied >= target || replayed)
    }

    /// Rule C20: whether a member serves its local cache as fresh.
    fn serves_locally(&self, state: &State, m: usize) -> bool {
        let member = &state.members[m];
        let leased = member.lease.is_some() || self.left_out(Variant::LocalServedWithoutLease);
        leased && member.open == 0 && self.knows_all(state, m)
    }
}

impl Model for FleetCaches {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let member = Member {
            registrations: 1,
            registered: true,
            epoch: 0,
            applied: 0,
            target: Some(0),
            pending: 0,
            may_announce: true,
            lease: Some(0),
            open: 0,
            local: None,
            cleansing: false,
        };
        let absent = Member { registered: false, may_announce: false, lease: None, ..member };
        let first = if self.members == 2 { member } else { absent };
        let row = Row { applied: 0, fenced: false };
        let write = Write { phase: Phase::Idle, epoch: 0, position: 0, version: 0, expired: false };
        let flight =
            Flight { stage: Stage::Idle, floor: 0, current: false, bypass: false, fill: None };
        vec![State {
            row: 0,
            floor: 0,
            redis: Redis {
                epoch: 0,
                complete: true,
                rows: [(self.members == 2).then_some(row), Some(row)],
                log: Vec::new(),
                slots: [Slot::Empty; 2],
            },
            members: [first, member],
            writes: vec![write; self.writers.len()],
            flights: vec![flight; self.flights.len()],
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for i in 0..state.writes.len() {
            self.write_actions(state, i, actions);
        }
        for m in 2 - self.members..2 {
            self.member_actions(state, m, actions);
        }
        for f in 0..state.flights.len() {
            self.flight_actions(state, f, actions);
        }
        if state.redis.epoch < self.changes {
            actions.extend([After::Kept, After::Lost, After::Restored].map(Action::ChangeIdentity));
        }
        for (s, slot) in state.redis.slots.iter().enumerate() {
            if *slot != Slot::Empty {
                actions.push(Action::LoseSlot(s));
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::ChangeIdentity(after) => {
                let redis = &mut state.redis;
                redis.epoch += 1;
                redis.complete = self.left_out(Variant::NothingAnnounced);
                redis.rows = [None; 2];
                redis.log.clear();
                match after {
                    After::Kept => {}
                    After::Lost => redis.slots = [Slot::Empty; 2],
                    After::Restored => redis.slots = [Slot::Value(0), Slot::Empty],
                }
            }
            Action::LoseSlot(s) => state.redis.slots[s] = Slot::Empty,
            Action::EnterOpenSet(i)
            | Action::Append(i)
            | Action::PutIntent(i)
            | Action::LastLook(i)
            | Action::Commit(i)
            | Action::Abort(i)
            | Action::ClearIntent(i)
            | Action::EndLocally(i)
            | Action::AppendEnd(i)
            | Action::WindowEnds(i) => self.write_step(&mut state, i, action),
            Action::StartFlight(f)
            | Action::JoinFlight(f)
            | Action::AskSlot(f)
            | Action::Load(f)
            | Action::PublishLocally(f)
            | Action::SendFill(f)
            | Action::ExecuteFill(f)
            | Action::Finish(f) => self.flight_step(&mut state, f, action),
            Action::Fence(m)
            | Action::Renew(m)
            | Action::LeaseLapses(m)
            | Action::Register(m)
            | Action::Resync(m)
            | Action::ReadTail(m)
            | Action::Apply(m)
            | Action::Announce(m)
            | Action::Crash(m)
            | Action::ClearAtDeadline(m) => self.member_step(&mut state, m, action),
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(P5, |model, state: &State| {
                let local = (0..2).all(|m| {
                    !model.serves_locally(state, m)
                        || state.members[m].local.is_none_or(|version| version >= state.floor)
                });
                let flights = state.flights.iter().all(|flight| match flight.stage {
                    Stage::Hit(version) | Stage::Loaded(version, _) => version >= flight.floor,
                    _ => true,
                });
                local && flights
            }),
            Property::sometimes("an ended write is served locally", |model, state: &State| {
                let serves = |m: usize| model.serves_locally(state, m);
                let served = |m: usize| serves(m) && state.members[m].local == Some(state.floor);
                state.floor > 0 && (0..2).any(served)
            }),
            Property::sometimes(
                "an ended write is a shared hit under the last identity",
                |model, state| {
                    let state: &State = state;
                    let hit = |flight: &Flight| flight.stage == Stage::Hit(state.floor);
                    state.floor > 0
                        && state.redis.epoch == model.changes
                        && state.flights.iter().any(hit)
                },
            ),
            Property::sometimes("an End repeats the barrier", |model, state: &State| {
                let repeats = |write: &Write| write.phase == Phase::EndAppended;
                model.changes == 0
                    || model.left_out(Variant::EndWithoutBarrier)
                    || state.writes.iter().any(repeats)
            }),
            Property::sometimes(
                "a member knows all that was announced to it",
                |model, state: &State| {
                    let told =
                        |m: usize| !state.members[m].may_announce && model.knows_all(state, m);
                    let announced = state.redis.epoch > 0 && state.redis.complete;
                    model.changes == 0
                        || model.members == 1
                        || (announced && state.members[1].open != 0 && told(1))
                },
            ),
        ]
    }
}
