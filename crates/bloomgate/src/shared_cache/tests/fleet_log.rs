//! The steps of a fleet's log, for every log.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
#[cfg(feature = "redis")]
use testbed::RedisServer;

use super::super::MemoryFleetLog;
#[cfg(feature = "redis")]
use super::super::RedisStore;
#[cfg(feature = "redis")]
use super::store_fixture::{CEILING, REDIS};
use crate::clock::Clock;
#[cfg(feature = "redis")]
use crate::ports::Store as _;
use crate::ports::{
    FleetLog, FleetView, InstanceId, LogFlag, LogIdentity, LogPosition, Registration, Step, WriteId,
};

const LEASE: Duration = Duration::from_secs(3);
const WAIT: Duration = Duration::from_millis(50);

/// A log under test.
struct Fixture {
    log: Arc<dyn FleetLog>,
    /// Removes everything.
    flush: Box<dyn Fn()>,
}

impl Fixture {
    fn memory() -> Self {
        let log = MemoryFleetLog::new(Clock::system());
        let flushed = log.clone();
        Self { log: Arc::new(log), flush: Box::new(move || flushed.flush()) }
    }

    /// A namespace of its own in the server that all tests share.
    #[cfg(feature = "redis")]
    fn redis(query: &str) -> Self {
        let namespace = WriteId::fresh().to_hex();
        let store = RedisStore::open(&format!("{}{query}", REDIS.url())).unwrap();
        let log = store.fleet_log(&namespace).unwrap();
        let flush = move || {
            for part in ["members", "log", "single"] {
                let name = format!("bloomgate:{{{namespace}}}:{part}");
                REDIS.try_command(&[b"DEL", name.as_bytes()], CEILING).unwrap();
            }
        };
        Self { log, flush: Box::new(flush) }
    }

    async fn register(&self, registration: &Registration) -> FleetView {
        self.log.register(registration).await.unwrap()
    }

    async fn append(&self, record: &'static str) -> (LogPosition, FleetView) {
        let record = Bytes::from_static(record.as_bytes());
        self.log.append(InstanceId::fresh(), record).await.unwrap()
    }

    async fn renew(
        &self,
        identity: &LogIdentity,
        registration: &Registration,
        applied: LogPosition,
    ) -> Step {
        let Registration { instance, incarnation, .. } = *registration;
        self.log.renew(identity, instance, incarnation, applied).await.unwrap()
    }

    async fn look(&self) -> Option<FleetView> {
        self.log.look().await.unwrap()
    }
}

fn member(label: &str) -> Registration {
    Registration::new(InstanceId::fresh(), LEASE, label)
}

fn done(step: Step) -> FleetView {
    match step {
        Step::Done(view) => view,
        Step::Void(view) => panic!("void: {view:?}"),
    }
}

fn void(step: Step) -> FleetView {
    match step {
        Step::Void(view) => view,
        Step::Done(view) => panic!("done: {view:?}"),
    }
}

async fn a_log_is_made_by_the_first_step_but_a_look(fixture: Fixture) {
    assert_eq!(fixture.look().await, None);
    let first = member("a label: with 'anything' in it \n{}");
    let view = fixture.register(&first).await;
    assert!(!view.settled && !view.open_set_known && view.length == 1);
    assert_eq!(view.trimmed, LogPosition::START);
    let row = view.row(first.instance).unwrap();
    assert_eq!((row.incarnation, row.applied), (1, LogPosition::START));
    assert_eq!((row.lease, row.renewals, row.fenced), (LEASE, 0, false));
    assert_eq!(row.label, first.label);
    assert_eq!(fixture.look().await, Some(view));
}

async fn a_renewal_says_what_was_applied_and_is_refused_to_any_other_row(fixture: Fixture) {
    let mut first = member("first");
    let identity = fixture.register(&first).await.identity;
    let (position, _) = fixture.append("one").await;
    let view = done(fixture.renew(&identity, &first, position).await);
    let row = view.row(first.instance).unwrap();
    assert_eq!((row.applied, row.renewals), (position, 1));
    void(fixture.renew(&identity, &member("stranger"), position).await);
    first.incarnation = 2;
    void(fixture.renew(&identity, &first, position).await);
    first.applied = Some((identity.clone(), position));
    let view = fixture.register(&first).await;
    let row = view.row(first.instance).unwrap();
    assert_eq!((row.incarnation, row.applied, row.renewals), (2, position, 0));
    assert_eq!(view.members.len(), 1);
    done(fixture.renew(&identity, &first, position).await);
    let other = LogIdentity::new("other", &*identity.run, &*identity.replication);
    void(fixture.renew(&other, &first, position).await);
    first.applied = Some((other, position));
    let view = fixture.register(&first).await;
    assert_eq!(view.row(first.instance).unwrap().applied, LogPosition::START);
}

