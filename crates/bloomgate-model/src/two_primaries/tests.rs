//! With majorities the promise holds with two primaries, without them with a single one only.

use super::{P1, TwoPrimaries, Variant};
use crate::checks::{breaks, holds};

#[test]
fn majorities_keep_the_promise() {
    holds(TwoPrimaries { variant: Variant::Correct, both: true }, 200_000);
}

#[test]
fn a_single_primary_needs_no_majority() {
    holds(TwoPrimaries { variant: Variant::NothingAcknowledged, both: false }, 100_000);
}

#[test]
fn each_acknowledgement_left_out_refuses_a_committed_id() {
    for variant in [
        Variant::RenewalUnacknowledged,
        Variant::LastLookUnacknowledged,
        Variant::RegistrationUnacknowledged,
        Variant::WindowFromExecution,
        Variant::WaitFromUnacknowledged,
        Variant::SettledFromUnacknowledged,
        Variant::NothingAcknowledged,
    ] {
        println!("{variant:?}");
        breaks(TwoPrimaries { variant, both: true }, P1);
    }
}
