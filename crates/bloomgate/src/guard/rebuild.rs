//! Builds generations: at the start, after a doubt, and when asked to.

use std::sync::Arc;
use std::time::Duration;

use bloomgate_filter::BloomParams;
use tokio::sync::{mpsc, oneshot, watch};

use super::near::Near;
use crate::answer::Why;
use crate::clock::{Clock, Moment};
use crate::error::{Error, SourceError};
use crate::gate::{Blueprint, Capacity, FilterSettings, GateSettings, LiveGate};
use crate::ports::{Source, Standing};
use crate::warm_up::{self, Backoff, Progress};

/// Longest wait for the number of keys, which a large table takes a while to count.
const COUNT_WITHIN: Duration = Duration::from_secs(120);

/// How often a gate in service is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How many times the false-positive rate asked for is too much.
const OVERFULL: f64 = 2.0;

type Asked = oneshot::Sender<Result<(), Error>>;

/// Asks the builder for a new generation.
#[derive(Debug)]
pub(crate) struct RebuildRequests(mpsc::UnboundedSender<Asked>);

impl RebuildRequests {
    pub(crate) fn channel() -> (Self, mpsc::UnboundedReceiver<Asked>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }

    pub(crate) async fn ask(&self) -> Result<(), Error> {
        let gone = || Error::RebuildAbandoned(Why::Forced);
        let (asked, done) = oneshot::channel();
        self.0.send(asked).map_err(|_| gone())?;
        done.await.unwrap_or_else(|_| Err(gone()))
    }
}

/// Keeps gate and local cache informed of the backplane's standing, for ever.
pub(crate) async fn follow_standing<V: Send + Sync + 'static>(
    mut standing: watch::Receiver<Standing>,
    gate: Arc<LiveGate>,
    near: Arc<Near<V>>,
) {
    let mut before = None;
    loop {
        let now = *standing.borrow_and_update();
        if before == Some(Standing::Current) && now == Standing::Current {
            // It was lost and won again between two looks: a break all the same.
            let lost = Standing::Doubtful(Why::NotAlone);
            gate.set_standing(lost);
            near.set_standing(lost);
        }
        gate.set_standing(now);
        near.set_standing(now);
        before = Some(now);
        if standing.changed().await.is_err() {
            // The backplane is gone and can't vouch for anything any more, unless it is one whose
            // standing never changes.
            return;
        }
    }
}

/// Waits for the end of what a killed predecessor may have left under way (rule A8), then tells the
/// caches and whoever builds the gate.
pub(crate) async fn settle_at_start<V: Send + Sync + 'static>(
    source: Arc<dyn Source>,
    near: Arc<Near<V>>,
    started: Moment,
    write_window: Duration,
    progress: Arc<Progress>,
    clock: Clock,
    settled: watch::Sender<bool>,
) {
    warm_up::settle(&*source, started, write_window, &progress, &clock).await;
    progress.succeeded();
    near.set_settled();
    settled.send_replace(true);
}

/// Everything that building a generation takes.
#[derive(Debug)]
pub(crate) struct Builder {
    pub(crate) gate: Arc<LiveGate>,
    pub(crate) settings: GateSettings,
    pub(crate) source: Arc<dyn Source>,
    pub(crate) standing: watch::Receiver<Standing>,
    pub(crate) requests: mpsc::UnboundedReceiver<Asked>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) clock: Clock,
    pub(crate) settled_at_start: watch::Receiver<bool>,
    pub(crate) write_window: Duration,
}

