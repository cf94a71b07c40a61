//! Somebody asks for an id, and then it comes into being.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use crate::client::{Client, count, id_of, is_unwritten, name_of, retry_unwritten};
use crate::environment::{Environment, Rng, StopOnDrop, assert_no_panic};

/// Each of the next `births` ids is asked for, created and asked for again. Returns how many
/// creations had to be tried again.
fn read_after_create(env: &Environment, births: u64, flags: &[&str]) {
    const PRODUCTS: u64 = 1_000;
    let forced_open = flags.contains(&"open");
    let service = env.serve(PRODUCTS, flags);
    let before = service.guard();
    let mut client = Client::of(&service);
    let mut next = PRODUCTS as i64 + 1;
    let (mut born, mut refused, mut settled) = (0, 0, 0);
    while born < births {
        let name = format!("born {born}");
        let early = client.get(next);
        assert_eq!(early.status, 404, "{}", early.text());
        // Every other time the sentinel has certainly reached the shared cache; in between, the
        // birth may overtake it.
        if forced_open && env.has_redis() && next % 2 == 0 {
            client.until_landed();
            settled += 1;
        }
        let created = client.post(&name);
        if env.has_redis() && is_unwritten(&created) {
            // A busy machine. PostgreSQL gives the next one the next id.
            refused += 1;
            assert!(refused < 100, "{}", created.text());
            next += 1;
            continue;
        }
        assert_eq!(created.status, 201, "{}", created.text());
        assert_eq!(id_of(&created), next);
        assert_eq!(name_of(&client.get(next)), name);
        // And now from a cache.
        assert_eq!(name_of(&client.get(next)), name);
        next += 1;
        born += 1;
    }
    service.until_idle();
    let guard = service.guard();
    if forced_open {
        let stored = |pointer| count(&guard, pointer) - count(&before, pointer);
        assert_eq!(stored("/counts/nulls_stored/local"), births + refused);
        assert_eq!(count(&guard, "/counts/refused"), 0);
        if env.has_redis() {
            assert!(stored("/counts/nulls_stored/shared") >= settled, "{guard}");
        }
    } else {
        // Nearly all of the early questions never got past the gate.
        assert!(count(&guard, "/counts/refused") >= births * 9 / 10, "{guard}");
    }
    for id in PRODUCTS as i64 + 1..next {
        let status = client.get(id).status;
        assert!(status == 200 || refused > 0, "{id} is lost");
    }
    if env.has_redis() {
        env.until_only_entries();
        // One of those that are left is the probe's.
        let nulls = env.slots().into_iter().filter(|(_, tag)| tag == "N").count() as u64;
        assert!(nulls <= refused + u64::from(forced_open), "sentinels of existing ids are left");
    }
    assert_no_panic(&service);
}

#[test]
fn case_24_an_id_that_an_exact_gate_refused_is_found_once_it_is_created() {
    read_after_create(&Environment::sqlite(), 300, &["--gate", "bitmap"]);
    read_after_create(&Environment::sqlite(), 300, &["--gate", "exact"]);
    read_after_create(&Environment::postgres_and_redis(), 200, &["--gate", "bitmap"]);
}

#[test]
fn case_24_an_id_that_was_refused_is_found_once_it_is_created_on_sqlite() {
    read_after_create(&Environment::sqlite(), 1_000, &[]);
}

#[test]
fn case_24_an_id_that_was_refused_is_found_once_it_is_created_on_postgres() {
    read_after_create(&Environment::postgres_and_redis(), 1_000, &[]);
}

#[test]
fn case_24_an_id_with_a_sentinel_is_found_once_it_is_created_on_sqlite() {
    read_after_create(&Environment::sqlite(), 1_000, &["--gate", "open", "--null-ttl", "1h"]);
}

#[test]
fn case_24_an_id_with_a_sentinel_is_found_once_it_is_created_on_postgres() {
    read_after_create(
        &Environment::postgres_and_redis(),
        1_000,
        &["--gate", "open", "--null-ttl", "1h"],
    );
}

/// The same under a crowd: others ask for the id without a pause, before, during and after.
#[test]
fn case_24_an_id_polled_by_other_clients_is_found_once_it_is_created() {
    for (env, births) in [(Environment::sqlite(), 200), (Environment::postgres_and_redis(), 60)] {
        for gate in ["auto", "open"] {
            let service = env.serve(0, &["--gate", gate]);
            let first = id_of(&retry_unwritten(|| Client::of(&service).post("first")));
            // The id that was created last; those up to it exist for certain.
            let last = AtomicI64::new(first);
            let done = AtomicBool::new(false);
            std::thread::scope(|scope| {
                for offset in 1..=3 {
                    let (service, last, done) = (&service, &last, &done);
                    scope.spawn(move || {
                        let mut client = Client::of(service);
                        while !done.load(Ordering::SeqCst) {
                            let existing = last.load(Ordering::SeqCst);
                            let ahead = client.get(existing + offset).status;
                            assert!(matches!(ahead, 200 | 404), "{ahead}");
                            assert_eq!(client.get(existing).status, 200, "{existing} is refused");
                        }
                    });
                }
                let _stop = StopOnDrop(&done);
                let mut client = Client::of(&service);
                for _ in 0..births {
                    let created = retry_unwritten(|| client.post("crowded"));
                    assert_eq!(created.status, 201, "{}", created.text());
                    let id = id_of(&created);
                    assert_eq!(client.get(id).status, 200, "{id} is refused");
                    last.store(id, Ordering::SeqCst);
                }
            });
            service.until_idle();
            assert_no_panic(&service);
            env.stop(&service);
        }
    }
}

#[test]
fn case_01_an_empty_table_refuses_every_id_until_the_first_insert() {
    for env in [Environment::sqlite(), Environment::postgres_and_redis()] {
        let service = env.serve(0, &[]);
        let mut client = Client::of(&service);
        let mut rng = Rng::new(1);
        for id in (1..=500).chain((0..500).map(|_| rng.absent_id())) {
            assert_eq!(client.get(id).status, 404);
        }
        let guard = service.guard();
        assert_eq!(count(&guard, "/counts/refused"), 1_000, "{guard}");
        assert_eq!(count(&guard, "/counts/loader/loads"), 0, "{guard}");
        assert_eq!(guard["gate"]["items"], 0);
        assert_eq!(guard["gate"]["fill_ratio"], 0.0);

        let id = id_of(&retry_unwritten(|| client.post("the first")));
        assert_eq!(name_of(&client.get(id)), "the first");
        let guard = service.guard();
        let before = count(&guard, "/counts/passed_maybe");
        for _ in 0..10_000 {
            assert_eq!(client.get(rng.absent_id()).status, 404);
        }
        let passed = count(&service.guard(), "/counts/passed_maybe") - before;
        assert!(passed <= 200, "{passed} of 10,000 other ids pass");
        assert_no_panic(&service);
    }
}
