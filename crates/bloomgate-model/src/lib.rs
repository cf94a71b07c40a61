//! A model of bloomgate's protocol (`docs/PROTOCOL.md`): small machines whose every reachable state is
//! searched for a broken promise. P1: no committed id is refused. P5: nothing stale outlives a write.
//!
//! Each module is one machine, with a struct that says its size and an enum `Variant`: the rules as
//! they are, or the rules with one left out. The tests search the first kind and assert that the
//! promise holds and that there were at least so many states; and they assert that each variant
//! breaks the promise. Where one does not, because other rules cover what the rule guards against, a
//! test says so. A number such as C19 is a rule of the protocol.
//!
//! | module | promise | what it holds |
//! |---|---|---|
//! | [`gate`] | P1 | one process: open set, generations, rebuilds, unknown outcomes, a restart (A1, A2, A5 to A8) |
//! | [`slot`] | P5 | one key, two members that know of each other's writes: slot, flights, local caches (A3 to A6, B9 to B14) |
//! | [`fleet`] | P1 | log, member table, leases, Begin's barrier, fencing, joining, trimming, one change of identity (C17 to C26) |
//! | [`fleet_caches`] | P5 | local caches under the lease, slots under the epoch's prefix, the open set of all members over a change of identity (C17, C20, C24, C26) |
//! | [`two_primaries`] | P1 | two primaries, partitions, acknowledgement by a majority (C27) |
//!
//! # How it is modelled
//!
//! - There are no clocks. A wait of L owns a bit; when it starts, the bit is set on each lease that is
//!   held and each renewal on its way; what carries the bit is over when the wait ends. Leases may
//!   lapse at any other moment, too.
//! - W is one event for each write, possible once its SQL is over.
//! - A pause is a step that is not taken, so there is no action for one: `Pause` and `Resume` are in
//!   every path. `AwaitApplied` is the state in which `LastLook` is not possible yet.
//! - P5 is told by a floor: the highest version whose write has ended. Each flight has the floor of its
//!   latest caller, and must not answer with less.
//! - The last look, the return of Begin and the commit are separate steps, and so are the local Begin
//!   and the intent.
//!
//! # What is not modelled
//!
//! Liveness and cost; the feed of foreign writes, the canary, lagging database replicas, the exchange of
//! snapshots; a log that is trimmed by a cap; fail-safe serving and `AllowStale` (B14, C28); batches;
//! the bound of 16 intents and ends on the server's clock (B9); entries that can't be used, full and
//! read-only servers (B15, B16); how a schema registers (B10); more than one change of identity, and
//! a member that goes back to the old primary; memory ordering (that is loom's). Assumed are clocks
//! that drift less than the margin, SQL that does not outlive W, and machines whose suspension a clock
//! counts.
//!
//! # How to run it
//!
//! `cargo test -p bloomgate-model` takes seconds; with `-- --nocapture` it prints the number of states
//! of each search, and the shortest trace of each variant. `scripts/deep` runs the larger sizes:
//!
//! ```text
//! cargo test --release --locked -p bloomgate-model -- --ignored --nocapture --test-threads 1 deep
//! ```
//!
//! To look at a model state by state, call `serve` on its checker: that is stateright's explorer.

#[cfg(test)]
mod checks;
pub mod fleet;
pub mod fleet_caches;
pub mod gate;
pub mod slot;
pub mod two_primaries;
