//! Writes whose key the database assigns: proofs of admission, and how long one lasts.

use std::sync::Arc;

use parking_lot::Mutex;

use super::failpoints::At;
use super::harness::Harness;
use super::writer::Failure;
use super::{until, within};
use crate::answer::{OpenReason, Verdict};
use crate::error::{CreateError, WriteError, WriteFailure as _};
use crate::guard::Admitted;

// Rule A7: a proof is bound to its write.
#[tokio::test]
async fn the_proof_of_another_create_opens_the_gate_until_it_is_rebuilt() {
    let harness = Harness::with(1..=30).build().await;
    let kept: Arc<Mutex<Option<Admitted<i64>>>> = Arc::default();
    let keep = Arc::clone(&kept);
    let rows = harness.table.clone();
    // Two proofs of one write: one is returned, the other kept.
    let created = harness.guard.create(|admit| async move {
        let proof = admit.key(100).await?;
        *keep.lock() = Some(admit.key(100).await?);
        rows.commit(100);
        Ok::<_, Failure>((proof, ()))
    });
    within(created).await.unwrap();
    let foreign = kept.lock().take().unwrap();
    let rows = harness.table.clone();
    let end = harness.failpoints.hold(At::BeforeEnd);
    // The row is committed without admission, and the other proof is handed in.
    let created = harness.guard.create(|_admit| async move {
        rows.commit(500);
        Ok::<_, Failure>((foreign, ()))
    });
    let refused = within(created).await;
    assert!(matches!(refused, Err(WriteError::ForeignProof)), "{refused:?}");
    assert_eq!(harness.guard.check(&500), Verdict::Unknown(OpenReason::Rebuilding));
    assert_eq!(harness.seen(500).await.0, Some(1));
    end.let_all_go();
    until("the gate refuses again", || harness.refuses(501)).await;
    assert!(!harness.refuses(500));
}

#[tokio::test]
async fn the_ready_made_error_of_create_knows_its_outcome() {
    let harness = Harness::with([]).build().await;
    let conflict = std::io::Error::other("409");
    let failed: Result<(), _> = within(harness.guard.create(|admit| async move {
        let _admitted = admit.key(7).await?;
        Err(CreateError::known(conflict))
    }))
    .await;
    let Err(WriteError::Run(error)) = failed else { panic!("{failed:?}") };
    assert!(error.outcome_is_known());
    assert_eq!(error.to_string(), "409");
    assert_eq!(harness.open_writes(), 0);
    let lost = std::io::Error::other("connection reset");
    let failed: Result<(), _> = within(harness.guard.create(|admit| async move {
        let _admitted = admit.key(8).await?;
        Err(CreateError::unknown(lost))
    }))
    .await;
    assert!(matches!(failed, Err(WriteError::Run(CreateError::Unknown(_)))), "{failed:?}");
    assert_eq!(harness.open_writes(), 1);
}
