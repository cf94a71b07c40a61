//! The list of entries that reading layers leave in a request's extensions.
//!
//! A plain extension of type `Row<V>` would be replaced by the next layer with the same type of
//! value, or stay in place where the next layer finds no key: a handler would get another key's row.
//! So every reading layer adds an entry of its own.

use std::any::{Any, TypeId};
use std::sync::Arc;

use http::Extensions;

/// What tells one reading layer's entry from another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryId {
    value: TypeId,
    marker: TypeId,
    pub(super) parameter: Option<&'static str>,
}

impl EntryId {
    pub(super) fn of<V: 'static, M: 'static>(parameter: Option<&'static str>) -> Self {
        Self { value: TypeId::of::<V>(), marker: TypeId::of::<M>(), parameter }
    }

    /// True if `Guarded<V, M>` of one entry could as well mean the other.
    fn same_types(&self, other: &Self) -> bool {
        self.value == other.value && self.marker == other.marker
    }
}

/// What a reading layer found.
#[derive(Clone)]
pub(super) enum Outcome {
    /// An `Arc<V>`.
    Found(Arc<dyn Any + Send + Sync>),
    /// No key in the request. Holds the layer's [`NotFoundFn`](super::reply::NotFoundFn).
    #[cfg_attr(not(feature = "axum"), expect(dead_code, reason = "read by axum's extractor"))]
    NoKey(Arc<dyn Any + Send + Sync>),
}

#[derive(Clone)]
struct Entry {
    id: EntryId,
    outcome: Outcome,
}

#[derive(Clone, Default)]
struct Entries(Vec<Entry>);

/// The entries for one type of value and one marker.
pub(super) enum Lookup<'a> {
    /// No reading layer acted.
    None,
    /// One did.
    One(&'a Outcome),
    /// Several did, for these parameters.
    #[cfg_attr(not(feature = "axum"), expect(dead_code, reason = "read by axum's extractor"))]
    Several(Vec<Option<&'static str>>),
}

/// True if a layer that can't be distinguished from this one has left its entry already.
pub(super) fn contains(extensions: &Extensions, id: EntryId) -> bool {
    extensions.get::<Entries>().is_some_and(|Entries(list)| list.iter().any(|e| e.id == id))
}

pub(super) fn add(extensions: &mut Extensions, id: EntryId, outcome: Outcome) {
    extensions.get_or_insert_default::<Entries>().0.push(Entry { id, outcome });
}

/// Finds the entry for values `V` under marker `M`.
pub(super) fn look_up<V: 'static, M: 'static>(extensions: &Extensions) -> Lookup<'_> {
    let id = EntryId::of::<V, M>(None);
    let Some(Entries(list)) = extensions.get::<Entries>() else {
        return Lookup::None;
    };
    let mut matching = list.iter().filter(|entry| entry.id.same_types(&id));
    match (matching.next(), matching.next()) {
        (None, _) => Lookup::None,
        (Some(entry), None) => Lookup::One(&entry.outcome),
        (Some(first), Some(second)) => {
            let all = [first, second].into_iter().chain(matching);
            Lookup::Several(all.map(|entry| entry.id.parameter).collect())
        }
    }
}
