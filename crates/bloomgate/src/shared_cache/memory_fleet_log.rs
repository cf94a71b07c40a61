//! A log in memory, which tests can lose, empty, fail over and make unreachable.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::error::{StoreError, StoreErrorKind};
use crate::ports::{
    CopyChannel, FleetLog, FleetView, InstanceId, LogEntry, LogFlag, LogIdentity, LogPosition,
    LogReader, MemberRow, Registration, Step, WriteId,
};

/// Most entries of one answer of a reader.
const MAX_READ: usize = 1_000;

/// A log in memory. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct MemoryFleetLog(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    server: Mutex<Server>,
    appended: Notify,
    clock: Clock,
}

#[derive(Debug)]
struct Server {
    run: String,
    replication: String,
    data: Option<Data>,
    /// The epoch of a declared single instance.
    single: Option<String>,
    /// Copies on their way.
    copies: HashMap<WriteId, VecDeque<Bytes>>,
    claims: HashSet<WriteId>,
    /// Counts up, so that positions never come back.
    last_millis: u64,
    reachable: bool,
    unreachable_for: HashSet<InstanceId>,
    steps: u64,
}

/// Table and log.
#[derive(Debug)]
struct Data {
    view: FleetView,
    entries: Vec<LogEntry>,
}

fn fresh_name() -> String {
    WriteId::fresh().to_hex()
}

fn unreachable_error() -> StoreError {
    StoreError::new(StoreErrorKind::Unreachable, "the log can't be reached")
}

impl Server {
    fn next_position(&mut self) -> LogPosition {
        self.last_millis += 1;
        LogPosition { millis: self.last_millis, sequence: 0 }
    }

    /// The data; fresh ones if there are none.
    fn data(&mut self) -> &mut Data {
        let position = self.next_position();
        self.data.get_or_insert_with(|| {
            let identity = LogIdentity::new(fresh_name(), &*self.run, &*self.replication);
            let genesis = LogEntry::new(position, InstanceId::fresh(), Bytes::new());
            Data { view: FleetView::new(identity, position), entries: vec![genesis] }
        })
    }
}

impl Data {
    /// The row, if it stands with this incarnation under this identity.
    fn row(
        &mut self,
        identity: &LogIdentity,
        instance: InstanceId,
        incarnation: u64,
    ) -> Option<&mut MemberRow> {
        let same = self.view.identity == *identity;
        let mut rows = self.view.members.iter_mut();
        rows.find(|row| same && row.instance == instance && row.incarnation == incarnation)
    }
}

impl Data {
    /// Trims the oldest entries over `cap`, whoever hasn't read them.
    fn trim_to(&mut self, cap: usize) {
        let over = self.entries.len().saturating_sub(cap.max(1));
        if let Some(entry) = self.entries.drain(..over).next_back() {
            self.view.trimmed = entry.position;
            self.view.open_set_known = false;
        }
        self.view.length = self.entries.len() as u64;
    }
}

impl MemoryFleetLog {
    /// An empty server.
    pub(crate) fn new(clock: Clock) -> Self {
        let server = Server {
            run: fresh_name(),
            replication: fresh_name(),
            data: None,
            single: None,
            copies: HashMap::new(),
            claims: HashSet::new(),
            last_millis: 0,
            reachable: true,
            unreachable_for: HashSet::new(),
            steps: 0,
        };
        Self(Arc::new(Inner { server: Mutex::new(server), appended: Notify::new(), clock }))
    }

    /// Removes everything, as `FLUSHALL` does.
    pub(crate) fn flush(&self) {
        self.0.server.lock().data = None;
    }

    /// Another process takes the place of the server, without its data.
    pub(crate) fn restart_empty(&self) {
        let mut server = self.0.server.lock();
        (server.run, server.replication) = (fresh_name(), fresh_name());
        server.data = None;
        self.0.appended.notify_waiters();
    }

    /// A replica that missed the last `entries` takes the place of the server.
    pub(crate) fn lose_entries(&self, entries: usize) {
        let mut server = self.0.server.lock();
        (server.run, server.replication) = (fresh_name(), fresh_name());
        let (run, replication) = (server.run.clone(), server.replication.clone());
        if let Some(data) = &mut server.data {
            data.view.identity =
                LogIdentity::new(data.view.identity.epoch.clone(), run, replication);
            data.entries.truncate(data.entries.len().saturating_sub(entries).max(1));
            data.view.last = data.entries.last().map_or(LogPosition::START, |entry| entry.position);
            data.view.length = data.entries.len() as u64;
        }
        self.0.appended.notify_waiters();
    }

    /// A burst of entries after which the log has been trimmed to its last `cap`, faster than anyone
    /// could read.
    pub(crate) fn overflow(&self, burst: usize, cap: usize) {
        let mut server = self.0.server.lock();
        for _ in 0..burst {
            let position = server.next_position();
            let data = server.data();
            data.entries.push(LogEntry::new(position, InstanceId::fresh(), Bytes::new()));
            data.view.last = position;
        }
        server.data().trim_to(cap);
        self.0.appended.notify_waiters();
    }

