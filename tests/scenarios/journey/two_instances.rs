//! Two instances of the service on one database and one cache: a fleet, as they are unless told
//! otherwise.

use crate::client::{Client, count, id_of, name_of};
use crate::environment::{Environment, Rng, assert_no_panic, stop};

const PRODUCTS: i64 = 500;

#[test]
fn case_22_two_instances_refuse_and_cache_and_neither_misses_what_the_other_writes() {
    let env = Environment::fleet();
    let first = env.serve(PRODUCTS as u64, &[]);
    let second = env.serve(0, &[]);
    let (mut on_first, mut on_second) = (Client::of(&first), Client::of(&second));
    let mut rng = Rng::new(8);
    let mut created: Vec<(i64, String)> = Vec::new();
    for n in 0..testbed::repetitions(60, 200) as i64 {
        let name = format!("of two {n}");
        let (here, there) = match n % 2 {
            0 => (&mut on_first, &mut on_second),
            _ => (&mut on_second, &mut on_first),
        };
        // The other instance may store a sentinel of the next id.
        let next = created.last().map_or(PRODUCTS, |(id, _)| *id) + 1;
        assert_eq!(there.get(next).status, 404);
        let id = id_of(&here.post(&name));
        assert_eq!(name_of(&there.get(id)), name);
        assert_eq!(name_of(&here.get(id)), name);
        created.push((id, name));
        // And an earlier one.
        let (id, name) = &created[rng.below(created.len() as u64) as usize];
        assert_eq!(name_of(&there.get(*id)), *name);

        let (changed, deleted) = (rng.id(1, 100), 201 + n);
        let name = format!("changed {n}");
        // Both have the row in their local caches.
        for _ in 0..2 {
            assert_eq!(there.get(changed).status, 200);
            assert_eq!(here.get(changed).status, 200);
        }
        assert_eq!(name_of(&here.put(changed, &name)), name);
        assert_eq!(name_of(&there.get(changed)), name);
        assert_eq!(name_of(&here.get(changed)), name);
        assert_eq!(there.get(deleted).status, 200);
        assert_eq!(here.delete(deleted).status, 204);
        assert_eq!(there.get(deleted).status, 404);
        assert_eq!(here.get(deleted).status, 404);
    }
    for client in [&mut on_first, &mut on_second] {
        let guard = client.guard();
        assert_eq!(
            (&guard["gate"]["state"], &guard["instances"]),
            (&"closed".into(), &"fleet".into())
        );
        assert!(count(&guard, "/counts/local/value_hits") > 0, "{guard}");
        for _ in 0..100 {
            assert_eq!(client.get(rng.absent_id()).status, 404);
        }
        assert!(count(&client.guard(), "/counts/refused") >= 90);
        for (id, name) in &created {
            assert_eq!(name_of(&client.get(*id)), *name);
        }
    }
    drop(on_second);
    stop(&second);
    // What is left is a fleet of one, with the gate that it had.
    for (id, name) in &created {
        assert_eq!(name_of(&on_first.get(*id)), *name);
    }
    assert!(first.gate_is_closed());
    assert_eq!(count(&first.guard(), "/gate/generation"), 1);
    assert_eq!(name_of(&on_first.put(150, "alone")), "alone");
    first.until_idle();
    env.until_only_entries();
    assert_no_panic(&first);
}

/// A rolling update starts the new instance, waits until it is ready, and only then stops the old
/// one.
#[test]
fn case_60_a_second_instance_is_ready_and_refuses_while_the_first_one_runs() {
    let env = Environment::fleet();
    let first = env.serve(PRODUCTS as u64, &[]);
    // Far longer than the scenario waits: the second instance is ready for another reason.
    let second = env.serve(0, &["--ready-within", "10m"]);
    assert_eq!(second.get("/readyz").status, 200);
    assert_eq!(first.program.status(), None, "{}", first.program.stderr());
    // Its secret is that of the first one, which the database keeps.
    assert_eq!(second.count("/fleet/copies_taken"), 1, "{}", second.guard());
    assert_eq!(first.count("/fleet/copies_given"), 1, "{}", first.guard());
    let (mut on_first, mut on_second) = (Client::of(&first), Client::of(&second));
    let mut rng = Rng::new(60);
    for id in 1..=20 {
        assert_eq!(on_second.get(id).status, 200);
        assert_eq!(on_second.get(rng.absent_id()).status, 404);
    }
    assert!(count(&second.guard(), "/counts/refused") >= 15);
    let id = id_of(&on_second.post("during the update"));
    assert_eq!(name_of(&on_first.get(id)), "during the update");

    drop(on_first);
    stop(&first);
    assert_eq!(on_second.request("GET", "/readyz", "").status, 200);
    assert_eq!(name_of(&on_second.get(id)), "during the update");
    assert!(second.gate_is_closed());
    assert_no_panic(&second);
}

/// Rule C30.
#[test]
fn a_declared_single_instance_does_not_start_beside_a_fleet() {
    let mut env = Environment::fleet();
    let first = env.serve(PRODUCTS as u64, &["--instance-name", "the first"]);
    env.declare_single();
    let (line, code) = env.start_refused(&[]);
    assert_eq!(code, Some(2), "{line}");
    assert!(line.contains("--single-instance") && line.contains("the first"), "{line}");
    stop(&first);
    let single = env.serve(0, &[]);
    assert_eq!(single.guard()["instances"], "declared_single");
}
