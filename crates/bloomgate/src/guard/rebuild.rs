//! The task that builds generations: at the start, after a void, on request.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};

use super::copy::{self, CopyKind};
use super::local_view::LocalView;
use crate::answer::OpenReason;
use crate::clock::{Clock, Moment};
use crate::error::{RebuildError, SourceError};
use crate::gate::{Capacity, GateSettings, GenerationSpec, LiveGate};
use crate::key::Key;
use crate::ports::{Backplane, Source};
use crate::warm_up::{self, Backoff, Progress};

/// Longest wait for the number of keys, which a large table takes a while to count.
const COUNT_WITHIN: Duration = Duration::from_secs(120);

/// How often the fill of a gate in service is checked.
const CHECK_FILL_EVERY: Duration = Duration::from_secs(5);
/// How many times the false-positive rate asked for is too much.
const OVERFULL: f64 = 2.0;

type RebuildWaiter = oneshot::Sender<Result<(), RebuildError>>;

/// Asks the builder for a new generation.
#[derive(Debug)]
pub(crate) struct RebuildRequests(mpsc::UnboundedSender<RebuildWaiter>);

impl RebuildRequests {
    pub(crate) fn channel() -> (Self, mpsc::UnboundedReceiver<RebuildWaiter>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }

    /// Resolves once a generation that was begun after the call is in service.
    pub(crate) async fn ask(&self) -> Result<(), RebuildError> {
        let (waiter, done) = oneshot::channel();
        // Without a builder there is no gate to build; one that goes away goes with the guard.
        self.0.send(waiter).map_err(|_| RebuildError::NoGate)?;
        done.await.unwrap_or(Err(RebuildError::ShuttingDown))
    }
}

/// Waits for the end of what a killed predecessor may have left under way (rule A8), then lets the
/// caches take what is loaded, and the gate be built.
pub(crate) async fn quiesce_at_start<K, V>(
    source: Arc<dyn Source<Key = K>>,
    local: Arc<LocalView<K, V>>,
    started: Moment,
    write_window: Duration,
    progress: Arc<Progress>,
    clock: Clock,
    quiesced: watch::Sender<bool>,
) where
    K: Key,
    V: Send + Sync + 'static,
{
    warm_up::quiesce(&*source, started, write_window, &progress, &clock).await;
    progress.succeeded();
    local.set_quiesced();
    quiesced.send_replace(true);
}

/// Everything that building a generation takes.
#[derive(Debug)]
pub(crate) struct GenerationBuilder<K: Key> {
    pub(crate) name: Arc<str>,
    pub(crate) gate: Arc<LiveGate>,
    pub(crate) settings: GateSettings,
    pub(crate) source: Arc<dyn Source<Key = K>>,
    pub(crate) backplane: Arc<dyn Backplane>,
    pub(super) copy_kind: Arc<CopyKind>,
    pub(crate) requests: mpsc::UnboundedReceiver<RebuildWaiter>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) clock: Clock,
    pub(crate) quiesced_at_start: watch::Receiver<bool>,
    pub(crate) write_window: Duration,
}

impl<K: Key> GenerationBuilder<K> {
    /// Builds the first generation, and another whenever one is asked for, or the one in service
    /// was voided or has become too full; for ever.
    pub(crate) async fn run(mut self) {
        let mut link = self.gate.link_events();
        let mut waiters: Vec<RebuildWaiter> = Vec::new();
        // Since when writes that this instance never learned of may be under way, those from before
        // its start aside.
        let mut unquiesced_since = None;
        let mut check_fill = false;
        let mut voids = link.borrow().voids;
        let mut backoff = Backoff::new(self.clock.clone());
        loop {
            // Before the link is up, admissions could be missed by a generation that is begun.
            let Ok(now) = link.wait_for(|link| link.in_sync).await.map(|link| *link) else {
                return;
            };
            if now.voids != voids {
                voids = now.voids;
                unquiesced_since = Some(self.clock.now());
            }
            // Requests that are waiting by now share the scan that begins now.
            while let Ok(one) = self.requests.try_recv() {
                waiters.push(one);
            }
            // Asked once in a while only: a source that undercounts must not be scanned without end.
            let overfull = std::mem::take(&mut check_fill) && self.is_overfull();
            // Only the source tells what was written behind the guards' back, and how many ids
            // there are.
            let may_copy = waiters.is_empty() && !overfull;
            if overfull {
                tracing::warn!(
                    guard = &*self.name,
                    "the gate holds more ids than it is sized for; rebuilding larger"
                );
            } else if self.gate.is_certified() && waiters.is_empty() {
                tokio::select! {
                    one = self.requests.recv() => match one {
                        Some(one) => waiters.push(one),
                        None => return,
                    },
                    () = voided_since(voids, &self.gate) => {}
                    () = self.clock.sleep(CHECK_FILL_EVERY) => check_fill = true,
                }
                continue;
            }
            let built = tokio::select! {
                built = self.build(unquiesced_since, may_copy) => built,
                () = voided_since(voids, &self.gate) => {
                    Err(RebuildError::Voided(OpenReason::Rebuilding))
                }
            };
            match built {
                Ok(()) => {
                    unquiesced_since = None;
                    backoff = Backoff::new(self.clock.clone());
                    for one in waiters.drain(..) {
                        // The caller may be gone.
                        let _ = one.send(Ok(()));
                    }
                }
                Err(RebuildError::Voided(_)) => {
                    tracing::info!(
                        guard = &*self.name,
                        "the generation was voided; building another"
                    );
                }
                Err(error) => {
                    self.progress.failed("building the gate", &error);
                    backoff.wait().await;
                }
            }
        }
    }

