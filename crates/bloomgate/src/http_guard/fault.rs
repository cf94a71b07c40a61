//! Mistakes in how layers are put on routes, with their log lines.

use std::collections::HashMap;
use std::fmt;

use http::request::Parts;
use parking_lot::Mutex;

use crate::clock::Clock;
use crate::telemetry::LogLimiter;

/// A layer that can't act on the route it was put on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    NoSuchParameter,
    RepeatedParameter,
    IndistinctLayers,
}

/// The sentence that log line and reply share.
pub(super) struct Explanation<'a> {
    pub(super) fault: Fault,
    pub(super) head: &'a Parts,
    pub(super) parameter: Option<&'static str>,
}

impl fmt::Display for Explanation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let route = Route(self.head);
        let parameter = Parameter(self.parameter);
        match self.fault {
            Fault::NoSuchParameter => write!(
                f,
                "{route} has no {parameter}, from which its guard layer reads the key; name a \
                 parameter of the route, and put the layer on that route alone with route_layer"
            ),
            Fault::RepeatedParameter => write!(
                f,
                "{route} has the {parameter} more than once, so its guard layer can't tell which \
                 one holds the key; give the parameters of nested routers different names"
            ),
            Fault::IndistinctLayers => write!(
                f,
                "two reading guard layers on {route} have the same type of value, the same \
                 {parameter} and the same marker, so their rows can't be distinguished; remove one, \
                 or mark it: layer(..).marked::<Marker>()"
            ),
        }
    }
}

/// The matched route, as far as it is known.
pub(super) struct Route<'a>(
    #[cfg_attr(not(feature = "axum"), expect(dead_code, reason = "only axum tells the route"))]
    pub(super) &'a Parts,
);

impl fmt::Display for Route<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[cfg(feature = "axum")]
        if let Some(path) = self.0.extensions.get::<axum::extract::MatchedPath>() {
            return write!(f, "the route {}", path.as_str());
        }
        // The request's path would put a key into the log.
        f.write_str("a route of unknown path")
    }
}

/// The parameter of an extractor that names one.
pub(super) struct Parameter(pub(super) Option<&'static str>);

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(name) => write!(f, "path parameter {name:?}"),
            None => f.write_str("extractor"),
        }
    }
}

/// The error lines about mistakes in the code, one for each mistake once in a while.
///
/// axum makes the services of a layer anew for every connection, so this belongs to what they share.
#[derive(Debug, Default)]
pub(super) struct FaultLog {
    // Explanations name routes, types and parameters of the program, so they are few.
    limiters: Mutex<HashMap<String, LogLimiter>>,
}

impl FaultLog {
    /// Calls `say` with the number of requests since this mistake was last logged, if it is due.
    pub(super) fn say(&self, explanation: &str, say: impl FnOnce(u64)) {
        let mut limiters = self.limiters.lock();
        if let Some(limiter) = limiters.get(explanation) {
            return limiter.say(say);
        }
        let limiter = limiters.entry(explanation.to_owned());
        limiter.or_insert_with(|| LogLimiter::new(Clock::system())).say(say);
    }
}
