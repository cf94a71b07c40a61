//! The connections of one client to all instances.

use std::collections::HashMap;

use testbed::net::{Conn, Reply};

const JSON: (&str, &str) = ("content-type", "application/json");

/// The kept connections of a client, one to each instance.
#[derive(Default)]
pub(crate) struct Conns(HashMap<String, Conn>);

impl Conns {
    /// The answer; `None` if there is none.
    pub(crate) fn ask(
        &mut self,
        url: &str,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> Option<Reply> {
        let mut conn = match self.0.remove(url) {
            Some(conn) => conn,
            None => Conn::try_open(url).ok()?,
        };
        let headers: &[_] = if body.is_empty() { &[] } else { &[JSON] };
        let reply = conn.try_request(method, path, headers, body).ok()?;
        self.0.insert(url.to_owned(), conn);
        Some(reply)
    }

    /// Sends a request and resets the connection at once.
    pub(crate) fn abandon(&mut self, url: &str, method: &str, path: &str, body: &[u8]) {
        if let Ok(mut conn) = Conn::try_open(url) {
            let head = format!(
                "{method} {path} HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n\
                 Content-Length: {}\r\n\r\n",
                body.len()
            );
            // It may be refused, which is an unknown outcome, too.
            let _ = conn.send(&[head.as_bytes(), body].concat());
            conn.reset();
        }
    }

    pub(crate) fn keep_only(&mut self, urls: &[String]) {
        self.0.retain(|url, _| urls.contains(url));
    }
}
