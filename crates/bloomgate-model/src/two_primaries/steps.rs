//! The write and the member.

use super::state::{Action, Phase, Renewal, RenewalStage, Row, State, Wait};
use super::{TwoPrimaries, Variant};

/// The bits of the two waits, and what marks a renewal whose lease is over before its answer.
const OF_BEGIN: u8 = 1;
const OF_SETTLING: u8 = 2;
const DEAD: u8 = 4;

fn start_wait(state: &mut State, bit: u8) {
    let member = &mut state.member;
    member.lease = member.lease.map(|waits| waits | bit);
    if let Some(renewal) = &mut member.renewal {
        renewal.waits |= if renewal.waits == DEAD { 0 } else { bit };
    }
}

/// Ends a wait: what it covered is over if L has passed, and goes on if the wait was given up.
fn end_wait(state: &mut State, bit: u8, passed: bool) {
    let member = &mut state.member;
    member.lease = member.lease.filter(|waits| !passed || waits & bit == 0).map(|w| w & !bit);
    if let Some(renewal) = &mut member.renewal {
        let covered = passed && renewal.waits & bit != 0;
        renewal.waits = if covered { DEAD } else { renewal.waits & !bit };
    }
}

impl TwoPrimaries {
    pub(super) fn write_actions(&self, state: &State, actions: &mut Vec<Action>) {
        let identity = state.identities[state.at];
        let answers = state.answers(state.at);
        let acknowledges = state.acknowledges(state.at);
        match state.phase {
            Phase::Idle => actions.push(Action::EnterOpenSet),
            Phase::Entered => {
                let mine = (0..2).filter(|&x| state.answers(x));
                actions.extend(mine.map(Action::Append));
                actions.push(Action::BeginFails);
            }
            Phase::Appended => {
                if !state.appended && acknowledges {
                    actions.push(Action::AppendAcknowledged);
                }
                let row = identity.row.filter(|row| !row.applied);
                let unfenced = row.is_some_and(|row| !row.fenced);
                let uncovered = row.is_some_and(|row| row.fenced) && !state.covers_fence;
                if answers && unfenced {
                    actions.push(Action::Fence);
                }
                // The wait for an unsettled identity counts from an acknowledged look at it.
                let from = identity.settled
                    || state.appended
                    || self.left_out(Variant::WaitFromUnacknowledged);
                let unsettled = !identity.settled && state.wait == Wait::None;
                if state.wait != Wait::Running && from && (uncovered || unsettled) {
                    actions.push(Action::WaitLease);
                }
                let settled = identity.settled || state.wait == Wait::Over;
                let fenced = state.covers_fence && state.wait == Wait::Over;
                let passed = row.is_none_or(|row| row.fenced && fenced);
                if answers && state.wait != Wait::Running && settled && passed {
                    actions.push(Action::LastLook);
                }
                actions.extend([Action::BeginAnew, Action::BeginFails]);
            }
            Phase::Looked => {
                if acknowledges || self.left_out(Variant::LastLookUnacknowledged) {
                    actions.push(Action::LastLookAcknowledged);
                }
                actions.extend([Action::BeginAnew, Action::BeginFails]);
            }
            Phase::Begun => actions.extend([Action::Commit, Action::Abort]),
            Phase::Committed | Phase::Failed => {}
        }
        if state.wait == Wait::Running {
            actions.push(Action::LeaseWaited);
        }
        let from = state.acknowledges(1) || self.left_out(Variant::SettledFromUnacknowledged);
        if state.promoted && !state.identities[1].settled && !state.settling && from {
            actions.push(Action::Settle);
        }
        if state.settling {
            actions.push(Action::Settled);
        }
    }

    pub(super) fn member_actions(&self, state: &State, actions: &mut Vec<Action>) {
        let member = state.member;
        let identity = state.identities[member.identity];
        let answers = state.answers(member.identity);
        let acknowledges = state.acknowledges(member.identity);
        if member.lease.is_some() {
            actions.push(Action::LeaseLapses);
        }
        if member.identity == 0 && state.promoted {
            actions.push(Action::Register(1));
        }
        if answers && identity.row.is_none_or(|row| row.fenced) {
            actions.push(Action::Register(member.identity));
        }
        if member.registering {
            if acknowledges || self.left_out(Variant::RegistrationUnacknowledged) {
                actions.push(Action::RegistrationAcknowledged);
            }
            return;
        }
        if answers && identity.log && !member.applied {
            actions.push(Action::Apply);
        }
        let over = matches!(state.phase, Phase::Idle | Phase::Committed | Phase::Failed);
        if !member.synced && (over || !member.pending) && member.applied == identity.log {
            actions.push(Action::CopyGate);
        }
        match member.renewal.map(|renewal| renewal.stage) {
            None => {
                let news = identity.row.is_some_and(|row| !row.applied && member.applied);
                if member.lease != Some(0) || news {
                    actions.push(Action::SendRenewal);
                }
            }
            Some(RenewalStage::Sent) => {
                if answers && identity.row.is_some_and(|row| !row.fenced) {
                    actions.push(Action::ExecuteRenewal);
                }
                actions.push(Action::LoseRenewal);
            }
            Some(RenewalStage::Executed) => {
                if acknowledges || self.left_out(Variant::RenewalUnacknowledged) {
                    actions.push(Action::RenewalAcknowledged);
                }
                actions.push(Action::LoseRenewal);
            }
            Some(RenewalStage::Acknowledged) => actions.push(Action::ReceiveRenewal),
        }
    }

