//! Members: renewals, applying, joining, resyncing, settling, leaving, crashes.

use super::begin::{DEAD, drop_wait, end_wait, start_wait};
use super::state::{Action, Life, Phase, Renewal, RenewalStage, Row, State};
use super::{Fleet, Variant};

impl Fleet {
    pub(super) fn member_actions(&self, state: &State, m: usize, actions: &mut Vec<Action>) {
        let (member, redis) = (&state.members[m], &state.redis);
        let here = member.epoch == redis.epoch;
        if member.lease.is_some() {
            actions.push(Action::LeaseLapses(m));
            if self.left_out(Variant::LeaseCheckedBeforeRegistering) && !here && !member.checked {
                actions.push(Action::CheckLease(m));
            }
        } else if self.left_out(Variant::LeaseCheckedByTask) && member.believes_leased {
            actions.push(Action::LeaseTask(m));
        }
        match member.stage {
            Life::Left => return,
            Life::Leaving => {
                actions.push(Action::Leave(m));
                return;
            }
            Life::Unregistered => self.unregistered_actions(state, m, actions),
            Life::Registered if !here => self.unregistered_actions(state, m, actions),
            Life::Registered => {
                // Rule C22: the tail is read after the registration.
                if member.target.is_none() {
                    actions.push(Action::ReadTail(m));
                }
                let over =
                    |i: usize| member.pending & (1 << i) == 0 || !state.writes[i].phase.is_open();
                if !member.scanned && (0..state.writes.len()).all(over) {
                    actions.push(Action::CopyGate(m));
                }
                if member.applied < redis.tail() {
                    let apply = if member.in_sync() { Action::Apply } else { Action::Replay };
                    actions.push(apply(m));
                }
                let settler = self.settlers & (1 << m) != 0;
                if settler && !redis.settled && !member.settling {
                    actions.push(Action::Settle(m));
                }
                if !redis.complete && member.knows_all {
                    actions.push(Action::Announce(m));
                }
            }
        }
        if member.settling {
            actions.push(Action::Settled(m));
        }
        match member.renewal {
            Some(Renewal { stage: RenewalStage::Sent, .. }) => {
                actions.push(Action::ExecuteRenewal(m));
            }
            Some(_) => actions.push(Action::ReceiveRenewal(m)),
            // A renewal that would change nothing is not sent.
            None => {
                let shown =
                    redis.rows.iter().find(|row| row.member == m && row.life == member.life);
                let news = shown.is_none_or(|row| row.applied < member.applied);
                if member.stage == Life::Registered && (member.lease != Some(0) || news) {
                    actions.push(Action::SendRenewal(m));
                }
            }
        }
        if self.leaving && member.stage == Life::Registered {
            actions.push(Action::Leave(m));
        }
        if state.crashes < self.crashes {
            actions.push(Action::Crash(m));
        }
    }

    fn scans_before_registering(&self) -> bool {
        self.left_out(Variant::ScanBeforeRegister) || self.left_out(Variant::CopyBeforeSubscribe)
    }

    fn prepares_before_registering(&self) -> bool {
        self.scans_before_registering() || self.left_out(Variant::TailBeforeRegister)
    }

    fn unregistered_actions(&self, state: &State, m: usize, actions: &mut Vec<Action>) {
        let member = &state.members[m];
        let fresh = member.stage == Life::Unregistered;
        if fresh && self.left_out(Variant::TailBeforeRegister) && member.target.is_none() {
            actions.push(Action::ReadTail(m));
            return;
        }
        if fresh && self.scans_before_registering() && !member.scanned {
            actions.push(Action::CopyGate(m));
            return;
        }
        if member.life < self.registrations[m] {
            let change = !member.new_process && member.epoch != state.redis.epoch;
            actions.push(if change { Action::Resync(m) } else { Action::Register(m) });
        }
    }

    pub(super) fn member_step(&self, state: &mut State, m: usize, action: Action) {
        let committed = committed(state);
        let tail = state.redis.tail();
        let member = &mut state.members[m];
        match action {
            Action::Register(_) | Action::Resync(_) => self.register(state, m),
            Action::ReadTail(_) => {
                member.target = Some(tail);
                // Rule C26: what was announced anew makes the log one to be trusted.
                if state.redis.complete && member.stage == Life::Registered {
                    member.pending = 0;
                }
                if self.left_out(Variant::JoinerWithoutReplay) {
                    member.applied = tail;
                }
            }
            Action::Apply(_) | Action::Replay(_) => {
                member.applied = member.applied.max(state.redis.trimmed);
                let next = usize::from(member.applied - state.redis.trimmed);
                if let Some(&i) = state.redis.log.get(next) {
                    member.gate |= 1 << i;
                    member.applied += 1;
                }
            }
            Action::CopyGate(_) => {
                member.gate |= committed;
                member.scanned = true;
                if self.left_out(Variant::CopyBeforeSubscribe) {
                    member.gate |= state.redis.log.iter().map(|i| 1 << i).fold(0, |a, b| a | b);
                }
            }
            Action::SendRenewal(_) => {
                // Rule C20: the position that it has applied.
                let read = self.left_out(Variant::AcknowledgesWhatWasRead)
                    && member.epoch == state.redis.epoch;
                let position = if read { tail } else { member.applied };
                member.renewal = Some(Renewal { stage: RenewalStage::Sent, position, waits: 0 });
            }
            Action::ExecuteRenewal(_) => self.execute_renewal(state, m),
            Action::ReceiveRenewal(_) => {
                if let Some(renewal) = member.renewal.take() {
                    let from_answer = self.left_out(Variant::LeaseCountsFromAnswer);
                    if renewal.stage == RenewalStage::Refused {
                        member.stage = Life::Unregistered;
                        if self.prepares_before_registering() {
                            member.gate = 0;
                            member.scanned = false;
                            member.target = None;
                            member.lease = None;
                        }
                    } else if from_answer {
                        member.lease = Some(0);
                    } else if renewal.waits & DEAD == 0 {
                        // Rule C20: from before the renewal was sent.
                        member.lease = Some(renewal.waits);
                    }
                    member.believes_leased |= member.lease.is_some();
                }
            }
            Action::LeaseLapses(_) => member.lease = None,
            Action::CheckLease(_) => member.checked = true,
            Action::LeaseTask(_) => member.believes_leased = false,
            Action::Settle(_) => {
                member.settling = true;
                start_wait(state, 4 << m);
            }
            // Rule C25.
            Action::Settled(_) => {
                member.settling = false;
                let same = member.epoch == state.redis.epoch;
                end_wait(state, 4 << m);
                state.redis.settled |= same;
            }
            // Rule C26: the open writes that it knows, again.
            Action::Announce(_) => {
                let known = member.gate;
                for i in 0..state.writes.len() {
                    if known & (1 << i) != 0 && state.writes[i].phase.is_open() {
                        state.redis.log.push(i as u8);
                    }
                }
                state.redis.complete = true;
            }
            Action::Leave(_) => self.leave(state, m),
            _ => self.crash(state, m),
        }
    }