async fn a_fenced_row_gets_no_lease_until_it_registers_again(fixture: Fixture) {
    let mut first = member("first");
    let identity = fixture.register(&first).await.identity;
    let instance = first.instance;
    void(fixture.log.fence(&identity, instance, 2).await.unwrap());
    let view = done(fixture.log.fence(&identity, instance, 1).await.unwrap());
    assert!(view.row(instance).unwrap().fenced);
    void(fixture.renew(&identity, &first, LogPosition::START).await);
    first.incarnation = 2;
    assert!(!fixture.register(&first).await.row(instance).unwrap().fenced);
    done(fixture.renew(&identity, &first, LogPosition::START).await);
    void(fixture.log.remove(&identity, instance, 1).await.unwrap());
    let view = done(fixture.log.remove(&identity, instance, 2).await.unwrap());
    assert!(view.members.is_empty());
    void(fixture.log.remove(&identity, instance, 2).await.unwrap());
}

async fn a_reader_gets_every_entry_after_a_position_in_order(fixture: Fixture) {
    let mut reader = fixture.log.follow().await.unwrap();
    assert!(reader.next(LogPosition::START, WAIT).await.unwrap().is_empty());
    let appender = InstanceId::fresh();
    let raw = Bytes::from_static(&[0, 255, b'\r', b'\n']);
    let (first, view) = fixture.log.append(appender, raw.clone()).await.unwrap();
    assert_eq!(reader.run(), view.identity.run);
    let (second, view) = fixture.append("two").await;
    assert!(first < second && view.last == second && view.length == 3);
    let entries = reader.next(LogPosition::START, WAIT).await.unwrap();
    let positions: Vec<_> = entries.iter().map(|entry| entry.position).collect();
    assert_eq!(positions[1..], [first, second]);
    assert!(entries[0].record.is_empty(), "the first entry of a fresh log says nothing");
    assert_eq!((&entries[1].record, entries[1].appender), (&raw, appender));
    assert_eq!(reader.next(first, Duration::ZERO).await.unwrap(), entries[2..]);
    assert!(reader.next(second, Duration::ZERO).await.unwrap().is_empty());
    // What comes while it waits ends the wait.
    let waiting = reader.next(second, Duration::from_secs(20));
    let (read, (third, _)) = tokio::join!(waiting, fixture.append("three"));
    assert_eq!(read.unwrap()[0].position, third);
}

async fn a_lost_log_or_table_is_another_identity(fixture: Fixture) {
    let first = member("first");
    let before = fixture.register(&first).await;
    let (position, _) = fixture.append("one").await;
    done(fixture.log.set_flag(&before.identity, LogFlag::Settled).await.unwrap());
    let view = done(fixture.log.set_flag(&before.identity, LogFlag::OpenSetKnown).await.unwrap());
    assert!(view.settled && view.open_set_known);
    (fixture.flush)();
    assert_eq!(fixture.look().await, None);
    let view = void(fixture.renew(&before.identity, &first, position).await);
    assert_ne!(view.identity, before.identity);
    assert!(!view.settled && !view.open_set_known && view.members.is_empty());
    void(fixture.log.set_flag(&before.identity, LogFlag::Settled).await.unwrap());
    void(fixture.log.fence(&before.identity, first.instance, 1).await.unwrap());
    void(fixture.log.trim(&before.identity, position, 10).await.unwrap());
}

/// Rule C30: neither a fleet nor a single instance goes on with what it knew before the other ran.
async fn a_declared_single_instance_and_a_fleet_end_each_others_epochs(fixture: Fixture) {
    let log = &fixture.log;
    let single = log.declare_single().await.unwrap();
    assert_eq!(log.declare_single().await.unwrap(), single, "it outlives a restart");
    assert_eq!(log.look().await.unwrap(), None);
    let registration = Registration::new(InstanceId::fresh(), LEASE, "one");
    let fleet = fixture.register(&registration).await;
    assert_ne!(fleet.identity.epoch, single);
    let later = log.declare_single().await.unwrap();
    assert_ne!(later, single, "a fleet wrote meanwhile");
    assert_eq!(log.look().await.unwrap(), None);
    let again = fixture.register(&registration).await;
    assert_ne!(again.identity, fleet.identity, "a single instance wrote meanwhile");
}

