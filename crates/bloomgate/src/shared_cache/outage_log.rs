//! Two log lines for each outage of the shared cache: its begin, its end.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::clock::{Clock, Moment};
use crate::error::{StoreError, StoreErrorKind};

/// The server's state as far as known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It has not answered yet.
    Untried,
    Up,
    DownSince(Moment),
}

/// The log of one guard's outages.
///
/// An outage begins when the breaker opens, so that one slow reply among many isn't one; before
/// the first reply, each failure is. It ends with the reply to an operation that began since: what
/// was under way before says nothing about the server now.
#[derive(Debug)]
pub(super) struct OutageLog {
    guard: Arc<str>,
    endpoint: String,
    state: Mutex<State>,
}

impl OutageLog {
    pub(super) fn new(guard: Arc<str>, endpoint: String) -> Self {
        Self { guard, endpoint, state: Mutex::new(State::Untried) }
    }

    /// The server did not answer, or can't be used; `is_open` says whether the breaker is open.
    pub(super) fn failed(&self, error: &StoreError, is_open: bool, clock: &Clock) {
        let begins = {
            let mut state = self.state.lock();
            let begins = match *state {
                // A server that will never do is refused when the guard is built.
                State::Untried => error.kind() != StoreErrorKind::Unsupported,
                State::Up => is_open,
                State::DownSince(_) => false,
            };
            if begins {
                *state = State::DownSince(clock.now());
            }
            begins
        };
        if begins {
            tracing::warn!(
                guard = &*self.guard,
                endpoint = self.endpoint,
                %error,
                "the shared cache is down; the guard goes on without it"
            );
        }
    }

    /// The server answered an operation that began at `began`.
    pub(super) fn answered(&self, began: Moment, clock: &Clock) {
        let lasted = {
            let mut state = self.state.lock();
            match *state {
                State::Up => None,
                State::Untried => {
                    *state = State::Up;
                    None
                }
                State::DownSince(since) if since <= began => {
                    *state = State::Up;
                    Some(clock.now().since(since))
                }
                State::DownSince(_) => None,
            }
        };
        if let Some(lasted) = lasted {
            tracing::info!(
                guard = &*self.guard,
                endpoint = self.endpoint,
                ?lasted,
                "the shared cache answers again"
            );
        }
    }
}
