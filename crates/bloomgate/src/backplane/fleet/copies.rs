//! Copies of a complete gate between members (rule C22).
//!
//! The member that wants one is registered, has applied the log up to the tail that it read after
//! that, and records what it admits from before it asks. A member that answers has applied the
//! question under a valid lease, so that every Begin that had returned by then is in its gate; every
//! Begin that returns later is waited for by the member that asks.

use std::collections::HashSet;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use super::record::{self, Op};
use super::shared::Shared;
use crate::error::{BackplaneError, BoxError, StoreError};
use crate::ports::{CopyChannel, CopyReader, CopyRequest, CopySource, LogIdentity, WriteId};

/// How long the fleet has for the first chunk. Nothing comes if no member has a complete gate.
const FIRST_CHUNK_WITHIN: Duration = Duration::from_secs(2);
/// How long for each further one.
const CHUNK_WITHIN: Duration = Duration::from_secs(5);
/// Bytes of a chunk.
const CHUNK: usize = 1 << 18;
/// Chunks that may wait in the server.
const MAX_WAITING: u64 = 32;
/// Between two looks whether chunks were taken.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(2);
/// How long the chunks may stand untaken.
const TAKEN_WITHIN: Duration = Duration::from_secs(5);
/// Refusals that are remembered; only the one for a request of this process counts.
const MAX_REFUSALS: usize = 100;

/// Requests of any member that were refused for their secret.
#[derive(Debug, Default)]
pub(super) struct Refusals(HashSet<[u8; 16]>);

impl Refusals {
    pub(super) fn add(&mut self, copy: [u8; 16]) {
        if self.0.len() >= MAX_REFUSALS {
            self.0.clear();
        }
        self.0.insert(copy);
    }
}

impl Shared {
    /// Asks the other members for a copy; `None` if none of them has one to give.
    pub(super) async fn ask_for_copy(
        self: &Arc<Self>,
        request: CopyRequest,
    ) -> Result<Option<Box<dyn CopyReader>>, BackplaneError> {
        let failed = |error: StoreError| BackplaneError(error.to_string());
        let Some(identity) = self.identity_with_others() else { return Ok(None) };
        let opening = self.log.open_copies();
        let mut channel = self.step("open a copy", opening).await.map_err(failed)?;
        let copy = WriteId::fresh();
        let wanted =
            Op::CopyWanted { copy: copy.to_bytes(), gate: request.gate, secret: request.secret };
        let append = self.log.append(self.instance, record::encode(&[wanted]));
        let (_, view) = self.step("ask for a copy", append).await.map_err(failed)?;
        self.observe(&view);
        if view.identity != identity {
            return Ok(None);
        }
        let budget = FIRST_CHUNK_WITHIN + self.settings.step_timeout;
        let first = self.within("copy", budget, channel.pop(copy, FIRST_CHUNK_WITHIN)).await;
        match first.map_err(failed)? {
            Some(first) => Ok(Some(Box::new(FleetCopy {
                shared: Arc::clone(self),
                channel,
                copy,
                first: Some(first),
            }))),
            None => {
                if self.refusals.lock().0.remove(&copy.to_bytes()) {
                    tracing::warn!(
                        guard = &*self.name,
                        "no copy of the gate: the other members have another secret; give all of \
                         them the same with GuardBuilder::secret"
                    );
                    *self.last_copy_refusal.lock() = Some("the others have another secret");
                }
                Ok(None)
            }
        }
    }

    /// The identity of the log, if others are registered in it, too.
    fn identity_with_others(&self) -> Option<LogIdentity> {
        let latest = self.latest.lock();
        let view = latest.as_ref()?;
        let others = view.members.iter().any(|row| row.instance != self.instance && !row.fenced);
        others.then(|| view.identity.clone())
    }

    /// Tells who asked that the secrets differ.
    pub(super) async fn refuse_copy(self: Arc<Self>, copy: [u8; 16]) {
        let record = record::encode(&[Op::CopyRefused { copy }]);
        // Who asked finds no copy either way.
        let _ = self.step("refuse a copy", self.log.append(self.instance, record)).await;
    }

