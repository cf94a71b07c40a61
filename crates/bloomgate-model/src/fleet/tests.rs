//! The fleet holds at these sizes, and breaks without each rule.

use super::{Fleet, OUTSIDE, P1, Variant};
use crate::checks::{breaks, holds};

const BASE: Fleet = Fleet::SMALLEST;
const TWO_WRITES: Fleet = Fleet { writers: &[OUTSIDE, OUTSIDE], ..BASE };
const TWO_MEMBERS: Fleet = Fleet { members: 2, writers: &[0], registrations: [1; 3], ..BASE };
const JOINING: Fleet = Fleet { absent: 1, trimming: true, ..BASE };
const LEAVING: Fleet = Fleet { leaving: true, ..BASE };
const CHANGE: Fleet = Fleet { changes: 1, ..BASE };
const CHANGE_AND_JOIN: Fleet = Fleet { absent: 1, registrations: [1; 3], ..CHANGE };

#[test]
fn one_member_and_a_writer() {
    holds(BASE, 1_500);
    holds(JOINING, 6_000);
    holds(LEAVING, 1_500);
}

#[test]
fn two_writes_of_which_each_may_fence() {
    holds(TWO_WRITES, 150_000);
}

#[test]
fn two_members_of_which_one_writes() {
    holds(TWO_MEMBERS, 20_000);
}

#[test]
fn one_member_joins_another() {
    holds(Fleet { absent: 2, ..TWO_MEMBERS }, 200_000);
}

#[test]
fn the_identity_changes() {
    holds(CHANGE, 70_000);
    holds(CHANGE_AND_JOIN, 60_000);
}

#[test]
#[ignore = "deep"]
fn deep_two_writes_with_trimming() {
    holds(Fleet { trimming: true, leaving: true, registrations: [3; 3], ..TWO_WRITES }, 800_000);
}

#[test]
#[ignore = "deep"]
fn deep_two_writes_and_an_identity_change() {
    holds(Fleet { changes: 1, fencing: false, ..TWO_WRITES }, 7_500_000);
}

#[test]
#[ignore = "deep"]
fn deep_a_crash_and_an_identity_change() {
    holds(Fleet { crashes: 1, registrations: [3; 3], ..CHANGE }, 2_300_000);
}

#[test]
#[ignore = "deep"]
fn deep_two_members_that_register_anew() {
    holds(Fleet { registrations: [2; 3], ..TWO_MEMBERS }, 1_100_000);
}

#[test]
#[ignore = "deep"]
fn deep_two_members_of_which_one_joins_after_an_identity_change() {
    let registrations = [2, 1, 0];
    let joining = Fleet { absent: 2, changes: 1, registrations, settlers: 0, ..TWO_MEMBERS };
    holds(Fleet { fencing: false, ..joining }, 4_500_000);
}

#[test]
#[ignore = "deep"]
fn deep_the_writer_is_killed() {
    holds(Fleet { crashes: 1, registrations: [2; 3], trimming: true, ..TWO_MEMBERS }, 25_000_000);
}

#[test]
fn each_rule_left_out_refuses_a_committed_id() {
    for variant in [
        Variant::BeginWithoutBarrier,
        Variant::NoLeaseCheck,
        Variant::LeaseCheckedByTask,
        Variant::LeaseCountsFromAnswer,
        Variant::AcknowledgesWhatWasRead,
        Variant::FencedRowRenewed,
        Variant::FenceWithoutWaiting,
        Variant::RemovedUnwaited,
        Variant::ExpiryFromWallClock,
        Variant::JoinerWithoutReplay,
    ] {
        breaks(Fleet { variant, ..BASE }, P1);
    }
    breaks(Fleet { variant: Variant::OthersFenceNotWaited, ..TWO_WRITES }, P1);
    breaks(Fleet { variant: Variant::RowRemovedBeforeLeaving, ..LEAVING }, P1);
}

#[test]
fn each_rule_of_joining_left_out_refuses_a_committed_id() {
    for variant in [
        Variant::OtherIncarnationRemoved,
        Variant::TailBeforeRegister,
        Variant::JoinerWithoutReplay,
        Variant::CopyBeforeSubscribe,
        Variant::ScanBeforeRegister,
        Variant::YoungEntryTrimmed,
        Variant::UnappliedEntryTrimmed,
    ] {
        breaks(Fleet { variant, ..JOINING }, P1);
    }
}

#[test]
fn each_rule_of_an_identity_change_left_out_refuses_a_committed_id() {
    for variant in [
        Variant::LookBeforeWaiting,
        Variant::EmptinessIsProof,
        Variant::ScanBeforeWindow,
        Variant::KeptIfCaughtUp,
        Variant::LeaseCheckedBeforeRegistering,
        Variant::UnsettledNotWaited,
    ] {
        breaks(Fleet { variant, ..CHANGE }, P1);
    }
    breaks(Fleet { variant: Variant::YoungLogTrusted, ..CHANGE_AND_JOIN }, P1);
    let crash = Fleet { crashes: 1, registrations: [3; 3], ..CHANGE };
    breaks(Fleet { variant: Variant::IdentityUnchecked, ..crash }, P1);
}
