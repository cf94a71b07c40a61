//! A TCP proxy whose two directions can be held or cut, and whose server can be exchanged.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// A direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
}

/// What happens to the bytes of a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flow {
    /// They are passed on.
    #[default]
    Forward,
    /// They are kept, and passed on once the flow is `Forward` again: a network that loses packets
    /// for a while.
    Hold,
    /// Connections are closed, new ones at once.
    Cut,
}

/// A proxy on a free port of 127.0.0.1. Dropping it closes its connections.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    server: SocketAddr,
    to_server: Flow,
    to_client: Flow,
    /// The open connections: a number, and both sockets.
    connections: Vec<(u64, TcpStream, TcpStream)>,
    next: u64,
    ended: bool,
}

impl Proxy {
    /// Starts a proxy to a port of 127.0.0.1 that forwards.
    ///
    /// # Panics
    ///
    /// When no port is free.
    #[must_use]
    pub fn start(server_port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = listener.local_addr().expect("the address of a listener").port();
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                server: SocketAddr::from((Ipv4Addr::LOCALHOST, server_port)),
                to_server: Flow::Forward,
                to_client: Flow::Forward,
                connections: Vec::new(),
                next: 0,
                ended: false,
            }),
            changed: Condvar::new(),
        });
        let accepting = Arc::clone(&shared);
        let acceptor = thread::spawn(move || accept(&listener, &accepting));
        Self { port, shared, acceptor: Some(acceptor) }
    }

    /// The port that clients connect to.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Changes the flow of one direction, for open connections and for new ones.
    pub fn set(&self, direction: Direction, flow: Flow) {
        let mut state = self.shared.state();
        match direction {
            Direction::ToServer => state.to_server = flow,
            Direction::ToClient => state.to_client = flow,
        }
        if flow == Flow::Cut {
            state.close_all();
        }
        self.shared.changed.notify_all();
    }

    /// Changes the flow of both directions.
    pub fn set_both(&self, flow: Flow) {
        self.set(Direction::ToServer, flow);
        self.set(Direction::ToClient, flow);
    }

    /// Closes the open connections, and connects new ones to another port of 127.0.0.1.
    pub fn switch_to(&self, server_port: u16) {
        let mut state = self.shared.state();
        state.server.set_port(server_port);
        state.close_all();
        self.shared.changed.notify_all();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        {
            let mut state = self.shared.state();
            state.ended = true;
            state.close_all();
            self.shared.changed.notify_all();
        }
        // Wakes the acceptor.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the direction forwards; false when the connection has been closed.
    fn may_pass(&self, connection: u64, direction: Direction) -> bool {
        let mut state = self.state();
        while state.flow(direction) == Flow::Hold && state.has(connection) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.has(connection)
    }
}

impl State {
    fn flow(&self, direction: Direction) -> Flow {
        match direction {
            Direction::ToServer => self.to_server,
            Direction::ToClient => self.to_client,
        }
    }

    fn has(&self, connection: u64) -> bool {
        self.connections.iter().any(|(number, ..)| *number == connection)
    }

    fn close_all(&mut self) {
        for (_, client, server) in self.connections.drain(..) {
            let _ = client.shutdown(Shutdown::Both);
            let _ = server.shutdown(Shutdown::Both);
        }
    }

