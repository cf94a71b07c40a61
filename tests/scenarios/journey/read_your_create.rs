//! Ids that are read before they exist, created, and read again.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use crate::client::{Client, count, id_of, is_unwritten, name_of, retry_unwritten};
use crate::environment::{Environment, Rng, StopOnDrop, assert_no_panic, stop};

/// The most creations that may be refused in one test: the shared cache misses the time limit of a
/// write intent on a busy machine.
const MAX_REFUSED: usize = 20;

fn creates() -> u64 {
    testbed::repetitions(300, 1_000)
}

/// Reads each of the next `creates` ids, creates it and reads it again.
fn read_after_create(env: &Environment, creates: u64, flags: &[&str]) {
    const PRODUCTS: u64 = 1_000;
    let forced_open = flags.contains(&"open");
    let service = env.serve(PRODUCTS, flags);
    let before = service.guard();
    let mut client = Client::of(&service);
    let mut next = PRODUCTS as i64 + 1;
    let mut refused_ids = BTreeSet::new();
    let (mut created, mut refusals, mut stored_sentinels) = (0, 0, 0);
    while created < creates {
        let name = format!("created {created}");
        let early = client.get(next);
        assert_eq!(early.status, 404, "{}", early.text());
        // For half of the ids, the sentinel is in the shared cache before the creation; for the
        // other half, the creation may overtake it.
        if forced_open && env.has_redis() && next % 2 == 0 {
            client.until_landed();
            stored_sentinels += 1;
        }
        let reply = client.post(&name);
        if env.has_redis() && is_unwritten(&reply) {
            refusals += 1;
            assert!(refusals <= MAX_REFUSED, "{}", reply.text());
            // The sequence has used up the id of a transaction that was rolled back.
            let last = env.postgres().psql("SELECT last_value FROM products_id_seq");
            if last == next.to_string() {
                refused_ids.insert(next);
                next += 1;
            }
            continue;
        }
        assert_eq!(reply.status, 201, "{}", reply.text());
        assert_eq!(id_of(&reply), next);
        // From the database, then from a cache.
        for _ in 0..2 {
            assert_eq!(name_of(&client.get(next)), name);
        }
        next += 1;
        created += 1;
    }
    service.until_idle();
    let guard = service.guard();
    let refused = refused_ids.len() as u64;
    if forced_open {
        let stored = |pointer| count(&guard, pointer) - count(&before, pointer);
        assert_eq!(stored("/counts/nulls_stored/local"), creates + refused);
        assert_eq!(count(&guard, "/counts/refused"), 0);
        if env.has_redis() {
            assert!(stored("/counts/nulls_stored/shared") >= stored_sentinels, "{guard}");
        }
    } else {
        // Nearly all of the early reads were refused by the gate.
        assert!(count(&guard, "/counts/refused") >= creates * 9 / 10, "{guard}");
    }
    for id in PRODUCTS as i64 + 1..next {
        let expected = if refused_ids.contains(&id) { 404 } else { 200 };
        assert_eq!(client.get(id).status, expected, "{id}");
    }
    // The answers agree with the database: a refused creation has left no row.
    let unguarded = env.start_unguarded(0);
    for id in refused_ids {
        assert_eq!(unguarded.product(id), 404, "{id} was refused, but written");
    }
    assert_eq!(unguarded.product(next - 1), 200);
    assert_eq!(unguarded.product(next), 404);
    if env.has_redis() {
        env.until_only_entries();
        // One of the sentinels is the probe's.
        let nulls = env.slots().into_iter().filter(|(_, tag)| tag == "N").count() as u64;
        assert!(nulls <= refused + u64::from(forced_open), "sentinels of existing ids are left");
    }
    assert_no_panic(&service);
}

#[test]
fn case_24_an_id_that_an_exact_gate_refused_is_found_once_it_is_created() {
    read_after_create(
        &Environment::sqlite(),
        testbed::repetitions(200, 300),
        &["--gate", "bitmap"],
    );
    read_after_create(&Environment::sqlite(), testbed::repetitions(200, 300), &["--gate", "exact"]);
    read_after_create(
        &Environment::postgres_and_redis(),
        testbed::repetitions(100, 200),
        &["--gate", "bitmap"],
    );
}

#[test]
fn case_24_an_id_that_was_refused_is_found_once_it_is_created_on_sqlite() {
    read_after_create(&Environment::sqlite(), creates(), &[]);
}

#[test]
fn case_24_an_id_that_was_refused_is_found_once_it_is_created_on_postgres() {
    read_after_create(&Environment::fleet(), creates(), &[]);
}

#[test]
fn case_24_an_id_with_a_sentinel_is_found_once_it_is_created_on_sqlite() {
    read_after_create(&Environment::sqlite(), creates(), &["--gate", "open", "--null-ttl", "1h"]);
}

#[test]
fn case_24_an_id_with_a_sentinel_is_found_once_it_is_created_on_postgres() {
    read_after_create(
        &Environment::postgres_and_redis(),
        1_000,
        &["--gate", "open", "--null-ttl", "1h"],
    );
}

/// The same while other clients read the id continuously, before, during and after its creation.
#[test]
fn case_24_an_id_polled_by_other_clients_is_found_once_it_is_created() {
    for (env, creates) in [
        (Environment::sqlite(), testbed::repetitions(100, 200)),
        (Environment::postgres_and_redis(), testbed::repetitions(40, 60)),
    ] {
        for gate in ["auto", "open"] {
            let service = env.serve(0, &["--gate", gate]);
            let first = id_of(&retry_unwritten(|| Client::of(&service).post("first")));
            // The id that was created last.
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
                let mut unknown = 0;
                for _ in 0..creates {
                    let created = retry_unwritten(|| client.post("polled"));
                    if created.status == 503 {
                        // The readers leave little time for a write, which may exceed its limit.
                        unknown += 1;
                        assert!(unknown <= creates / 10, "{}", created.text());
                        continue;
                    }
                    assert_eq!(created.status, 201, "{}", created.text());
                    let id = id_of(&created);
                    assert_eq!(client.get(id).status, 200, "{id} is refused");
                    last.store(id, Ordering::SeqCst);
                }
            });
            service.until_idle();
            assert_no_panic(&service);
            stop(&service);
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
        let others = testbed::repetitions(2_000, 10_000);
        for _ in 0..others {
            assert_eq!(client.get(rng.absent_id()).status, 404);
        }
        let passed = count(&service.guard(), "/counts/passed_maybe") - before;
        // At the rate of 0.001; the limit is five standard deviations above the mean.
        let mean = others as f64 / 1_000.0;
        let limit = mean + 5.0 * mean.sqrt();
        assert!(passed as f64 <= limit, "{passed} of {others} other ids pass");
        assert_no_panic(&service);
    }
}
