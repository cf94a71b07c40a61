//! The watch beside instances that come, go, are killed or stand still.

use super::*;
use crate::clock::ManualTime;
use crate::shared_cache::MemoryStore;

const W: Duration = Duration::from_secs(30);

/// Remembers the last state of the link, and counts voids.
#[derive(Debug, Default)]
struct Recorder(Mutex<(Option<LinkState>, u32)>);

impl PeerEvents for Recorder {
    fn set_link(&self, state: LinkState) {
        self.0.lock().0 = Some(state);
    }

    fn void(&self, _: OpenReason) {
        self.0.lock().1 += 1;
    }

    fn begin(&self, _: &PeerWrite) -> Result<(), BackplaneError> {
        unreachable!("the watch delivers no writes")
    }

    fn end(&self, _: &PeerWrite) {
        unreachable!("the watch delivers no writes")
    }

    fn invalidate_all(&self) {}

    fn open_writes(&self) -> Vec<PeerWrite> {
        Vec::new()
    }

    fn set_epoch(&self, _: &str) {}
}

struct Instance {
    watch: Arc<PeerWatch>,
    events: Arc<Recorder>,
}

impl Instance {
    fn start(store: &Arc<MemoryStore>, clock: &Clock) -> Self {
        let registry = Arc::clone(store) as Arc<dyn PeerRegistry>;
        let settings = PeerWatchSettings {
            namespace: "test".into(),
            write_window: W,
            timeout: Duration::from_millis(100),
        };
        let watch = Arc::new(PeerWatch::new(registry, settings, clock.clone()));
        let events = Arc::new(Recorder::default());
        watch.attach(Arc::clone(&events) as Arc<dyn PeerEvents>).unwrap();
        Self { watch, events }
    }

    fn link(&self) -> Option<LinkState> {
        self.events.0.lock().0
    }

    fn voids(&self) -> u32 {
        self.events.0.lock().1
    }
}

const IN_SYNC: Option<LinkState> = Some(LinkState::InSync { until: Moment::NEVER });
const NOT_ALONE: Option<LinkState> = Some(LinkState::OutOfSync(OpenReason::NotAlone));

async fn yield_often() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

/// Lets the watches run for this many seconds.
async fn pass(time: &ManualTime, seconds: u32) {
    for _ in 0..seconds * 4 {
        yield_often().await;
        time.advance(Duration::from_millis(250));
    }
    yield_often().await;
}

#[tokio::test]
async fn a_second_instance_opens_both_and_the_last_one_waits_for_the_write_window() {
    let (clock, time) = Clock::manual();
    let store = Arc::new(MemoryStore::new(clock.clone()));
    let first = Instance::start(&store, &clock);
    assert_eq!(first.link(), None);
    pass(&time, 2).await;
    assert_eq!((first.link(), first.voids()), (IN_SYNC, 0));
    let second = Instance::start(&store, &clock);
    pass(&time, 2).await;
    assert_eq!(first.link(), NOT_ALONE);
    assert_eq!(second.link(), NOT_ALONE);
    second.watch.leave().await;
    pass(&time, 20).await;
    assert_eq!(first.link(), NOT_ALONE, "W is not over");
    pass(&time, 20).await;
    assert_eq!((first.link(), first.voids()), (IN_SYNC, 1));
}

#[tokio::test]
async fn a_killed_predecessor_is_waited_out_without_the_write_window() {
    let (clock, time) = Clock::manual();
    let store = Arc::new(MemoryStore::new(clock.clone()));
    let killed = Instance::start(&store, &clock);
    pass(&time, 2).await;
    drop(killed);
    let next = Instance::start(&store, &clock);
    pass(&time, 1).await;
    assert_eq!(next.link(), NOT_ALONE);
    pass(&time, 4).await;
    assert_eq!(next.link(), IN_SYNC);
}

#[tokio::test]
async fn an_instance_that_stood_still_does_not_trust_what_it_knew() {
    let (clock, time) = Clock::manual();
    let store = Arc::new(MemoryStore::new(clock.clone()));
    let paused = Instance::start(&store, &clock);
    pass(&time, 2).await;
    time.advance(GONE_AFTER + HEARTBEAT_INTERVAL);
    yield_often().await;
    assert_eq!(paused.link(), NOT_ALONE);
    pass(&time, 2).await;
    assert_eq!((paused.link(), paused.voids()), (IN_SYNC, 1));
}

#[tokio::test]
async fn a_new_instance_writes_only_once_the_others_must_have_noticed() {
    let (clock, time) = Clock::manual();
    let store = Arc::new(MemoryStore::new(clock.clone()));
    let first = Instance::start(&store, &clock);
    pass(&time, 2).await;
    let second = Instance::start(&store, &clock);
    let write = tokio::spawn({
        let watch = Arc::clone(&second.watch);
        async move { watch.ready_for_writes().await }
    });
    yield_often().await;
    yield_often().await;
    assert!(!write.is_finished());
    pass(&time, 3).await;
    assert!(write.is_finished());
    assert_eq!(first.link(), NOT_ALONE);
}

#[tokio::test]
async fn a_second_guard_is_not_attached_and_leaving_ends_the_link() {
    let (clock, time) = Clock::manual();
    let store = Arc::new(MemoryStore::new(clock.clone()));
    let instance = Instance::start(&store, &clock);
    pass(&time, 2).await;
    assert!(instance.watch.attach(Arc::new(Recorder::default())).is_err());
    instance.watch.leave().await;
    assert_eq!(instance.link(), Some(LinkState::OutOfSync(OpenReason::ShuttingDown)));
    // Its row is gone at once, not only once it has been silent for long enough.
    let others = store.heartbeat("test", InstanceId::fresh(), GONE_AFTER).await.unwrap();
    assert_eq!(others, []);
}
