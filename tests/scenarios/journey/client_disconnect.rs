//! Clients go away in the middle.

use std::net::TcpStream;
use std::time::Duration;

use testbed::net::Conn;

use crate::client::{Client, count, name_of, retry_unwritten};
use crate::environment::{Environment, Rng, assert_no_panic, assert_truthful, until};
use crate::service::{Service, product_json};

const THREADS: u64 = 8;
const DISCONNECTS: u64 = 1_000;
/// Products that are only read, changed, or deleted.
const READ: i64 = 1_000;
const CHANGED: i64 = 1_040;
const PRODUCTS: i64 = 1_300;

fn request(method: &str, path: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// Ends a connection in one of the ways that there are.
fn disconnect(mut conn: Conn, rng: &mut Rng) {
    // The server may be anywhere in its work.
    std::thread::sleep(Duration::from_micros(rng.below(4) * rng.below(1_500)));
    match rng.below(3) {
        0 => conn.reset(),
        1 => conn.close(),
        _ => {
            // It may have been closed by the other side already.
            let _ = conn.half_close();
            let _ = conn.read_to_end();
        }
    }
}

fn disconnect_at_random(service: &Service, rng: &mut Rng) {
    let mut conn = Conn::open(&service.url);
    let name = format!("disconnected {}", rng.next());
    let changed = format!("/products/{}", rng.id(READ + 1, CHANGED));
    let deleted = format!("/products/{}", rng.id(CHANGED + 1, PRODUCTS));
    match rng.below(8) {
        // Somebody else waits for the same.
        0 | 1 => {
            let read = format!("/products/{}", rng.id(1, READ));
            let get = request("GET", &read, "");
            let mut other = Conn::open(&service.url);
            conn.send(&get).unwrap();
            other.send(&get).unwrap();
            disconnect(conn, rng);
            let reply = other.read_reply(false).unwrap();
            assert_eq!(reply.status, 200, "{}", reply.text());
        }
        2 => {
            conn.send(&request("GET", &format!("/products/{}", rng.absent_id()), "")).unwrap();
            disconnect(conn, rng);
        }
        // In the middle of a request.
        3 => {
            let whole = match rng.below(3) {
                0 => request("POST", "/products", &product_json(&name)),
                1 => request("PUT", &changed, &product_json(&name)),
                _ => request("GET", &changed, ""),
            };
            let part = 1 + rng.below(whole.len() as u64 - 1) as usize;
            conn.send(&whole[..part]).unwrap();
            disconnect(conn, rng);
        }
        // Right after a write was sent, while others read what it changes.
        4 | 5 => {
            conn.send(&request("PUT", &changed, &product_json(&name))).unwrap();
            disconnect(conn, rng);
            let reply = Conn::open(&service.url).request("GET", &changed, &[], b"");
            assert_eq!(reply.status, 200, "{}", reply.text());
        }
        6 => {
            conn.send(&request("POST", "/products", &product_json(&name))).unwrap();
            disconnect(conn, rng);
        }
        _ => {
            conn.send(&request("DELETE", &deleted, "")).unwrap();
            disconnect(conn, rng);
            let reply = Conn::open(&service.url).request("GET", &deleted, &[], b"");
            assert!(matches!(reply.status, 200 | 404), "{}", reply.text());
        }
    }
}

fn a_thousand_disconnects(env: &Environment) {
    let service = env.serve(PRODUCTS as u64, &["--write-window", "4s"]);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let service = &service;
            scope.spawn(move || {
                let mut rng = Rng::new(thread);
                for _ in 0..DISCONNECTS / THREADS {
                    disconnect_at_random(service, &mut rng);
                }
            });
        }
    });
    service.until_idle();
    let unguarded = env.start_unguarded(0);
    let last = PRODUCTS + DISCONNECTS as i64;
    let found = assert_truthful(&service, &unguarded, last);
    assert!(found > READ as usize, "{found}");
    // Changes still work and are seen.
    let mut client = Client::of(&service);
    assert_eq!(name_of(&retry_unwritten(|| client.put(CHANGED, "still here"))), "still here");
    assert_eq!(name_of(&client.get(CHANGED)), "still here");
    service.until_idle();
    if env.has_redis() {
        env.until_only_entries();
    }
    let guard = service.guard();
    assert!(count(&guard, "/counts/writes_ended") > 0, "{guard}");
    assert_eq!(count(&guard, "/counts/loader/panics"), 0, "{guard}");
    assert_eq!(client.request("GET", "/healthz", "").status, 200);
    assert_no_panic(&service);
    drop(client);
    env.stop(&service);
}

#[test]
fn case_55_a_thousand_disconnects_leave_no_work_in_flight_on_sqlite() {
    a_thousand_disconnects(&Environment::sqlite());
}

