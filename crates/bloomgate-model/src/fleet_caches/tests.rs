//! The caches of a fleet hold at these sizes, and break without each rule.

use super::{FleetCaches, OUTSIDE, P5, Variant};
use crate::checks::{breaks, holds};

const BASE: FleetCaches = FleetCaches::SMALLEST;
const TWO_MEMBERS: FleetCaches = FleetCaches { members: 2, writers: &[0], ..BASE };
const CHANGE: FleetCaches = FleetCaches { changes: 1, ..BASE };
const CHANGE_AND_CRASH: FleetCaches = FleetCaches { registrations: [1, 3], crash: true, ..CHANGE };

#[test]
fn one_member_and_a_writer() {
    holds(BASE, 15_000);
}

#[test]
fn two_members_of_which_one_writes() {
    holds(TWO_MEMBERS, 80_000);
}

#[test]
fn the_identity_changes() {
    holds(CHANGE, 300_000);
}

#[test]
#[ignore = "deep"]
fn deep_a_process_is_killed_and_the_identity_changes() {
    holds(CHANGE_AND_CRASH, 1_300_000);
}

#[test]
#[ignore = "deep"]
fn deep_two_members_and_an_identity_change() {
    holds(FleetCaches { registrations: [2, 2], changes: 1, ..TWO_MEMBERS }, 24_000_000);
}

#[test]
#[ignore = "deep"]
fn deep_two_writes() {
    holds(FleetCaches { writers: &[OUTSIDE, OUTSIDE], ..BASE }, 3_600_000);
}

#[test]
#[ignore = "deep"]
fn deep_two_flights() {
    holds(FleetCaches { flights: &[1, 1], ..CHANGE }, 10_000_000);
}

#[test]
fn each_rule_left_out_serves_a_stale_value() {
    for variant in [
        Variant::LateEntryIgnored,
        Variant::BeginWithoutBarrier,
        Variant::LocalServedWithoutLease,
        Variant::FlightJoinedWithoutLease,
        Variant::JoinerWithoutReplay,
        Variant::SharedUsedWithoutLease,
    ] {
        breaks(FleetCaches { variant, ..BASE }, P5);
    }
}

#[test]
fn each_rule_of_an_identity_change_left_out_serves_a_stale_value() {
    for variant in [
        Variant::ConnectionUnchecked,
        Variant::LocalKeptAtChange,
        Variant::GenerationsKeptAtChange,
        Variant::UnsettledNotWaited,
        Variant::OpenSetForgotten,
        Variant::KnowsAllIfCaughtUp,
        Variant::UnawareMemberCaches,
        Variant::UnawareFlightUsed,
        Variant::PrefixWithoutEpoch,
        Variant::NothingAnnounced,
    ] {
        breaks(FleetCaches { variant, ..CHANGE }, P5);
    }
}

/// The barrier that End repeats is covered by others: a member that does not know the write caches
/// nothing, and no flight that began before it did is used.
#[test]
fn the_barrier_of_end_is_covered_by_others() {
    holds(FleetCaches { variant: Variant::EndWithoutBarrier, ..CHANGE }, 200_000);
}

#[test]
#[ignore = "deep"]
fn deep_the_barrier_of_end_is_covered_by_others() {
    let variant = Variant::EndWithoutBarrier;
    holds(FleetCaches { variant, ..CHANGE_AND_CRASH }, 1_000_000);
}
