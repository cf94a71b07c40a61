//! The guard that is a gate alone.

use crate::key::Key;
use crate::ports::Loader;

/// In the place of a value type: the guard caches nothing and loads nothing. It checks keys, and
/// takes writes so that new keys are admitted; see
/// [`Guard::gate_only`](super::Guard::gate_only). No value of this type exists.
#[derive(Clone, Copy, Debug)]
pub enum GateOnly {}

/// Never asked: what reads is not there for [`GateOnly`].
pub(super) struct NoLoader;

impl<K: Key> Loader<K, GateOnly> for NoLoader {
    type Error = std::io::Error;

    async fn load(&self, _: &K) -> Result<Option<GateOnly>, Self::Error> {
        Err(std::io::Error::other("a gate has no loader"))
    }
}
