//! What the tests of each model assert: that it holds at a size, or that a variant breaks it.

use std::fmt::Debug;
use std::hash::Hash;

use stateright::{Checker, Expectation, HasDiscoveries, Model};

/// Searches every reachable state. All properties hold, each `sometimes` was reached, and there were
/// at least so many different states: a model that shrinks by accident shows less than it says.
pub(crate) fn holds<M>(model: M, at_least: usize)
where
    M: Model + Debug + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq,
{
    let name = format!("{model:?}");
    let checker = model.checker().threads(2).spawn_bfs().join();
    let (states, depth) = (checker.unique_state_count(), checker.max_depth());
    println!("{name}: {states} states, {depth} steps deep");
    for (property, path) in checker.discoveries() {
        if checker.model().property(property).expectation == Expectation::Always {
            let last = path.last_state().clone();
            panic!(
                "{name}: {property:?} is broken by {:#?}, which ends in {last:?}",
                path.into_actions()
            );
        }
    }
    checker.assert_properties();
    assert!(states >= at_least, "{name}: {states} states, expected at least {at_least}");
}

/// Searches until the property is broken, and prints the shortest trace. Nothing else that must
/// always hold may stand in for it.
pub(crate) fn breaks<M>(model: M, property: &'static str)
where
    M: Model + Debug + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq,
{
    let name = format!("{model:?}");
    assert_eq!(model.property(property).expectation, Expectation::Always);
    let until = HasDiscoveries::AllOf([property].into());
    let checker = model.checker().finish_when(until).spawn_bfs().join();
    let states = checker.unique_state_count();
    match checker.discovery(property) {
        Some(trace) => println!("{name} after {states} states: {:?}", trace.into_actions()),
        None => panic!("{name}: {states} states, and {property:?} holds in all of them"),
    }
}
