//! The task that waits until every member has applied what was appended (rule C19).
//!
//! All writes that are waiting share one look at the table. A look that finds them over is their
//! last: it was asked for after all waits had ended.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::appender::Request;
use super::barrier::{Awaited, RowId, judge};
use super::shared::Shared;
use crate::clock::Moment;
use crate::error::{BackplaneError, StoreError};
use crate::ports::{FleetView, LogIdentity};

/// How long looks may fail before the writes that wait for them do.
const FAIL_AFTER: Duration = Duration::from_secs(1);

/// Requests that are in the log and not acknowledged yet.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) awaited: Awaited,
    pub(super) identity: LogIdentity,
    pub(super) requests: Vec<Request>,
}

/// The task.
#[derive(Debug)]
pub(super) struct AcknowledgementTask {
    pub(super) shared: Arc<Shared>,
    pub(super) appended: mpsc::UnboundedReceiver<Pending>,
    /// Where a request goes that has to be appended anew.
    pub(super) requests: mpsc::WeakUnboundedSender<Request>,
    pending: Vec<Pending>,
    failing_since: Option<Moment>,
}

impl AcknowledgementTask {
    pub(super) fn new(
        shared: Arc<Shared>,
        appended: mpsc::UnboundedReceiver<Pending>,
        requests: mpsc::WeakUnboundedSender<Request>,
    ) -> Self {
        Self { shared, appended, requests, pending: Vec::new(), failing_since: None }
    }

    /// Runs until the appending task is gone.
    pub(super) async fn run(mut self) {
        loop {
            if self.pending.is_empty() {
                let Some(next) = self.appended.recv().await else { return };
                self.pending.push(next);
            }
            while let Ok(next) = self.appended.try_recv() {
                self.pending.push(next);
            }
            self.drop_abandoned();
            if self.pending.is_empty() {
                continue;
            }
            let asked = self.shared.clock.now();
            match self.shared.step("look", self.shared.log.look()).await {
                Ok(view) => {
                    self.failing_since = None;
                    self.take_view(view, asked).await;
                }
                Err(error) => self.take_failure(&error, asked),
            }
            self.pause().await;
        }
    }

    /// Callers that have gone away are waited for no longer.
    fn drop_abandoned(&mut self) {
        for pending in &mut self.pending {
            pending.requests.retain(|request| !request.reply.is_closed());
        }
        self.pending.retain(|pending| !pending.requests.is_empty());
    }

    async fn take_view(&mut self, view: Option<FleetView>, asked: Moment) {
        let Some(view) = view else {
            // No log, or none that fits its table: the next append makes a fresh one.
            for pending in std::mem::take(&mut self.pending) {
                self.append_anew(pending);
            }
            return;
        };
        let shared = Arc::clone(&self.shared);
        shared.observe(&view);
        let limits = (asked, shared.settings.fence_after, shared.settings.lease);
        let mut to_fence: Vec<RowId> = Vec::new();
        for pending in std::mem::take(&mut self.pending) {
            if pending.identity != view.identity {
                // Rule C19: the Begin is void.
                self.append_anew(pending);
                continue;
            }
            let judged =
                judge(&view, shared.instance, pending.awaited, &shared.waits.lock(), limits);
            if judged.over {
                for request in pending.requests {
                    shared.count_wait(request.since);
                    // The caller may be gone.
                    let _ = request.reply.send(Ok(pending.identity.clone()));
                }
            } else {
                to_fence.extend(judged.to_fence);
                self.pending.push(pending);
            }
        }
        to_fence
            .sort_unstable_by_key(|(instance, incarnation)| (instance.to_bytes(), *incarnation));
        to_fence.dedup();
        for row in to_fence {
            shared.fence(&view, row).await;
        }
        shared.settle(&view, asked).await;
    }

    fn append_anew(&self, pending: Pending) {
        let Some(requests) = self.requests.upgrade() else { return };
        for request in pending.requests {
            // Fails only when the appending task is gone, and this one will be.
            let _ = requests.send(request);
        }
    }

    fn take_failure(&mut self, error: &StoreError, asked: Moment) {
        let since = *self.failing_since.get_or_insert(asked);
        if self.shared.clock.now().since(since) < FAIL_AFTER {
            return;
        }
        for request in self.pending.drain(..).flat_map(|pending| pending.requests) {
            let _ = request.reply.send(Err(BackplaneError(error.to_string())));
        }
        self.failing_since = None;
    }

    /// The pause before the next look: none while members may answer at any moment, longer for one
    /// that is slow.
    async fn pause(&mut self) {
        let Some(youngest) = self.pending.iter().map(|pending| pending.awaited.since).max() else {
            return;
        };
        let age = self.shared.clock.now().since(youngest);
        let pause = match age.as_millis() {
            0..3 if self.failing_since.is_none() => return tokio::task::yield_now().await,
            0..50 => Duration::from_millis(1),
            50..500 => Duration::from_millis(5),
            _ => Duration::from_millis(25),
        };
        tokio::select! {
            () = self.shared.clock.sleep(pause) => {}
            next = self.appended.recv() => self.pending.extend(next),
        }
    }
}
