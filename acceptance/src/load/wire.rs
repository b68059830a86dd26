//! HTTP/1.1 on one loopback connection, from the client's side: strict, with limits on everything.
//!
//! It is written by hand so that nothing between the test and the bytes repairs errors of the server.

use std::io::ErrorKind;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// The maximum number of bytes of a status line with its headers.
const MOST_HEAD: usize = 64 * 1024;

/// The maximum number of bytes of a body that is read as a whole.
const MOST_BODY: usize = 32 * 1024 * 1024;

/// The size of one read. Ten thousand streams may each hold a buffer of this size.
const READ: usize = 4 * 1024;

/// One connection, and its unread bytes.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
    body: Body,
}

/// How the end of a body is determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    /// It has ended, or there is none.
    Ended,
    /// This many bytes remain.
    Length(usize),
    /// A chunk is next.
    Chunks,
    /// It ends with the connection.
    UntilClosed,
}

/// The status and the headers of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The status code.
    pub status: u16,
    headers: Vec<(String, String)>,
}

/// A response that was read as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status and the headers.
    pub head: Head,
    /// The whole body without its framing.
    pub body: Vec<u8>,
}

impl Head {
    /// The value of the first header with this name, whatever its case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| &**value)
    }

    /// Whether the header with this name has this value, or begins with it.
    #[must_use]
    pub fn has_header(&self, name: &str, value: &str) -> bool {
        self.header(name).is_some_and(|found| found.to_ascii_lowercase().starts_with(value))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.split("\r\n");
        let status = lines.next().unwrap_or_default();
        let code = status.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3));
        let code = code.and_then(|code| code.parse().ok());
        let status = code.ok_or_else(|| format!("not a status line: {status:?}"))?;
        let mut headers = Vec::new();
        for line in lines.filter(|line| !line.is_empty()) {
            let (name, value) =
                line.split_once(':').ok_or_else(|| format!("not a header: {line:?}"))?;
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        Ok(Self { status, headers })
    }

    /// How the body of this response ends.
    fn body(&self) -> Result<Body, String> {
        if self.has_header("transfer-encoding", "chunked") {
            return Ok(Body::Chunks);
        }
        match self.header("content-length") {
            Some(length) => {
                let length = length.parse().map_err(|_| format!("a length of {length:?}"))?;
                Ok(if length == 0 { Body::Ended } else { Body::Length(length) })
            }
            None if matches!(self.status, 204 | 304) => Ok(Body::Ended),
            None => Ok(Body::UntilClosed),
        }
    }
}

impl Connection {
    /// Connects.
    pub async fn open(server: SocketAddr) -> Result<Self, String> {
        let stream = TcpStream::connect(server).await;
        Self::over(stream.map_err(|error| format!("cannot connect to {server}: {error}"))?)
    }

    /// Connects with a receive buffer of about this many bytes, so that a client that does not read is noticed soon.
    pub async fn open_narrow(server: SocketAddr, buffer: u32) -> Result<Self, String> {
        let explain = |error| format!("cannot connect to {server}: {error}");
        let socket = TcpSocket::new_v4().map_err(explain)?;
        socket.set_recv_buffer_size(buffer).map_err(explain)?;
        Self::over(socket.connect(server).await.map_err(explain)?)
    }

    fn over(stream: TcpStream) -> Result<Self, String> {
        stream.set_nodelay(true).map_err(|error| format!("no TCP_NODELAY: {error}"))?;
        Ok(Self { stream, received: Vec::new(), body: Body::Ended })
    }