    /// Gives a copy, unless another member has begun to.
    pub(super) async fn give_copy(self: Arc<Self>, copy: [u8; 16], source: Box<dyn CopySource>) {
        if self.gives_copy.swap(true, Ordering::AcqRel) {
            // One at a time: another member may give this one.
            return;
        }
        let began = self.clock.now();
        let guard = &*self.name;
        match self.send_copy(WriteId::from_bytes(copy), source).await {
            Ok(Some(bytes)) => {
                self.counts.copies_given.fetch_add(1, Ordering::Relaxed);
                let ms = self.clock.now().since(began).as_millis();
                tracing::info!(guard, bytes, ms, "gave another member a copy of the gate");
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(guard, %error, "could not give a copy of the gate"),
        }
        self.gives_copy.store(false, Ordering::Release);
    }

    /// Returns the number of bytes; `None` if another member has the request.
    async fn send_copy(
        &self,
        copy: WriteId,
        source: Box<dyn CopySource>,
    ) -> Result<Option<u64>, BoxError> {
        let mut channel = self.step("open a copy", self.log.open_copies()).await?;
        if !self.step("claim a copy", channel.claim(copy)).await? {
            return Ok(None);
        }
        let (sender, mut chunks) = mpsc::channel(1);
        let writing = tokio::task::spawn_blocking(move || {
            let mut out = ChunkWriter { sender, chunk: Vec::with_capacity(CHUNK) };
            source.write(&mut out).and_then(|()| out.flush().map_err(BoxError::from))
        });
        let mut bytes = 0;
        while let Some(chunk) = chunks.recv().await {
            bytes += chunk.len() as u64;
            if self.step("send a copy", channel.push(copy, chunk)).await? >= MAX_WAITING {
                self.until_taken(&mut *channel, copy).await?;
            }
        }
        writing.await.map_err(BoxError::from)??;
        self.step("send a copy", channel.push(copy, Bytes::new())).await?;
        Ok(Some(bytes))
    }

    /// Waits until the server has room for another chunk.
    async fn until_taken(
        &self,
        channel: &mut dyn CopyChannel,
        copy: WriteId,
    ) -> Result<(), BoxError> {
        let by = self.clock.now() + TAKEN_WITHIN;
        while self.step("send a copy", channel.waiting(copy)).await? >= MAX_WAITING {
            if self.clock.now() >= by {
                let _ = self.step("drop a copy", channel.discard(copy)).await;
                return Err("nobody takes it".into());
            }
            self.clock.sleep(LOOK_AGAIN_AFTER).await;
        }
        Ok(())
    }
}

/// Hands chunks from a thread that blocks to the task that sends them.
struct ChunkWriter {
    sender: mpsc::Sender<Bytes>,
    chunk: Vec<u8>,
}

impl Write for ChunkWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let taken = bytes.len().min(CHUNK - self.chunk.len());
        self.chunk.extend_from_slice(&bytes[..taken]);
        if self.chunk.len() == CHUNK {
            self.flush()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        let chunk = std::mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK));
        let gone = |_| std::io::Error::new(std::io::ErrorKind::BrokenPipe, "the copy was dropped");
        self.sender.blocking_send(Bytes::from(chunk)).map_err(gone)
    }
}

/// A copy on its way to this process.
#[derive(Debug)]
struct FleetCopy {
    shared: Arc<Shared>,
    channel: Box<dyn CopyChannel>,
    copy: WriteId,
    first: Option<Bytes>,
}

impl CopyReader for FleetCopy {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, BackplaneError>> {
        Box::pin(async move {
            let chunk = match self.first.take() {
                Some(first) => first,
                None => {
                    let budget = CHUNK_WITHIN + self.shared.settings.step_timeout;
                    let pop = self.channel.pop(self.copy, CHUNK_WITHIN);
                    let popped = self.shared.within("copy", budget, pop).await;
                    let chunk = popped.map_err(|error| BackplaneError(error.to_string()))?;
                    chunk.ok_or_else(|| BackplaneError("the copy was cut off".into()))?
                }
            };
            if chunk.is_empty() {
                self.shared.counts.copies_taken.fetch_add(1, Ordering::Relaxed);
                return Ok(None);
            }
            Ok(Some(chunk))
        })
    }
}
