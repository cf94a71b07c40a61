//! Clients that disconnect at random points of a request.

use std::net::TcpStream;
use std::time::Duration;

use testbed::net::Conn;

use crate::client::{Client, count, name_of, retry_unwritten};
use crate::environment::{Environment, Rng, assert_no_panic, assert_truthful, stop};
use crate::service::{Service, product_json};

const THREADS: u64 = 8;
fn disconnects() -> u64 {
    testbed::repetitions(400, 1_000)
}

/// Longer than the tests wait for anything, so that an open write or a write intent doesn't expire
/// unnoticed.
const WRITE_WINDOW: [&str; 2] = ["--write-window", "10m"];
/// The last product that is only read, the last that is changed, and the last that is deleted.
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

/// Ends a connection by RST, by FIN, or by closing the sending half first.
fn disconnect(mut conn: Conn, rng: &mut Rng) {
    // The server has processed more or less of the request by then.
    std::thread::sleep(Duration::from_micros(rng.below(4) * rng.below(1_500)));
    match rng.below(3) {
        0 => conn.reset(),
        1 => conn.close(),
        _ => {
            // The server may have closed the connection already.
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
        // Another client waits for the same product.
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
        // A request is sent in part.
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
        // A write was sent; another client reads the product.
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

/// Waits until no load is in flight, all writes have ended, and no lease and no write intent is
/// left. An end that the shared cache doesn't confirm in time, on a busy machine, is repeated
/// (rule A5), so that nothing waits for the write window to pass. Only the intent of a write that was
/// refused at its begin may stand until then, where neither it nor its removal was answered.
fn until_nothing_is_left(env: &Environment, service: &Service) {
    service.until_idle();
    if env.has_redis() {
        let allowed = service.count("/counts/writes_refused");
        service.until("without leases and intents", || env.slots_in_use().len() as u64 <= allowed);
    }
}

fn assert_disconnects_leave_nothing(env: &Environment) {
    let service = env.serve(PRODUCTS as u64, &WRITE_WINDOW);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let service = &service;
            scope.spawn(move || {
                let mut rng = Rng::new(thread);
                for _ in 0..disconnects() / THREADS {
                    disconnect_at_random(service, &mut rng);
                }
            });
        }
    });
    until_nothing_is_left(env, &service);
    let unguarded = env.start_unguarded(0);
    let last = PRODUCTS + disconnects() as i64;
    let found = assert_truthful(&service, &unguarded, last);
    assert!(found > READ as usize, "{found}");
    // Writes still succeed and are seen.
    let mut client = Client::of(&service);
    assert_eq!(name_of(&retry_unwritten(|| client.put(CHANGED, "still here"))), "still here");
    assert_eq!(name_of(&client.get(CHANGED)), "still here");
    until_nothing_is_left(env, &service);
    let guard = service.guard();
    assert!(count(&guard, "/counts/writes_ended") > 0, "{guard}");
    assert_eq!(count(&guard, "/counts/writes_unknown"), 0, "{guard}");
    assert_eq!(count(&guard, "/counts/loader/panics"), 0, "{guard}");
    assert_eq!(client.request("GET", "/healthz", "").status, 200);
    assert_no_panic(&service);
    drop(client);
    stop(&service);
}

#[test]
fn case_55_random_disconnects_leave_no_open_write_lease_or_intent_on_sqlite() {
    assert_disconnects_leave_nothing(&Environment::sqlite());
}

#[test]
fn case_55_random_disconnects_leave_no_open_write_lease_or_intent_on_postgres() {
    assert_disconnects_leave_nothing(&Environment::postgres_and_redis());
}

/// Hundreds of connections one after the other, without a byte.
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
