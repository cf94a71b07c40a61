//! The row as an axum extractor.

use std::any::{TypeId, type_name};
use std::fmt;
use std::sync::LazyLock;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use http::request::Parts;

use super::entries::{self, Lookup, Outcome};
use super::fault::{FaultLog, Parameter, Route};
use super::guarded::{Guarded, NoRow};
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

/// The advice for a handler that takes `Guarded<V, M>` and can't get a row.
struct Advice {
    value: &'static str,
    parameter: String,
}

impl Advice {
    fn of<V: 'static, M: 'static>() -> Self {
        let value = type_name::<V>();
        let marker = type_name::<M>();
        let parameter = match TypeId::of::<M>() == TypeId::of::<()>() {
            true => format!("Guarded<{value}>"),
            false => format!("Guarded<{value}, {marker}>"),
        };
        Self { value, parameter }
    }

    fn no_layer(&self, route: &dyn fmt::Display) -> String {
        format!(
            "the handler of {route} takes {}, but no reading guard layer with that type of value \
             and that marker acts on this route and method; add it with route_layer after the route",
            self.parameter
        )
    }

    fn ambiguous(&self, route: &dyn fmt::Display, layers: &[Option<&'static str>]) -> String {
        let layers: Vec<String> =
            layers.iter().map(|parameter| Parameter(*parameter).to_string()).collect();
        format!(
            "the handler of {route} takes {}, but several guard layers read such a row ({}); mark \
             each layer with a type of its own, layer(..).marked::<Marker>(), and take \
             Guarded<{}, Marker> in the handler",
            self.parameter,
            layers.join(", "),
            self.value
        )
    }
}