    /// Writes bytes, all of them.
    pub async fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.stream.write_all(bytes).await.map_err(|error| format!("cannot write: {error}"))
    }

    /// Reads the head of the next response.
    pub async fn head(&mut self) -> Result<Head, String> {
        loop {
            if let Some(end) = find(&self.received, b"\r\n\r\n") {
                let text = String::from_utf8_lossy(&self.received[..end]).into_owned();
                self.received.drain(..end + 4);
                let head = Head::parse(&text)?;
                self.body = head.body()?;
                return Ok(head);
            }
            if self.received.len() > MOST_HEAD {
                return Err(format!("a head of more than {MOST_HEAD} bytes"));
            }
            self.fill("a response").await?;
        }
    }

    /// Reads the available part of the body. `None` when it has ended.
    pub async fn piece(&mut self) -> Result<Option<Vec<u8>>, String> {
        match self.body {
            Body::Ended => Ok(None),
            Body::Length(remaining) => {
                if self.received.is_empty() {
                    self.fill("the rest of a body").await?;
                }
                let piece = self.take(remaining.min(self.received.len()));
                let remaining = remaining - piece.len();
                self.body = if remaining == 0 { Body::Ended } else { Body::Length(remaining) };
                Ok(Some(piece))
            }
            Body::Chunks => self.chunk().await,
            Body::UntilClosed => {
                if self.received.is_empty() && !self.read().await? {
                    self.body = Body::Ended;
                    return Ok(None);
                }
                Ok(Some(self.take(self.received.len())))
            }
        }
    }

    /// Reads a whole response.
    pub async fn response(&mut self) -> Result<Response, String> {
        let head = self.head().await?;
        let mut body = Vec::new();
        while let Some(piece) = self.piece().await? {
            body.extend_from_slice(&piece);
            if body.len() > MOST_BODY {
                return Err(format!("a body of more than {MOST_BODY} bytes"));
            }
        }
        Ok(Response { head, body })
    }

    /// Waits until the server has closed, and drops the data before. An error counts as a close: a server with unread
    /// bytes resets.
    pub async fn closed(&mut self) {
        while let Ok(true) = self.read().await {
            self.received.clear();
        }
    }

    /// Whether the server has closed the connection. An unexpected byte is an error.
    pub fn has_ended(&self) -> Result<bool, String> {
        if !self.received.is_empty() {
            return Err(format!("{} bytes without a request", self.received.len()));
        }
        match self.stream.try_read(&mut [0]) {
            Ok(0) => Ok(true),
            Ok(_) => Err("bytes that nobody asked for".to_owned()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Writes as many bytes as possible without blocking. `None` if the server accepts none now.
    pub fn send_some(&self, bytes: &[u8]) -> Result<Option<usize>, String> {
        match self.stream.try_write(bytes) {
            Ok(count) => Ok(Some(count)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(format!("cannot write: {error}")),
        }
    }

    async fn chunk(&mut self) -> Result<Option<Vec<u8>>, String> {
        let line = self.line().await?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(digits, 16).map_err(|_| format!("a chunk of {line:?}"))?;
        if size > MOST_BODY {
            return Err(format!("a chunk of {size} bytes"));
        }
        if size == 0 {
            while !self.line().await?.is_empty() {}
            self.body = Body::Ended;
            return Ok(None);
        }
        while self.received.len() < size + 2 {
            self.fill("the rest of a chunk").await?;
        }
        let piece = self.take(size);
        if self.take(2) != b"\r\n" {
            return Err("a chunk without its end".to_owned());
        }
        Ok(Some(piece))
    }

    async fn line(&mut self) -> Result<String, String> {
        loop {
            if let Some(end) = find(&self.received, b"\r\n") {
                let line = self.take(end);
                self.received.drain(..2);
                return Ok(String::from_utf8_lossy(&line).into_owned());
            }
            if self.received.len() > MOST_HEAD {
                return Err(format!("a line of more than {MOST_HEAD} bytes"));
            }
            self.fill("the rest of a line").await?;
        }
    }

    fn take(&mut self, count: usize) -> Vec<u8> {
        if count == self.received.len() {
            return std::mem::take(&mut self.received);
        }
        self.received.drain(..count).collect()
    }

    async fn fill(&mut self, expected: &str) -> Result<(), String> {
        if self.read().await? {
            return Ok(());
        }
        Err(format!("closed where {expected} was expected"))
    }

    /// Reads available bytes; false at the end.
    async fn read(&mut self) -> Result<bool, String> {
        let mut buffer = [0; READ];
        let count = self.stream.read(&mut buffer).await;
        let count = count.map_err(|error| format!("cannot read: {error}"))?;
        self.received.extend_from_slice(&buffer[..count]);
        Ok(count > 0)
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
