//! The gates of a fleet: log, member table, leases, Begin's barrier, fencing, joining, identity change.
//!
//! There are no clocks. Each wait of L that is running owns a bit. When it starts, the bit is set on
//! every lease that is held and on every renewal that is on its way; when it ends, what carries the
//! bit is over. Besides, a lease may lapse at any moment. A pause is a step that is not taken: a
//! member that takes none for as long as one likes is among the paths that are searched. W is one
//! event for each write, which comes once its SQL is over.

mod begin;
mod member;
mod state;
#[cfg(test)]
mod tests;
mod variant;

use stateright::{Model, Property};

pub use state::{Action, State};
use state::{Life, Member, Phase, Redis, Row, Wait, Write};
pub use variant::Variant;

/// P1: no committed id is refused.
pub const P1: &str = "P1: no committed id is refused";

/// A writer that is none of the members.
pub const OUTSIDE: usize = usize::MAX;

/// A fleet and what may happen to it.
#[derive(Clone, Debug)]
pub struct Fleet {
    /// Which rule is left out.
    pub variant: Variant,
    /// How many members there are: 1 to 3.
    pub members: usize,
    /// The member that writes, for each write: one or two, each with a key of its own. [`OUTSIDE`]
    /// is a process that only writes: a member whose own gate and lease are left out.
    pub writers: &'static [usize],
    /// The members that have yet to join, a bit each.
    pub absent: u8,
    /// How often each member may register, the registration that it starts with included.
    pub registrations: [u8; 3],
    /// How many processes may be killed.
    pub crashes: u8,
    /// How many changes of identity there may be: 0 or 1.
    pub changes: u8,
    /// Whether a Begin may fence a member.
    pub fencing: bool,
    /// The members that settle an identity, a bit each. Without one, each Begin waits itself.
    pub settlers: u8,
    /// Whether the log is trimmed.
    pub trimming: bool,
    /// Whether members leave.
    pub leaving: bool,
}

impl Fleet {
    /// One member that may be fenced and register anew, and a process that writes once.
    pub const SMALLEST: Self = Self {
        variant: Variant::Correct,
        members: 1,
        writers: &[OUTSIDE],
        absent: 0,
        registrations: [2; 3],
        crashes: 0,
        changes: 0,
        fencing: true,
        settlers: 0b111,
        trimming: false,
        leaving: false,
    };

    fn left_out(&self, variant: Variant) -> bool {
        self.variant == variant
    }

    /// Rule C20: whether the member refuses the id of a write.
    fn refuses(&self, member: &Member, i: usize) -> bool {
        let leased = match self.variant {
            Variant::NoLeaseCheck => true,
            Variant::LeaseCheckedByTask => member.believes_leased,
            _ => member.lease.is_some(),
        };
        leased && member.in_sync() && member.gate & (1 << i) == 0
    }
}

impl Model for Fleet {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let member = |m: usize| {
            let present = self.absent & (1 << m) == 0;
            Member {
                life: u8::from(present),
                new_process: !present,
                stage: if present { Life::Registered } else { Life::Unregistered },
                epoch: 0,
                applied: 0,
                gate: 0,
                target: present.then_some(0),
                scanned: present,
                pending: 0,
                knows_all: present,
                lease: present.then_some(0),
                checked: false,
                believes_leased: present,
                renewal: None,
                settling: false,
            }
        };
        let row = |m: usize| Row { member: m, life: 1, applied: 0, fenced: false, fenced_by: 0 };
        let write =
            Write { phase: Phase::Idle, epoch: 0, position: 0, wait: Wait::None, covered: 0 };
        vec![State {
            redis: Redis {
                epoch: 0,
                settled: true,
                complete: true,
                rows: (0..self.members).filter(|m| self.absent & (1 << m) == 0).map(row).collect(),
                log: Vec::new(),
                trimmed: 0,
            },
            members: (0..self.members).map(member).collect(),
            writes: vec![write; self.writers.len()],
            crashes: 0,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for i in 0..state.writes.len() {
            self.write_actions(state, i, actions);
        }
        for m in 0..state.members.len() {
            self.member_actions(state, m, actions);
        }
        if state.redis.epoch < self.changes {
            actions.extend((0..=state.redis.log.len()).map(Action::ChangeIdentity));
        }
        if self.left_out(Variant::ExpiryFromWallClock) {
            actions.extend((0..state.redis.rows.len()).map(Action::RowExpires));
        }
        if self.trimming && self.may_trim(state) {
            actions.push(Action::Trim);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::EnterOpenSet(i)
            | Action::Append(i)
            | Action::WaitLease(i)
            | Action::LeaseWaited(i)
            | Action::LastLook(i)
            | Action::BeginFails(i)
            | Action::Commit(i)
            | Action::Abort(i) => self.write_step(&mut state, i, action),
            Action::Fence(i, row) => {
                debug_assert!(state.writes[i].phase == Phase::Appended, "only a Begin fences");
                state.redis.rows[row].fenced = true;
                if self.left_out(Variant::OthersFenceNotWaited) {
                    state.redis.rows[row].fenced_by = i as u8;
                }
            }
            Action::RemoveFenced(_, row) | Action::RowExpires(row) => {
                state.redis.rows.remove(row);
            }
            // Rule C17: table and settled flag are gone, and the log's end may be.
            Action::ChangeIdentity(kept) => {
                state.redis.epoch += 1;
                state.redis.settled = false;
                state.redis.complete = false;
                state.redis.rows.clear();
                state.redis.log.truncate(kept);
            }
            Action::Trim => {
                state.redis.log.remove(0);
                state.redis.trimmed += 1;
            }
            Action::Register(m)
            | Action::Resync(m)
            | Action::ReadTail(m)
            | Action::Apply(m)
            | Action::Replay(m)
            | Action::CopyGate(m)
            | Action::SendRenewal(m)
            | Action::ExecuteRenewal(m)
            | Action::ReceiveRenewal(m)
            | Action::LeaseLapses(m)
            | Action::LeaseTask(m)
            | Action::CheckLease(m)
            | Action::Settle(m)
            | Action::Settled(m)
            | Action::Announce(m)
            | Action::Leave(m)
            | Action::Crash(m) => self.member_step(&mut state, m, action),
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(P1, |model, state: &State| {
                state.writes.iter().enumerate().all(|(i, write)| {
                    write.phase != Phase::Committed
                        || state.members.iter().all(|member| !model.refuses(member, i))
                })
            }),
            Property::sometimes(
                "a committed id is known to every leased member",
                |_, state: &State| {
                    let known = |member: &Member| member.lease.is_some() && member.gate & 1 == 1;
                    state.writes[0].phase == Phase::Committed && state.members.iter().all(known)
                },
            ),
            Property::sometimes("open writes are announced anew", |model, state: &State| {
                model.changes == 0
                    || (state.redis.complete
                        && state.redis.epoch > 0
                        && !state.redis.log.is_empty())
                    || model.absent == (1 << model.members) - 1
            }),
            Property::sometimes("an absent id is refused", |model, state: &State| {
                let idle = |i: &usize| state.writes[*i].phase == Phase::Idle;
                let mut absent = (0..state.writes.len()).filter(idle);
                absent.any(|i| state.members.iter().any(|member| model.refuses(member, i)))
            }),
            Property::sometimes("a member that registered is in sync", |model, state: &State| {
                state.members.iter().enumerate().any(|(m, member)| {
                    let since = u8::from(model.absent & (1 << m) == 0);
                    member.life > since && member.in_sync() && member.lease.is_some()
                }) || (model.absent == 0 && model.registrations == [1; 3])
            }),
        ]
    }
}
