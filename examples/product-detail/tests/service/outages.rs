//! What the service does while its servers are down, and afterwards.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use testbed::net::{Reply, free_port};
use testbed::{PostgresServer, Program, RedisServer, temp_folder};

use crate::fixture::{BINARY, PRODUCT, Service, assert_problem, json, until};

/// No answer takes longer.
const PATIENCE: Duration = Duration::from_millis(3_500);

fn timed(ask: impl FnOnce() -> Reply) -> Reply {
    let asked = Instant::now();
    let reply = ask();
    let took = asked.elapsed();
    assert!(took < PATIENCE, "{} after {took:?}", reply.status);
    reply
}

#[test]
fn redis_is_down_at_the_start() {
    let url = format!("redis://127.0.0.1:{}", free_port());
    let service = Service::start(&["--seed", "10", "--redis-url", &url]);
    assert_eq!(timed(|| service.get("/products/1")).status, 200);
    assert_problem(&timed(|| service.get("/products/11")), 404);
    assert_eq!(service.number("/counts/refused"), 0);
    assert_problem(&timed(|| service.send("POST", "/products", PRODUCT)), 503);
    let unready = service.get("/readyz");
    assert_problem(&unready, 503);
    assert!(unready.text().contains("redis"), "{}", unready.text());
}

#[test]
fn an_old_redis_is_refused() {
    // Something that speaks Redis' protocol and says that it is old.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            thread::spawn(move || {
                let mut asked = [0; 4096];
                while let Ok(length @ 1..) = connection.read(&mut asked) {
                    let text = String::from_utf8_lossy(&asked[..length]).to_ascii_uppercase();
                    // Each command is one array; INFO is the one that wants more than +OK.
                    for command in text.split('*').skip(1) {
                        let reply: &[u8] = if command.contains("INFO") {
                            b"$20\r\nredis_version:6.2.14\r\n"
                        } else {
                            b"+OK\r\n"
                        };
                        let _ = connection.write_all(reply);
                    }
                }
            });
        }
    });
    let folder = temp_folder();
    let args = ["--listen", "127.0.0.1:0", "--redis-url", &url];
    // A machine that is too busy to answer in time makes it look like an outage instead.
    let refused = (0..5).find_map(|_| {
        let program = Program::start_in(folder.path(), BINARY, &args, &[]);
        program.wait(Duration::from_secs(3)).map(|status| (program, status))
    });
    let (program, status) = refused.expect("it ends at once");
    let said = program.stderr();
    assert_eq!(status.code(), Some(2), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("6.2.14") && said.contains("7.0"), "{said}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn postgres_is_down_at_the_start_and_comes_up() {
    let postgres = PostgresServer::start();
    postgres.stop();
    let service = Service::start(&["--database-url", &postgres.url(), "--seed", "100"]);
    let unready = service.get("/readyz");
    assert_problem(&unready, 503);
    assert!(unready.text().contains("can't be reached"), "{}", unready.text());
    assert_problem(&timed(|| service.get("/products/1")), 503);
    assert_problem(&timed(|| service.send("POST", "/products", PRODUCT)), 503);
    assert_eq!(service.status()["gate"]["reason"], "warming");
    postgres.restart();
    let up = Instant::now();
    service.until_ready();
    assert!(up.elapsed() < Duration::from_secs(8), "{:?}", up.elapsed());
    assert_eq!(service.get("/products/100").status, 200);
    assert_problem(&service.get("/products/101"), 404);
    assert_eq!(service.number("/counts/refused"), 1);
    assert_eq!(service.send("POST", "/products", PRODUCT).status, 201);
}

#[test]
fn postgres_stands_still_and_goes_on() {
    let postgres = PostgresServer::start();
    let service = Service::ready(&["--database-url", &postgres.url(), "--seed", "1000"]);
    assert_eq!(service.get("/products/1").status, 200);
    postgres.freeze();
    // Enough to use up every place and every connection, twice.
    thread::scope(|scope| {
        for id in 2..82 {
            let service = &service;
            scope.spawn(move || {
                assert_problem(&timed(|| service.get(&format!("/products/{id}"))), 503);
            });
        }
        for _ in 0..20 {
            scope.spawn(|| assert_eq!(timed(|| service.get("/products/1")).status, 200));
            scope.spawn(|| assert_problem(&timed(|| service.get("/products/5000")), 404));
        }
        for _ in 0..20 {
            scope.spawn(|| {
                assert_problem(&timed(|| service.send("POST", "/products", PRODUCT)), 503);
            });
        }
    });
    for id in 2..5 {
        assert_problem(&timed(|| service.get(&format!("/products/{id}"))), 503);
    }
    postgres.thaw();
    let thawed = Instant::now();
    until("a read", || service.get("/products/2").status == 200);
    until("a write", || service.send("POST", "/products", PRODUCT).status == 201);
    assert!(thawed.elapsed() < PATIENCE, "{:?}", thawed.elapsed());
    for id in 2..82 {
        let reply = service.get(&format!("/products/{id}"));
        assert_eq!(json(&reply)["id"], id, "nothing was remembered as absent");
    }
}

#[test]
fn postgres_is_restarted_and_no_read_fails() {
    let postgres = PostgresServer::start();
    let service = Service::ready(&["--database-url", &postgres.url(), "--seed", "1000"]);
    // Many connections, all dead after the restart.
    thread::scope(|scope| {
        for id in 1..=30 {
            let service = &service;
            scope.spawn(move || service.get(&format!("/products/{id}")));
        }
    });
    assert_eq!(service.send("POST", "/products", PRODUCT).status, 201);
    postgres.restart();
    for id in 100..130 {
        assert_eq!(timed(|| service.get(&format!("/products/{id}"))).status, 200);
    }
    assert_eq!(service.send("POST", "/products", PRODUCT).status, 201);
    assert_eq!(service.number("/counts/loader/errors"), 0);
}

#[test]
fn a_locked_table_sheds_and_heals() {
    let postgres = PostgresServer::start();
    let service = Service::ready(&["--database-url", &postgres.url(), "--seed", "1000"]);
    thread::scope(|scope| {
        scope.spawn(|| {
            postgres.psql("BEGIN; LOCK TABLE products; SELECT pg_sleep(6); COMMIT");
        });
        thread::sleep(Duration::from_millis(500));
        for id in 1..=40 {
            let service = &service;
            scope.spawn(move || {
                assert_problem(&timed(|| service.get(&format!("/products/{id}"))), 503);
            });
        }
        assert_problem(&timed(|| service.send("DELETE", "/products/50", "")), 503);
    });
    let free = Instant::now();
    until("a read", || service.get("/products/1").status == 200);
    assert!(free.elapsed() < PATIENCE, "{:?}", free.elapsed());
}

#[test]
fn redis_goes_and_comes() {
    let redis = RedisServer::start();
    let service = Service::ready(&["--seed", "100", "--redis-url", &redis.url()]);
    assert_eq!(service.send("POST", "/products", PRODUCT).status, 201);
    redis.kill();
    assert_eq!(timed(|| service.get("/products/7")).status, 200);
    assert_problem(&timed(|| service.send("POST", "/products", PRODUCT)), 503);
    redis.restart();
    until("a write", || service.send("POST", "/products", PRODUCT).status == 201);
}
