//! Tests of a fleet's members over a log in memory, on a clock that the tests move.

mod begin;
mod harness;
mod identity;
mod membership;
mod single_instance;
