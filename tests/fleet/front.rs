//! The front: takes connections, and leads each to the next instance that is ready.

use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// A front on a port of 127.0.0.1.
pub(crate) struct Front {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    /// Where the instances listen, as `HOST:PORT`.
    addresses: Vec<String>,
    ready: Mutex<Vec<bool>>,
    next: AtomicUsize,
}

impl Front {
    /// A front for these instances, on this port or, for 0, a free one.
    pub(crate) fn start(port: u16, urls: Vec<String>) -> Self {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("the port of the front");
        let port = listener.local_addr().expect("the address of a listener").port();
        let addresses: Vec<String> =
            urls.iter().map(|url| url.trim_start_matches("http://").to_owned()).collect();
        let shared = Arc::new(Shared {
            ready: Mutex::new(vec![true; addresses.len()]),
            addresses,
            next: AtomicUsize::new(0),
        });
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let serving = Arc::clone(&serving);
                thread::spawn(move || {
                    // A client that goes away, or finds no instance, sees its connection end.
                    let _ = serving.lead(&client);
                    let _ = client.shutdown(Shutdown::Both);
                });
            }
        });
        Self { port, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Which instances are ready, in their order.
    pub(crate) fn set_ready(&self, ready: Vec<bool>) {
        *self.shared.ready.lock().unwrap_or_else(PoisonError::into_inner) = ready;
    }
}

impl Shared {
    /// Connects to the next instance that is ready and takes connections, or to any while none is
    /// ready, and carries bytes both ways.
    fn lead(&self, client: &TcpStream) -> io::Result<()> {
        let server = self.connect()?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let (mut requests, mut to_server) = (client.try_clone()?, server.try_clone()?);
        thread::spawn(move || {
            let _ = io::copy(&mut requests, &mut to_server);
            let _ = to_server.shutdown(Shutdown::Both);
        });
        io::copy(&mut &server, &mut &*client).map(drop)
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let any = !ready.contains(&true);
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        let mut last = io::Error::new(io::ErrorKind::NotConnected, "there is no instance");
        for step in 0..self.addresses.len() {
            let number = (first + step) % self.addresses.len();
            if !any && !ready.get(number).copied().unwrap_or(false) {
                continue;
            }
            match TcpStream::connect(&self.addresses[number]) {
                Ok(server) => return Ok(server),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}
