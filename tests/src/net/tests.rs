//! Tests of the HTTP client against a server that sends given bytes.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

use super::*;

/// Accepts one connection and hands it to `serve`; returns the address.
fn server<T: Send + 'static>(
    serve: impl FnOnce(TcpStream) -> T + Send + 'static,
) -> (String, JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (address, thread::spawn(move || serve(listener.accept().unwrap().0)))
}

/// Reads until an empty line.
fn head(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        bytes.push(byte[0]);
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
fn the_request_path_is_sent_unchanged() {
    let (address, server) = server(|mut stream| {
        let head = head(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\nX-Two:  words \r\n\r\nuntil the end").unwrap();
        head
    });
    let reply = get(&format!("http://{address}/a/../%2e%2F//b?q=<>#x"));
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("x-two"), Some("words"));
    assert_eq!(reply.text(), "until the end");
    let head = server.join().unwrap();
    assert!(head.starts_with("GET /a/../%2e%2F//b?q=<>#x HTTP/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("Host: {address}\r\n")), "{head}");
    assert!(head.contains("Connection: close\r\n"), "{head}");
}

#[test]
fn a_connection_serves_several_requests() {
    let (address, server) = server(|mut stream| {
        head(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none").unwrap();
        head(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n").unwrap();
        head(&mut stream);
        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
        let head = head(&mut stream);
        let mut body = [0; 4];
        stream.read_exact(&mut body).unwrap();
        let chunks = b"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n\
            2;x=y\r\nab\r\n1\r\nc\r\n0\r\nTrailer: t\r\n\r\n";
        stream.write_all(chunks).unwrap();
        (head, body)
    });
    let mut conn = Conn::open(&address);
    assert_eq!(conn.request("GET", "/", &[], b"").text(), "one");
    assert_eq!(conn.request("HEAD", "/", &[], b"").text(), "");
    assert_eq!(conn.request("GET", "/", &[], b"").status, 204);
    let reply = conn.request("POST", "/", &[("X-Name", "value")], b"body");
    assert_eq!((reply.status, reply.text().as_str()), (404, "abc"));
    assert!(reply.raw.ends_with(b"0\r\nTrailer: t\r\n\r\n"));
    let (head, body) = server.join().unwrap();
    assert!(head.contains("X-Name: value\r\nContent-Length: 4\r\n\r\n"), "{head}");
    assert_eq!(&body, b"body");
}

#[test]
fn raw_bytes_are_compared_without_the_date() {
    let raw = b"HTTP/1.1 404 Not Found\r\nDate: now\r\nA: b\r\n\r\nDate: x\r\n";
    let reply = reply::read(&mut &raw[..], false).unwrap();
    assert_eq!(reply.raw, raw);
    let kept = b"HTTP/1.1 404 Not Found\r\nA: b\r\n\r\nDate: x\r\n";
    assert_eq!(reply.raw_without(&["date"]), kept);
}

#[test]
fn half_a_request_and_its_end_reach_the_server() {
    let (address, server) = server(|mut stream| {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").unwrap();
        bytes
    });
    let mut conn = Conn::open(&address);
    conn.send(b"GET /half").unwrap();
    conn.half_close().unwrap();
    assert_eq!(conn.read_reply(false).unwrap().status, 400);
    assert_eq!(conn.read_to_end().unwrap(), b"");
    assert_eq!(server.join().unwrap(), b"GET /half");
}

#[test]
fn a_reset_connection_is_not_a_clean_close() {
    let (address, server) = server(|mut stream| stream.read(&mut [0; 16]).map_err(|e| e.kind()));
    Conn::open(&address).reset();
    assert_eq!(server.join().unwrap(), Err(io::ErrorKind::ConnectionReset));
}

#[test]
fn a_truncated_reply_is_an_error() {
    for raw in [
        &b""[..],
        b"HTTP/1.1 200 OK\r\nContent-Len",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
    ] {
        assert_eq!(
            reply::read(&mut &raw[..], false).unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
    }
    assert!(try_request("GET", &format!("http://127.0.0.1:{}/", free_port()), &[], b"").is_err());
}

#[test]
fn free_ports_differ() {
    let ports: HashSet<u16> = (0..100).map(|_| free_port()).collect();
    assert_eq!(ports.len(), 100);
}
