//! A small HTTP server that records its requests.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// What the server does with one request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Answers with a status and a body.
    Answer(u16, String),
    /// Answers after a while.
    Late(Duration, u16),
    /// Answers, and closes the connection in good order.
    Last(u16),
    /// Never answers.
    Silence,
}

/// Decides on the reply from the path and how many requests came before.
pub(crate) type Decide = dyn Fn(&str, usize) -> Reply + Send + Sync;

/// A running server; it lives as long as the test's process.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Log,
}

type Log = Arc<Mutex<Vec<(String, HeaderMap)>>>;

impl Server {
    /// Starts on a free port of 127.0.0.1, on a thread of its own.
    pub(crate) fn start(decide: impl Fn(&str, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a non-blocking socket");
        let address = listener.local_addr().expect("an address");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (log, decide): (_, Arc<Decide>) = (Arc::clone(&seen), Arc::new(decide));
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(accept(listener, log, decide));
        });
        Self { address, seen }
    }

    /// The URL of a path on this server.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The paths of all requests so far, except the guard's.
    pub(crate) fn paths(&self) -> Vec<String> {
        let paths = self.requests().into_iter().map(|(path, _)| path);
        paths.filter(|path| !path.starts_with("/guard")).collect()
    }

    /// Path and headers of all requests so far.
    pub(crate) fn requests(&self) -> Vec<(String, HeaderMap)> {
        self.seen.lock().expect("the log").clone()
    }

    /// The ids at the end of those paths.
    pub(crate) fn ids(&self) -> Vec<u64> {
        let id = |path: &String| path.rsplit('/').next().and_then(|id| id.parse().ok());
        self.paths().iter().map(|path| id(path).expect("an id")).collect()
    }
}

async fn accept(listener: std::net::TcpListener, log: Log, decide: Arc<Decide>) {
    let listener = TcpListener::from_std(listener).expect("a listener");
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        let (log, decide) = (Arc::clone(&log), Arc::clone(&decide));
        tokio::spawn(async move {
            let service = service_fn(|request: Request<_>| answer(request, &log, &*decide));
            let _closed =
                http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(
    request: Request<hyper::body::Incoming>,
    log: &Mutex<Vec<(String, HeaderMap)>>,
    decide: &Decide,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().to_string();
    let before = {
        let mut log = log.lock().expect("the log");
        log.push((path.clone(), request.headers().clone()));
        log.len() - 1
    };
    let (status, body, last) = match decide(&path, before) {
        Reply::Answer(status, body) => (status, body, false),
        Reply::Late(wait, status) => {
            tokio::time::sleep(wait).await;
            (status, String::new(), false)
        }
        Reply::Last(status) => (status, String::new(), true),
        Reply::Silence => std::future::pending().await,
    };
    let mut response = Response::builder().status(status);
    if last {
        response = response.header("connection", "close");
    }
    Ok(response.body(Full::from(body)).expect("a response"))
}
