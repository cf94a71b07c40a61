//! The graceful shutdown of the server.

use std::io;
use std::time::Duration;

use axum::Router;
use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

/// Longest wait for requests that are being answered.
const REQUESTS: Duration = Duration::from_secs(10);

/// SIGTERM and SIGINT, from when it is made on.
pub(crate) struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Returns when one of them comes.
    pub(crate) async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Serves until `stop`, then answers the requests that have come. Connections without a request
/// are closed at once.
pub(crate) async fn serve(listener: TcpListener, app: Router, mut stop: Stop) -> io::Result<()> {
    let listener = listener.tap_io(|connection| {
        // Answers are written whole; waiting for more would only delay them.
        if let Err(error) = connection.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY was refused");
        }
    });
    let (stopping, stopped) = oneshot::channel();
    let serving = axum::serve(listener, app).with_graceful_shutdown(async move {
        stop.asked().await;
        tracing::info!("stopping");
        let _ = stopping.send(());
    });
    let overdue = async {
        // An error means that serving ended by itself.
        let _ = stopped.await;
        tokio::time::sleep(REQUESTS).await;
    };
    tokio::select! {
        served = serving.into_future() => served,
        () = overdue => {
            tracing::warn!("some requests were not answered within {REQUESTS:?}");
            Ok(())
        }
    }
}