    fn register(&self, state: &mut State, m: usize) {
        let open: u8 = (0..state.writes.len())
            .filter(|&i| state.writes[i].phase.is_open())
            .map(|i| 1 << i)
            .sum();
        let member = &mut state.members[m];
        let change = !member.new_process && member.epoch != state.redis.epoch;
        // Rule C24: the exception.
        let leased = match self.variant {
            Variant::KeptIfCaughtUp => true,
            Variant::LeaseCheckedBeforeRegistering => member.checked,
            _ => member.lease.is_some(),
        };
        let keeps = change && member.in_sync() && leased;
        if !member.new_process {
            state.redis.rows.retain(|row| row.member != m || row.life != member.life);
        }
        member.new_process = false;
        member.checked = false;
        member.life += 1;
        member.knows_all = keeps;
        member.renewal = None;
        if keeps {
            member.target = Some(0);
        } else {
            let early = self.left_out(Variant::TailBeforeRegister);
            member.target = member.target.filter(|_| early);
            let keeps_scan = self.scans_before_registering() && member.stage == Life::Unregistered;
            member.scanned = keeps_scan && member.scanned;
            if !member.scanned {
                member.gate = 0;
            }
            member.lease = None;
            // Rule C24: the scan comes W after the registration. So it does in a process that finds
            // a log younger than W.
            let trusting = match self.variant {
                Variant::ScanBeforeWindow => change,
                Variant::YoungLogTrusted => !change,
                _ => false,
            };
            member.pending = if state.redis.complete || trusting { 0 } else { open };
        }
        member.stage = Life::Registered;
        member.epoch = state.redis.epoch;
        member.applied = 0;
        if self.left_out(Variant::CopyBeforeSubscribe) && !keeps {
            member.applied = state.redis.tail();
            member.target = Some(member.applied);
        }
        let row = Row {
            member: m,
            life: member.life,
            applied: member.applied,
            fenced: false,
            fenced_by: 0,
        };
        state.redis.rows.push(row);
        state.redis.rows.sort_by_key(|row| (row.member, row.life));
    }

    fn execute_renewal(&self, state: &mut State, m: usize) {
        let member = &mut state.members[m];
        let here = member.epoch == state.redis.epoch;
        let fenced_too = self.left_out(Variant::FencedRowRenewed);
        let mut rows = state.redis.rows.iter_mut();
        let row = rows.find(|row| row.member == m && row.life == member.life && here);
        if let Some(renewal) = &mut member.renewal {
            renewal.stage = match row {
                Some(row) if !row.fenced || fenced_too => {
                    row.applied = row.applied.max(renewal.position);
                    RenewalStage::Granted
                }
                _ => RenewalStage::Refused,
            };
            // The position has done its work.
            renewal.position = 0;
        }
    }

    /// Rule C22: it stops refusing, then its row goes.
    fn leave(&self, state: &mut State, m: usize) {
        drop_wait(state, 4 << m);
        let member = &mut state.members[m];
        let first = member.stage == Life::Registered;
        member.stage = if first { Life::Leaving } else { Life::Left };
        member.renewal = None;
        member.settling = false;
        let row_first = self.left_out(Variant::RowRemovedBeforeLeaving);
        if first != row_first {
            member.lease = None;
            member.scanned = false;
        }
        if first == row_first {
            let life = member.life;
            state.redis.rows.retain(|row| row.member != m || row.life != life);
        }
    }

    fn crash(&self, state: &mut State, m: usize) {
        state.crashes += 1;
        for i in 0..state.writes.len() {
            let phase = state.writes[i].phase;
            if self.writers[i] == m && phase.is_open() && phase != Phase::Begun {
                self.write_step(state, i, Action::BeginFails(i));
            }
        }
        drop_wait(state, 4 << m);
        let member = &mut state.members[m];
        member.stage = Life::Unregistered;
        member.new_process = true;
        member.gate = 0;
        member.target = None;
        member.scanned = false;
        member.knows_all = false;
        member.lease = None;
        member.checked = false;
        member.believes_leased = false;
        member.renewal = None;
        member.settling = false;
        // A new process has no epoch of its own: it joins, and does not resync.
        member.epoch = state.redis.epoch;
    }
}

fn committed(state: &State) -> u8 {
    let committed = |i: &usize| state.writes[*i].phase == Phase::Committed;
    (0..state.writes.len()).filter(committed).map(|i| 1 << i).sum()
}
