//! The two kinds of guards: one with values, and one that is a gate alone.

use std::sync::Arc;

use super::Value;
use super::start::missing;
use crate::error::ConfigError;
use crate::key::Key;
use crate::loader::{DynLoader, erase};
use crate::ports::Loader;

/// In the place of a value type: the guard caches nothing and loads nothing. It checks keys, and
/// takes writes so that new keys are admitted; see
/// [`Guard::gate_only`](super::Guard::gate_only). No value of this type exists.
#[derive(Clone, Copy, Debug)]
pub enum GateOnly {}

/// What a guard can be made of: any [`Value`], or [`GateOnly`].
pub trait GuardKind<K: Key>: sealed::LoaderOf<K> + Send + Sync + 'static {}

impl<K: Key, V: sealed::LoaderOf<K> + Send + Sync + 'static> GuardKind<K> for V {}

mod sealed {
    use super::{Arc, ConfigError, DynLoader, GateOnly, Key, NoLoader, Value, erase, missing};

    type Loader<K, V> = Arc<dyn DynLoader<K, V>>;

    /// Finds the loader, of those that were given.
    pub trait LoaderOf<K>: Sized {
        fn loader_of(given: Option<Loader<K, Self>>) -> Result<Loader<K, Self>, ConfigError>;
    }

    impl<K: Key, V: Value> LoaderOf<K> for V {
        fn loader_of(given: Option<Loader<K, V>>) -> Result<Loader<K, V>, ConfigError> {
            given.ok_or_else(|| missing("loader"))
        }
    }

    impl<K: Key> LoaderOf<K> for GateOnly {
        fn loader_of(_: Option<Loader<K, GateOnly>>) -> Result<Loader<K, GateOnly>, ConfigError> {
            Ok(erase(NoLoader))
        }
    }
}

/// Never asked: what reads is not there for [`GateOnly`].
struct NoLoader;

impl<K: Key> Loader<K, GateOnly> for NoLoader {
    type Error = std::io::Error;

    async fn load(&self, _: &K) -> Result<Option<GateOnly>, Self::Error> {
        Err(std::io::Error::other("a gate has no loader"))
    }
}
