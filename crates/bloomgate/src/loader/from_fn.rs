//! A loader made of an async closure.

use std::future::Future;

use crate::error::BoxError;
use crate::ports::Loader;

/// See [`from_fn`].
#[derive(Clone, Debug)]
pub struct FromFn<F>(F);

/// A loader made of an async closure, which gets the key by value.
///
/// ```
/// use std::collections::HashMap;
/// use std::convert::Infallible;
/// use std::sync::Arc;
///
/// let names = Arc::new(HashMap::from([(1_i64, "one".to_owned())]));
/// let loader = bloomgate::loader::from_fn(move |id: i64| {
///     let names = Arc::clone(&names);
///     async move { Ok::<_, Infallible>(names.get(&id).cloned()) }
/// });
/// # let _ = loader;
/// ```
pub fn from_fn<F>(load: F) -> FromFn<F> {
    FromFn(load)
}

impl<K, V, E, F, Fut> Loader<K, V> for FromFn<F>
where
    K: Clone + Send + Sync + 'static,
    V: 'static,
    E: Into<BoxError>,
    F: Fn(K) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Option<V>, E>> + Send,
{
    type Error = E;

    fn describe(&self) -> String {
        "a closure".to_owned()
    }

    fn load(&self, key: &K) -> impl Future<Output = Result<Option<V>, E>> + Send {
        (self.0)(key.clone())
    }
}
