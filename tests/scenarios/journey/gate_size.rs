//! Writes to absent ids, which must not fill the gate.

use crate::client::{Client, count};
use crate::environment::{Environment, Rng, assert_no_panic};

const PRODUCTS: i64 = 2_000;
const THREADS: u64 = 4;

#[test]
fn updates_and_deletes_of_absent_ids_do_not_change_the_gate() {
    // Ten times the capacity of the gate, or fifty times.
    let changes = testbed::repetitions(20_000, 100_000);
    let env = Environment::sqlite();
    let service = env.serve(PRODUCTS as u64, &["--capacity", "2000"]);
    let before = service.guard();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let service = &service;
            scope.spawn(move || {
                let mut client = Client::of(service);
                let mut rng = Rng::new(thread);
                for n in 0..changes / THREADS {
                    let absent = rng.absent_id();
                    let reply = match n % 2 {
                        0 => client.put(absent, "absent"),
                        _ => client.delete(absent),
                    };
                    assert_eq!(reply.status, 404, "{}", reply.text());
                    if n % 500 == 0 {
                        let id = rng.id(1, PRODUCTS / 2);
                        assert_eq!(client.put(id, "changed").status, 200, "{id}");
                        let id = rng.id(PRODUCTS / 2 + 1, PRODUCTS);
                        assert!(matches!(client.delete(id).status, 204 | 404), "{id}");
                    }
                }
            });
        }
    });
    service.until_idle();
    let after = service.guard();
    assert_eq!(after["gate"]["items"], before["gate"]["items"]);
    assert_eq!(after["gate"]["fill_ratio"], before["gate"]["fill_ratio"]);
    assert_eq!(after["gate"], before["gate"], "the gate has changed");
    assert!(count(&after, "/counts/refused") > changes * 99 / 100, "{after}");
    assert_no_panic(&service);
}