    /// Whether anyone reaches the server.
    pub(crate) fn set_reachable(&self, reachable: bool) {
        self.0.server.lock().reachable = reachable;
        self.0.appended.notify_waiters();
    }

    /// Whether this member reaches the server to register, renew and append.
    pub(crate) fn set_reachable_for(&self, instance: InstanceId, reachable: bool) {
        let mut server = self.0.server.lock();
        if reachable {
            server.unreachable_for.remove(&instance);
        } else {
            server.unreachable_for.insert(instance);
        }
    }

    /// Number of steps so far, renewals aside.
    pub(crate) fn steps(&self) -> u64 {
        self.0.server.lock().steps
    }

    /// Takes one step of the server, after everything that is ready has run, as an answer over a
    /// network comes.
    fn step<T: Send + 'static>(
        &self,
        by: Option<InstanceId>,
        step: impl FnOnce(&mut Server) -> T + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            tokio::task::yield_now().await;
            let mut server = inner.server.lock();
            if !server.reachable || by.is_some_and(|by| server.unreachable_for.contains(&by)) {
                return Err(unreachable_error());
            }
            server.steps += 1;
            Ok(step(&mut server))
        })
    }

    /// A step on a row.
    fn row_step(
        &self,
        by: Option<InstanceId>,
        identity: &LogIdentity,
        (instance, incarnation): (InstanceId, u64),
        change: impl FnOnce(&mut MemberRow) -> bool + Send + 'static,
    ) -> BoxFuture<'static, Result<Step, StoreError>> {
        let identity = identity.clone();
        self.step(by, move |server| {
            let data = server.data();
            let done = data.row(&identity, instance, incarnation).is_some_and(change);
            if done { Step::Done(data.view.clone()) } else { Step::Void(data.view.clone()) }
        })
    }
}

impl FleetLog for MemoryFleetLog {
    fn endpoint(&self) -> String {
        "memory".to_owned()
    }

    fn register<'a>(
        &'a self,
        registration: &'a Registration,
    ) -> BoxFuture<'a, Result<FleetView, StoreError>> {
        let registration = registration.clone();
        self.step(Some(registration.instance), move |server| {
            server.single = None;
            let data = server.data();
            let applied = match &registration.applied {
                Some((identity, position)) if *identity == data.view.identity => *position,
                _ => LogPosition::START,
            };
            data.view.members.retain(|row| row.instance != registration.instance);
            data.view.members.push(MemberRow::new(&registration, applied));
            data.view.clone()
        })
    }

    fn append<'a>(
        &'a self,
        appender: InstanceId,
        record: Bytes,
    ) -> BoxFuture<'a, Result<(LogPosition, FleetView), StoreError>> {
        let inner = Arc::clone(&self.0);
        self.step(Some(appender), move |server| {
            server.data();
            let position = server.next_position();
            let data = server.data();
            data.entries.push(LogEntry::new(position, appender, record));
            data.view.last = position;
            data.view.length = data.entries.len() as u64;
            inner.appended.notify_waiters();
            (position, data.view.clone())
        })
    }

    fn look(&self) -> BoxFuture<'_, Result<Option<FleetView>, StoreError>> {
        self.step(None, |server| server.data.as_ref().map(|data| data.view.clone()))
    }

    fn renew<'a>(
        &'a self,
        identity: &'a LogIdentity,
        instance: InstanceId,
        incarnation: u64,
        applied: LogPosition,
    ) -> BoxFuture<'a, Result<Step, StoreError>> {
        self.row_step(Some(instance), identity, (instance, incarnation), move |row| {
            if !row.fenced {
                row.applied = applied;
                row.renewals += 1;
            }
            !row.fenced
        })
    }

    fn fence<'a>(
        &'a self,
        identity: &'a LogIdentity,
        instance: InstanceId,
        incarnation: u64,
    ) -> BoxFuture<'a, Result<Step, StoreError>> {
        self.row_step(None, identity, (instance, incarnation), |row| {
            row.fenced = true;
            true
        })
    }

    fn remove<'a>(
        &'a self,
        identity: &'a LogIdentity,
        instance: InstanceId,
        incarnation: u64,
    ) -> BoxFuture<'a, Result<Step, StoreError>> {
        let identity = identity.clone();
        self.step(None, move |server| {
            let data = server.data();
            if data.row(&identity, instance, incarnation).is_none() {
                return Step::Void(data.view.clone());
            }
            data.view.members.retain(|row| row.instance != instance);
            Step::Done(data.view.clone())
        })
    }

    fn set_flag<'a>(
        &'a self,
        identity: &'a LogIdentity,
        flag: LogFlag,
    ) -> BoxFuture<'a, Result<Step, StoreError>> {
        let identity = identity.clone();
        self.step(None, move |server| {
            let view = &mut server.data().view;
            if view.identity != identity {
                return Step::Void(view.clone());
            }
            match flag {
                LogFlag::Settled => view.settled = true,
                LogFlag::OpenSetKnown => view.open_set_known = true,
            }
            Step::Done(view.clone())
        })
    }

    fn trim<'a>(
        &'a self,
        identity: &'a LogIdentity,
        seen: LogPosition,
        cap: u64,
    ) -> BoxFuture<'a, Result<Step, StoreError>> {
        let identity = identity.clone();
        self.step(None, move |server| {
            let data = server.data();
            if data.view.identity != identity {
                return Step::Void(data.view.clone());
            }
            let applied = data.view.members.iter().map(|row| row.applied).min();
            let up_to = applied.unwrap_or(seen).min(seen);
            let last = data.view.last;
            let mut gone: Vec<_> = data
                .entries
                .extract_if(.., |entry| entry.position <= up_to && entry.position < last)
                .collect();
            if let Some(entry) = gone.pop() {
                data.view.trimmed = entry.position;
            }
            data.trim_to(usize::try_from(cap).unwrap_or(usize::MAX));
            Step::Done(data.view.clone())
        })
    }

    fn declare_single(&self) -> BoxFuture<'_, Result<String, StoreError>> {
        self.step(None, |server| {
            server.data = None;
            server.single.get_or_insert_with(fresh_name).clone()
        })
    }

    fn open_copies(&self) -> BoxFuture<'_, Result<Box<dyn CopyChannel>, StoreError>> {
        let log = self.clone();
        self.step(None, |_| Box::new(log) as Box<dyn CopyChannel>)
    }

    fn follow(&self) -> BoxFuture<'_, Result<Box<dyn LogReader>, StoreError>> {
        let inner = Arc::clone(&self.0);
        self.step(None, move |server| {
            let run = server.run.clone();
            Box::new(MemoryLogReader { inner, run }) as Box<dyn LogReader>
        })
    }
}

