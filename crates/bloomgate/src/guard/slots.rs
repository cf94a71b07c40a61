//! The names of a guard's slots in the shared cache.

use std::sync::Arc;

use parking_lot::RwLock;

use crate::key::KeyBytes;
use crate::ports::{SlotKey, WriteId};
use crate::shared_cache::{schema_number, slot_prefix};

/// Namespace and schema of all slots, and their epoch, which may be replaced.
#[derive(Debug)]
pub(crate) struct Slots {
    namespace: Arc<str>,
    schema: u64,
    prefix: RwLock<Arc<str>>,
}

impl Slots {
    /// Under an epoch of this process alone, until it learns of another.
    pub(crate) fn new(namespace: &Arc<str>, schema: &str) -> Self {
        let prefix = slot_prefix(namespace, &WriteId::fresh().to_hex());
        Self {
            namespace: Arc::clone(namespace),
            schema: schema_number(schema),
            prefix: RwLock::new(prefix),
        }
    }

    pub(crate) fn prefix(&self) -> Arc<str> {
        Arc::clone(&self.prefix.read())
    }

    pub(crate) fn of(&self, key: &KeyBytes) -> SlotKey {
        SlotKey::new(self.prefix(), self.schema, key.clone())
    }

    /// The same in another epoch.
    pub(crate) fn in_epoch(&self, epoch: &str, key: &KeyBytes) -> SlotKey {
        SlotKey::new(slot_prefix(&self.namespace, epoch), self.schema, key.clone())
    }

    /// Entries under another epoch are out of reach from here on.
    pub(crate) fn set_epoch(&self, epoch: &str) {
        *self.prefix.write() = slot_prefix(&self.namespace, epoch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_replaces_the_one_before_and_keeps_namespace_and_schema() {
        let (name, key) = (Arc::from("test"), KeyBytes::of(&1_i64));
        let (slots, others) = (Slots::new(&name, "v1"), Slots::new(&name, "v1"));
        assert_ne!(slots.of(&key), others.of(&key), "before anything is known of others");
        let before = slots.of(&key);
        slots.set_epoch("7");
        assert_eq!(&*slots.prefix(), "bloomgate:test:7:");
        assert_ne!(slots.of(&key), before);
        others.set_epoch("7");
        assert_eq!(slots.of(&key), others.of(&key));
        let other_schema = Slots::new(&name, "v2");
        other_schema.set_epoch("7");
        assert_eq!(other_schema.prefix(), slots.prefix(), "one slot for all schemas");
        assert_ne!(other_schema.of(&key).schema(), slots.of(&key).schema());
    }
}
