//! A TCP proxy whose network a test can cut, hold up in one direction, or lead to another server.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Between two looks at whether a direction is still held.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(2);

#[derive(Debug, Default)]
struct State {
    upstream: AtomicU16,
    holds_requests: AtomicBool,
    holds_replies: AtomicBool,
    over: AtomicBool,
    connections: Mutex<Vec<TcpStream>>,
}

/// Forwards every connection to a port of this machine, until it is dropped.
///
/// A direction that is held delivers nothing and loses nothing: what was sent meanwhile arrives
/// when it is let go, as on a network that stalls.
#[derive(Debug)]
pub struct Proxy {
    state: Arc<State>,
    port: u16,
}

impl Proxy {
    /// A proxy to this port.
    ///
    /// # Panics
    ///
    /// When no port is free.
    #[must_use]
    pub fn to(upstream: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("no free port");
        let port = listener.local_addr().expect("a listener without an address").port();
        let state = Arc::new(State { upstream: AtomicU16::new(upstream), ..State::default() });
        let accepting = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if accepting.over.load(Ordering::SeqCst) {
                    return;
                }
                // A server that is away shows as a connection that ends at once.
                let _ = State::connect(&accepting, client);
            }
        });
        Self { state, port }
    }

    /// The port to connect to.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether what clients send is held.
    pub fn hold_requests(&self, hold: bool) {
        self.state.holds_requests.store(hold, Ordering::SeqCst);
    }

    /// Whether what the server sends is held.
    pub fn hold_replies(&self, hold: bool) {
        self.state.holds_replies.store(hold, Ordering::SeqCst);
    }

    /// Ends all connections.
    pub fn cut(&self) {
        for connection in self.state.connections().drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    /// Leads new connections to another server, and ends the others.
    pub fn lead_to(&self, upstream: u16) {
        self.state.upstream.store(upstream, Ordering::SeqCst);
        self.cut();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.state.over.store(true, Ordering::SeqCst);
        self.cut();
        // The listener's thread waits for a connection.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

impl State {
    fn connections(&self) -> std::sync::MutexGuard<'_, Vec<TcpStream>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connect(self: &Arc<Self>, client: TcpStream) -> std::io::Result<()> {
        let upstream = self.upstream.load(Ordering::SeqCst);
        let server = TcpStream::connect((Ipv4Addr::LOCALHOST, upstream))?;
        for stream in [&client, &server] {
            stream.set_nodelay(true)?;
            self.connections().push(stream.try_clone()?);
        }
        let (to_server, to_client) = (server.try_clone()?, client.try_clone()?);
        let (requests, replies) = (Arc::clone(self), Arc::clone(self));
        thread::spawn(move || requests.forward(client, to_server, |state| &state.holds_requests));
        thread::spawn(move || replies.forward(server, to_client, |state| &state.holds_replies));
        Ok(())
    }

    fn forward(&self, mut from: TcpStream, mut to: TcpStream, held: fn(&Self) -> &AtomicBool) {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            while held(self).load(Ordering::SeqCst) && !self.over.load(Ordering::SeqCst) {
                thread::sleep(LOOK_AGAIN_AFTER);
            }
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that sends back what it gets, each connection in a thread of its own.
    fn echo(prefix: u8) -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                thread::spawn(move || {
                    let mut byte = [0];
                    while stream.read_exact(&mut byte).is_ok() {
                        if stream.write_all(&[prefix, byte[0]]).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        port
    }

    fn client(proxy: &Proxy) -> TcpStream {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        stream
    }

    fn ask(stream: &mut TcpStream, byte: u8) -> std::io::Result<[u8; 2]> {
        stream.write_all(&[byte])?;
        reply(stream)
    }

    fn reply(stream: &mut TcpStream) -> std::io::Result<[u8; 2]> {
        let mut reply = [0; 2];
        stream.read_exact(&mut reply)?;
        Ok(reply)
    }

    /// The reply that comes once the direction is let go.
    fn late_reply(stream: &mut TcpStream) -> [u8; 2] {
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        reply(stream).unwrap()
    }

    #[test]
    fn what_is_held_in_either_direction_arrives_when_it_is_let_go() {
        let proxy = Proxy::to(echo(b'a'));
        for hold in [Proxy::hold_requests, Proxy::hold_replies] {
            let mut stream = client(&proxy);
            assert_eq!(ask(&mut stream, b'1').unwrap(), *b"a1");
            hold(&proxy, true);
            assert!(ask(&mut stream, b'2').is_err());
            hold(&proxy, false);
            assert_eq!(late_reply(&mut stream), *b"a2");
        }
    }

    #[test]
    fn a_cut_ends_connections_and_new_ones_lead_to_the_server_of_then() {
        let proxy = Proxy::to(echo(b'a'));
        let mut stream = client(&proxy);
        assert_eq!(ask(&mut stream, b'1').unwrap(), *b"a1");
        proxy.lead_to(echo(b'b'));
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        assert!(ask(&mut stream, b'2').is_err());
        let mut stream = client(&proxy);
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        assert_eq!(ask(&mut stream, b'3').unwrap(), *b"b3");
    }
}
