//! An HTTP/1.1 client that writes given bytes and reads the response without interpretation.
//!
//! A library would not send many of the requests of these tests, and would repair many of the responses.

use std::io;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::canaries;

/// How long one read may take: only a server that hangs takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The maximum length of a response head.
const LONGEST_HEAD: u64 = 64 * 1024;

/// The path of the endpoint.
pub const PATH: &str = "/mcp";

/// A request that can still be changed.
#[derive(Clone, Debug)]
pub struct Request {
    method: String,
    target: String,
    fields: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    /// A request without a body.
    #[must_use]
    pub fn new(method: &str, target: &str) -> Self {
        Self {
            method: method.to_owned(),
            target: target.to_owned(),
            fields: Vec::new(),
            body: Vec::new(),
        }
    }

    /// A message for the endpoint, with the fields that every client sends.
    #[must_use]
    pub fn post(body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..Self::new("POST", PATH) }
            .with("Content-Type", "application/json")
            .with("Accept", "application/json, text/event-stream")
    }

    /// A request to another path than the default.
    #[must_use]
    pub fn to(method: &str, target: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..Self::new(method, target) }
    }

    /// A GET request for the stream of a session.
    #[must_use]
    pub fn get(session: &str) -> Self {
        Self::new("GET", PATH).with("Accept", "text/event-stream").with("Mcp-Session-Id", session)
    }

    /// A DELETE request that ends a session.
    #[must_use]
    pub fn delete(session: &str) -> Self {
        Self::new("DELETE", PATH).with("Mcp-Session-Id", session)
    }

    /// Adds a field, also beside one of the same name.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        if name.eq_ignore_ascii_case("authorization") {
            canaries::watch_authorization(value);
        }
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds each of these fields.
    #[must_use]
    pub fn with_all(mut self, fields: impl IntoIterator<Item = (String, String)>) -> Self {
        self.fields.extend(fields);
        self
    }

    /// Removes the fields of this name.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.fields.retain(|(listed, _)| !listed.eq_ignore_ascii_case(name));
        self
    }

    /// Replaces the fields of this name by this value.
    #[must_use]
    pub fn replacing(self, name: &str, value: &str) -> Self {
        self.without(name).with(name, value)
    }

    /// The request as bytes. Without a `Host` field it gets the server's.
    #[must_use]
    pub fn bytes(&self, address: SocketAddr) -> Vec<u8> {
        let has = |name: &str| self.fields.iter().any(|(listed, _)| listed == name);
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        if !has("Host") {
            head += &format!("Host: {address}\r\n");
        }
        for (name, value) in &self.fields {
            head += &format!("{name}: {value}\r\n");
        }
        let is_framed = has("Content-Length") || has("Transfer-Encoding");
        if !is_framed && (self.method == "POST" || !self.body.is_empty()) {
            head += &format!("Content-Length: {}\r\n", self.body.len());
        }
        let mut bytes = (head + "\r\n").into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }

    /// Sends it on its own connection and reads the whole response.
    pub fn send(&self, address: SocketAddr) -> Result<Response, String> {
        let mut connection = Connection::open(address)?;
        connection.write(&self.bytes(address))?;
        let response = connection.response()?;
        if self.fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
            canaries::assert_unrevealed("a response", &response.text());
        }
        Ok(response)
    }
}

/// A connection.
pub struct Connection {
    reader: BufReader<TcpStream>,
}

impl Connection {
    /// Connects.
    pub fn open(address: SocketAddr) -> Result<Self, String> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)
            .map_err(io_error_text("no connection"))?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(io_error_text("no time limit"))?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(io_error_text("no time limit"))?;
        stream.set_nodelay(true).map_err(io_error_text("no delay"))?;
        Ok(Self { reader: BufReader::new(stream) })
    }

    /// Writes bytes. If the server has closed the connection, the read of the response shows it.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        match self.reader.get_mut().write_all(bytes) {
            Err(error) if has_left(&error) => Ok(()),
            result => result.map_err(io_error_text("nothing can be written")),
        }
    }

    /// A handle by which another thread closes the connection.
    pub fn ender(&self) -> Result<ConnectionCloser, String> {
        self.reader
            .get_ref()
            .try_clone()
            .map(ConnectionCloser)
            .map_err(io_error_text("no second handle"))
    }

    /// Reads the head of a response. Interim responses are skipped.
    pub fn head(&mut self) -> Result<Head, String> {
        loop {
            let head = self.one_head()?;
            if head.status >= 200 {
                return Ok(head);
            }
        }
    }

    fn one_head(&mut self) -> Result<Head, String> {
        let mut limited = self.reader.by_ref().take(LONGEST_HEAD);
        let mut line = || -> Result<String, String> {
            let mut line = Vec::new();
            limited.read_until(b'\n', &mut line).map_err(io_error_text("no head"))?;
            let text = String::from_utf8_lossy(&line).into_owned();
            match text.strip_suffix("\r\n") {
                Some(line) => Ok(line.to_owned()),
                None => Err(format!("the head of the response breaks off: {text:?}")),
            }
        };
        let first = line()?;
        let status = first.strip_prefix("HTTP/1.1 ").or(first.strip_prefix("HTTP/1.0 "));
        let status = status.and_then(|rest| rest.get(..3)).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| format!("no status line: {first:?}"))?;
        let mut fields = Vec::new();
        loop {
            let line = line()?;
            if line.is_empty() {
                return Ok(Head { status, fields });
            }
            let (name, value) =
                line.split_once(':').ok_or_else(|| format!("no header field: {line:?}"))?;
            fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    /// The body that follows a head, to be read incrementally.
    pub fn body(&mut self, head: &Head) -> Body<'_> {
        let remaining = match head.field("content-length").and_then(|length| length.parse().ok()) {
            Some(length) => BodyRemainder::Bytes(length),
            None if head.field("transfer-encoding") == Some("chunked") => BodyRemainder::Chunks(0),
            None if matches!(head.status, 204 | 304) => BodyRemainder::Bytes(0),
            None => BodyRemainder::UntilTheEnd,
        };
        Body { reader: &mut self.reader, left: remaining }
    }

    /// Reads a whole response.
    pub fn response(&mut self) -> Result<Response, String> {
        let head = self.head()?;
        let mut body = Vec::new();
        self.body(&head).read_to_end(&mut body).map_err(io_error_text("the body breaks off"))?;
        Ok(Response { head, body })
    }

    /// Whether the server closes the connection without another byte.
    #[must_use]
    pub fn is_ended(&mut self) -> bool {
        match self.reader.fill_buf() {
            Ok(bytes) => bytes.is_empty(),
            Err(error) => has_left(&error),
        }
    }
}

