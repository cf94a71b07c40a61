//! An HTTP reply and its parser.

use std::io::{self, BufRead};

/// One reply, parsed and raw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// Unchanged names, and values without surrounding spaces, in order.
    pub headers: Vec<(String, String)>,
    /// The content, without chunk framing.
    pub body: Vec<u8>,
    /// All bytes from the status line to the end of the content.
    pub raw: Vec<u8>,
}

impl Reply {
    /// The first header of this name; case is ignored.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The content as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// All bytes without the lines of some headers, such as `date`.
    #[must_use]
    pub fn raw_without(&self, names: &[&str]) -> Vec<u8> {
        let mut kept = Vec::with_capacity(self.raw.len());
        let mut rest = self.raw.as_slice();
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            let (line, tail) = rest.split_at(end + 1);
            if line == b"\r\n" {
                break;
            }
            let name = line.split(|&byte| byte == b':').next().unwrap_or_default();
            if !names.iter().any(|hidden| hidden.as_bytes().eq_ignore_ascii_case(name)) {
                kept.extend_from_slice(line);
            }
            rest = tail;
        }
        kept.extend_from_slice(rest);
        kept
    }
}

/// Reads a reply; `to_head` means that the request was HEAD, whose reply has no content even if its
/// headers name a length.
pub(super) fn read(input: &mut impl BufRead, to_head: bool) -> io::Result<Reply> {
    let mut input = Recorder { input, raw: Vec::new() };
    let status_line = input.line()?;
    let status = status_line.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status: u16 = status.ok_or_else(|| invalid_reply(&status_line))?;
    let mut headers = Vec::new();
    loop {
        let line = input.line()?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or_else(|| invalid_reply(&line))?;
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let mut reply = Reply { status, headers, body: Vec::new(), raw: Vec::new() };
    let is_chunked = reply
        .header("transfer-encoding")
        .is_some_and(|coding| coding.to_ascii_lowercase().ends_with("chunked"));
    reply.body = if to_head || status < 200 || status == 204 || status == 304 {
        Vec::new()
    } else if is_chunked {
        input.chunks()?
    } else if let Some(length) = reply.header("content-length") {
        input.exactly(length.parse().map_err(|_| invalid_reply(length))?)?
    } else {
        input.rest()?
    };
    reply.raw = input.raw;
    Ok(reply)
}

/// Stores all bytes that it reads.
struct Recorder<'a, R> {
    input: &'a mut R,
    raw: Vec<u8>,
}

impl<R: BufRead> Recorder<'_, R> {
    /// One line without its end.
    fn line(&mut self) -> io::Result<String> {
        let start = self.raw.len();
        self.input.read_until(b'\n', &mut self.raw)?;
        let line = self.raw[start..].strip_suffix(b"\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(String::from_utf8_lossy(line).into_owned())
    }

    fn exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.input.read_exact(&mut bytes)?;
        self.raw.extend_from_slice(&bytes);
        Ok(bytes)
    }

    fn rest(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.input.read_to_end(&mut bytes)?;
        self.raw.extend_from_slice(&bytes);
        Ok(bytes)
    }

    fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.line()?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(|_| invalid_reply(&line))?;
            if size == 0 {
                while !self.line()?.is_empty() {}
                return Ok(body);
            }
            body.append(&mut self.exactly(size)?);
            self.line()?;
        }
    }
}

fn invalid_reply(line: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not an HTTP reply: {line:?}"))
}
