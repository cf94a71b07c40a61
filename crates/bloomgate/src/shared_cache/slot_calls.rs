//! A slot's operations as typed methods of every [`Store`].

use std::future::Future;
use std::time::Duration;

use crate::error::{StoreError, StoreErrorKind};
use crate::ports::{Entry, Filled, LeaseId, Slot, SlotKey, SlotOp, SlotReply, Store, WriteId};

/// One method for each [`SlotOp`]. A reply of another kind is an
/// [`InvalidResponse`](StoreErrorKind::InvalidResponse).
pub(crate) trait SlotCalls: Store {
    fn get(&self, slot: &SlotKey) -> impl Future<Output = Result<Slot, StoreError>> + Send {
        async {
            match self.call(slot, SlotOp::Get).await? {
                // No lease was asked for.
                SlotReply::Slot(Slot::LeaseGranted) => Err(invalid("get")),
                SlotReply::Slot(found) => Ok(found),
                _ => Err(invalid("get")),
            }
        }
    }

    fn get_or_lease(
        &self,
        slot: &SlotKey,
        lease: LeaseId,
        ttl: Duration,
    ) -> impl Future<Output = Result<Slot, StoreError>> + Send {
        async move {
            match self.call(slot, SlotOp::GetOrLease { lease, ttl }).await? {
                SlotReply::Slot(found) => Ok(found),
                _ => Err(invalid("get or lease")),
            }
        }
    }

    fn fill(
        &self,
        slot: &SlotKey,
        lease: LeaseId,
        entry: Entry,
        until: u64,
        ttl: Duration,
    ) -> impl Future<Output = Result<Filled, StoreError>> + Send {
        async move {
            match self.call(slot, SlotOp::Fill { lease, entry, until, ttl }).await? {
                SlotReply::Filled(filled) => Ok(filled),
                _ => Err(invalid("fill")),
            }
        }
    }

    fn release(
        &self,
        slot: &SlotKey,
        lease: LeaseId,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        async move { done("release", self.call(slot, SlotOp::Release { lease }).await?) }
    }

    fn put_intent(
        &self,
        slot: &SlotKey,
        write: WriteId,
        ttl: Duration,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        async move { done("put intent", self.call(slot, SlotOp::PutIntent { write, ttl }).await?) }
    }

    fn clear_intent(
        &self,
        slot: &SlotKey,
        write: WriteId,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        async move { done("clear intent", self.call(slot, SlotOp::ClearIntent { write }).await?) }
    }
}

impl<S: Store + ?Sized> SlotCalls for S {}

fn done(what: &str, reply: SlotReply) -> Result<(), StoreError> {
    match reply {
        SlotReply::Done => Ok(()),
        _ => Err(invalid(what)),
    }
}

fn invalid(what: &str) -> StoreError {
    StoreError::new(
        StoreErrorKind::InvalidResponse,
        format!("{what}: the store gave the reply of another operation"),
    )
}