    pub(super) fn step(&self, state: &mut State, action: Action) {
        let over = matches!(state.phase, Phase::Idle | Phase::Committed | Phase::Failed);
        let committed = state.phase == Phase::Committed;
        let member = &mut state.member;
        match action {
            Action::EnterOpenSet => state.phase = Phase::Entered,
            Action::Append(identity) => {
                state.phase = Phase::Appended;
                state.at = identity;
                state.identities[identity].log = true;
            }
            Action::AppendAcknowledged => state.appended = true,
            Action::Fence => {
                if let Some(row) = &mut state.identities[state.at].row {
                    row.fenced = true;
                }
            }
            Action::WaitLease => {
                state.wait = Wait::Running;
                state.covers_fence = state.identities[state.at].row.is_some_and(|row| row.fenced);
                start_wait(state, OF_BEGIN);
            }
            Action::LeaseWaited => {
                state.wait = Wait::Over;
                end_wait(state, OF_BEGIN, true);
            }
            Action::LastLook => state.phase = Phase::Looked,
            Action::LastLookAcknowledged => state.phase = Phase::Begun,
            Action::BeginAnew | Action::BeginFails => {
                end_wait(state, OF_BEGIN, false);
                let anew = action == Action::BeginAnew;
                state.phase = if anew { Phase::Entered } else { Phase::Failed };
                state.appended = false;
                state.wait = Wait::None;
                state.covers_fence = false;
            }
            Action::Commit => state.phase = Phase::Committed,
            Action::Abort => state.phase = Phase::Failed,
            Action::Settle => {
                state.settling = true;
                start_wait(state, OF_SETTLING);
            }
            Action::Settled => {
                state.settling = false;
                state.identities[1].settled = true;
                end_wait(state, OF_SETTLING, true);
            }
            Action::Register(identity) => {
                // Anew under the same identity: the gate is not kept.
                member.synced &= member.identity != identity;
                member.identity = identity;
                member.applied = false;
                member.renewal = None;
                member.registering = true;
                member.pending = !over;
                state.identities[identity].row = Some(Row { applied: false, fenced: false });
                if !member.synced {
                    member.gate = false;
                    member.lease = None;
                }
            }
            // Rule C24: a lease that is valid by now spares the gate. If it is not, the scan comes
            // W after this, rule C27.
            Action::RegistrationAcknowledged => {
                member.registering = false;
                if member.lease.is_none() {
                    member.synced = false;
                    member.gate = false;
                }
                if !self.left_out(Variant::WindowFromExecution) {
                    member.pending = !over;
                }
            }
            Action::Apply => {
                member.gate = true;
                member.applied = true;
            }
            Action::CopyGate => {
                member.gate |= committed;
                member.synced = true;
                member.pending = false;
            }
            Action::SendRenewal => {
                let (stage, applied) = (RenewalStage::Sent, member.applied);
                member.renewal = Some(Renewal { stage, applied, waits: 0 });
            }
            Action::ExecuteRenewal => {
                if let (Some(renewal), Some(row)) =
                    (&mut member.renewal, &mut state.identities[member.identity].row)
                {
                    renewal.stage = RenewalStage::Executed;
                    row.applied |= renewal.applied;
                }
            }
            Action::RenewalAcknowledged => {
                if let Some(renewal) = &mut member.renewal {
                    renewal.stage = RenewalStage::Acknowledged;
                }
            }
            Action::ReceiveRenewal => {
                if let Some(renewal) = member.renewal.take()
                    && renewal.waits != DEAD
                {
                    member.lease = Some(renewal.waits);
                }
            }
            Action::LoseRenewal => member.renewal = None,
            _ => member.lease = None,
        }
    }
}
