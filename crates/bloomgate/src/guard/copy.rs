//! A complete gate from another instance, and for another instance.

use std::io::{Read, Write};
use std::sync::Arc;

use bloomgate_filter::{AnySet, Secret, snapshot};
use bytes::Bytes;
use tokio::sync::mpsc;

use crate::clock::Clock;
use crate::error::{BackplaneError, BoxError, RebuildError};
use crate::gate::{Generation, GenerationSpec, LiveGate};
use crate::ports::{Backplane, CopyOffer, CopyReader, CopyRequest, CopySource};

/// Which gate this guard has.
#[derive(Debug)]
pub(super) struct CopyKind {
    request: CopyRequest,
    /// False for a secret of this process's own, under which no other can read a gate.
    shared_secret: bool,
}

impl CopyKind {
    pub(super) fn new(
        key_kind: &str,
        spec: &GenerationSpec,
        secret: &Secret,
        shared_secret: bool,
    ) -> Self {
        let gate = format!("{key_kind} {spec:?}");
        // The exact families hold the keys themselves: no secret is in them.
        let keyed = matches!(spec, GenerationSpec::Bloom { .. });
        let fingerprint = if keyed { secret.fingerprint() } else { [0; 8] };
        Self {
            request: CopyRequest::new(gate, fingerprint),
            shared_secret: shared_secret || !keyed,
        }
    }

    /// What to offer to a member that asks. To be called while what was delivered is in the gate.
    pub(super) fn offer(&self, gate: &LiveGate, request: &CopyRequest) -> CopyOffer {
        if request.gate != self.request.gate {
            return CopyOffer::OtherGate;
        }
        let Some(generation) = gate.to_copy() else { return CopyOffer::NotNow };
        if request.secret != self.request.secret {
            return CopyOffer::OtherSecret;
        }
        CopyOffer::Gate(Box::new(Source(generation)))
    }
}

#[derive(Debug)]
struct Source(Arc<Generation>);

impl CopySource for Source {
    fn write(self: Box<Self>, out: &mut dyn Write) -> Result<(), BoxError> {
        snapshot::write(self.0.set(), b"", out).map_err(BoxError::from)
    }
}

/// Takes a copy from another instance and puts it in service; false if there is none to take.
pub(super) async fn take(
    name: &str,
    kind: &CopyKind,
    gate: &Arc<LiveGate>,
    backplane: &dyn Backplane,
    clock: &Clock,
) -> Result<bool, RebuildError> {
    if !kind.shared_secret {
        return Ok(false);
    }
    let began = clock.now();
    // Before the question: what is admitted from now on must be in the copy.
    let copying = gate.start_copy();
    let reader = match backplane.copy_gate(kind.request.clone()).await {
        Ok(Some(reader)) => reader,
        Ok(None) => return Ok(false),
        Err(error) => {
            tracing::info!(guard = name, %error, "no copy of the gate could be asked for");
            return Ok(false);
        }
    };
    let (set, bytes) = match read(reader, gate.secret().clone()).await {
        Ok(read) => read,
        Err(error) => {
            tracing::warn!(guard = name, %error, "the copy of the gate can't be used");
            return Ok(false);
        }
    };
    let Some(building) = copying.install(set) else {
        tracing::warn!(guard = name, "too many keys were written during the copy of the gate");
        return Ok(false);
    };
    let generation = building.generation().number();
    building.activate().map_err(RebuildError::Voided)?;
    let ms = clock.now().since(began).as_millis();
    tracing::info!(
        guard = name,
        generation,
        bytes,
        ms,
        "the gate is closed: it was copied from another instance"
    );
    Ok(true)
}

/// Reads the set, and tells how many bytes it came in.
async fn read(mut reader: Box<dyn CopyReader>, secret: Secret) -> Result<(AnySet, u64), BoxError> {
    let first = reader.next().await?.ok_or("it is empty")?;
    let bytes = snapshot::read_header(&first[..])?.total_bytes();
    let (sender, chunks) = mpsc::channel(4);
    let reading = tokio::task::spawn_blocking(move || {
        let input = ChunkReader { chunks, chunk: first };
        snapshot::read(input, bytes, Some(&secret)).map(|loaded| loaded.set)
    });
    let passed_on = async move {
        while let Some(chunk) = reader.next().await? {
            if sender.send(chunk).await.is_err() {
                // It can't be read; the other side says why.
                break;
            }
        }
        Ok::<(), BackplaneError>(())
    };
    let passed_on = passed_on.await;
    let set = reading.await??;
    passed_on?;
    Ok((set, bytes))
}

/// Hands chunks from the task that receives them to the thread that reads.
struct ChunkReader {
    chunks: mpsc::Receiver<Bytes>,
    chunk: Bytes,
}

impl Read for ChunkReader {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        while self.chunk.is_empty() {
            match self.chunks.blocking_recv() {
                Some(next) => self.chunk = next,
                None => return Ok(0),
            }
        }
        let taken = self.chunk.len().min(out.len());
        out[..taken].copy_from_slice(&self.chunk.split_to(taken));
        Ok(taken)
    }
}
