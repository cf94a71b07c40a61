//! The cost of a refusal: `Guard::check` of absent ids without a lease on the link, with one, and
//! one coarse reading of the clock.
//!
//! Rounds of the three alternate, so that whatever else the machine does falls on all of them
//! alike; printed are the medians.

#![expect(clippy::expect_used, reason = "what goes wrong ends the benchmark")]

use std::convert::Infallible;
use std::hint::black_box;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bloomgate::clock::Moment;
use bloomgate::ports::{Backplane, LinkState, PeerEvents, PeerWrite};
use bloomgate::{BackplaneError, Clock, Guard, Verdict, loader, warm_up};
use futures_util::future::{BoxFuture, ready};

/// Ids that exist. The filter fits the processor's cache, so that the memory's speed doesn't hide
/// the rest.
const IDS: i64 = 100_000;
/// Calls timed as one.
const CALLS: i64 = 200_000;
const ROUNDS: usize = 51;

/// A link whose end the benchmark sets. There is one guard: two of them differ by where their
/// memory lies, which costs more than a reading of the clock.
#[derive(Clone, Debug, Default)]
struct SettableLink(Arc<OnceLock<Arc<dyn PeerEvents>>>);

impl SettableLink {
    fn set_until(&self, until: Moment) {
        self.0.get().expect("a guard is attached").set_link(LinkState::InSync { until });
    }
}

impl Backplane for SettableLink {
    fn attach(&self, events: Arc<dyn PeerEvents>) -> Result<(), BackplaneError> {
        events.set_link(LinkState::InSync { until: Moment::NEVER });
        self.0.set(events).map_err(|_| BackplaneError("attached already".into()))
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

async fn guard(clock: &Clock, link: SettableLink) -> Guard<i64, String> {
    let guard = Guard::<i64, String>::builder("check")
        .clock(clock.clone())
        .backplane(link)
        .source(warm_up::Keys::new(0..IDS))
        .loader(loader::from_fn(|_: i64| async { Ok::<_, Infallible>(None) }))
        .build()
        .await
        .expect("a guard");
    guard.rebuild().await.expect("a closed gate");
    guard
}

/// Nanoseconds of each of [`CALLS`] calls.
fn time(mut call: impl FnMut(i64)) -> f64 {
    let start = Instant::now();
    for id in 0..CALLS {
        call(id);
    }
    start.elapsed().as_nanos() as f64 / CALLS as f64
}

fn checks(guard: &Guard<i64, String>) -> f64 {
    let mut refused = 0;
    let each = time(|id| {
        let verdict = guard.check(black_box(&(IDS + id)));
        refused += i64::from(verdict == Verdict::Absent);
    });
    assert!(refused > CALLS * 99 / 100, "the gate is open: {refused} of {CALLS} refused");
    each
}

fn median(mut rounds: Vec<f64>) -> f64 {
    rounds.sort_by(f64::total_cmp);
    rounds[rounds.len() / 2]
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let clock = Clock::system();
    let link = SettableLink::default();
    let guard = guard(&clock, link.clone()).await;
    let far = clock.now() + Duration::from_secs(3_600);
    let (mut without, mut with, mut readings) = (Vec::new(), Vec::new(), Vec::new());
    // The first round warms up.
    for round in 0..=ROUNDS {
        let checks_until = |until| {
            link.set_until(until);
            checks(&guard)
        };
        let samples = [
            checks_until(Moment::NEVER),
            checks_until(far),
            time(|_| _ = black_box(black_box(&clock).coarse_now())),
        ];
        if round > 0 {
            without.push(samples[0]);
            with.push(samples[1]);
            readings.push(samples[2]);
        }
    }
    let (without, with) = (median(without), median(with));
    println!("Median of {ROUNDS} rounds of {CALLS} calls, {IDS} ids, ns a call:\n");
    println!("| | ns |");
    println!("|---|---|");
    println!("| check of an absent id, link without an end | {without:.1} |");
    println!("| check of an absent id, link with an end | {with:.1} |");
    println!("| difference | {:.1} |", with - without);
    println!("| one coarse reading of the clock | {:.1} |", median(readings));
}