async fn a_copys_chunks_come_in_their_order_to_one_claim(fixture: Fixture) {
    let (copy, other) = (WriteId::fresh(), WriteId::fresh());
    let mut giver = fixture.log.open_copies().await.unwrap();
    let mut taker = fixture.log.open_copies().await.unwrap();
    assert!(giver.claim(copy).await.unwrap());
    assert!(!taker.claim(copy).await.unwrap(), "claimed twice");
    assert!(taker.claim(other).await.unwrap());
    assert_eq!(taker.pop(copy, WAIT).await.unwrap(), None);
    let chunks = [Bytes::from(vec![7; 1 << 20]), Bytes::from_static(b"rest"), Bytes::new()];
    for (waiting, chunk) in (1..).zip(&chunks) {
        assert_eq!(giver.push(copy, chunk.clone()).await.unwrap(), waiting);
        assert_eq!(giver.waiting(copy).await.unwrap(), waiting);
    }
    for chunk in chunks {
        assert_eq!(taker.pop(copy, WAIT).await.unwrap(), Some(chunk));
    }
    // One that waits is served at once.
    let popped = tokio::spawn(async move {
        let chunk = taker.pop(copy, Duration::from_secs(60)).await.unwrap();
        (taker, chunk)
    });
    tokio::time::sleep(WAIT).await;
    giver.push(copy, Bytes::from_static(b"late")).await.unwrap();
    let (mut taker, late) = popped.await.unwrap();
    assert_eq!(late, Some(Bytes::from_static(b"late")));
    giver.push(copy, Bytes::from_static(b"left")).await.unwrap();
    taker.discard(copy).await.unwrap();
    assert_eq!(giver.waiting(copy).await.unwrap(), 0);
}

async fn entries_go_once_every_row_has_applied_them_and_never_the_last(fixture: Fixture) {
    let (fast, slow) = (member("fast"), member("slow"));
    fixture.register(&fast).await;
    let identity = fixture.register(&slow).await.identity;
    let (first, _) = fixture.append("one").await;
    let (second, _) = fixture.append("two").await;
    let (third, _) = fixture.append("three").await;
    done(fixture.renew(&identity, &fast, third).await);
    let trim = |seen, cap| fixture.log.trim(&identity, seen, cap);
    let view = done(trim(third, 100).await.unwrap());
    assert_eq!((view.length, view.trimmed), (4, LogPosition::START), "one has applied nothing");
    done(fixture.renew(&identity, &slow, second).await);
    let view = done(trim(first, 100).await.unwrap());
    assert_eq!((view.length, view.trimmed), (2, first));
    let view = done(trim(third, 100).await.unwrap());
    assert_eq!((view.length, view.trimmed), (1, second));
    done(fixture.renew(&identity, &slow, third).await);
    let view = done(trim(third, 100).await.unwrap());
    assert_eq!((view.length, view.trimmed, view.last), (1, second, third));
    assert_eq!(fixture.look().await, Some(view));
}

async fn a_log_over_its_cap_is_trimmed_whoever_has_not_read_it(fixture: Fixture) {
    let slow = member("slow");
    let identity = fixture.register(&slow).await.identity;
    done(fixture.log.set_flag(&identity, LogFlag::OpenSetKnown).await.unwrap());
    let mut positions = Vec::new();
    for _ in 0..10 {
        positions.push(fixture.append("an entry").await.0);
    }
    let view = done(fixture.log.trim(&identity, LogPosition::START, 3).await.unwrap());
    assert_eq!((view.length, view.trimmed), (3, positions[6]));
    assert!(!view.open_set_known, "who comes now can't know what is open");
    assert_eq!(view.last, positions[9]);
}

macro_rules! conformance {
    ($($step:ident),+ $(,)?) => {
        mod memory {
            $(#[tokio::test]
            async fn $step() {
                super::$step(super::Fixture::memory()).await;
            })+
        }

        #[cfg(feature = "redis")]
        mod redis {
            $(#[tokio::test]
            async fn $step() {
                super::$step(super::Fixture::redis("")).await;
            })+
        }

        #[cfg(feature = "redis")]
        mod redis_resp3 {
            $(#[tokio::test]
            async fn $step() {
                super::$step(super::Fixture::redis("?protocol=resp3")).await;
            })+
        }
    };
}

conformance! {
    a_log_is_made_by_the_first_step_but_a_look,
    a_renewal_says_what_was_applied_and_is_refused_to_any_other_row,
    a_fenced_row_gets_no_lease_until_it_registers_again,
    a_reader_gets_every_entry_after_a_position_in_order,
    a_lost_log_or_table_is_another_identity,
    a_declared_single_instance_and_a_fleet_end_each_others_epochs,
    a_copys_chunks_come_in_their_order_to_one_claim,
    entries_go_once_every_row_has_applied_them_and_never_the_last,
    a_log_over_its_cap_is_trimmed_whoever_has_not_read_it,
}