impl CopyChannel for MemoryFleetLog {
    fn claim(&mut self, copy: WriteId) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.step(None, move |server| server.claims.insert(copy))
    }

    fn push(&mut self, copy: WriteId, chunk: Bytes) -> BoxFuture<'_, Result<u64, StoreError>> {
        let inner = Arc::clone(&self.0);
        self.step(None, move |server| {
            let chunks = server.copies.entry(copy).or_default();
            chunks.push_back(chunk);
            inner.appended.notify_waiters();
            chunks.len() as u64
        })
    }

    fn waiting(&mut self, copy: WriteId) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.step(None, move |server| server.copies.get(&copy).map_or(0, VecDeque::len) as u64)
    }

    fn pop(
        &mut self,
        copy: WriteId,
        wait: Duration,
    ) -> BoxFuture<'_, Result<Option<Bytes>, StoreError>> {
        Box::pin(async move {
            let until = self.0.clock.now() + wait;
            loop {
                let appended = self.0.appended.notified();
                let take = move |server: &mut Server| server.copies.get_mut(&copy)?.pop_front();
                if let Some(chunk) = self.step(None, take).await? {
                    return Ok(Some(chunk));
                }
                if self.0.clock.timeout_at(until, appended).await.is_err() {
                    return Ok(None);
                }
            }
        })
    }

    fn discard(&mut self, copy: WriteId) -> BoxFuture<'_, Result<(), StoreError>> {
        self.step(None, move |server| {
            server.copies.remove(&copy);
        })
    }
}

/// Reads the log in memory.
#[derive(Debug)]
struct MemoryLogReader {
    inner: Arc<Inner>,
    run: String,
}

impl MemoryLogReader {
    fn read(&self, after: LogPosition) -> Result<Vec<LogEntry>, StoreError> {
        let server = self.inner.server.lock();
        if !server.reachable || server.run != self.run {
            return Err(unreachable_error());
        }
        let entries = server.data.iter().flat_map(|data| &data.entries);
        Ok(entries.filter(|entry| entry.position > after).take(MAX_READ).cloned().collect())
    }
}

impl LogReader for MemoryLogReader {
    fn run(&self) -> &str {
        &self.run
    }

    fn next(
        &mut self,
        after: LogPosition,
        wait: Duration,
    ) -> BoxFuture<'_, Result<Vec<LogEntry>, StoreError>> {
        Box::pin(async move {
            let until = self.inner.clock.now() + wait;
            loop {
                let appended = self.inner.appended.notified();
                let entries = self.read(after)?;
                if !entries.is_empty() {
                    return Ok(entries);
                }
                if self.inner.clock.timeout_at(until, appended).await.is_err() {
                    return Ok(Vec::new());
                }
            }
        })
    }
}
