//! An HTTP connection that can send malformed requests and be broken off.

use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::time::Duration;

use nix::libc::linger;
use nix::sys::socket::{setsockopt, sockopt::Linger};

use super::{Reply, TIMEOUT, reply};

/// A keep-alive connection that sends any bytes and can be closed at any point. Dropping it closes
/// it.
#[derive(Debug)]
pub struct Conn {
    stream: BufReader<TcpStream>,
    authority: String,
}

impl Conn {
    /// Connects to `HOST:PORT` or to the server of a URL `http://HOST:PORT…`.
    ///
    /// # Panics
    ///
    /// When no server listens there.
    #[must_use]
    pub fn open(address: &str) -> Self {
        Self::try_open(address)
            .unwrap_or_else(|error| panic!("no connection to {address}: {error}"))
    }

    /// Like [`open`](Self::open), for servers that may be down.
    ///
    /// # Errors
    ///
    /// When no server listens there.
    pub fn try_open(address: &str) -> io::Result<Self> {
        let rest = address.strip_prefix("http://").unwrap_or(address);
        let authority = rest.split(['/', '?']).next().unwrap_or_default().to_owned();
        let address = authority.to_socket_addrs()?.next().ok_or(io::ErrorKind::NotFound)?;
        let stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
        stream.set_nodelay(true)?;
        let mut conn = Self { stream: BufReader::new(stream), authority };
        conn.set_timeout(TIMEOUT)?;
        Ok(conn)
    }

    /// Sets how long a single read or write may take.
    ///
    /// # Errors
    ///
    /// When the time is zero.
    pub fn set_timeout(&mut self, timeout: Duration) -> io::Result<()> {
        self.stream.get_ref().set_read_timeout(Some(timeout))?;
        self.stream.get_ref().set_write_timeout(Some(timeout))
    }

    /// Sends a request and reads the reply. The connection stays usable.
    ///
    /// `target` is sent unchanged. `Host` and, with a body, `Content-Length` are added unless
    /// `headers` has them.
    ///
    /// # Panics
    ///
    /// When there is no answer.
    pub fn request(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Reply {
        let reply = self.try_request(method, target, headers, body);
        reply.unwrap_or_else(|error| panic!("{method} {target}: {error}"))
    }

    /// Like [`request`](Self::request), for servers that may be down.
    ///
    /// # Errors
    ///
    /// When there is no answer.
    pub fn try_request(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Reply> {
        let missing =
            |name: &str| !headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        let mut head = format!("{method} {target} HTTP/1.1\r\n");
        if missing("host") {
            head.push_str(&format!("Host: {}\r\n", self.authority));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() && missing("content-length") && missing("transfer-encoding") {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        self.send(&[head.as_bytes(), body].concat())?;
        self.read_reply(method == "HEAD")
    }

    /// Sends bytes unchanged.
    ///
    /// # Errors
    ///
    /// When the server has closed the connection.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Reads one reply; `to_head` means that the request was HEAD. A `100 Continue` is a reply too.
    ///
    /// # Errors
    ///
    /// When it isn't complete in time.
    pub fn read_reply(&mut self, to_head: bool) -> io::Result<Reply> {
        reply::read(&mut self.stream, to_head)
    }

    /// Reads until the server closes the connection.
    ///
    /// # Errors
    ///
    /// When it resets the connection or leaves it open too long.
    pub fn read_to_end(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.stream.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Closes the sending half. Replies can still be read.
    ///
    /// # Errors
    ///
    /// When the server has closed the connection.
    pub fn half_close(&mut self) -> io::Result<()> {
        self.stream.get_ref().shutdown(Shutdown::Write)
    }

    /// Closes both halves, with a FIN when all replies were read.
    pub fn close(self) {}

    /// Resets the connection: the server receives a RST.
    ///
    /// # Panics
    ///
    /// When the system refuses.
    pub fn reset(self) {
        let at_once = linger { l_onoff: 1, l_linger: 0 };
        setsockopt(self.stream.get_ref(), Linger, &at_once).expect("SO_LINGER on an open socket");
    }
}
