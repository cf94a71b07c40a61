//! Values of every kind come back through the shared cache as they went in (case C25), and those
//! that can't be written cost their entry, not the request (case C32).

use std::convert::Infallible;
use std::sync::Arc;

use proptest::prelude::*;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value as Json;

use super::failpoints::Failpoints;
use super::fake_backplane::FakeBackplane;
use super::harness::SECOND;
use super::{quiet, within};
use crate::answer::{Answer, Tier};
use crate::clock::Clock;
use crate::gate::Gate;
use crate::guard::{Guard, Value};
use crate::loader;
use crate::shared_cache::MemoryStore;
use crate::warm_up::Keys;

#[derive(Clone, Debug)]
struct Shared(Arc<MemoryStore>);

/// The store is what both guards have in common.
mod both {
    use super::Shared;
    use crate::error::StoreError;
    use crate::ports::{Entry, Filled, InstanceId, LeaseId, Peer, Slot, SlotKey, Store, WriteId};
    use futures_util::future::BoxFuture;
    use std::time::Duration;

    type Answer<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

    impl Store for Shared {
        fn prepare(&self) -> Answer<'_, ()> {
            self.0.prepare()
        }
        fn get_or_lease<'a>(&'a self, s: &'a SlotKey, l: LeaseId, t: Duration) -> Answer<'a, Slot> {
            self.0.get_or_lease(s, l, t)
        }
        fn get<'a>(&'a self, slot: &'a SlotKey) -> Answer<'a, Slot> {
            self.0.get(slot)
        }
        fn fill<'a>(
            &'a self,
            slot: &'a SlotKey,
            lease: LeaseId,
            entry: Entry,
            until: u64,
            ttl: Duration,
        ) -> Answer<'a, Filled> {
            self.0.fill(slot, lease, entry, until, ttl)
        }
        fn release<'a>(&'a self, slot: &'a SlotKey, lease: LeaseId) -> Answer<'a, ()> {
            self.0.release(slot, lease)
        }
        fn put_intent<'a>(
            &'a self,
            slot: &'a SlotKey,
            write: WriteId,
            t: Duration,
        ) -> Answer<'a, ()> {
            self.0.put_intent(slot, write, t)
        }
        fn clear_intent<'a>(&'a self, slot: &'a SlotKey, write: WriteId) -> Answer<'a, ()> {
            self.0.clear_intent(slot, write)
        }
        fn heartbeat<'a>(
            &'a self,
            n: &'a str,
            m: InstanceId,
            t: Duration,
        ) -> Answer<'a, Vec<Peer>> {
            self.0.heartbeat(n, m, t)
        }
        fn leave<'a>(&'a self, namespace: &'a str, member: InstanceId) -> Answer<'a, ()> {
            self.0.leave(namespace, member)
        }
    }
}

/// Two processes with one shared cache; each loads `make()` for every id.
async fn pair<V: Value>(
    make: impl Fn() -> V + Clone + Send + Sync + 'static,
) -> [Guard<i64, V>; 2] {
    let (clock, _) = Clock::manual();
    let store = Shared(Arc::new(MemoryStore::new(clock.clone())));
    let mut guards = Vec::new();
    for _ in 0..2 {
        let make = make.clone();
        let guard = Guard::builder("values")
            .gate(Gate::open())
            .clock(clock.clone())
            .store(store.clone())
            .backplane(FakeBackplane::new(Failpoints::default()))
            .source(Keys::new([0_i64; 0]))
            .loader(loader::from_fn(move |_: i64| {
                let value = make();
                async move { Ok::<_, Infallible>(Some(value)) }
            }))
            .value_ttl(60 * SECOND)
            .build();
        guards.push(guard.await.unwrap());
    }
    guards.try_into().unwrap_or_else(|_| unreachable!())
}

async fn comes_back(json: Json) {
    let made = json.clone();
    let [first, second] = pair(move || made.clone()).await;
    for (guard, expected) in [(&first, Tier::Loader), (&second, Tier::Shared)] {
        match within(guard.get(&7)).await.unwrap() {
            Answer::Found { value, tier, .. } => assert_eq!((&*value, tier), (&json, expected)),
            absent => panic!("{json} became {absent:?}"),
        }
        quiet().await;
    }
}

#[tokio::test]
async fn case_25_values_that_look_like_markers_come_back() {
    for text in ["null", "\"\"", "\"null\"", "\"NULL\"", "\"*\"", "{}", "[]", "0", "false"] {
        comes_back(serde_json::from_str(text).unwrap()).await;
    }
    for text in ["\0", "V", "N", "L", "M", "L0123456789abcdef0123456789abcdef"] {
        comes_back(Json::String(text.to_owned())).await;
    }
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<String>().prop_map(Json::from),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::from),
            prop::collection::hash_map(any::<String>(), inner, 0..6)
                .prop_map(|map| Json::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn case_25_any_value_comes_back(json in any_json()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(comes_back(json));
    }
}

/// A value whose own code panics.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Touchy {
    WhenWritten,
    WhenRead,
}

impl Serialize for Touchy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Touchy::WhenWritten => panic!("the test says so"),
            Touchy::WhenRead => serializer.serialize_unit(),
        }
    }
}

impl<'de> Deserialize<'de> for Touchy {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        panic!("the test says so")
    }
}

#[tokio::test]
async fn case_32_a_value_whose_serialiser_panics_is_answered_and_not_shared() {
    let [first, second] = pair(|| Touchy::WhenWritten).await;
    for guard in [&first, &second] {
        match within(guard.get(&7)).await.unwrap() {
            Answer::Found { value, tier, .. } => {
                assert_eq!((*value, tier), (Touchy::WhenWritten, Tier::Loader));
            }
            absent => panic!("{absent:?}"),
        }
        quiet().await;
        assert_eq!(guard.status().in_flight.loads, 0, "a slot is stuck");
        assert!(matches!(
            within(guard.get(&7)).await.unwrap(),
            Answer::Found { tier: Tier::Local, .. }
        ));
    }
}

#[tokio::test]
async fn case_32_a_value_whose_deserialiser_panics_is_loaded() {
    let [first, second] = pair(|| Touchy::WhenRead).await;
    let _ = within(first.get(&7)).await.unwrap();
    quiet().await;
    match within(second.get(&7)).await.unwrap() {
        Answer::Found { value, tier, .. } => {
            assert_eq!((*value, tier), (Touchy::WhenRead, Tier::Loader));
        }
        absent => panic!("{absent:?}"),
    }
    assert_eq!(second.status().counts.shared.undecodable, 1);
    assert_eq!(second.status().in_flight.loads, 0);
}
