//! Writes during a rebuild: none of them is refused afterwards (case 36, rules A1 and A2).

use super::failpoints::At;
use super::harness::{Harness, SECOND};
use super::source::CHUNK;
use super::writer::Writer;
use super::{quiet, until, within};
use crate::answer::Tier;
use crate::guard::Guard;
use crate::guard::open_write::Kind;

fn spawn_rebuild(harness: &Harness) -> tokio::task::JoinHandle<Result<(), crate::RebuildError>> {
    let guard: Guard<_, _> = harness.guard.clone();
    tokio::spawn(async move { guard.rebuild().await })
}

async fn rebuild(harness: &Harness) {
    within(harness.guard.rebuild()).await.unwrap();
}

// Rule A2, the copy of the open set: the scan's snapshot doesn't show the row, and the admission
// went to generations that existed before the new one.
#[tokio::test]
async fn case_36_a_write_that_began_before_a_rebuild_and_commits_after_its_snapshot_is_kept() {
    let harness = Harness::with(1..=30).build().await;
    let mut writer = Writer::begin(&harness, 500).await;
    let snapshot = harness.failpoints.hold(At::AfterSnapshot);
    let rebuilding = spawn_rebuild(&harness);
    snapshot.arrived().await;
    writer.commit().await;
    snapshot.let_all_go();
    within(rebuilding).await.unwrap().unwrap();
    assert_eq!(harness.status().gate.generation, 2);
    assert!(!harness.refuses(500), "refused while its write is open");
    writer.end().await;
    assert!(!harness.refuses(500), "refused after its write");
    assert_eq!(harness.seen(500).await.0, Some(1));
}

// Rule A1, keyed by key *and* write: a second write of the key that fails meanwhile must not
// erase the first one's entry.
#[tokio::test]
async fn case_36_a_failed_write_of_the_same_key_does_not_take_the_open_ones_entry_along() {
    let harness = Harness::with(1..=30).build().await;
    let mut first = Writer::begin(&harness, 500).await;
    Writer::begin(&harness, 500).await.fail().await;
    let snapshot = harness.failpoints.hold(At::AfterSnapshot);
    let rebuilding = spawn_rebuild(&harness);
    snapshot.arrived().await;
    first.commit().await;
    snapshot.let_all_go();
    within(rebuilding).await.unwrap().unwrap();
    first.end().await;
    assert!(!harness.refuses(500));
}

// Rule A6 with A2: a write of unknown outcome stays in the open set until W, for a COMMIT that is
// still on its way.
#[tokio::test]
async fn case_36_a_write_of_unknown_outcome_is_copied_into_a_rebuild() {
    let harness = Harness::with(1..=30).build().await;
    Writer::begin(&harness, 500).await.lose().await;
    let snapshot = harness.failpoints.hold(At::AfterSnapshot);
    let rebuilding = spawn_rebuild(&harness);
    snapshot.arrived().await;
    harness.table.commit(500);
    snapshot.let_all_go();
    within(rebuilding).await.unwrap().unwrap();
    assert!(!harness.refuses(500));
}

// Rule A2: a Begin after the subscription admits to the new generation itself, wherever the scan
// stands.
#[tokio::test]
async fn case_36_writes_through_every_api_below_and_above_the_cursor_survive_the_swap() {
    let ids = (1..=1_000).map(|id| id * 10);
    let harness = Harness::with(ids).build().await;
    let chunks = harness.failpoints.hold(At::BeforeChunk);
    let rebuilding = spawn_rebuild(&harness);
    chunks.arrived().await;
    let mut expected: Vec<i64> = (1..=1_000).map(|id| id * 10).collect();
    for chunk in 0..100_i64 {
        chunks.arrivals(usize::try_from(chunk).unwrap() + 1).await;
        // The cursor stands at chunk * 100: one insert below it, one above.
        for id in [chunk * 100 - 5, chunk * 100 + 105] {
            harness.write(id).await.unwrap();
            assert!(!harness.refuses(id));
            expected.push(id);
        }
        let created = create(&harness).await;
        assert!(!harness.refuses(created));
        expected.push(created);
        // An overwrite of one that exists, by `write` and by `update`.
        harness.write(5_000).await.unwrap();
        let mut update = Writer::call_as(&harness, 10_000, Kind::Existing);
        update.running().await;
        update.commit().await;
        update.end().await;
        // One that is deleted and inserted again.
        let mut delete = Writer::call_as(&harness, 7_000, Kind::Existing);
        delete.running().await;
        delete.delete().await;
        delete.end().await;
        assert_eq!(harness.seen(7_000).await, (None, Tier::Loader));
        harness.write(7_000).await.unwrap();
        // At every instant, everything that was ever written is passed.
        assert!(expected.iter().all(|id| !harness.refuses(*id)));
        chunks.let_one_go();
    }
    assert!(!rebuilding.is_finished(), "the scan was to be under way all the time");
    chunks.let_all_go();
    within(rebuilding).await.unwrap().unwrap();
    assert_eq!(harness.status().gate.generation, 2);
    for id in expected {
        assert!(!harness.refuses(id), "{id} is refused after the swap");
        assert!(harness.seen(id).await.0.is_some());
    }
    const { assert!(CHUNK < 1_000) };
}