/// The names of a namespace's table and log.
#[cfg(feature = "redis")]
fn names(namespace: &str) -> [String; 2] {
    ["members", "log"].map(|part| format!("bloomgate:{{{namespace}}}:{part}"))
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn a_table_or_a_log_alone_or_of_another_type_is_replaced_by_fresh_ones() {
    let namespace = WriteId::fresh().to_hex();
    let log = RedisStore::open(&REDIS.url()).unwrap().fleet_log(&namespace).unwrap();
    let [table, stream] = names(&namespace);
    let run = |command: &[&str]| {
        let command: Vec<&[u8]> = command.iter().map(|part| part.as_bytes()).collect();
        REDIS.try_command(&command, CEILING).unwrap();
    };
    let mut identities = vec![log.register(&member("")).await.unwrap().identity];
    let damages: [&[&[&str]]; 6] = [
        &[&["DEL", &table]],
        &[&["DEL", &stream]],
        // An older table beside a newer log.
        &[&["HSET", &table, "last", "1-1"]],
        &[&["XADD", &stream, "*", "a", "", "r", ""]],
        &[&["DEL", &stream], &["SET", &stream, "text"]],
        &[&["DEL", &table], &["RPUSH", &table, "list"]],
    ];
    for damage in damages {
        damage.iter().for_each(|command| run(command));
        assert_eq!(log.look().await.unwrap(), None, "{damage:?}");
        let view = log.register(&member("")).await.unwrap();
        assert!(!identities.contains(&view.identity), "{damage:?}");
        assert_eq!((view.members.len(), view.length), (1, 1));
        identities.push(view.identity);
    }
    run(&["SCRIPT", "FLUSH"]);
    assert!(log.look().await.unwrap().is_some(), "the server has forgotten the script");
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn a_log_never_expires() {
    let namespace = WriteId::fresh().to_hex();
    let log = RedisStore::open(&REDIS.url()).unwrap().fleet_log(&namespace).unwrap();
    log.register(&member("")).await.unwrap();
    for name in names(&namespace) {
        let ttl = REDIS.try_command(&[b"PTTL", name.as_bytes()], CEILING).unwrap();
        assert_eq!(ttl.to_string(), "-1");
    }
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn a_server_that_may_evict_the_log_is_refused_with_the_setting_named() {
    let server = RedisServer::start();
    let log = RedisStore::open(&server.url()).unwrap().fleet_log("test").unwrap();
    let set = |name: &str, value: &str| {
        let command = [&b"CONFIG"[..], b"SET", name.as_bytes(), value.as_bytes()];
        server.try_command(&command, CEILING).unwrap();
    };
    set("maxmemory-policy", "allkeys-lru");
    log.prepare().await.unwrap();
    set("maxmemory", "100mb");
    let error = log.prepare().await.unwrap_err();
    assert_eq!(error.kind(), crate::error::StoreErrorKind::Unsupported);
    assert!(error.to_string().contains("maxmemory-policy is allkeys-lru"), "{error}");
    assert!(error.to_string().contains("set volatile-lru"), "{error}");
    for harmless in ["volatile-lru", "noeviction"] {
        set("maxmemory-policy", harmless);
        log.prepare().await.unwrap();
    }
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn a_promoted_replica_and_a_restarted_server_have_other_identities() {
    let (primary, replica) = (RedisServer::start(), RedisServer::start());
    let log = RedisStore::open(&primary.url()).unwrap().fleet_log("test").unwrap();
    let before = log.register(&member("")).await.unwrap().identity;
    let port = primary.port().to_string();
    replica.try_command(&[&b"REPLICAOF"[..], b"127.0.0.1", port.as_bytes()], CEILING).unwrap();
    let promoted = RedisStore::open(&replica.url()).unwrap().fleet_log("test").unwrap();
    let until = tokio::time::Instant::now() + CEILING;
    while !matches!(promoted.look().await, Ok(Some(_))) {
        assert!(tokio::time::Instant::now() < until, "the replica has nothing");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let copied = promoted.look().await.unwrap().unwrap();
    replica.try_command(&[&b"REPLICAOF"[..], b"NO", b"ONE"], CEILING).unwrap();
    let after = promoted.look().await.unwrap().unwrap();
    assert_eq!((&copied.identity.epoch, &after.identity.epoch), (&before.epoch, &before.epoch));
    assert_ne!(after.identity.run, before.run);
    assert_ne!(after.identity.replication, before.replication);
    let row = promoted.register(&member("")).await.unwrap();
    assert_eq!(row.identity, after.identity);
    assert_eq!(row.members.len(), 2, "the rows came along");
}