    /// One generation, from nothing to service.
    async fn build(
        &self,
        unquiesced_since: Option<Moment>,
        may_copy: bool,
    ) -> Result<(), RebuildError> {
        // A copy needs no quiescing: what a killed predecessor had under way was admitted by the
        // instance that gives it.
        let (kind, gate, backplane) = (&self.copy_kind, &self.gate, &*self.backplane);
        if may_copy && copy::take(&self.name, kind, gate, backplane, &self.clock).await? {
            return Ok(());
        }
        if self.quiesced_at_start.clone().wait_for(|quiesced| *quiesced).await.is_err() {
            // The guard is going down, and this task with it.
            return std::future::pending().await;
        }
        if let Some(since) = unquiesced_since {
            let (source, progress) = (&*self.source, &*self.progress);
            warm_up::quiesce(source, since, self.write_window, progress, &self.clock).await;
        }
        let spec = &self.settings.generation;
        // Counting a large table takes a while, and may change nothing.
        let rows = if spec.needs_count() { self.count().await } else { 0 };
        // Rule A2: subscribe to admissions and copy the open set, then scan.
        let building = self.gate.start_generation(spec, rows);
        let building = building.map_err(|error| RebuildError::Filter(error.into()))?;
        let generation = Arc::clone(building.generation());
        let insert = |keys: &[K]| generation.insert_many(keys);
        let _completed = warm_up::fill(&*self.source, insert, &self.progress, &self.clock).await;
        building.activate().map_err(RebuildError::Voided)?;
        self.warn_if_undersized();
        tracing::info!(
            guard = &*self.name,
            generation = generation.number(),
            keys = self.progress.keys(),
            "the gate is closed"
        );
        Ok(())
    }

    /// A capacity that was given is kept, however many ids there are.
    fn warn_if_undersized(&self) {
        let keys = self.progress.keys();
        if let GenerationSpec::Bloom { capacity: Capacity::Fixed(items), .. } =
            self.settings.generation
            && keys > items
        {
            tracing::warn!(
                guard = &*self.name,
                keys,
                capacity = items,
                "the gate is sized for fewer ids than there are, so more absent ids pass"
            );
        }
    }

    /// Whether a gate that was sized by counting holds more than it was sized for. The other kinds
    /// grow, and who gave a capacity wants that one.
    fn is_overfull(&self) -> bool {
        match self.settings.generation {
            GenerationSpec::Bloom { capacity: Capacity::Counted, rate, .. } => {
                self.gate.current_rate() > OVERFULL * rate.get()
            }
            GenerationSpec::Bloom { .. } | GenerationSpec::Bitmap | GenerationSpec::Exact => false,
        }
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

/// Resolves once the gate has been voided again. Holds nothing of the channel when it does: what is
/// dropped then, a generation under way, publishes to it.
async fn voided_since(voids: u64, gate: &LiveGate) {
    let mut link = gate.link_events();
    let voided = link.wait_for(|link| link.voids != voids).await.is_ok();
    if !voided {
        // The gate is gone, and this task with it.
        std::future::pending::<()>().await;
    }
}
