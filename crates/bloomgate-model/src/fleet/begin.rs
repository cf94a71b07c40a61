//! Writes: Begin's barrier, fencing, the last look, the commit; and trimming.

use super::state::{Action, Phase, State, Wait};
use super::{Fleet, Variant};

/// Marks a renewal whose lease is over before its answer has arrived.
pub(super) const DEAD: u8 = 0x80;

/// Starts a wait of L: it covers what is held and what is on its way.
pub(super) fn start_wait(state: &mut State, bit: u8) {
    for member in &mut state.members {
        if let Some(waits) = &mut member.lease {
            *waits |= bit;
        }
        if let Some(renewal) = &mut member.renewal
            && renewal.waits != DEAD
        {
            renewal.waits |= bit;
        }
    }
}

/// Ends a wait of L: what it covered is over. A renewal is still executed, but the lease that it
/// brings has lapsed.
pub(super) fn end_wait(state: &mut State, bit: u8) {
    for member in &mut state.members {
        member.lease = member.lease.filter(|waits| waits & bit == 0);
        if let Some(renewal) = &mut member.renewal
            && renewal.waits & bit != 0
        {
            renewal.waits = DEAD;
        }
    }
}

/// Gives a wait up.
pub(super) fn drop_wait(state: &mut State, bit: u8) {
    for member in &mut state.members {
        member.lease = member.lease.map(|waits| waits & !bit);
        if let Some(renewal) = &mut member.renewal {
            renewal.waits &= !bit;
        }
    }
}

impl Fleet {
    pub(super) fn write_actions(&self, state: &State, i: usize, actions: &mut Vec<Action>) {
        let write = state.writes[i];
        match write.phase {
            Phase::Idle => actions.push(Action::EnterOpenSet(i)),
            Phase::Entered => actions.extend([Action::Append(i), Action::BeginFails(i)]),
            Phase::LookedTooEarly if write.wait == Wait::None => {
                actions.push(Action::WaitLease(i));
            }
            Phase::Appended | Phase::LookedTooEarly => {
                self.barrier_actions(state, i, actions);
                actions.push(Action::BeginFails(i));
            }
            Phase::Begun => actions.extend([Action::Commit(i), Action::Abort(i)]),
            Phase::Committed | Phase::Failed => {}
        }
        // Rule C21: only what was fenced, and only by one who has waited.
        if write.wait == Wait::Over || self.left_out(Variant::RemovedUnwaited) {
            let waited = |member: usize| write.covered & (0xf << (member * 4)) != 0;
            actions.extend(state.redis.rows.iter().enumerate().filter_map(|(r, row)| {
                let removable = match self.variant {
                    Variant::RemovedUnwaited => row.fenced,
                    Variant::OtherIncarnationRemoved => waited(row.member),
                    _ => row.fenced && write.covered & row.bit() != 0,
                };
                removable.then_some(Action::RemoveFenced(i, r))
            }));
        }
    }

    fn barrier_actions(&self, state: &State, i: usize, actions: &mut Vec<Action>) {
        let write = state.writes[i];
        if write.wait == Wait::Running {
            actions.push(Action::LeaseWaited(i));
            return;
        }
        if write.phase == Phase::LookedTooEarly {
            return;
        }
        let redis = &state.redis;
        if redis.epoch == write.epoch {
            for (r, row) in redis.rows.iter().enumerate() {
                if self.fencing && !row.fenced && row.applied < write.position {
                    actions.push(Action::Fence(i, r));
                }
            }
            let uncovered =
                redis.rows.iter().any(|row| row.fenced && write.covered & row.bit() == 0);
            let uncovered = uncovered && !self.left_out(Variant::FenceWithoutWaiting);
            let early = self.left_out(Variant::LookBeforeWaiting);
            if !early && (uncovered || (!redis.settled && write.wait == Wait::None)) {
                actions.push(Action::WaitLease(i));
            }
        }
        if self.last_look_ends(state, i) {
            actions.push(Action::LastLook(i));
        }
    }

