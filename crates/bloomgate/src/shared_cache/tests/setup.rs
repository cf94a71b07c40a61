//! Opening a Redis store: addresses, passwords, versions.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use testbed::RedisServer;

use super::super::{RedisStore, SlotCalls as _};
use super::store_fixture::{LONG, fresh_prefix};
use crate::error::{StoreError, StoreErrorKind};
use crate::key::KeyBytes;
use crate::ports::{LeaseId, SlotKey, Store as _, WriteId};

const PASSWORD: &str = "correct-horse-battery";

/// All texts of an error and its sources.
fn shown(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = format!("{error} {error:?}");
    let mut below = error.source();
    while let Some(source) = below {
        text.push_str(&format!(" {source} {source:?}"));
        below = source.source();
    }
    text
}

#[tokio::test]
async fn malformed_urls_are_refused_without_showing_the_password() {
    for url in [
        "".to_owned(),
        "localhost:6379".to_owned(),
        PASSWORD.to_owned(),
        format!("http://:{PASSWORD}@localhost"),
        format!("redis//:{PASSWORD}@localhost"),
        format!("redis://:{PASSWORD}@localhost:port"),
        format!("redis://:{PASSWORD}@localhost:123456"),
        format!("redis://:{PASSWORD}@localhost/database"),
        format!("redis://user:{PASSWORD}@"),
        format!("redis://:{PASSWORD}%@[::1"),
        format!("redis://:%FF{PASSWORD}@localhost"),
        format!("rediss://:{PASSWORD}@localhost"),
        format!("redis://:{PASSWORD}@localhost?protocol=resp9"),
        format!("redis+unix:///sock?db=x&pass={PASSWORD}"),
    ] {
        match RedisStore::open(&url) {
            Ok(_) => panic!("{url:?} was taken"),
            Err(error) => {
                let shown = shown(&error);
                assert!(!shown.contains(PASSWORD), "{shown}");
                assert!(error.to_string().contains("redis://HOST:PORT/DB"), "{shown}");
            }
        }
    }
}

#[tokio::test]
async fn urls_are_taken_without_connecting() {
    for url in [
        "redis://localhost".to_owned(),
        "redis://127.0.0.1:1/3".to_owned(),
        "redis://[::1]:6379".to_owned(),
        format!("redis://user:{PASSWORD}@host.invalid:6379/0?protocol=resp3"),
        "redis+unix:///no/such/socket".to_owned(),
        "unix:///no/such/socket?db=2".to_owned(),
    ] {
        let store = RedisStore::open(&url).unwrap();
        assert!(!format!("{store:?}").contains(PASSWORD));
    }
}

#[tokio::test]
async fn the_endpoint_is_the_address_without_the_credentials() {
    for (url, endpoint) in [
        (format!("redis://user:{PASSWORD}@cache.example:6380/3"), "cache.example:6380"),
        ("redis://localhost".to_owned(), "localhost:6379"),
        ("redis://[::1]:6379".to_owned(), "[::1]:6379"),
        (format!("redis+unix:///run/redis.sock?pass={PASSWORD}"), "/run/redis.sock"),
    ] {
        assert_eq!(RedisStore::open(&url).unwrap().endpoint(), endpoint);
    }
}

async fn every_error(store: &RedisStore) -> Vec<StoreError> {
    let slot = SlotKey::new(fresh_prefix(), 1, KeyBytes::of(&1_i64));
    let (lease, write) = (LeaseId::fresh(), WriteId::fresh());
    vec![
        store.prepare().await.unwrap_err(),
        store.get(&slot).await.unwrap_err(),
        store.get_or_lease(&slot, lease, LONG).await.unwrap_err(),
        store.put_intent(&slot, write, LONG).await.unwrap_err(),
    ]
}

