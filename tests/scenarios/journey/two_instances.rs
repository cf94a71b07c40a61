//! Two instances of the service on one database and one cache.

use crate::client::{Client, count, id_of, name_of, retry_unwritten};
use crate::environment::{Environment, Rng, assert_no_panic};
use crate::service::Service;

const PRODUCTS: i64 = 500;
/// Short: the remaining instance waits for the write window after the other one has ended.
const FLAGS: [&str; 2] = ["--write-window", "2s"];

fn until_not_alone(service: &Service) {
    service.until("open", || service.guard()["gate"]["reason"] == "not_alone");
    assert_eq!(service.guard()["gate"]["state"], "open");
}

#[test]
fn case_22_a_second_instance_opens_both_gates_and_neither_misses_what_the_other_writes() {
    let env = Environment::postgres_and_redis();
    let first = env.serve(PRODUCTS as u64, &FLAGS);
    let mut on_first = Client::of(&first);
    // The first instance caches products that the second one will change.
    for id in 1..=100 {
        assert_eq!(on_first.get(id).status, 200);
    }
    let second = env.start(0, &FLAGS);
    until_not_alone(&first);
    until_not_alone(&second);
    let mut on_second = Client::of(&second);
    // A new instance holds its first writes back for a while. A change waits outside of a
    // transaction; a creation waits within one, which may exceed its time.
    assert_eq!(
        name_of(&retry_unwritten(|| on_second.put(150, "the first of two"))),
        "the first of two"
    );
    assert_eq!(name_of(&on_first.get(150)), "the first of two");

    let mut rng = Rng::new(8);
    let mut created = Vec::new();
    for n in 0..testbed::repetitions(60, 200) as i64 {
        let name = format!("of two {n}");
        let (here, there) = match n % 2 {
            0 => (&mut on_first, &mut on_second),
            _ => (&mut on_second, &mut on_first),
        };
        // The other instance may store a sentinel of the next id.
        let next = created.last().map_or(PRODUCTS, |(id, _)| *id) + 1;
        assert_eq!(there.get(next).status, 404);
        let id = id_of(&retry_unwritten(|| here.post(&name)));
        assert_eq!(name_of(&there.get(id)), name);
        assert_eq!(name_of(&here.get(id)), name);
        created.push((id, name));
        // And an earlier one.
        let (id, name) = &created[rng.below(created.len() as u64) as usize];
        assert_eq!(name_of(&there.get(*id)), *name);

        let (changed, deleted) = (rng.id(1, 100), 201 + n);
        let name = format!("changed {n}");
        assert_eq!(there.get(changed).status, 200);
        assert_eq!(name_of(&retry_unwritten(|| here.put(changed, &name))), name);
        assert_eq!(name_of(&there.get(changed)), name);
        assert_eq!(name_of(&here.get(changed)), name);
        assert_eq!(there.get(deleted).status, 200);
        assert_eq!(retry_unwritten(|| here.delete(deleted)).status, 204);
        assert_eq!(there.get(deleted).status, 404);
        assert_eq!(here.get(deleted).status, 404);
    }
    for client in [&mut on_first, &mut on_second] {
        let guard = client.guard();
        assert_eq!(guard["gate"]["reason"], "not_alone", "{guard}");
        for (id, name) in &created {
            assert_eq!(name_of(&client.get(*id)), *name);
        }
    }

    // The remaining instance finds all products, before and after its gate is closed again.
    drop(on_second);
    let status = second.program.terminate();
    assert!(status.success(), "{status}");
    assert_no_panic(&second);
    let generation = count(&first.guard(), "/gate/generation");
    first.until("closed", || {
        let (id, name) = &created[rng.below(created.len() as u64) as usize];
        assert_eq!(name_of(&on_first.get(*id)), *name);
        first.gate_is_closed()
    });
    assert!(count(&first.guard(), "/gate/generation") > generation, "it was rebuilt");
    for (id, name) in &created {
        assert_eq!(name_of(&on_first.get(*id)), *name);
    }
    let refused = count(&first.guard(), "/counts/refused");
    for _ in 0..100 {
        assert_eq!(on_first.get(rng.absent_id()).status, 404);
    }
    assert!(count(&first.guard(), "/counts/refused") >= refused + 90);
    first.until_idle();
    env.until_only_entries();
    assert_no_panic(&first);
}

/// A rolling update starts the new instance, waits until it is ready, and only then stops the old
/// one.
#[test]
fn case_60_a_second_instance_is_ready_while_the_first_one_runs() {
    let env = Environment::postgres_and_redis();
    let first = env.serve(PRODUCTS as u64, &FLAGS);
    // Far longer than the scenario waits: the second instance is ready for another reason.
    let second = env.start(0, &[FLAGS[0], FLAGS[1], "--ready-within", "10m"]);
    second.until("ready", || second.get("/readyz").status == 200);
    assert_eq!(first.program.status(), None, "{}", first.program.stderr());
    until_not_alone(&second);
    assert_eq!(second.guard()["ready"], true);
    let (mut on_first, mut on_second) = (Client::of(&first), Client::of(&second));
    let mut rng = Rng::new(60);
    for id in 1..=20 {
        assert_eq!(on_second.get(id).status, 200);
        assert_eq!(on_second.get(rng.absent_id()).status, 404);
    }
    let id = id_of(&retry_unwritten(|| on_second.post("during the update")));
    assert_eq!(name_of(&on_first.get(id)), "during the update");
    // An instance whose gate has opened stays ready.
    assert_eq!(on_first.request("GET", "/readyz", "").status, 200);

    drop(on_first);
    let status = first.program.terminate();
    assert!(status.success(), "{status}:\n{}", first.program.stderr());
    second.until("closed", || {
        assert_eq!(on_second.request("GET", "/readyz", "").status, 200);
        assert_eq!(name_of(&on_second.get(id)), "during the update");
        second.gate_is_closed()
    });
    assert_eq!(name_of(&on_second.get(id)), "during the update");
    assert_no_panic(&first);
    assert_no_panic(&second);
}
