//! The status of a member, filled in.

use std::sync::atomic::Ordering;

use super::shared::Shared;
use crate::ports::{FleetMember, FleetStatus};

impl Shared {
    pub(super) fn status(&self) -> FleetStatus {
        let lease_left = self.lease_end.lock().since(self.clock.now()).as_millis();
        let mut status = FleetStatus {
            instance: self.instance.to_hex(),
            lease_left_ms: u64::try_from(lease_left).unwrap_or(u64::MAX),
            applied: self.applied.lock().to_string(),
            resyncs: self.counts.resyncs.load(Ordering::Relaxed),
            last_resync: self.last_resync.lock().map(str::to_owned),
            copies_taken: self.counts.copies_taken.load(Ordering::Relaxed),
            copies_given: self.counts.copies_given.load(Ordering::Relaxed),
            last_copy_refusal: self.last_copy_refusal.lock().map(str::to_owned),
            fenced_others: self.counts.fenced_others.load(Ordering::Relaxed),
            writes_waited: self.counts.writes_waited.load(Ordering::Relaxed),
            longest_wait_ms: self.counts.longest_wait_ms.load(Ordering::Relaxed),
            ..FleetStatus::default()
        };
        if let Some(view) = &*self.latest.lock() {
            status.epoch.clone_from(&view.identity.epoch);
            status.last = view.last.to_string();
            status.log_length = view.length;
            status.members = view
                .members
                .iter()
                .map(|row| FleetMember {
                    instance: row.instance.to_hex(),
                    label: row.label.clone(),
                    applied: row.applied.to_string(),
                    fenced: row.fenced,
                })
                .collect();
        }
        status
    }
}