/// Closes a connection that another thread reads.
pub struct ConnectionCloser(TcpStream);

impl ConnectionCloser {
    /// The local port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.0.local_addr().expect("an address").port()
    }

    /// Cuts the connection: no packet passes any more, and neither side is notified.
    #[cfg(target_os = "linux")]
    pub fn cut(&self) {
        crate::drop_packets::cut(&self.0);
    }

    /// Closes it in both directions.
    pub fn end(&self) {
        // It may be closed already.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

fn has_left(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted
    )
}

fn io_error_text(description: &str) -> impl Fn(io::Error) -> String {
    let message = description.to_owned();
    move |error| format!("{message}: {error}")
}

/// The status and the fields of a response.
#[derive(Clone, Debug)]
pub struct Head {
    /// The status.
    pub status: u16,
    fields: Vec<(String, String)>,
}

impl Head {
    /// The value of the first field of this name, which is written in lower case.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(listed, _)| listed == name).map(|(_, value)| value.as_str())
    }

    /// The values of all fields of this name, which is written in lower case.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.fields
            .iter()
            .filter(move |(listed, _)| listed == name)
            .map(|(_, value)| value.as_str())
    }

    /// The names of all fields, in order and in lower case.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.fields.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// Whether the body is a stream of events.
    #[must_use]
    pub fn is_events(&self) -> bool {
        self.field("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
    }
}

/// A whole response.
#[derive(Clone, Debug)]
pub struct Response {
    /// Its status and fields.
    pub head: Head,
    /// Its body.
    pub body: Vec<u8>,
}

impl Response {
    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON: the document itself, or the last message of a stream; null if it is neither.
    #[must_use]
    pub fn message(&self) -> Value {
        self.messages().pop().unwrap_or_default()
    }

    /// All messages in the body: the document itself, or those of a stream.
    #[must_use]
    pub fn messages(&self) -> Vec<Value> {
        let parse = |text: &[u8]| serde_json::from_slice(text).unwrap_or(Value::Null);
        if !self.head.is_events() {
            return vec![parse(&self.body)];
        }
        let events = super::Events::new(&self.body[..]).filter(|event| !event.data.is_empty());
        events.map(|event| parse(event.data.as_bytes())).collect()
    }

    /// The code of the error in the body.
    #[must_use]
    pub fn code(&self) -> Option<i64> {
        self.message()["error"]["code"].as_i64()
    }
}

/// The remaining part of a body.
enum BodyRemainder {
    Bytes(u64),
    /// The rest of the current chunk.
    Chunks(u64),
    UntilTheEnd,
    Nothing,
}

/// A body, read incrementally.
pub struct Body<'a> {
    reader: &'a mut BufReader<TcpStream>,
    left: BodyRemainder,
}

impl Read for Body<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let BodyRemainder::Chunks(0) = self.left {
            self.left = match next_chunk(self.reader)? {
                0 => BodyRemainder::Nothing,
                length => BodyRemainder::Chunks(length),
            };
        }
        let max = match self.left {
            BodyRemainder::Nothing => return Ok(0),
            BodyRemainder::UntilTheEnd => u64::MAX,
            BodyRemainder::Bytes(remaining) | BodyRemainder::Chunks(remaining) => remaining,
        };
        let available = buffer.len().min(usize::try_from(max).unwrap_or(usize::MAX));
        if available == 0 {
            return Ok(0);
        }
        let read = self.reader.read(&mut buffer[..available])?;
        match &mut self.left {
            BodyRemainder::Bytes(_) | BodyRemainder::Chunks(_) if read == 0 => {
                return Err(io::Error::new(ErrorKind::UnexpectedEof, "more was announced"));
            }
            BodyRemainder::Bytes(remaining) => *remaining -= read as u64,
            BodyRemainder::Chunks(remaining) => {
                *remaining -= read as u64;
                if *remaining == 0 {
                    let mut end = [0; 2];
                    self.reader.read_exact(&mut end)?;
                }
            }
            BodyRemainder::UntilTheEnd | BodyRemainder::Nothing => {}
        }
        Ok(read)
    }
}

/// Reads the line before a chunk, and the trailer after the last one.
fn next_chunk(reader: &mut BufReader<TcpStream>) -> io::Result<u64> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let digits = line.trim_end().split(';').next().unwrap_or_default();
    let length = u64::from_str_radix(digits, 16)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, format!("no chunk: {line:?}")))?;
    while length == 0 && line != "\r\n" {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            break;
        }
    }
    Ok(length)
}
