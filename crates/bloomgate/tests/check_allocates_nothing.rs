//! The refusal path allocates nothing, whatever the key.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what goes wrong fails the test")]

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bloomgate::backplane::Alone;
use bloomgate::clock::Moment;
use bloomgate::ports::{Backplane, LinkState, PeerEvents, PeerWrite};
use bloomgate::{BackplaneError, Clock, Guard, Key, OpenReason, Verdict, loader, warm_up};
use futures_util::future::{BoxFuture, ready};

/// A guard over these keys whose gate is closed.
async fn closed<K: Key>(keys: Vec<K>, absent: &K) -> Guard<K, String> {
    closed_with(keys, absent, Clock::system(), Alone).await
}

async fn closed_with<K: Key>(
    keys: Vec<K>,
    absent: &K,
    clock: Clock,
    backplane: impl Backplane,
) -> Guard<K, String> {
    let guard = Guard::<K, String>::builder("allocations")
        .clock(clock)
        .backplane(backplane)
        .source(warm_up::Keys::new(keys))
        .loader(loader::from_fn(|_: K| async { Ok::<_, Infallible>(None) }))
        .build()
        .await
        .unwrap();
    for _ in 0..1_000 {
        if guard.check(absent) == Verdict::Absent {
            return guard;
        }
        tokio::task::yield_now().await;
    }
    panic!("the gate doesn't close");
}

/// Allocations of this thread during 1,000 checks of this key.
fn allocations<K: Key>(guard: &Guard<K, String>, key: &K, expected: Verdict) -> u64 {
    // What a thread needs once, whatever its first work is.
    let _ = guard.check(key);
    let counted = allocation_counter::measure(|| {
        for _ in 0..1_000 {
            assert_eq!(guard.check(key), expected);
        }
    });
    counted.count_total
}

#[tokio::test]
async fn the_counter_counts() {
    let counted = allocation_counter::measure(|| drop(std::hint::black_box(Box::new(7))));
    assert_eq!(counted.count_total, 1);
}

#[tokio::test]
async fn a_check_of_an_integer_allocates_nothing() {
    let guard = closed(vec![1_i64, 2, 3], &500).await;
    assert_eq!(allocations(&guard, &500, Verdict::Absent), 0);
    assert_eq!(allocations(&guard, &2, Verdict::Maybe), 0);
}

#[tokio::test]
async fn a_check_of_a_text_allocates_nothing() {
    for length in [1, 16, 17, 300, 5_000] {
        let (present, absent) = ("p".repeat(length), "a".repeat(length));
        let guard = closed(vec![present.clone()], &absent).await;
        assert_eq!(allocations(&guard, &absent, Verdict::Absent), 0, "{length} bytes");
        assert_eq!(allocations(&guard, &present, Verdict::Maybe), 0, "{length} bytes");
    }
}

#[tokio::test]
async fn a_check_of_a_pair_allocates_nothing() {
    let absent = ("tenant".to_owned(), 8_i64);
    let guard = closed(vec![("tenant".to_owned(), 7_i64)], &absent).await;
    assert_eq!(allocations(&guard, &absent, Verdict::Absent), 0);
}

/// A link in sync until a fixed end.
#[derive(Debug)]
struct FixedLink(Moment);

impl Backplane for FixedLink {
    fn attach(&self, events: Arc<dyn PeerEvents>) -> Result<(), BackplaneError> {
        events.set_link(LinkState::InSync { until: self.0 });
        Ok(())
    }

    fn begin_write<'a>(
        &'a self,
        _: &'a PeerWrite,
    ) -> BoxFuture<'a, Result<Option<String>, BackplaneError>> {
        Box::pin(ready(Ok(None)))
    }

    fn end_write<'a>(&'a self, _: &'a PeerWrite) -> BoxFuture<'a, Result<(), BackplaneError>> {
        Box::pin(ready(Ok(())))
    }

    fn invalidate_all(&self) -> BoxFuture<'_, Result<(), BackplaneError>> {
        Box::pin(ready(Ok(())))
    }

    fn leave(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }
}

// With a lease, each check reads the clock.
#[tokio::test]
async fn a_check_under_a_lease_allocates_nothing() {
    let clock = Clock::system();
    let link = FixedLink(clock.now() + Duration::from_secs(3_600));
    let guard = closed_with(vec![1_i64, 2, 3], &500, clock, link).await;
    assert_eq!(allocations(&guard, &500, Verdict::Absent), 0);
    assert_eq!(allocations(&guard, &2, Verdict::Maybe), 0);
}

#[tokio::test]
async fn a_check_after_the_end_of_the_lease_allocates_nothing() {
    let (clock, time) = Clock::manual();
    let link = FixedLink(clock.now() + Duration::from_secs(3_600));
    let guard = closed_with(vec![1_i64, 2, 3], &500, clock, link).await;
    time.advance(Duration::from_secs(3_600));
    assert_eq!(allocations(&guard, &500, Verdict::Unknown(OpenReason::LeaseEnded)), 0);
}

// An open gate passes without allocating too.
#[tokio::test]
async fn a_check_of_an_open_gate_allocates_nothing() {
    let guard = Guard::<i64, String>::builder("allocations")
        .gate(bloomgate::Gate::open())
        .source(warm_up::Keys::new([1_i64]))
        .loader(loader::from_fn(|_: i64| async { Ok::<_, Infallible>(None) }))
        .build()
        .await
        .unwrap();
    assert_eq!(allocations(&guard, &1, Verdict::Unknown(OpenReason::Forced)), 0);
}
