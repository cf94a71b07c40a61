//! The row that a reading layer hands to the handler.

use std::any::{TypeId, type_name};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use http::Extensions;
use serde::{Serialize, Serializer};

use super::entries::{self, Lookup, Outcome};
use super::fault::Parameter;

/// The row that a reading layer has found, for the route's handler.
///
/// With the feature `axum` it is an extractor. Elsewhere [`Guarded::from_extensions`] takes it out
/// of the request.
///
/// `M` is the marker of the layer that read the row, `()` for a layer without one. A handler behind
/// two layers with the same type of value names the layers by their markers; see
/// [`GuardLayer::marked`](super::GuardLayer::marked).
pub struct Guarded<V, M = ()>(
    /// The row, shared with the local cache.
    pub Arc<V>,
    /// The marker; no data. A handler destructures with `Guarded(row, ..)`.
    pub PhantomData<fn() -> M>,
);

impl<V, M> Guarded<V, M> {
    /// A row as a layer would hand it over, to call a handler in a test.
    #[must_use]
    pub fn new(row: Arc<V>) -> Self {
        Self(row, PhantomData)
    }

    /// The row.
    #[must_use]
    pub fn into_inner(self) -> Arc<V> {
        self.0
    }
}

impl<V: Send + Sync + 'static, M: 'static> Guarded<V, M> {
    /// The row that the one reading layer with values `V` and marker `M` has found.
    ///
    /// # Errors
    /// [`NoRow`] says why there is none.
    pub fn from_extensions(extensions: &Extensions) -> Result<Self, NoRow> {
        match entries::look_up::<V, M>(extensions) {
            Lookup::One(Outcome::Found(row)) => {
                Arc::clone(row).downcast().map(Self::new).map_err(|_| NoRow::NoLayer)
            }
            Lookup::One(Outcome::NoKey(_)) => Err(NoRow::NoKey),
            Lookup::None => Err(NoRow::NoLayer),
            Lookup::Several(_) => Err(NoRow::Ambiguous),
        }
    }
}

impl<V, M> Clone for Guarded<V, M> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.0))
    }
}

impl<V: fmt::Debug, M> fmt::Debug for Guarded<V, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Guarded").field(&self.0).finish()
    }
}

impl<V, M> Deref for Guarded<V, M> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.0
    }
}

impl<V: Serialize, M> Serialize for Guarded<V, M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// The reason why a handler gets no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoRow {
    /// The layer found no key in the request, or a malformed one.
    #[error("no key in the request")]
    NoKey,
    /// No reading layer with this type of value and this marker acts on this route and method.
    #[error("no guard on this route")]
    NoLayer,
    /// Several reading layers with this type of value and this marker act on the route.
    #[error("several guards on this route")]
    Ambiguous,
}

/// The advice for a handler that takes `Guarded<V, M>` and can't get a row.
pub(super) struct Advice {
    value: &'static str,
    parameter: String,
}

impl Advice {
    pub(super) fn of<V: 'static, M: 'static>() -> Self {
        let value = type_name::<V>();
        let marker = type_name::<M>();
        let parameter = match TypeId::of::<M>() == TypeId::of::<()>() {
            true => format!("Guarded<{value}>"),
            false => format!("Guarded<{value}, {marker}>"),
        };
        Self { value, parameter }
    }

    pub(super) fn no_layer(&self, route: &dyn fmt::Display) -> String {
        format!(
            "the handler of {route} takes {}, but no reading guard layer with that type of value \
             and that marker acts on this route and method; add it with route_layer after the route",
            self.parameter
        )
    }

    pub(super) fn ambiguous(
        &self,
        route: &dyn fmt::Display,
        layers: &[Option<&'static str>],
    ) -> String {
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
