//! Begin's decision: which members a write still has to wait for (rules C19, C21, C25).

use std::collections::HashMap;
use std::time::Duration;

use super::settings::waited_out;
use crate::clock::Moment;
use crate::ports::{FleetView, InstanceId, LogIdentity, LogPosition, MemberRow};

/// A row as one incarnation of a process.
pub(super) type RowId = (InstanceId, u64);

/// What this process has seen of leases that are over once they have been waited for.
#[derive(Debug, Default)]
pub(super) struct LeaseWaits {
    /// The identity that the rest belongs to, and when it was first seen.
    identity: Option<(LogIdentity, Moment)>,
    /// When each fenced row was first seen as fenced. Whatever it holds was granted before that.
    fenced: HashMap<RowId, Moment>,
}

impl LeaseWaits {
    /// Takes note of a view that was received at `at`.
    pub(super) fn observe(&mut self, view: &FleetView, at: Moment) {
        if self.identity.as_ref().is_none_or(|(known, _)| *known != view.identity) {
            self.identity = Some((view.identity.clone(), at));
            self.fenced.clear();
        }
        self.fenced.retain(|id, _| view.members.iter().any(|row| row_id(row) == *id));
        for row in view.members.iter().filter(|row| row.fenced) {
            self.fenced.entry(row_id(row)).or_insert(at);
        }
    }

    /// When every lease of a fenced row is over.
    fn fenced_until(&self, row: &MemberRow) -> Option<Moment> {
        self.fenced.get(&row_id(row)).map(|seen| *seen + waited_out(row.lease))
    }

    /// When every lease of an earlier identity is over, if those were as long as `lease`.
    pub(super) fn settled_from(&self, lease: Duration) -> Option<Moment> {
        self.identity.as_ref().map(|(_, seen)| *seen + waited_out(lease))
    }

    /// The fenced rows whose leases were over at `at`: they may be removed.
    pub(super) fn removable(&self, view: &FleetView, at: Moment) -> Vec<RowId> {
        let over = |row: &&MemberRow| {
            row.fenced && self.fenced_until(row).is_some_and(|until| at >= until)
        };
        view.members.iter().filter(over).map(row_id).collect()
    }
}

pub(super) fn row_id(row: &MemberRow) -> RowId {
    (row.instance, row.incarnation)
}

/// What a Begin is to do next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Waiting {
    /// True if every member has applied the entry, or can't refuse any more.
    pub(super) over: bool,
    /// Rows to fence: they have been silent for too long.
    pub(super) to_fence: Vec<RowId>,
    /// When a wait that is under way ends.
    pub(super) until: Option<Moment>,
}

/// A Begin's entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Awaited {
    /// Where it stands.
    pub(super) position: LogPosition,
    /// When it was appended.
    pub(super) since: Moment,
}

