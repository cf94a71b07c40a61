//! Two builds with different schemas beside each other, as in a rolling update (rules B10, B14, B16).

use super::harness::{Harness, seen};
use super::{quiet, within};
use crate::answer::Tier;

// Each of the three has nothing in its local cache.
#[tokio::test]
async fn a_write_through_one_build_ends_the_row_and_the_null_of_the_other() {
    for existed in [true, false] {
        let harness = Harness::with(existed.then_some(7)).open_gate().shared().build().await;
        let old = || harness.peer_with(|described| described.schema("old"));
        let before = seen(within(old().await.get(&7)).await.unwrap());
        assert_eq!(before, (existed.then_some(1), Tier::Loader));
        quiet().await;
        assert_eq!(seen(within(old().await.get(&7)).await.unwrap()).1, Tier::Shared);
        harness.write(7).await.unwrap();
        let after = seen(within(old().await.get(&7)).await.unwrap());
        assert_eq!(after, (Some(1 + usize::from(existed)), Tier::Loader));
    }
}

#[tokio::test]
async fn an_entry_of_another_build_costs_one_load_and_is_replaced() {
    let harness = Harness::with([7]).open_gate().shared().build().await;
    let old = harness.peer_with(|described| described.schema("old")).await;
    assert_eq!(seen(within(old.get(&7)).await.unwrap()), (Some(1), Tier::Loader));
    quiet().await;
    assert_eq!(harness.seen(7).await, (Some(1), Tier::Loader));
    quiet().await;
    for _ in 0..3 {
        let another = harness.peer().await;
        assert_eq!(seen(within(another.get(&7)).await.unwrap()), (Some(1), Tier::Shared));
    }
}
