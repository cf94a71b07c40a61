//! The row as an axum extractor.

use std::fmt;
use std::sync::LazyLock;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use http::request::Parts;

use super::entries::{self, Lookup, Outcome};
use super::fault::{FaultLog, Route};
use super::guarded::{Advice, Guarded, NoRow};
use super::reply::{self, DefaultReply, NotFoundFn, NotFoundReply as _};

/// The rejection of a handler that wants a row and gets none.
///
/// Its response is the layer's not-found reply if the request had no key. For a route that no
/// reading layer guards (or a method that it doesn't touch), and for one where several do, it is a
/// 500 that says so; an error is logged as well, once in a while.
pub struct GuardedRejection {
    reason: NoRow,
    response: Box<Response>,
}

impl GuardedRejection {
    /// Why there is no row.
    #[must_use]
    pub fn reason(&self) -> NoRow {
        self.reason
    }
}

impl fmt::Debug for GuardedRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GuardedRejection({})", self.reason)
    }
}

impl IntoResponse for GuardedRejection {
    fn into_response(self) -> Response {
        *self.response
    }
}

impl<V, M, S> FromRequestParts<S> for Guarded<V, M>
where
    V: Send + Sync + 'static,
    M: 'static,
    S: Sync,
{
    type Rejection = GuardedRejection;

    async fn from_request_parts(head: &mut Parts, _: &S) -> Result<Self, GuardedRejection> {
        Self::from_extensions(&head.extensions)
            .map_err(|reason| GuardedRejection { reason, response: Box::new(reject::<V, M>(head)) })
    }
}

/// A handler that no layer has prepared for shares nothing with any layer.
static HANDLER_FAULTS: LazyLock<FaultLog> = LazyLock::new(FaultLog::default);

fn reject<V: 'static, M: 'static>(head: &Parts) -> Response {
    let advice = Advice::of::<V, M>();
    let explanation = match entries::look_up::<V, M>(&head.extensions) {
        Lookup::One(Outcome::NoKey(reply)) => {
            return match reply.downcast_ref::<NotFoundFn<Body>>() {
                Some(reply) => reply(head),
                // A layer between this guard layer and the handler changes the type of the body.
                None => DefaultReply.not_found(head),
            };
        }
        Lookup::Several(layers) => advice.ambiguous(&Route(head), &layers),
        Lookup::None | Lookup::One(_) => advice.no_layer(&Route(head)),
    };
    HANDLER_FAULTS.say(&explanation, |requests| tracing::error!(requests, "{explanation}"));
    reply::explain(explanation)
}
