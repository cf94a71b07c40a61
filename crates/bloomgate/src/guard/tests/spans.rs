//! The span in which a flight loads.

use std::sync::Arc;

use parking_lot::Mutex;
use tracing::Instrument as _;

use super::within;
use crate::guard::Guard;
use crate::{loader, warm_up};

#[tokio::test]
async fn a_load_runs_in_the_span_of_the_request_that_started_it() {
    let _subscriber = tracing::subscriber::set_default(
        tracing_subscriber::fmt().with_writer(std::io::sink).finish(),
    );
    let seen: Arc<Mutex<Vec<Option<&'static str>>>> = Arc::default();
    let noted = Arc::clone(&seen);
    let guard: Guard<i64, String> = Guard::builder("spans")
        .source(warm_up::Keys::new([7_i64]))
        .loader(loader::from_fn(move |_: i64| {
            noted.lock().push(tracing::Span::current().metadata().map(|span| span.name()));
            async { Ok::<_, std::io::Error>(Some("row".to_owned())) }
        }))
        .build()
        .await
        .unwrap();
    let request = guard.get(&7).instrument(tracing::info_span!("request"));
    let _ = within(request).await.unwrap();
    assert_eq!(*seen.lock(), [Some("request")]);
}