    /// Whether a look at the table ends the barrier: every row has applied the entry, or it was
    /// fenced and the wait began after that; and the identity is settled, or the wait covers it. A
    /// look that finds another identity ends it, too: the Begin is void.
    fn last_look_ends(&self, state: &State, i: usize) -> bool {
        let (write, redis) = (state.writes[i], &state.redis);
        if redis.epoch != write.epoch && !self.left_out(Variant::IdentityUnchecked) {
            return true;
        }
        let early = self.left_out(Variant::LookBeforeWaiting);
        let own_only = redis.rows.iter().all(|row| row.member == self.writers[i]);
        let settled = redis.settled
            || write.wait == Wait::Over
            || early
            || self.left_out(Variant::UnsettledNotWaited)
            || (self.left_out(Variant::EmptinessIsProof) && own_only);
        settled
            && (self.left_out(Variant::BeginWithoutBarrier)
                || redis.rows.iter().all(|row| {
                    let waited = write.covered & row.bit() != 0
                        || early
                        || self.left_out(Variant::FenceWithoutWaiting)
                        || (self.left_out(Variant::OthersFenceNotWaited)
                            && row.fenced_by != i as u8);
                    row.applied >= write.position || (row.fenced && waited)
                }))
    }

    pub(super) fn write_step(&self, state: &mut State, i: usize, action: Action) {
        let bit = 1 << i;
        match action {
            // Rule A1, with the gate of the process itself.
            Action::EnterOpenSet(_) => {
                if let Some(member) = state.members.get_mut(self.writers[i]) {
                    member.gate |= 1 << i;
                }
                state.writes[i].phase = Phase::Entered;
            }
            // Rule C19: one script appends, and returns table and identity.
            Action::Append(_) => {
                state.redis.log.push(i as u8);
                state.writes[i].phase = Phase::Appended;
                state.writes[i].epoch = state.redis.epoch;
                state.writes[i].position = state.redis.tail();
                state.writes[i].wait = Wait::None;
                state.writes[i].covered = 0;
            }
            Action::WaitLease(_) => {
                let fenced = state.redis.rows.iter().filter(|row| row.fenced);
                state.writes[i].covered = fenced.map(|row| row.bit()).sum();
                state.writes[i].wait = Wait::Running;
                start_wait(state, bit);
            }
            Action::LeaseWaited(_) => {
                end_wait(state, bit);
                state.writes[i].wait = Wait::Over;
                if state.writes[i].phase == Phase::LookedTooEarly {
                    state.writes[i].phase = Phase::Begun;
                }
            }
            Action::LastLook(_) => {
                let void = state.redis.epoch != state.writes[i].epoch;
                let waits = !state.redis.settled || state.redis.rows.iter().any(|row| row.fenced);
                state.writes[i].phase = match self.variant {
                    Variant::LookBeforeWaiting if waits && !void => Phase::LookedTooEarly,
                    Variant::IdentityUnchecked => Phase::Begun,
                    _ if void => Phase::Entered,
                    _ => Phase::Begun,
                };
            }
            Action::Commit(_) => state.writes[i].phase = Phase::Committed,
            // The end of a Begin that is given up, and of a statement that fails.
            _ => {
                if state.writes[i].wait == Wait::Running {
                    state.writes[i].wait = Wait::None;
                    drop_wait(state, bit);
                }
                state.writes[i].phase = Phase::Failed;
            }
        }
    }

    /// Rule C23: seen at least W ago, so that its SQL is over, and applied by every member.
    pub(super) fn may_trim(&self, state: &State) -> bool {
        let redis = &state.redis;
        redis.log.first().is_some_and(|&i| {
            let old = !state.writes[usize::from(i)].phase.is_open();
            let applied = redis.rows.iter().all(|row| row.applied > redis.trimmed);
            (old || self.left_out(Variant::YoungEntryTrimmed))
                && (applied || self.left_out(Variant::UnappliedEntryTrimmed))
        })
    }
}
