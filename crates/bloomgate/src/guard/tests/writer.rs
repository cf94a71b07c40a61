//! A write whose steps the test takes one by one.

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::harness::Harness;
use super::within;
use crate::error::{AdmitError, WriteError, WriteFailure};
use crate::guard::open_write::Kind;

/// What a `run` can fail with.
#[derive(Debug)]
pub(super) enum Failure {
    /// The database has refused.
    OutcomeKnown,
    /// The database has not answered.
    OutcomeUnknown,
    Admit(AdmitError),
}

impl From<AdmitError> for Failure {
    fn from(error: AdmitError) -> Self {
        Self::Admit(error)
    }
}

impl WriteFailure for Failure {
    fn outcome_is_known(&self) -> bool {
        !matches!(self, Failure::OutcomeUnknown)
    }
}

#[derive(Debug)]
enum Order {
    Commit,
    Delete,
    Return(Result<(), Failure>),
    Panic,
}

/// A write under way.
#[derive(Debug)]
pub(super) struct Writer {
    orders: mpsc::UnboundedSender<Order>,
    news: mpsc::UnboundedReceiver<()>,
    ended: JoinHandle<Result<(), WriteError<Failure>>>,
}

impl Writer {
    /// Calls `write`; returns at once.
    pub(super) fn call(harness: &Harness, id: i64) -> Self {
        Self::call_as(harness, id, Kind::Admitting)
    }

    /// Calls `write` or `update`; returns at once.
    pub(super) fn call_as(harness: &Harness, id: i64, kind: Kind) -> Self {
        let (orders, mut listening) = mpsc::unbounded_channel();
        let (done, news) = mpsc::unbounded_channel();
        let (guard, table) = (harness.guard.clone(), harness.table.clone());
        let run = async move {
            // The test may have dropped its end.
            let _ = done.send(());
            while let Some(order) = listening.recv().await {
                match order {
                    Order::Commit => _ = table.commit(id),
                    Order::Delete => _ = table.delete(id),
                    Order::Return(result) => return result,
                    Order::Panic => panic!("the test says so"),
                }
                let _ = done.send(());
            }
            std::future::pending().await
        };
        let ended = tokio::spawn(async move {
            match kind {
                Kind::Admitting => guard.write(id, run).await,
                Kind::Existing => guard.update(id, run).await,
            }
        });
        Self { orders, news, ended }
    }

    /// Calls `write` and waits until Begin is over and `run` has started.
    pub(super) async fn begin(harness: &Harness, id: i64) -> Self {
        let mut writer = Self::call(harness, id);
        writer.running().await;
        writer
    }

    /// Waits until `run` has started.
    pub(super) async fn running(&mut self) {
        within(self.news.recv()).await.expect("run did not start");
    }

    pub(super) fn is_running(&mut self) -> bool {
        self.news.try_recv().is_ok()
    }

    pub(super) async fn commit(&mut self) {
        self.order(Order::Commit).await;
    }

    /// Makes `run` ready to commit; doesn't wait until it has.
    pub(super) fn send_commit(&self) {
        self.orders.send(Order::Commit).unwrap();
    }

    pub(super) async fn delete(&mut self) {
        self.order(Order::Delete).await;
    }

    async fn order(&mut self, order: Order) {
        self.orders.send(order).unwrap();
        within(self.news.recv()).await.expect("run is over");
    }

    /// Makes `run` return; doesn't wait for the End.
    pub(super) fn finish(&self, result: Result<(), Failure>) {
        self.orders.send(Order::Return(result)).unwrap();
    }

    pub(super) fn is_over(&self) -> bool {
        self.ended.is_finished()
    }

    /// What the caller gets.
    pub(super) async fn result(self) -> Result<(), WriteError<Failure>> {
        within(self.ended).await.unwrap()
    }

    /// Makes `run` return and waits for the End.
    pub(super) async fn end(self) {
        self.finish(Ok(()));
        self.result().await.unwrap();
    }

    /// Makes `run` return an error that leaves the write's outcome unknown.
    pub(super) async fn lose(self) {
        self.finish(Err(Failure::OutcomeUnknown));
        let lost = self.result().await;
        assert!(matches!(lost, Err(WriteError::Run(Failure::OutcomeUnknown))), "{lost:?}");
    }

    /// Makes `run` return an error that says that the write is over.
    pub(super) async fn fail(self) {
        self.finish(Err(Failure::OutcomeKnown));
        let failed = self.result().await;
        assert!(matches!(failed, Err(WriteError::Run(Failure::OutcomeKnown))), "{failed:?}");
    }

    pub(super) async fn panic(self) {
        self.orders.send(Order::Panic).unwrap();
        let lost = self.result().await;
        assert!(matches!(lost, Err(WriteError::Panicked)), "{lost:?}");
    }

    /// Drops the caller's future.
    pub(super) fn leave(&self) {
        self.ended.abort();
    }
}
