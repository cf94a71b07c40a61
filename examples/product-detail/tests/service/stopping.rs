//! The service ends when it is told to, and not before it has answered.

use std::thread;
use std::time::{Duration, Instant};

use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection as _, Executor as _};
use testbed::Signal;
use testbed::net::Conn;

use crate::fixture::{LONG, PRODUCT, Service};

#[test]
fn a_request_in_flight_is_answered() {
    let service = Service::ready(&["--seed", "1"]);
    let file = service.folder.path().join("data/products.db");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    // Another writer holds the file's lock, so that the request has to wait.
    let mut other = runtime.block_on(async {
        let url = format!("sqlite:{}", file.display());
        let mut other = SqliteConnection::connect(&url).await.unwrap();
        other.execute("BEGIN IMMEDIATE").await.unwrap();
        other
    });
    thread::scope(|scope| {
        let answer = scope.spawn(|| service.send("POST", "/products", PRODUCT));
        thread::sleep(Duration::from_millis(500));
        service.program.signal(Signal::SIGTERM);
        thread::sleep(Duration::from_millis(500));
        assert!(service.program.status().is_none());
        assert!(Conn::try_open(&service.url).is_err(), "nobody listens any more");
        runtime.block_on(async { other.execute("ROLLBACK").await.unwrap() });
        assert_eq!(answer.join().unwrap().status, 201);
    });
    let status = service.program.wait(LONG).expect("it ends");
    assert_eq!(status.code(), Some(0));
}

#[test]
fn idle_connections_hold_nothing_up() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let service = Service::ready(&["--seed", "1"]);
        let mut used = Conn::open(&service.url);
        assert_eq!(used.request("GET", "/products/1", &[], b"").status, 200);
        let silent = Conn::open(&service.url);
        thread::sleep(Duration::from_millis(100));
        let asked = Instant::now();
        service.program.signal(signal);
        let status = service.program.wait(LONG).expect("it ends");
        assert_eq!(status.code(), Some(0));
        assert!(asked.elapsed() < Duration::from_secs(3), "{:?}", asked.elapsed());
        drop((used, silent));
    }
}
