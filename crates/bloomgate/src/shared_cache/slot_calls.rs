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

#[cfg(test)]
mod tests {
    use futures_util::future::{BoxFuture, ready};

    use super::*;
    use crate::key::KeyBytes;
    use crate::ports::ClearStep;

    /// A store with one reply for everything.
    #[derive(Debug)]
    struct Parrot(SlotReply);

    impl Store for Parrot {
        fn prepare(&self) -> BoxFuture<'_, Result<(), StoreError>> {
            Box::pin(ready(Ok(())))
        }

        fn endpoint(&self) -> String {
            String::new()
        }

        fn call<'a>(
            &'a self,
            _slot: &'a SlotKey,
            _op: SlotOp,
        ) -> BoxFuture<'a, Result<SlotReply, StoreError>> {
            Box::pin(ready(Ok(self.0.clone())))
        }

        fn clear_step<'a>(
            &'a self,
            _prefix: &'a str,
            _from: Option<&'a str>,
        ) -> BoxFuture<'a, Result<ClearStep, StoreError>> {
            Box::pin(ready(Ok(ClearStep::new(0, None))))
        }
    }

    #[tokio::test]
    async fn a_reply_of_another_kind_is_an_invalid_response() {
        let slot = SlotKey::new("test:".into(), 1, KeyBytes::of(&1_i64));
        let (lease, write, ttl) = (LeaseId::fresh(), WriteId::fresh(), Duration::from_secs(1));
        let replies = [
            SlotReply::Done,
            SlotReply::Filled(Filled::Stored),
            SlotReply::Slot(Slot::Empty),
            SlotReply::Slot(Slot::LeaseGranted),
        ];
        for reply in replies {
            let store = Parrot(reply.clone());
            let results = [
                store.get(&slot).await.err(),
                store.get_or_lease(&slot, lease, ttl).await.err(),
                store.fill(&slot, lease, Entry::Null, 7, ttl).await.err(),
                store.release(&slot, lease).await.err(),
                store.put_intent(&slot, write, ttl).await.err(),
                store.clear_intent(&slot, write).await.err(),
            ];
            let valid = match reply {
                SlotReply::Done => [false, false, false, true, true, true],
                SlotReply::Filled(_) => [false, false, true, false, false, false],
                // Without having asked for it, no caller is granted a lease.
                SlotReply::Slot(Slot::LeaseGranted) => [false, true, false, false, false, false],
                SlotReply::Slot(_) => [true, true, false, false, false, false],
            };
            for (error, valid) in results.into_iter().zip(valid) {
                let kind = error.map(|error| error.kind());
                let expected = (!valid).then_some(StoreErrorKind::InvalidResponse);
                assert_eq!(kind, expected, "{reply:?}");
            }
        }
    }

    /// A store in memory that takes no write intents.
    #[derive(Debug)]
    struct NoIntents(super::super::MemoryStore);

    impl Store for NoIntents {
        fn prepare(&self) -> BoxFuture<'_, Result<(), StoreError>> {
            self.0.prepare()
        }

        fn endpoint(&self) -> String {
            self.0.endpoint()
        }

        fn call<'a>(
            &'a self,
            slot: &'a SlotKey,
            op: SlotOp,
        ) -> BoxFuture<'a, Result<SlotReply, StoreError>> {
            if matches!(op, SlotOp::PutIntent { .. }) {
                return Box::pin(ready(Err(StoreError::new(StoreErrorKind::Rejected, "no"))));
            }
            self.0.call(slot, op)
        }

        fn clear_step<'a>(
            &'a self,
            prefix: &'a str,
            from: Option<&'a str>,
        ) -> BoxFuture<'a, Result<ClearStep, StoreError>> {
            self.0.clear_step(prefix, from)
        }
    }

    #[tokio::test]
    async fn one_failure_among_many_calls_leaves_the_others_by_default() {
        let store = NoIntents(super::super::MemoryStore::new(crate::Clock::system()));
        let slot = SlotKey::new("test:".into(), 1, KeyBytes::of(&1_i64));
        let (lease, ttl) = (LeaseId::fresh(), Duration::from_secs(60));
        let ops = [
            SlotOp::GetOrLease { lease, ttl },
            SlotOp::PutIntent { write: WriteId::fresh(), ttl },
            SlotOp::Fill { lease, entry: Entry::Null, until: 7, ttl },
        ];
        let mut replies = store.call_many(ops.map(|op| (slot.clone(), op)).to_vec()).await;
        let filled = replies.pop().unwrap().unwrap();
        assert_eq!(filled, SlotReply::Filled(Filled::Stored));
        assert_eq!(replies.pop().unwrap().unwrap_err().kind(), StoreErrorKind::Rejected);
        let leased = replies.pop().unwrap().unwrap();
        assert_eq!(leased, SlotReply::Slot(Slot::LeaseGranted));
        assert!(store.fleet_log("any").is_none());
    }
}
