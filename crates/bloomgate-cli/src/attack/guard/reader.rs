//! The reader of a guard's status document over HTTP.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::header::{ACCEPT, HeaderValue};
use hyper::{HeaderMap, Request};

use crate::attack::error::Error;
use crate::attack::guard::status::{DocumentError, GuardStatus};
use crate::attack::http::connection::{EmptyRequest, HttpConnection};
use crate::attack::http::header::RequestHeader;
use crate::attack::http::target::Target;

/// The longest document that is read, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// Why the document can't be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ReadError {
    /// The server did not answer.
    #[error("no answer")]
    Transport(#[from] io::Error),
    /// The answer has another status than 200.
    #[error("the answer has status {0} instead of 200")]
    Status(u16),
    /// The answer is something else.
    #[error("the answer is not the status document of a guard")]
    Document(#[from] DocumentError),
}

/// Where the document is, resolved and checked.
#[derive(Clone, Debug)]
pub(crate) struct GuardReader {
    address: SocketAddr,
    headers: HeaderMap,
    path: hyper::Uri,
    timeout: Duration,
}

impl GuardReader {
    /// Reads from `target` at `address`, with the given headers.
    pub(crate) fn new(
        target: &Target,
        address: SocketAddr,
        headers: &[RequestHeader],
        timeout: Duration,
    ) -> Result<Self, Error> {
        let path = target
            .path()
            .parse()
            .map_err(|_| Error::flag("--guard-url", "the path can't be sent; percent-encode it"))?;
        let mut headers = target.headers(headers)?;
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("application/json"));
        Ok(Self { address, headers, path, timeout })
    }

    /// Reads it once, over a connection of its own.
    pub(crate) async fn read(&self) -> Result<GuardStatus, ReadError> {
        let mut request: EmptyRequest = Request::new(Empty::<Bytes>::new());
        *request.uri_mut() = self.path.clone();
        *request.headers_mut() = self.headers.clone();
        let mut connection = HttpConnection::open(self.address, self.timeout).await?;
        match connection.read(request, MAX_BYTES).await? {
            (200, document) => Ok(GuardStatus::parse(&document)?),
            (status, _) => Err(ReadError::Status(status)),
        }
    }
}
