//! Servers that are too old, or restarted.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use testbed::{PostgresServer, Program, temp_folder};

use crate::fixture::{BINARY, PRODUCT, Service};

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
        assert_eq!(service.get(&format!("/products/{id}")).status, 200);
    }
    assert_eq!(service.send("POST", "/products", PRODUCT).status, 201);
    assert_eq!(service.number("/counts/loader/errors"), 0);
}
