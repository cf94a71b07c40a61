//! Two Redis primaries at once (rule C27): a writer and a member that may be connected to different
//! ones, while the third node follows one or the other.
//!
//! Node 0 is the primary of the old identity. Node 1 is promoted, and is that of the new one. Node 2
//! follows node 0 and at some moment node 1; node 0 may follow node 1, too, and is then no primary.
//! What a primary executes is acknowledged by a majority if another node follows it at some moment
//! after that. Any process reaches any primary, or not, at any moment: partitions of every kind. The
//! rest is [`crate::fleet`] with one member and one write.

mod state;
mod steps;
#[cfg(test)]
mod tests;

use stateright::{Model, Property};

pub use state::{Action, State};
use state::{Identity, Member, Phase, Row, Wait};

/// P1: no committed id is refused.
pub const P1: &str = "P1: no committed id is refused";

/// What is searched: the rules, or the rules with one left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    /// The rules as they are.
    #[default]
    Correct,
    /// A renewal counts without a majority.
    RenewalUnacknowledged,
    /// Begin returns without a majority for its last look.
    LastLookUnacknowledged,
    /// A registration counts without a majority.
    RegistrationUnacknowledged,
    /// W counts from the execution of the registration, not from its acknowledgement.
    WindowFromExecution,
    /// Begin's wait for an unsettled identity starts before a majority has acknowledged its entry.
    WaitFromUnacknowledged,
    /// So does the wait after which the identity is marked as settled.
    SettledFromUnacknowledged,
    /// Nothing waits for a majority.
    NothingAcknowledged,
}

/// Three nodes, one member, one write.
#[derive(Clone, Copy, Debug)]
pub struct TwoPrimaries {
    /// Which rule is left out.
    pub variant: Variant,
    /// Whether the old primary goes on after the promotion. If not, there is a single one.
    pub both: bool,
}

impl TwoPrimaries {
    fn left_out(&self, variant: Variant) -> bool {
        self.variant == variant || self.variant == Variant::NothingAcknowledged
    }
}

impl Model for TwoPrimaries {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let row = Some(Row { applied: false, fenced: false });
        vec![State {
            promoted: false,
            follows: 0,
            demoted: false,
            identities: [
                Identity { row, log: false, settled: true },
                Identity { row: None, log: false, settled: false },
            ],
            member: Member {
                identity: 0,
                gate: false,
                synced: true,
                applied: false,
                lease: Some(0),
                renewal: None,
                registering: false,
                pending: false,
            },
            phase: Phase::Idle,
            at: 0,
            appended: false,
            wait: Wait::None,
            covers_fence: false,
            settling: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if !state.promoted {
            actions.push(Action::Promote);
        } else if !state.demoted {
            actions.push(Action::Demote);
        }
        if state.promoted && state.follows == 0 {
            actions.push(Action::Follow);
        }
        self.write_actions(state, actions);
        self.member_actions(state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Promote => {
                state.promoted = true;
                state.demoted = !self.both;
            }
            Action::Demote => state.demoted = true,
            Action::Follow => state.follows = 1,
            _ => self.step(&mut state, action),
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(P1, |_, state: &State| {
                state.phase != Phase::Committed || !state.member.refuses()
            }),
            Property::sometimes(
                "an absent id is refused under the new identity",
                |_, state: &State| state.member.identity == 1 && state.member.refuses(),
            ),
            Property::sometimes(
                "a write is committed under the new identity",
                |_, state: &State| {
                    state.phase == Phase::Committed && state.at == 1 && state.member.lease.is_some()
                },
            ),
            Property::sometimes(
                "a write is committed at the old primary beside the new",
                |model, state: &State| {
                    let old = state.phase == Phase::Committed && state.at == 0;
                    (old && state.promoted && !state.demoted) || !model.both
                },
            ),
        ]
    }
}
