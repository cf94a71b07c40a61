//! Free TCP ports.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};

/// A port of 127.0.0.1 that is free now and that no other call in this process returns.
///
/// It is below the range of ports that Linux uses for outgoing connections, so that none of them
/// takes the port of a server that is restarted.
///
/// # Panics
///
/// When no port is free.
#[must_use]
pub fn free_port() -> u16 {
    const FIRST: u16 = 20_000;
    const COUNT: u16 = 12_000;
    static GIVEN: Mutex<Option<HashSet<u16>>> = Mutex::new(None);
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let given = given.get_or_insert_with(HashSet::new);
    for _ in 0..10_000 {
        let port = FIRST + u16::try_from(random() % u64::from(COUNT)).unwrap_or_default();
        if !given.contains(&port) && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            given.insert(port);
            return port;
        }
    }
    panic!("no free port from {FIRST} to {}", FIRST + COUNT);
}

/// A number that differs from process to process.
fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
