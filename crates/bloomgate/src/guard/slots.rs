//! The names of a guard's slots in the shared cache.

use std::sync::Arc;

use parking_lot::RwLock;

use crate::key::KeyBytes;
use crate::ports::SlotKey;
use crate::shared_cache::slot_prefix;

/// The prefix of all slots, which a change of the epoch replaces.
#[derive(Debug)]
pub(crate) struct Slots {
    /// Namespace and schema.
    base: Arc<str>,
    prefix: RwLock<Arc<str>>,
}

impl Slots {
    pub(crate) fn new(namespace: &str, schema: &str) -> Self {
        let base = slot_prefix(namespace, schema);
        Self { prefix: RwLock::new(Arc::clone(&base)), base }
    }

    pub(crate) fn prefix(&self) -> Arc<str> {
        Arc::clone(&self.prefix.read())
    }

    pub(crate) fn of(&self, key: &KeyBytes) -> SlotKey {
        SlotKey::new(self.prefix(), key.clone())
    }

    /// Entries under another epoch are out of reach from here on.
    pub(crate) fn set_epoch(&self, epoch: &str) {
        *self.prefix.write() = Arc::from(format!("{}{epoch}:", self.base));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_replaces_the_one_before_and_keeps_namespace_and_schema() {
        let slots = Slots::new("test", "v1");
        let base = slots.prefix();
        slots.set_epoch("7");
        assert_eq!(&*slots.prefix(), format!("{base}7:"));
        slots.set_epoch("8");
        assert_eq!(&*slots.prefix(), format!("{base}8:"));
        assert_eq!(slots.of(&KeyBytes::of(&1_i64)).prefix(), format!("{base}8:"));
    }
}