    fn is_cut(&self) -> bool {
        self.to_server == Flow::Cut || self.to_client == Flow::Cut
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for client in listener.incoming() {
        if shared.state().ended {
            return;
        }
        // A connection that can't be made is closed, as by a server that isn't there.
        if let Ok(client) = client {
            let _ = connect(client, shared);
        }
    }
}

fn connect(client: TcpStream, shared: &Arc<Shared>) -> io::Result<()> {
    let address = {
        let state = shared.state();
        if state.is_cut() {
            return Ok(());
        }
        state.server
    };
    let server = TcpStream::connect(address)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let forth = (client.try_clone()?, server.try_clone()?);
    let back = (server.try_clone()?, client.try_clone()?);
    let number = {
        let mut state = shared.state();
        // Another server, a cut or the end may have come in between.
        if state.ended || state.is_cut() || state.server != address {
            return Ok(());
        }
        state.next += 1;
        let number = state.next;
        state.connections.push((number, client, server));
        number
    };
    for (direction, (from, to)) in [(Direction::ToServer, forth), (Direction::ToClient, back)] {
        let shared = Arc::clone(shared);
        thread::spawn(move || pump(from, to, number, direction, &shared));
    }
    Ok(())
}

/// Passes on the bytes of one direction until its end, and then the end.
fn pump(
    mut from: TcpStream,
    mut to: TcpStream,
    connection: u64,
    direction: Direction,
    shared: &Shared,
) {
    let mut bytes = [0; 16_384];
    let whole = loop {
        let Ok(length) = from.read(&mut bytes) else { break false };
        if !shared.may_pass(connection, direction) {
            break false;
        }
        if length == 0 {
            break to.shutdown(Shutdown::Write).is_ok();
        }
        let passed = bytes.get(..length).is_some_and(|bytes| to.write_all(bytes).is_ok());
        if !passed {
            break false;
        }
    };
    // After an end of this direction the other may go on, unless it was the server's.
    if !whole || direction == Direction::ToClient {
        let mut state = shared.state();
        state.connections.retain(|(number, ..)| *number != connection);
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
        shared.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufRead as _;
    use std::io::BufReader;
    use std::time::Duration;

    use super::*;

    const CEILING: Duration = Duration::from_secs(30);
    const SHORT: Duration = Duration::from_millis(100);

    /// A server that sends each line back with its name in front.
    fn echo(name: &'static str) -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                thread::spawn(move || {
                    let mut out = stream.try_clone().unwrap();
                    for line in BufReader::new(stream).lines().map_while(Result::ok) {
                        if out.write_all(format!("{name} {line}\n").as_bytes()).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        port
    }

    struct Client(BufReader<TcpStream>);

    impl Client {
        fn open(proxy: &Proxy) -> Self {
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).unwrap();
            Self(BufReader::new(stream))
        }

        fn say(&mut self, line: &str) {
            self.0.get_mut().write_all(format!("{line}\n").as_bytes()).unwrap();
        }

        /// The next line; empty at the end of the connection.
        fn hear(&mut self, within: Duration) -> io::Result<String> {
            self.0.get_ref().set_read_timeout(Some(within)).unwrap();
            let mut line = String::new();
            self.0.read_line(&mut line)?;
            Ok(line.trim_end().to_owned())
        }

        fn ask(&mut self, line: &str) -> String {
            self.say(line);
            self.hear(CEILING).unwrap()
        }

        /// Whether the connection has been closed, by an end or a reset.
        fn is_closed(&mut self) -> bool {
            match self.hear(CEILING) {
                Ok(line) => line.is_empty(),
                Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
            }
        }
    }

    #[test]
    fn bytes_held_in_either_direction_arrive_once_it_forwards_again() {
        let proxy = Proxy::start(echo("one"));
        let mut client = Client::open(&proxy);
        assert_eq!(client.ask("a"), "one a");
        for direction in [Direction::ToServer, Direction::ToClient] {
            proxy.set(direction, Flow::Hold);
            client.say("b");
            client.say("c");
            assert_eq!(client.hear(SHORT).unwrap_err().kind(), io::ErrorKind::WouldBlock);
            proxy.set(direction, Flow::Forward);
            assert_eq!(client.hear(CEILING).unwrap(), "one b");
            assert_eq!(client.hear(CEILING).unwrap(), "one c");
        }
    }

    #[test]
    fn a_connection_made_while_bytes_are_held_is_served_later() {
        let proxy = Proxy::start(echo("one"));
        proxy.set_both(Flow::Hold);
        let mut client = Client::open(&proxy);
        client.say("a");
        assert_eq!(client.hear(SHORT).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        proxy.set_both(Flow::Forward);
        assert_eq!(client.hear(CEILING).unwrap(), "one a");
    }

    #[test]
    fn a_cut_closes_open_connections_and_new_ones_until_it_forwards_again() {
        let proxy = Proxy::start(echo("one"));
        for direction in [Direction::ToServer, Direction::ToClient] {
            let mut client = Client::open(&proxy);
            assert_eq!(client.ask("a"), "one a");
            proxy.set(direction, Flow::Cut);
            assert!(client.is_closed());
            assert!(Client::open(&proxy).is_closed());
            proxy.set(direction, Flow::Forward);
            assert_eq!(Client::open(&proxy).ask("b"), "one b");
        }
    }

    #[test]
    fn held_bytes_of_a_cut_connection_never_arrive() {
        let proxy = Proxy::start(echo("one"));
        let mut client = Client::open(&proxy);
        assert_eq!(client.ask("a"), "one a");
        proxy.set(Direction::ToClient, Flow::Hold);
        client.say("b");
        proxy.set(Direction::ToClient, Flow::Cut);
        assert!(client.is_closed());
    }

    #[test]
    fn a_switch_closes_connections_and_sends_new_ones_to_the_other_server() {
        let proxy = Proxy::start(echo("one"));
        let mut client = Client::open(&proxy);
        assert_eq!(client.ask("a"), "one a");
        proxy.switch_to(echo("two"));
        assert!(client.is_closed());
        assert_eq!(Client::open(&proxy).ask("a"), "two a");
    }

    #[test]
    fn the_end_of_a_direction_is_passed_on() {
        let proxy = Proxy::start(echo("one"));
        let mut client = Client::open(&proxy);
        client.say("a");
        client.0.get_ref().shutdown(Shutdown::Write).unwrap();
        assert_eq!(client.hear(CEILING).unwrap(), "one a");
        assert_eq!(client.hear(CEILING).unwrap(), "");
    }

    #[test]
    fn dropping_the_proxy_closes_its_connections() {
        let proxy = Proxy::start(echo("one"));
        let mut client = Client::open(&proxy);
        assert_eq!(client.ask("a"), "one a");
        drop(proxy);
        assert!(client.is_closed());
    }
}
