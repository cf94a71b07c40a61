//! A keep-alive connection to the service.

use std::time::Instant;

use serde_json::Value;
use testbed::net::{Conn, Reply};

use crate::service::{CEILING, Service, product_json};

const JSON: [(&str, &str); 1] = [("Content-Type", "application/json")];

pub(crate) struct Client(Conn);

impl Client {
    pub(crate) fn of(service: &Service) -> Self {
        Self(Conn::open(&service.url))
    }

    pub(crate) fn request(&mut self, method: &str, path: &str, body: &str) -> Reply {
        let headers = if body.is_empty() { &[][..] } else { &JSON[..] };
        self.0.request(method, path, headers, body.as_bytes())
    }

    pub(crate) fn get(&mut self, id: i64) -> Reply {
        self.request("GET", &format!("/products/{id}"), "")
    }

    pub(crate) fn post(&mut self, name: &str) -> Reply {
        self.request("POST", "/products", &product_json(name))
    }

    pub(crate) fn put(&mut self, id: i64, name: &str) -> Reply {
        self.request("PUT", &format!("/products/{id}"), &product_json(name))
    }

    pub(crate) fn delete(&mut self, id: i64) -> Reply {
        self.request("DELETE", &format!("/products/{id}"), "")
    }

    pub(crate) fn guard(&mut self) -> Value {
        json(&self.request("GET", "/guard", ""))
    }

    /// Waits until no load is in flight, so that each has stored its result.
    pub(crate) fn until_landed(&mut self) {
        let started = Instant::now();
        while self.guard()["in_flight"]["loads"] != 0 {
            assert!(started.elapsed() < CEILING, "a load does not end");
        }
    }
}

/// Sends a write, and repeats it while the answer is that nothing was written: on a busy machine
/// the shared cache may miss the time limit of a write intent.
pub(crate) fn retry_unwritten(mut write: impl FnMut() -> Reply) -> Reply {
    let started = Instant::now();
    loop {
        let reply = write();
        if !is_unwritten(&reply) {
            return reply;
        }
        assert!(started.elapsed() < CEILING, "{}", reply.text());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// True if the write was refused before it changed anything.
pub(crate) fn is_unwritten(reply: &Reply) -> bool {
    reply.status == 503 && reply.text().contains("nothing was written")
}

pub(crate) fn json(reply: &Reply) -> Value {
    serde_json::from_slice(&reply.body).unwrap_or_else(|error| panic!("{error}: {}", reply.text()))
}

/// The id of a product that must have been created.
pub(crate) fn id_of(reply: &Reply) -> i64 {
    assert_eq!(reply.status, 201, "{}", reply.text());
    json(reply)["id"].as_i64().unwrap()
}

/// The name of a product that must have been found.
pub(crate) fn name_of(reply: &Reply) -> String {
    assert_eq!(reply.status, 200, "{}", reply.text());
    json(reply)["name"].as_str().unwrap().to_owned()
}

/// One count of a status document, by JSON pointer.
pub(crate) fn count(guard: &Value, pointer: &str) -> u64 {
    let value = guard.pointer(pointer).unwrap_or_else(|| panic!("no {pointer} in {guard}"));
    value.as_u64().unwrap_or_else(|| panic!("{pointer} is {value}"))
}