#[test]
fn case_55_a_thousand_disconnects_leave_no_work_in_flight_on_postgres() {
    a_thousand_disconnects(&Environment::postgres_and_redis());
}

/// How many locks of the table are held for a test, and how many statements wait for one.
fn locks(env: &Environment) -> (u64, u64) {
    let locks = "SELECT count(*) FILTER (WHERE granted AND mode IN ('AccessExclusiveLock', \
         'ShareLock')), count(*) FILTER (WHERE NOT granted) \
         FROM pg_locks WHERE relation = 'products'::regclass";
    let counts = env.postgres().psql(locks);
    let (held, waiting) = counts.trim().split_once('|').unwrap();
    (held.parse().unwrap(), waiting.parse().unwrap())
}

/// Holds a lock of the table for a second, and runs `run` once it is held.
fn while_locked(env: &Environment, lock: &str, run: impl FnOnce()) {
    let script = format!("BEGIN; LOCK TABLE products IN {lock} MODE; SELECT pg_sleep(1); COMMIT");
    std::thread::scope(|scope| {
        scope.spawn(|| env.postgres().psql(&script));
        until("locked", || locks(env).0 == 1);
        run();
    });
}

#[test]
fn case_30_waiters_for_a_load_are_answered_after_the_first_disconnects() {
    let env = Environment::postgres_and_redis();
    let service = env.serve(10, &[]);
    let get = request("GET", "/products/5", "");
    let mut waiting: Vec<Conn> = Vec::new();
    while_locked(&env, "ACCESS EXCLUSIVE", || {
        waiting.push(Conn::open(&service.url));
        waiting[0].send(&get).unwrap();
        service.until("loading", || service.count("/counts/loader/loads") == 1);
        for _ in 1..10 {
            let mut conn = Conn::open(&service.url);
            conn.send(&get).unwrap();
            waiting.push(conn);
        }
        for conn in waiting.drain(..5) {
            conn.reset();
        }
        // All waiters of another one leave.
        for _ in 0..5 {
            let mut conn = Conn::open(&service.url);
            conn.send(&request("GET", "/products/6", "")).unwrap();
            conn.reset();
        }
    });
    for conn in &mut waiting {
        let reply = conn.read_reply(false).unwrap();
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    service.until_idle();
    // One load of 5, and at most one of 6, whose clients may have left before they were heard.
    let loads = service.count("/counts/loader/loads");
    assert!((1..=2).contains(&loads), "{loads} loads");
    assert_eq!(service.product(6), 200);
    assert_eq!(service.count("/counts/loader/found"), 2);
    env.until_only_entries();
    assert_no_panic(&service);
}

#[test]
fn case_55_a_write_is_committed_after_its_client_disconnects_and_seen() {
    let env = Environment::postgres_and_redis();
    let service = env.serve(10, &[]);
    let mut client = Client::of(&service);
    for id in 1..=10 {
        assert_eq!(client.get(id).status, 200);
    }
    let mut under_way = 0;
    // SHARE lets reads pass and keeps writes waiting.
    while_locked(&env, "SHARE", || {
        for write in [
            request("POST", "/products", &product_json("an orphan")),
            request("PUT", "/products/3", &product_json("an orphan")),
            request("DELETE", "/products/4", ""),
        ] {
            let mut conn = Conn::open(&service.url);
            conn.send(&write).unwrap();
            // It waits in the database, unless the machine was too busy to get there in time.
            until("heard of", || {
                let (held, waiting) = locks(&env);
                let waits = waiting > under_way;
                under_way += u64::from(waits);
                waits || held == 0
            });
            conn.reset();
        }
    });
    service.until_idle();
    let unguarded = env.start_unguarded(0);
    assert_truthful(&service, &unguarded, 12);
    env.until_only_entries();
    // Nothing that was under way is lost.
    let guard = service.guard();
    let ended = count(&guard, "/counts/writes_ended") + count(&guard, "/counts/writes_unknown");
    assert!(ended >= under_way, "{under_way} were under way: {guard}");
    assert_no_panic(&service);
}

/// Connections that say nothing at all, hundreds of them one after the other.
#[test]
fn connections_closed_without_a_request_leave_the_service_idle() {
    let env = Environment::sqlite();
    let service = env.serve(10, &[]);
    let address = service.url.trim_start_matches("http://");
    for n in 0..300 {
        let stream = TcpStream::connect(address).unwrap();
        if n % 2 == 0 {
            stream.shutdown(std::net::Shutdown::Write).unwrap();
        }
    }
    assert_eq!(service.product(10), 200);
    service.until_idle();
    assert_no_panic(&service);
}
