//! One HTTP/1.1 connection: a request at a time, each answer read to its end.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper::body::Incoming;
use hyper::client::conn::http1::{Connection, SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// A request without a body.
pub(crate) type EmptyRequest = Request<Empty<Bytes>>;

/// How a request ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Answered in full, with this status.
    Answered(u16),
    /// The server closed the connection before the request was sent; it may be sent on another.
    Unsent(Box<EmptyRequest>),
    /// The connection broke after the request was sent.
    Broken,
    /// No full answer in time.
    TimedOut,
}

/// An open connection.
///
/// The connection is driven by the task that waits for the answer. hyper's usual way, a task for
/// the connection and another for its user, costs two more wake-ups a request.
#[derive(Debug)]
pub(crate) struct HttpConnection {
    sender: SendRequest<Empty<Bytes>>,
    /// Dropped as soon as it ends: only then does the sender report that it is closed.
    connection: Option<Connection<TokioIo<TcpStream>, Empty<Bytes>>>,
    timeout: Duration,
    /// Set at or before the current deadline, and moved only when it fires: setting a timer for
    /// each request would cost more than the request line.
    timer: Pin<Box<Sleep>>,
    answers: u64,
}

impl HttpConnection {
    /// Connects, waiting at most `timeout`, which then also holds for each answer.
    pub(crate) async fn open(address: SocketAddr, timeout: Duration) -> io::Result<Self> {
        let stream = tokio::time::timeout(timeout, TcpStream::connect(address)).await??;
        stream.set_nodelay(true)?;
        let (sender, connection) =
            handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        let timer = Box::pin(tokio::time::sleep(timeout));
        Ok(Self { sender, connection: Some(connection), timeout, timer, answers: 0 })
    }

    /// Whether the server has closed the connection, as far as is known.
    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Answers received.
    pub(crate) fn answers(&self) -> u64 {
        self.answers
    }

    /// Sends one request, reads the answer to its end and discards it.
    ///
    /// After any outcome but `Answered` the connection can't be used again.
    pub(crate) async fn exchange(&mut self, request: Box<EmptyRequest>, now: Instant) -> Outcome {
        let outcome = self.drive(now, |sender| fetch(sender, request)).await;
        if let Outcome::Answered(_) = outcome {
            self.answers += 1;
        }
        outcome
    }

    /// Sends one request and returns status and body; for documents, not for load.
    pub(crate) async fn read(
        &mut self,
        request: EmptyRequest,
        max_bytes: usize,
    ) -> io::Result<(u16, Bytes)> {
        let mut document = Err(io::ErrorKind::TimedOut.into());
        self.drive(Instant::now(), async |sender| {
            document = download(sender, request, max_bytes).await;
            Outcome::Broken
        })
        .await;
        document
    }

    /// Polls a use of the connection together with the connection itself.
    async fn drive<'a, F: Future<Output = Outcome>>(
        &'a mut self,
        now: Instant,
        operation: impl FnOnce(&'a mut SendRequest<Empty<Bytes>>) -> F,
    ) -> Outcome {
        let Self { sender, connection, timeout, timer, .. } = self;
        let deadline = now + *timeout;
        let mut operation = pin!(operation(sender));
        poll_fn(|context| {
            // Twice, since what the connection has just read usually completes the operation.
            for _ in 0..2 {
                if let Poll::Ready(outcome) = operation.as_mut().poll(context) {
                    return Poll::Ready(outcome);
                }
                let open = connection.as_mut();
                if open.is_some_and(|open| Pin::new(open).poll(context).is_ready()) {
                    *connection = None;
                }
            }
            while timer.as_mut().poll(context).is_ready() {
                if Instant::now() >= deadline {
                    return Poll::Ready(Outcome::TimedOut);
                }
                timer.as_mut().reset(deadline.into());
            }
            Poll::Pending
        })
        .await
    }
}

async fn fetch(sender: &mut SendRequest<Empty<Bytes>>, request: Box<EmptyRequest>) -> Outcome {
    if sender.ready().await.is_err() {
        return Outcome::Unsent(request);
    }
    match sender.try_send_request(*request).await {
        Ok(response) => {
            let status = response.status().as_u16();
            match read_to_end(response.into_body()).await {
                Ok(()) => Outcome::Answered(status),
                Err(_) => Outcome::Broken,
            }
        }
        Err(mut error) => match error.take_message() {
            Some(request) => Outcome::Unsent(Box::new(request)),
            None => Outcome::Broken,
        },
    }
}

async fn read_to_end(mut body: Incoming) -> hyper::Result<()> {
    while let Some(frame) = body.frame().await {
        frame?;
    }
    Ok(())
}

async fn download(
    sender: &mut SendRequest<Empty<Bytes>>,
    request: EmptyRequest,
    max_bytes: usize,
) -> io::Result<(u16, Bytes)> {
    sender.ready().await.map_err(io::Error::other)?;
    let response = sender.send_request(request).await.map_err(io::Error::other)?;
    let status = response.status().as_u16();
    let body = http_body_util::Limited::new(response.into_body(), max_bytes);
    Ok((status, body.collect().await.map_err(io::Error::other)?.to_bytes()))
}
