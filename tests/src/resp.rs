//! A client of the Redis protocol, as far as tests need it.

use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

/// One reply of a Redis server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// A simple string, as `OK` or `PONG`.
    Simple(String),
    /// A refusal, with its code in front, as `WRONGTYPE Operation …`.
    Error(String),
    /// An integer.
    Integer(i64),
    /// The bytes of a value.
    Bulk(Vec<u8>),
    /// No value.
    Nil,
    /// Several replies.
    List(Vec<Reply>),
}

impl Reply {
    /// Whether the server refused the command.
    #[must_use]
    pub fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }
}

impl std::fmt::Display for Reply {
    /// Values as they are, errors as `(error) …`, no value as `(nil)`, one line per item of a list.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Simple(text) => f.write_str(text),
            Self::Error(text) => write!(f, "(error) {text}"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Bulk(bytes) => f.write_str(&String::from_utf8_lossy(bytes)),
            Self::Nil => f.write_str("(nil)"),
            Self::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if index == 0 { "" } else { "\n" })?;
                }
                Ok(())
            }
        }
    }
}

/// Sends one command on a new connection; `timeout` limits each of its steps.
pub(crate) fn ask<A: AsRef<[u8]>>(port: u16, args: &[A], timeout: Duration) -> io::Result<Reply> {
    let address = ([127, 0, 0, 1], port).into();
    let mut stream = TcpStream::connect_timeout(&address, timeout)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    let mut request = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args.iter().map(AsRef::as_ref) {
        request.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        request.extend_from_slice(arg);
        request.extend_from_slice(b"\r\n");
    }
    stream.write_all(&request)?;
    read(&mut BufReader::new(stream))
}

fn read(input: &mut impl BufRead) -> io::Result<Reply> {
    let mut line = String::new();
    input.read_line(&mut line)?;
    let Some(line) = line.strip_suffix("\r\n") else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    let (kind, rest) = line.split_at_checked(1).ok_or_else(|| invalid_reply(line))?;
    let number = || rest.parse::<i64>().map_err(|_| invalid_reply(line));
    Ok(match kind {
        "+" => Reply::Simple(rest.to_owned()),
        "-" => Reply::Error(rest.to_owned()),
        ":" => Reply::Integer(number()?),
        "$" | "*" if number()? < 0 => Reply::Nil,
        "$" => {
            let mut bytes = vec![0; number()?.unsigned_abs() as usize + 2];
            input.read_exact(&mut bytes)?;
            bytes.truncate(bytes.len() - 2);
            Reply::Bulk(bytes)
        }
        "*" => Reply::List((0..number()?).map(|_| read(input)).collect::<io::Result<_>>()?),
        _ => return Err(invalid_reply(line)),
    })
}

fn invalid_reply(line: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not a Redis reply: {line:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_redis_reply_is_parsed() {
        let bytes = b"*6\r\n+OK\r\n-ERR no\r\n:-7\r\n$4\r\na\r\nb\r\n$-1\r\n*1\r\n$0\r\n\r\n";
        let reply = read(&mut &bytes[..]).unwrap();
        let Reply::List(items) = &reply else { panic!("not a list: {reply:?}") };
        assert_eq!(items[1], Reply::Error("ERR no".to_owned()));
        assert_eq!(items[3], Reply::Bulk(b"a\r\nb".to_vec()));
        assert_eq!(reply.to_string(), "OK\n(error) ERR no\n-7\na\r\nb\n(nil)\n");
    }

    #[test]
    fn a_closed_connection_is_an_error() {
        assert_eq!(read(&mut &b""[..]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(read(&mut &b"$9\r\nab"[..]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