/// Judges `view`, which was asked for at `asked`: a wait counts only if it was over before the
/// look, which is then the last one (rule C19).
pub(super) fn judge(
    view: &FleetView,
    own: InstanceId,
    awaited: Awaited,
    waits: &LeaseWaits,
    (asked, fence_after, lease): (Moment, Duration, Duration),
) -> Waiting {
    let mut waiting = Waiting { over: true, ..Waiting::default() };
    let wait_until = |waiting: &mut Waiting, until: Moment| {
        if asked < until {
            waiting.over = false;
            waiting.until = Some(waiting.until.map_or(until, |other| other.min(until)));
        }
    };
    for row in &view.members {
        // Rule A1 has put the write into this process's own gate.
        if row.instance == own || row.applied >= awaited.position {
            continue;
        }
        match (row.fenced, waits.fenced_until(row)) {
            (true, Some(until)) => wait_until(&mut waiting, until),
            // Fenced, but the view hasn't been observed.
            (true, None) => waiting.over = false,
            (false, _) => {
                waiting.over = false;
                let fence_at = awaited.since + fence_after;
                if asked >= fence_at {
                    waiting.to_fence.push(row_id(row));
                } else {
                    wait_until(&mut waiting, fence_at);
                }
            }
        }
    }
    // Rule C25: a member of an earlier identity may hold a lease and have no row here.
    if !view.settled {
        match waits.settled_from(lease) {
            Some(until) => wait_until(&mut waiting, until),
            None => waiting.over = false,
        }
    }
    waiting
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::ports::Registration;

    const LEASE: Duration = Duration::from_secs(3);
    const FENCE_AFTER: Duration = Duration::from_millis(1_500);

    fn at(millis: u64) -> LogPosition {
        LogPosition { millis, sequence: 0 }
    }

    struct Fixture {
        view: FleetView,
        own: InstanceId,
        waits: LeaseWaits,
        start: Moment,
    }

    impl Fixture {
        /// A settled fleet of this process and another one, which has applied up to 4.
        fn new() -> Self {
            let identity = LogIdentity::new("epoch", "run", "replication");
            let (own, other) = (InstanceId::fresh(), InstanceId::fresh());
            let mut view = FleetView::new(identity, at(5));
            view.settled = true;
            for instance in [own, other] {
                let row = MemberRow::new(&Registration::new(instance, LEASE, ""), at(4));
                view.members.push(row);
            }
            let start = Clock::manual().0.now() + Duration::from_secs(100);
            Self { view, own, waits: LeaseWaits::default(), start }
        }

        /// What a Begin at position 5 is to do, `millis` after it was appended.
        fn judge(&mut self, millis: u64) -> Waiting {
            let asked = self.start + Duration::from_millis(millis);
            self.waits.observe(&self.view, asked);
            let awaited = Awaited { position: at(5), since: self.start };
            judge(&self.view, self.own, awaited, &self.waits, (asked, FENCE_AFTER, LEASE))
        }
    }

    #[test]
    fn a_write_waits_for_every_other_member_and_not_for_its_own_row() {
        let mut fleet = Fixture::new();
        assert!(!fleet.judge(0).over);
        fleet.view.members[1].applied = at(5);
        assert!(fleet.judge(1).over);
        fleet.view.members[1].applied = at(6);
        assert!(fleet.judge(2).over);
    }

    #[test]
    fn a_silent_member_is_fenced_and_its_lease_is_waited_for() {
        let mut fleet = Fixture::new();
        let other = row_id(&fleet.view.members[1]);
        let fence_at = fleet.start + FENCE_AFTER;
        assert_eq!(
            fleet.judge(1_499),
            Waiting { over: false, to_fence: Vec::new(), until: Some(fence_at) }
        );
        assert_eq!(fleet.judge(1_500).to_fence, [other]);
        fleet.view.members[1].fenced = true;
        assert!(!fleet.judge(1_600).over, "fenced without waiting");
        assert!(fleet.waits.removable(&fleet.view, fleet.start + LEASE).is_empty());
        assert!(!fleet.judge(1_600 + 3_029).over);
        assert!(fleet.judge(1_600 + 3_030).over);
        let over = fleet.start + Duration::from_millis(1_600 + 3_030);
        assert_eq!(fleet.waits.removable(&fleet.view, over), [other]);
    }

    #[test]
    fn a_fenced_row_that_registers_again_is_another_one() {
        let mut fleet = Fixture::new();
        fleet.view.members[1].fenced = true;
        fleet.judge(0);
        fleet.view.members[1].incarnation += 1;
        fleet.view.members[1].fenced = false;
        assert!(!fleet.judge(10_000).over);
        fleet.view.members[1].fenced = true;
        assert!(!fleet.judge(10_001).over, "the wait for the earlier incarnation counts");
        assert!(fleet.judge(10_001 + 3_030).over);
    }

    #[test]
    fn until_an_identity_is_settled_every_write_waits_a_lease_since_it_was_seen() {
        let mut fleet = Fixture::new();
        fleet.view.settled = false;
        fleet.view.members.truncate(1);
        assert!(!fleet.judge(0).over, "a missing row is not an acknowledgement");
        assert!(!fleet.judge(3_029).over);
        assert!(fleet.judge(3_030).over);
        fleet.view.identity = LogIdentity::new("another", "run", "replication");
        assert!(!fleet.judge(3_031).over);
        fleet.view.settled = true;
        assert!(fleet.judge(3_032).over);
    }

    #[test]
    fn waits_under_one_identity_count_for_no_other() {
        let mut fleet = Fixture::new();
        fleet.view.members[1].fenced = true;
        fleet.judge(0);
        fleet.view.identity = LogIdentity::new("epoch", "run", "after a failover");
        assert!(!fleet.judge(4_000).over);
    }
}
