//! The row that a reading layer hands to the handler.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use http::Extensions;
use serde::{Serialize, Serializer};

use super::entries::{self, Lookup, Outcome};

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