#[tokio::test]
async fn case_20_a_wrong_password_is_reported_without_showing_it() {
    let server = RedisServer::start();
    server.command(&["CONFIG", "SET", "requirepass", "another"]);
    let at = |credentials: &str| format!("redis://{credentials}127.0.0.1:{}", server.port());
    let wrong = RedisStore::open(&at(&format!(":{PASSWORD}@"))).unwrap();
    for error in every_error(&wrong).await {
        let text = shown(&error);
        assert!(!text.contains(PASSWORD), "{text}");
        assert!(text.contains("WRONGPASS") || text.contains("uthentication"), "{text}");
        assert_eq!(error.kind(), StoreErrorKind::Unsupported, "{text}");
    }
    let none = RedisStore::open(&at("")).unwrap();
    for error in every_error(&none).await {
        assert!(error.to_string().contains("uthentication"), "{error}");
        assert_eq!(error.kind(), StoreErrorKind::Unsupported, "{error}");
    }
    let right = RedisStore::open(&at(":another@")).unwrap();
    right.prepare().await.unwrap();
}

#[tokio::test]
async fn a_user_without_permission_is_rejected() {
    let server = RedisServer::start();
    let made = server.command(&["ACL", "SETUSER", "reader", "on", ">pw", "~*", "+@read", "+info"]);
    assert_eq!(made, "OK");
    let url = format!("redis://reader:pw@127.0.0.1:{}", server.port());
    let store = RedisStore::open(&url).unwrap();
    let slot = SlotKey::new(fresh_prefix(), 1, KeyBytes::of(&1_i64));
    let refused = store.put_intent(&slot, WriteId::fresh(), LONG).await.unwrap_err();
    assert!(refused.to_string().contains("no permissions"), "{refused}");
    assert!(!refused.is_outage());
}

/// A server that answers `INFO` with this version, and everything else with OK.
fn server_of_version(version: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || answer(stream, version));
        }
    });
    port
}

fn answer(stream: TcpStream, version: &str) -> Option<()> {
    let mut output = stream.try_clone().ok()?;
    let mut input = BufReader::new(stream);
    let mut line = String::new();
    let mut next = || {
        line.clear();
        (input.read_line(&mut line).ok()? > 0).then_some(())?;
        let count = line.trim_end()[1..].parse::<usize>().ok()?;
        let mut words = Vec::new();
        for _ in 0..count {
            let mut length = String::new();
            input.read_line(&mut length).ok()?;
            let mut bytes = vec![0; length.trim_end()[1..].parse::<usize>().ok()? + 2];
            input.read_exact(&mut bytes).ok()?;
            bytes.truncate(bytes.len() - 2);
            words.push(String::from_utf8_lossy(&bytes).into_owned());
        }
        Some(words)
    };
    while let Some(words) = next() {
        let reply = if words[0] == "INFO" {
            let info = format!("# Server\r\n{version}\r\n");
            format!("${}\r\n{info}\r\n", info.len())
        } else {
            "+OK\r\n".to_owned()
        };
        output.write_all(reply.as_bytes()).ok()?;
    }
    Some(())
}

#[tokio::test]
async fn a_server_that_is_too_old_is_refused_by_its_version() {
    for (version, named) in [
        ("redis_version:6.2.1", "6.2.1"),
        ("redis_version:2.8.24", "2.8.24"),
        ("redis_version:", "7.0"),
        ("redis_version:new", "new"),
        ("nothing:7", "unknown"),
    ] {
        let url = format!("redis://127.0.0.1:{}", server_of_version(version));
        let error = RedisStore::open(&url).unwrap().prepare().await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains(named), "{error}");
    }
    for version in ["redis_version:7.0.0", "redis_version:7.4.1-rc1", "redis_version:10.0.0"] {
        let url = format!("redis://127.0.0.1:{}", server_of_version(version));
        RedisStore::open(&url).unwrap().prepare().await.unwrap();
    }
}

#[tokio::test]
async fn a_reply_of_another_type_is_an_invalid_response() {
    // Every command but INFO is answered with OK.
    let url = format!("redis://127.0.0.1:{}", server_of_version("redis_version:7.0.0"));
    let store = RedisStore::open(&url).unwrap();
    let slot = SlotKey::new(fresh_prefix(), 1, KeyBytes::of(&1_i64));
    let filled = store.fill(&slot, LeaseId::fresh(), crate::ports::Entry::Null, 7, LONG).await;
    assert_eq!(filled.unwrap_err().kind(), StoreErrorKind::InvalidResponse);
    let read = store.get(&slot).await.unwrap_err();
    assert_eq!(read.kind(), StoreErrorKind::InvalidResponse, "{read}");
}
