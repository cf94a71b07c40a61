//! The task that appends records to the log: one at a time, with everything that is waiting.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::acknowledgements::Pending;
use super::barrier::{Awaited, judge};
use super::record::{self, Op};
use super::shared::Shared;
use crate::clock::Moment;
use crate::error::BackplaneError;
use crate::ports::{LogIdentity, PeerWrite};

/// Most operations of one record: bounds its size, and what a reader applies at once.
const MAX_BATCH: usize = 1_000;

/// What is to be appended.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Begin(PeerWrite),
    End(PeerWrite),
    InvalidateAll,
}

/// A caller's wish to append.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) change: Change,
    /// When it was made, waits for earlier records included.
    pub(super) since: Moment,
    /// Answered with the identity that the change holds under.
    pub(super) reply: oneshot::Sender<Result<LogIdentity, BackplaneError>>,
}

impl Change {
    fn op(&self, now: Moment) -> Op {
        match self {
            Self::Begin(write) => Op::begin(write, now),
            Self::End(write) => Op::end(write),
            Self::InvalidateAll => Op::InvalidateAll,
        }
    }

    /// Whether the caller waits until every member has applied it. An End only has to be in the
    /// log: until they apply it, the members keep the key open.
    fn is_awaited(&self) -> bool {
        !matches!(self, Self::End(_))
    }
}

/// The task.
#[derive(Debug)]
pub(super) struct AppendTask {
    pub(super) shared: Arc<Shared>,
    pub(super) requests: mpsc::UnboundedReceiver<Request>,
    pub(super) pending: mpsc::UnboundedSender<Pending>,
}

impl AppendTask {
    /// Runs until every sender of requests is gone.
    pub(super) async fn run(mut self) {
        while let Some(first) = self.requests.recv().await {
            let mut batch = vec![first];
            while batch.len() < MAX_BATCH
                && let Ok(next) = self.requests.try_recv()
            {
                batch.push(next);
            }
            // Whoever has gone away has rolled back, or will ask again.
            batch.retain(|request| !request.reply.is_closed());
            if !batch.is_empty() {
                self.append(batch).await;
            }
        }
    }

    async fn append(&self, batch: Vec<Request>) {
        let shared = &*self.shared;
        let since = shared.clock.now();
        let ops: Vec<Op> = batch.iter().map(|request| request.change.op(since)).collect();
        let append = shared.log.append(shared.instance, record::encode(&ops));
        let (position, view) = match shared.step("append", append).await {
            Ok(appended) => appended,
            Err(error) => {
                for request in batch {
                    // The caller may be gone.
                    let _ = request.reply.send(Err(BackplaneError(error.to_string())));
                }
                return;
            }
        };
        shared.observe(&view);
        let awaited = Awaited { position, since };
        let judged = {
            let settings = &shared.settings;
            let limits = (since, settings.fence_after, settings.lease);
            judge(&view, shared.instance, awaited, &shared.waits.lock(), limits)
        };
        let mut waiting = Vec::new();
        for request in batch {
            if request.change.is_awaited() && !judged.over {
                waiting.push(request);
            } else {
                let _ = request.reply.send(Ok(view.identity.clone()));
            }
        }
        if !waiting.is_empty() {
            let pending = Pending { awaited, identity: view.identity, requests: waiting };
            // The task that waits ends with this one.
            let _ = self.pending.send(pending);
        }
    }
}