async fn create(harness: &Harness) -> i64 {
    let rows = harness.table.clone();
    let created = harness.guard.create(|admit| async move {
        let mut transaction = rows.begin();
        let id = transaction.insert();
        let admitted = admit.key(id).await?;
        transaction.commit();
        Ok::<_, super::writer::Failure>((admitted, id))
    });
    within(created).await.unwrap()
}

#[tokio::test]
async fn case_36_a_write_that_is_open_across_the_swap_is_kept() {
    let harness = Harness::with(1..=30).build().await;
    let end = harness.failpoints.hold(At::BeforeEnd);
    let rebuilding = spawn_rebuild(&harness);
    end.arrived().await;
    let mut writer = Writer::begin(&harness, 500).await;
    end.let_all_go();
    within(rebuilding).await.unwrap().unwrap();
    writer.commit().await;
    writer.end().await;
    assert!(!harness.refuses(500));
    rebuild(&harness).await;
    assert!(!harness.refuses(500), "the scan after its commit shows it");
}

#[tokio::test]
async fn case_36_rebuild_requests_that_wait_share_one_scan() {
    let harness = Harness::with(1..=30).build().await;
    let chunks = harness.failpoints.hold(At::BeforeChunk);
    let first = spawn_rebuild(&harness);
    chunks.arrived().await;
    // These can't share the scan that has begun: its snapshot may be older than what they know.
    let later: Vec<_> = (0..20).map(|_| spawn_rebuild(&harness)).collect();
    quiet().await;
    harness.write(500).await.unwrap();
    chunks.let_all_go();
    within(first).await.unwrap().unwrap();
    for one in later {
        within(one).await.unwrap().unwrap();
    }
    assert_eq!(harness.status().gate.generation, 3);
    assert_eq!(harness.source.scans().len(), 3, "warm-up, the first rebuild, one for all others");
    assert!(!harness.refuses(500));
}

#[tokio::test]
async fn a_caller_of_rebuild_that_goes_away_takes_nothing_along() {
    let harness = Harness::with(1..=30).build().await;
    let chunks = harness.failpoints.hold(At::BeforeChunk);
    let gone = spawn_rebuild(&harness);
    chunks.arrived().await;
    gone.abort();
    chunks.let_all_go();
    until("the rebuild goes on", || harness.status().gate.generation == 2).await;
    rebuild(&harness).await;
    assert_eq!(harness.status().gate.generation, 3);
}

#[tokio::test]
async fn a_guard_without_a_gate_has_nothing_to_rebuild() {
    let harness = Harness::with([]).open_gate().build().await;
    assert!(within(harness.guard.rebuild()).await.is_err());
}

// An update admits nothing, or random PUTs would fill the gate.
#[tokio::test]
async fn updates_and_deletes_of_random_ids_leave_the_gate_as_it_is() {
    let harness = Harness::with(1..=100).build().await;
    let before = harness.status().gate;
    for id in 0..3_000_i64 {
        let rows = harness.table.clone();
        let run = async move {
            rows.delete(id);
            Ok::<_, super::writer::Failure>(())
        };
        let done = match id % 2 {
            0 => harness.guard.update(id, run).await,
            _ => harness.guard.delete(id, run).await,
        };
        let exists = (1..=100).contains(&id);
        assert!(done.is_ok() || !exists, "{id}: {done:?}");
    }
    let after = harness.status().gate;
    assert_eq!((after.items, after.fill_ratio), (before.items, before.fill_ratio));
    // Nor do they enter a generation that is being built.
    let snapshot = harness.failpoints.hold(At::AfterSnapshot);
    let rebuilding = spawn_rebuild(&harness);
    snapshot.arrived().await;
    let mut update = Writer::call_as(&harness, 50, Kind::Existing);
    update.running().await;
    update.delete().await;
    update.end().await;
    snapshot.let_all_go();
    within(rebuilding).await.unwrap().unwrap();
    assert_eq!(harness.status().gate.items, 0, "all rows were deleted before the snapshot");
    harness.pass(SECOND).await;
}

#[tokio::test]
async fn an_update_of_an_id_that_is_proven_absent_runs_nothing() {
    let harness = Harness::with(1..=100).shared().build().await;
    let run = async { panic!("started") };
    let refused = harness.guard.update(500, run).await;
    let refused: Result<(), crate::WriteError<super::writer::Failure>> = refused;
    assert!(matches!(refused, Err(crate::WriteError::Absent)));
    assert!(harness.store().memory().is_empty(), "a write intent was left");
    assert_eq!(harness.open_writes(), 0);
}
