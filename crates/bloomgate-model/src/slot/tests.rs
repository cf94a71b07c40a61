//! The slot holds at these sizes, and breaks without each rule.

use super::{P5, Slot, Variant};
use crate::checks::{breaks, holds};

const ONE_WRITE: Slot =
    Slot { variant: Variant::Correct, writers: &[0], flights: &[0, 1], schemas: 1, crash: false };

const TWO_WRITES: Slot = Slot { writers: &[0, 1], ..ONE_WRITE };

const TWO_SCHEMAS: Slot = Slot { schemas: 2, ..ONE_WRITE };

const RESTART: Slot = Slot { flights: &[0, 0], crash: true, ..ONE_WRITE };

#[test]
fn one_write_and_two_readers() {
    holds(ONE_WRITE, 80_000);
}

#[test]
fn a_process_without_a_log_is_restarted() {
    holds(RESTART, 140_000);
}

#[test]
fn two_schemas() {
    holds(TWO_SCHEMAS, 200_000);
}

#[test]
fn two_writers_of_one_key() {
    holds(Slot { flights: &[0], ..TWO_WRITES }, 80_000);
    holds(Slot { writers: &[0, 0], flights: &[0], ..ONE_WRITE }, 80_000);
}

#[test]
#[ignore = "deep"]
fn deep_two_writers_and_two_readers() {
    holds(TWO_WRITES, 4_300_000);
}

#[test]
#[ignore = "deep"]
fn deep_two_writers_and_two_readers_with_two_schemas() {
    holds(Slot { schemas: 2, ..TWO_WRITES }, 25_000_000);
}

#[test]
#[ignore = "deep"]
fn deep_two_writes_and_a_restart() {
    holds(Slot { writers: &[0, 0], ..RESTART }, 9_500_000);
}

#[test]
#[ignore = "deep"]
fn deep_two_flights_of_one_member_and_one_of_the_other() {
    holds(Slot { flights: &[0, 0, 1], ..ONE_WRITE }, 2_500_000);
}

#[test]
fn each_rule_left_out_serves_a_stale_value() {
    for variant in [
        Variant::GenerationMovedAtBeginOnly,
        Variant::HitCopiedUnchecked,
        Variant::AnyFlightJoined,
        Variant::CachesUsedWhileOpen,
        Variant::SkipDecidedAtCreation,
        Variant::LocalEndFirst,
        Variant::EndBeforeCommit,
        Variant::EndDropped,
        Variant::WindowEndsSilently,
        Variant::NoIntent,
        Variant::ErrorIsNull,
        Variant::FillWithoutCompare,
        Variant::OpenSetOfThisProcessOnly,
        Variant::EndLeavesOthersEntry,
    ] {
        breaks(Slot { variant, ..ONE_WRITE }, P5);
    }
    for variant in
        [Variant::RestartCachesAtOnce, Variant::WarmUpFlightJoined, Variant::FillUnchecked]
    {
        breaks(Slot { variant, ..RESTART }, P5);
    }
    breaks(Slot { variant: Variant::IntentInOneSchema, ..TWO_SCHEMAS }, P5);
}

/// Rules that no state of this model needs, because others cover what they guard against. A change
/// of the others that makes one of these needed fails here, and should say so in the protocol.
#[test]
fn these_rules_are_covered_by_others() {
    for variant in [Variant::GenerationMovedAtEndOnly, Variant::IntentReaderPublishes] {
        holds(Slot { variant, ..ONE_WRITE }, 60_000);
        holds(Slot { variant, ..RESTART }, 60_000);
    }
    let variant = Variant::EndRemovesAllIntents;
    holds(Slot { variant, flights: &[0], ..TWO_WRITES }, 80_000);
    holds(Slot { variant, writers: &[0, 0], flights: &[0], ..RESTART }, 80_000);
}
