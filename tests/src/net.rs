//! Talks HTTP/1.1 byte for byte.
//!
//! The client is blocking and changes nothing: a path goes out as it is written, also when it holds
//! `%2F`, `..` or what no URL may hold, and [`Reply::raw`] is what came back. Whatever takes
//! longer than [`PATIENCE`] is an error.

mod conn;
mod port;
mod reply;

use std::io;
use std::time::Duration;

pub use conn::Conn;
pub use port::free_port;
pub use reply::Reply;

/// How long one step of a connection may take, unless [`Conn::set_timeout`] says otherwise.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Asks for `url`, which is `http://HOST:PORT/PATH`, over a connection of its own.
///
/// # Panics
///
/// When there is no answer.
#[must_use]
pub fn get(url: &str) -> Reply {
    request("GET", url, &[], b"")
}

/// Sends a request over a connection of its own.
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
