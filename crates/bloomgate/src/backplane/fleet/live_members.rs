//! Rule C30: whether a namespace has live members, for a guard that is declared to be the only one.

use std::time::Duration;

use crate::clock::Clock;
use crate::error::{StoreError, StoreErrorKind};
use crate::ports::{FleetLog, FleetView, MemberRow};

/// Looks at the table within one lease.
const LOOKS: u32 = 10;
/// No lease is longer.
const MAX_LEASE: Duration = Duration::from_secs(60);

/// A live member, by label and id; `None` if the table has none. A row that nobody renews for as
/// long as its lease lasts is that of a member that was killed; waits for that.
///
/// # Errors
/// When the table can't be read.
pub(crate) async fn live_member(
    log: &dyn FleetLog,
    timeout: Duration,
    clock: &Clock,
) -> Result<Option<String>, StoreError> {
    let first = look(log, timeout, clock).await?;
    let Some(lease) = first.iter().map(|row| row.lease.min(MAX_LEASE)).max() else {
        return Ok(None);
    };
    // One interval longer, for the renewal that may be on its way.
    for _ in 0..=LOOKS {
        clock.sleep(lease / LOOKS).await;
        let now = look(log, timeout, clock).await?;
        let stood_still = |row: &MemberRow| {
            first.iter().any(|earlier| {
                (earlier.instance, earlier.incarnation, earlier.renewals)
                    == (row.instance, row.incarnation, row.renewals)
            })
        };
        if let Some(live) = now.iter().find(|row| !stood_still(row)) {
            return Ok(Some(format!("{:?} ({})", live.label, live.instance.to_hex())));
        }
    }
    Ok(None)
}

/// The rows that may renew their leases.
async fn look(
    log: &dyn FleetLog,
    timeout: Duration,
    clock: &Clock,
) -> Result<Vec<MemberRow>, StoreError> {
    let view: Option<FleetView> =
        clock.timeout(timeout, log.look()).await.unwrap_or_else(|_| {
            let message = format!("no answer within {timeout:?}");
            Err(StoreError::new(StoreErrorKind::TimedOut, message))
        })?;
    let rows = view.map_or_else(Vec::new, |view| view.members);
    Ok(rows.into_iter().filter(|row| !row.fenced).collect())
}