impl Builder {
    /// Builds the first generation, and another whenever one is asked for, or the one in service
    /// lost its certificate or has become too full; for ever.
    pub(crate) async fn run(mut self) {
        let mut asked: Vec<Asked> = Vec::new();
        // Since when writes that this instance wasn't told of may be under way, those from before
        // its start aside.
        let mut unsettled_since = None;
        let mut look = false;
        let mut breaks = self.gate.breaks();
        let mut backoff = Backoff::new(self.clock.clone());
        loop {
            if self.standing.wait_for(|standing| *standing == Standing::Current).await.is_err() {
                return;
            }
            // However short the break was, and whoever noticed it.
            let breaks_by_now = self.gate.breaks();
            if breaks_by_now != breaks {
                breaks = breaks_by_now;
                unsettled_since = Some(self.clock.now());
            }
            // Requests that are waiting by now share the scan that begins now.
            while let Ok(one) = self.requests.try_recv() {
                asked.push(one);
            }
            // Asked once in a while only: a source that undercounts must not be scanned without end.
            if std::mem::take(&mut look) && self.is_overfull() {
                tracing::warn!("the gate holds more ids than it is sized for; rebuilding larger");
            } else if self.gate.is_certified() && asked.is_empty() {
                tokio::select! {
                    one = self.requests.recv() => match one {
                        Some(one) => asked.push(one),
                        None => return,
                    },
                    () = lost(self.standing.clone()) => unsettled_since = Some(self.clock.now()),
                    () = self.clock.sleep(LOOK_EVERY) => look = true,
                }
                continue;
            }
            let built = tokio::select! {
                built = self.build(unsettled_since) => built,
                () = lost(self.standing.clone()) => Err(Error::RebuildAbandoned(Why::NotAlone)),
            };
            match built {
                Ok(()) => {
                    unsettled_since = None;
                    backoff = Backoff::new(self.clock.clone());
                    for one in asked.drain(..) {
                        // Whoever asked may be gone.
                        let _ = one.send(Ok(()));
                    }
                }
                Err(error) => {
                    self.progress.failed("building the gate", &error);
                    if *self.standing.borrow() != Standing::Current {
                        unsettled_since = Some(self.clock.now());
                    }
                    backoff.wait().await;
                }
            }
        }
    }

    /// One generation, from nothing to service.
    async fn build(&self, unsettled_since: Option<Moment>) -> Result<(), Error> {
        if self.settled_at_start.clone().wait_for(|settled| *settled).await.is_err() {
            // The guard is going down, and this task with it.
            return std::future::pending().await;
        }
        if let Some(since) = unsettled_since {
            let (source, progress) = (&*self.source, &*self.progress);
            warm_up::settle(source, since, self.write_window, progress, &self.clock).await;
        }
        let blueprint = self.blueprint().await?;
        // Rule A2: subscribe to admissions and copy the open set, then scan.
        let building = self.gate.start_generation(blueprint)?;
        let generation = Arc::clone(building.generation());
        let insert = |key: &[u8]| generation.insert(key);
        let _completed = warm_up::fill(&*self.source, insert, &self.progress, &self.clock).await;
        building.activate().map_err(Error::RebuildAbandoned)?;
        let number = generation.number();
        tracing::info!(generation = number, keys = self.progress.keys(), "the gate is closed");
        Ok(())
    }

    /// Whether a gate that was sized by counting holds more than it was sized for. The other kinds
    /// grow, and who gave a capacity wants that one.
    fn is_overfull(&self) -> bool {
        match self.settings.filter {
            FilterSettings::Bloom { capacity: Capacity::Counted, rate, .. } => {
                self.gate.present_rate() > OVERFULL * rate.get()
            }
            FilterSettings::Bloom { .. } | FilterSettings::Bitmap | FilterSettings::Exact => false,
        }
    }

    /// What the next generation is made of. A Bloom filter is sized by the rows there are.
    async fn blueprint(&self) -> Result<Blueprint, Error> {
        let (capacity, rate, hash) = match self.settings.filter {
            FilterSettings::Bloom { capacity, rate, hash } => (capacity, rate, hash),
            FilterSettings::Bitmap => return Ok(Blueprint::Bitmap),
            FilterSettings::Exact => return Ok(Blueprint::Exact),
        };
        let counted = self.count().await;
        let capacity = capacity.for_rows(counted);
        if counted > capacity {
            tracing::warn!(counted, capacity, "the gate is sized for fewer ids than there are");
        }
        let plan = BloomParams::new(capacity, rate).map_err(|error| Error::Filter(error.into()))?;
        Ok(Blueprint::Bloom(plan, hash))
    }

    /// Asks how many keys there are until the source says so.
    async fn count(&self) -> u64 {
        let mut backoff = Backoff::new(self.clock.clone());
        loop {
            match self.clock.timeout(COUNT_WITHIN, self.source.count()).await {
                Ok(Ok(counted)) => return counted,
                Ok(Err(error)) => self.progress.failed("counting the keys", &error),
                Err(_elapsed) => {
                    let error = SourceError::new(format!("no answer within {COUNT_WITHIN:?}"));
                    self.progress.failed("counting the keys", &error);
                }
            }
            backoff.wait().await;
        }
    }
}

/// Resolves when the standing is lost; never, if it can't be.
async fn lost(mut standing: watch::Receiver<Standing>) {
    if standing.wait_for(|standing| *standing != Standing::Current).await.is_err() {
        std::future::pending::<()>().await;
    }
}
