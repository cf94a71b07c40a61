//! A blocking HTTP/1.1 client that sends and returns exact bytes.
//!
//! A path is sent as it is written, also with `%2F`, `..` or characters that a URL must not
//! contain, and [`Reply::raw`] is the unchanged reply. A step that takes longer than [`TIMEOUT`] is
//! an error.

mod conn;
mod port;
mod proxy;
mod reply;

use std::io;
use std::time::Duration;

pub use conn::Conn;
pub use port::free_port;
pub use proxy::{Direction, Flow, Proxy};
pub use reply::Reply;

/// The longest duration of one step of a connection, unless set by [`Conn::set_timeout`].
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Gets `url`, which is `http://HOST:PORT/PATH`, on a new connection.
///
/// # Panics
///
/// When there is no answer.
#[must_use]
pub fn get(url: &str) -> Reply {
    request("GET", url, &[], b"")
}

/// Sends a request on a new connection.
///
/// `Host`, `Connection: close` and, with a body, `Content-Length` are added unless `headers` has
/// them.
///
/// # Panics
///
/// When there is no answer.
#[must_use]
pub fn request(method: &str, url: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
    let reply = try_request(method, url, headers, body);
    reply.unwrap_or_else(|error| panic!("{method} {url}: {error}"))
}

/// Like [`request`], for servers that may be down.
///
/// # Errors
///
/// When there is no answer.
pub fn try_request(
    method: &str,
    url: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> io::Result<Reply> {
    let rest = url.strip_prefix("http://").ok_or(io::ErrorKind::InvalidInput)?;
    let (authority, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let mut conn = Conn::try_open(authority)?;
    let mut headers = headers.to_vec();
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("connection")) {
        headers.push(("Connection", "close"));
    }
    let target = if target.is_empty() { "/" } else { target };
    conn.try_request(method, target, &headers, body)
}

#[cfg(test)]
mod tests;
