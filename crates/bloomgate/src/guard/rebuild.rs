//! Builds generations: at the start, after a doubt, and when asked to.

use std::sync::Arc;
use std::time::Duration;

use bloomgate_filter::BloomParams;
use tokio::sync::{mpsc, oneshot, watch};

use super::local_view::LocalView;
use crate::answer::OpenReason;
use crate::clock::{Clock, Moment};
use crate::error::{Error, SourceError};
use crate::gate::{Capacity, FilterSettings, GateSettings, GenerationSpec, LiveGate};
use crate::ports::{LinkState, Source};
use crate::warm_up::{self, Backoff, Progress};

/// Longest wait for the number of keys, which a large table takes a while to count.
const COUNT_WITHIN: Duration = Duration::from_secs(120);

/// How often a gate in service is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How many times the false-positive rate asked for is too much.
const OVERFULL: f64 = 2.0;

type RebuildWaiter = oneshot::Sender<Result<(), Error>>;

/// Asks the builder for a new generation.
#[derive(Debug)]
pub(crate) struct RebuildRequests(mpsc::UnboundedSender<RebuildWaiter>);

impl RebuildRequests {
    pub(crate) fn channel() -> (Self, mpsc::UnboundedReceiver<RebuildWaiter>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }

    pub(crate) async fn ask(&self) -> Result<(), Error> {
        let gone = || Error::RebuildAbandoned(OpenReason::Forced);
        let (asked, done) = oneshot::channel();
        self.0.send(asked).map_err(|_| gone())?;
        done.await.unwrap_or_else(|_| Err(gone()))
    }
}

/// Keeps gate and local cache informed of the backplane's standing, for ever.
pub(crate) async fn follow_link<V: Send + Sync + 'static>(
    mut standing: watch::Receiver<LinkState>,
    gate: Arc<LiveGate>,
    local: Arc<LocalView<V>>,
) {
    let mut before = None;
    loop {
        let now = *standing.borrow_and_update();
        if before == Some(LinkState::InSync) && now == LinkState::InSync {
            // It was lost and won again between two looks: a break all the same.
            let lost = LinkState::OutOfSync(OpenReason::NotAlone);
            gate.set_link_state(lost);
            local.set_link_state(lost);
        }
        gate.set_link_state(now);
        local.set_link_state(now);
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
pub(crate) async fn quiesce_at_start<V: Send + Sync + 'static>(
    source: Arc<dyn Source>,
    local: Arc<LocalView<V>>,
    started: Moment,
    write_window: Duration,
    progress: Arc<Progress>,
    clock: Clock,
    quiesced: watch::Sender<bool>,
) {
    warm_up::quiesce(&*source, started, write_window, &progress, &clock).await;
    progress.succeeded();
    local.set_quiesced();
    quiesced.send_replace(true);
}

/// Everything that building a generation takes.
#[derive(Debug)]
pub(crate) struct GenerationBuilder {
    pub(crate) gate: Arc<LiveGate>,
    pub(crate) settings: GateSettings,
    pub(crate) source: Arc<dyn Source>,
    pub(crate) standing: watch::Receiver<LinkState>,
    pub(crate) requests: mpsc::UnboundedReceiver<RebuildWaiter>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) clock: Clock,
    pub(crate) quiesced_at_start: watch::Receiver<bool>,
    pub(crate) write_window: Duration,
}

impl GenerationBuilder {
    /// Builds the first generation, and another whenever one is asked for, or the one in service
    /// lost its certificate or has become too full; for ever.
    pub(crate) async fn run(mut self) {
        let mut asked: Vec<RebuildWaiter> = Vec::new();
        // Since when writes that this instance wasn't told of may be under way, those from before
        // its start aside.
        let mut unquiesced_since = None;
        let mut look = false;
        let mut link_epoch = self.gate.link_epoch();
        let mut backoff = Backoff::new(self.clock.clone());
        loop {
            if self.standing.wait_for(|standing| *standing == LinkState::InSync).await.is_err() {
                return;
            }
            // However short the break was, and whoever noticed it.
            let link_epoch_by_now = self.gate.link_epoch();
            if link_epoch_by_now != link_epoch {
                link_epoch = link_epoch_by_now;
                unquiesced_since = Some(self.clock.now());
            }
            // Requests that are waiting by now share the scan that begins now.
            while let Ok(one) = self.requests.try_recv() {
                asked.push(one);
            }
            // RebuildWaiter once in a while only: a source that undercounts must not be scanned without end.
            if std::mem::take(&mut look) && self.is_overfull() {
                tracing::warn!("the gate holds more ids than it is sized for; rebuilding larger");
            } else if self.gate.is_certified() && asked.is_empty() {
                tokio::select! {
                    one = self.requests.recv() => match one {
                        Some(one) => asked.push(one),
                        None => return,
                    },
                    () = lost(self.standing.clone()) => unquiesced_since = Some(self.clock.now()),
                    () = self.clock.sleep(LOOK_EVERY) => look = true,
                }
                continue;
            }
            let built = tokio::select! {
                built = self.build(unquiesced_since) => built,
                () = lost(self.standing.clone()) => Err(Error::RebuildAbandoned(OpenReason::NotAlone)),
            };
            match built {
                Ok(()) => {
                    unquiesced_since = None;
                    backoff = Backoff::new(self.clock.clone());
                    for one in asked.drain(..) {
                        // Whoever asked may be gone.
                        let _ = one.send(Ok(()));
                    }
                }
                Err(error) => {
                    self.progress.failed("building the gate", &error);
                    if *self.standing.borrow() != LinkState::InSync {
                        unquiesced_since = Some(self.clock.now());
                    }
                    backoff.wait().await;
                }
            }
        }
    }

    /// One generation, from nothing to service.
    async fn build(&self, unquiesced_since: Option<Moment>) -> Result<(), Error> {
        if self.quiesced_at_start.clone().wait_for(|quiesced| *quiesced).await.is_err() {
            // The guard is going down, and this task with it.
            return std::future::pending().await;
        }
        if let Some(since) = unquiesced_since {
            let (source, progress) = (&*self.source, &*self.progress);
            warm_up::quiesce(source, since, self.write_window, progress, &self.clock).await;
        }
        let spec = self.spec().await?;
        // Rule A2: subscribe to admissions and copy the open set, then scan.
        let building = self.gate.start_generation(spec)?;
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
    async fn spec(&self) -> Result<GenerationSpec, Error> {
        let (capacity, rate, hash) = match self.settings.filter {
            FilterSettings::Bloom { capacity, rate, hash } => (capacity, rate, hash),
            FilterSettings::Bitmap => return Ok(GenerationSpec::Bitmap),
            FilterSettings::Exact => return Ok(GenerationSpec::Exact),
        };
        let counted = self.count().await;
        let capacity = capacity.for_rows(counted);
        if counted > capacity {
            tracing::warn!(counted, capacity, "the gate is sized for fewer ids than there are");
        }
        let plan = BloomParams::new(capacity, rate).map_err(|error| Error::Filter(error.into()))?;
        Ok(GenerationSpec::Bloom(plan, hash))
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
async fn lost(mut standing: watch::Receiver<LinkState>) {
    if standing.wait_for(|standing| *standing != LinkState::InSync).await.is_err() {
        std::future::pending::<()>().await;
    }
}
