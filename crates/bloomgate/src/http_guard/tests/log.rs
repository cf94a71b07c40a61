//! The error lines that a test's thread logs.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Metadata, Subscriber};

pub(super) struct ErrorLines {
    lines: Arc<Mutex<Vec<String>>>,
    _subscribed: DefaultGuard,
}

impl ErrorLines {
    /// Captures from now on, on this thread.
    pub(super) fn capture() -> Self {
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let subscriber = Capturing(Arc::clone(&lines));
        Self { lines, _subscribed: tracing::subscriber::set_default(subscriber) }
    }

    /// The lines so far, which are forgotten.
    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.lines.lock())
    }
}

struct Capturing(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, "{field}={value:?} ").unwrap();
    }
}

impl Subscriber for Capturing {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::ERROR
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
