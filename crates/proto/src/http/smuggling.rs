//! A guard against request smuggling in front of an HTTP/1 parser. It scans the bytes and rejects those that two
//! parsers could interpret differently, because a request hidden inside another one passes every check of the first
//! parser.
//!
//! The parser behind it handles everything else. The guard rejects forms that parsers traditionally tolerate: a line
//! that ends without a carriage return, a length given twice or beside chunks, a coding before `chunked`, a header that
//! is continued on the next line (RFC 9112, 2.2, 5.2, 6.1 and 6.3).

use memchr::memchr;

/// Maximum length of the relevant lines, and number of bytes kept of any line that arrives in parts.
const MAX_LINE: usize = 96;

/// The start of an HTTP/2 connection, which has no lines to check (RFC 9113, 3.4).
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0";

/// The guard of one connection.
#[derive(Clone, Debug)]
pub struct SmugglingGuard {
    state: RequestState,
    line: LineStart,
    length: Option<u64>,
    chunked: bool,
    /// Maximum size of a head; `head` is the size of the current one so far.
    max_head: usize,
    head: usize,
}

/// A rejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmugglingError {
    /// Number of valid bytes before the invalid one.
    pub at: usize,
    /// The violated rule.
    pub kind: SmugglingErrorKind,
}

/// A violated rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmugglingErrorKind {
    /// A line ends without a carriage return.
    BareLineFeed,
    /// A header is continued on the next line.
    ContinuedHeader,
    /// The length is not a number, or is given twice.
    Length,
    /// The body has another coding than `chunked`, or the coding is given twice.
    Coding,
    /// Both a length and a coding are given.
    LengthAndCoding,
    /// The size of a chunk is not a number, or its end is missing.
    Chunk,
    /// The head is too long, and its first line is incomplete.
    LongRequestLine,
    /// The head is too long.
    LongHead,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestState {
    /// Between two requests.
    BetweenRequests,
    /// The line with method and target.
    RequestLine,
    Headers,
    Body(u64),
    ChunkSize,
    ChunkData(u64),
    /// The two bytes after a chunk; the number of missing ones.
    ChunkEnd(u8),
    Trailers,
    /// Another protocol, which is not checked.
    PassThrough,
}

impl SmugglingGuard {
    /// A guard for a new connection, on which a head has at most `longest` bytes.
    pub fn new(max_length: usize) -> Self {
        let (state, line) = (RequestState::BetweenRequests, LineStart::default());
        Self { state, line, length: None, chunked: false, max_head: max_length, head: 0 }
    }

    /// Whether the head of a request is incomplete.
    pub fn is_inside_head(&self) -> bool {
        matches!(self.state, RequestState::RequestLine | RequestState::Headers)
    }

    /// Whether the connection is checked and no body is incomplete.
    pub fn is_outside_body(&self) -> bool {
        matches!(
            self.state,
            RequestState::BetweenRequests | RequestState::RequestLine | RequestState::Headers
        )
    }

    /// Whether all requests are complete, including their bodies.
    pub fn is_between_requests(&self) -> bool {
        matches!(self.state, RequestState::BetweenRequests | RequestState::PassThrough)
    }

    /// Checks the next bytes.
    ///
    /// # Errors
    /// The position of the first invalid byte and the reason. The guard must not be used afterwards.
    pub fn check(&mut self, bytes: &[u8]) -> Result<(), SmugglingError> {
        let mut offset = 0;
        while offset < bytes.len() {
            let rest = &bytes[offset..];
            offset += self.step(rest).map_err(|kind| SmugglingError { at: offset, kind })?;
        }
        Ok(())
    }

    /// Checks some of the bytes and returns their number.
    fn step(&mut self, rest: &[u8]) -> Result<usize, SmugglingErrorKind> {
        match self.state {
            RequestState::PassThrough => Ok(rest.len()),
            RequestState::BetweenRequests => {
                // Empty lines between requests are allowed (RFC 9112, 2.2).
                if !matches!(rest[0], b'\r' | b'\n') {
                    (self.length, self.chunked, self.head) = (None, false, 0);
                    self.state = RequestState::RequestLine;
                    return Ok(0);
                }
                Ok(1)
            }
            RequestState::Body(remaining) => {
                Ok(self.skip(rest, remaining, RequestState::Body, RequestState::BetweenRequests))
            }
            RequestState::ChunkData(remaining) => {
                Ok(self.skip(rest, remaining, RequestState::ChunkData, RequestState::ChunkEnd(2)))
            }
            RequestState::ChunkEnd(missing) => {
                if rest[0] != if missing == 2 { b'\r' } else { b'\n' } {
                    return Err(SmugglingErrorKind::Chunk);
                }
                self.state =
                    if missing == 2 { RequestState::ChunkEnd(1) } else { RequestState::ChunkSize };
                Ok(1)
            }
            RequestState::RequestLine | RequestState::Headers => self.head(rest),
            RequestState::ChunkSize | RequestState::Trailers => self.lines(rest),
        }
    }

    /// Checks a line of a head, or the part of it that is available and fits. The part that does not fit is rejected
    /// before a carriage return, so that bytes that replace it never come between a carriage return and its line feed.
    fn head(&mut self, rest: &[u8]) -> Result<usize, SmugglingErrorKind> {
        let fits = self.max_head - self.head;
        if fits == 0 {
            let in_first = self.state == RequestState::RequestLine;
            return Err(if in_first {
                SmugglingErrorKind::LongRequestLine
            } else {
                SmugglingErrorKind::LongHead
            });
        }
        let mut part = &rest[..rest.len().min(fits)];
        let is_cut = part.len() == fits && !part.contains(&b'\n');
        if is_cut && part.ends_with(b"\r") {
            part = &part[..part.len() - 1];
        }
        let taken = if part.is_empty() { 0 } else { self.lines(part)? };
        self.head = if is_cut { self.max_head } else { self.head + taken };
        Ok(taken)
    }

    fn skip(
        &mut self,
        rest: &[u8],
        remaining: u64,
        more: fn(u64) -> RequestState,
        done: RequestState,
    ) -> usize {
        let taken = remaining.min(rest.len() as u64);
        self.state = if taken == remaining { done } else { more(remaining - taken) };
        usize::try_from(taken).unwrap_or(rest.len())
    }

    /// Checks a line, or the available part of it.
    fn lines(&mut self, rest: &[u8]) -> Result<usize, SmugglingErrorKind> {
        let Some(end) = memchr(b'\n', rest) else {
            self.line.push(rest);
            return Ok(rest.len());
        };
        if self.line.is_empty() {
            let line = rest[..end].strip_suffix(b"\r").ok_or(SmugglingErrorKind::BareLineFeed)?;
            self.complete(line)?;
        } else {
            self.line.push(&rest[..end]);
            let start = core::mem::take(&mut self.line);
            self.complete(start.text().ok_or(SmugglingErrorKind::BareLineFeed)?)?;
        }
        Ok(end + 1)
    }

    fn complete(&mut self, line: &[u8]) -> Result<(), SmugglingErrorKind> {
        match self.state {
            RequestState::RequestLine if line == HTTP2_PREFACE => {
                self.state = RequestState::PassThrough
            }
            RequestState::RequestLine => self.state = RequestState::Headers,
            RequestState::Headers if line.is_empty() => self.state = self.body(),
            RequestState::Headers => self.header(line)?,
            RequestState::ChunkSize => {
                self.state = match chunk_size(line).ok_or(SmugglingErrorKind::Chunk)? {
                    0 => RequestState::Trailers,
                    size => RequestState::ChunkData(size),
                }
            }
            RequestState::Trailers if line.is_empty() => self.state = RequestState::BetweenRequests,
            _ => {}
        }
        Ok(())
    }

    fn body(&self) -> RequestState {
        match (self.chunked, self.length) {
            (true, _) => RequestState::ChunkSize,
            (false, Some(length)) if length > 0 => RequestState::Body(length),
            _ => RequestState::BetweenRequests,
        }
    }

    fn header(&mut self, line: &[u8]) -> Result<(), SmugglingErrorKind> {
        let colon = match line.first() {
            Some(b' ' | b'\t') => return Err(SmugglingErrorKind::ContinuedHeader),
            // Only two header names are relevant, and they start with these letters.
            Some(b'c' | b'C' | b't' | b'T') => memchr(b':', line),
            _ => None,
        };
        let Some((name, value)) = colon.map(|colon| (&line[..colon], &line[colon + 1..])) else {
            return Ok(());
        };
        let (name, value) = (name.trim_ascii_end(), value.trim_ascii());
        let value = if line.len() > MAX_LINE { b"" } else { value };
        if name.eq_ignore_ascii_case(b"content-length") {
            if self.length.is_some() {
                return Err(SmugglingErrorKind::Length);
            }
            self.length = Some(decimal(value).ok_or(SmugglingErrorKind::Length)?);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(SmugglingErrorKind::Coding);
            }
            self.chunked = true;
        }
        if self.chunked && self.length.is_some() {
            Err(SmugglingErrorKind::LengthAndCoding)
        } else {
            Ok(())
        }
    }
}

/// The start of a line that arrives in parts.
#[derive(Clone, Debug)]
struct LineStart {
    /// One byte more than is relevant, to detect longer lines.
    kept: [u8; MAX_LINE + 1],
    length: usize,
    last: u8,
}

impl Default for LineStart {
    fn default() -> Self {
        Self { kept: [0; MAX_LINE + 1], length: 0, last: 0 }
    }
}

impl LineStart {
    fn is_empty(&self) -> bool {
        self.length == 0
    }

    fn push(&mut self, part: &[u8]) {
        let Some(last) = part.last() else { return };
        let from = self.length.min(self.kept.len());
        let fits = part.len().min(self.kept.len() - from);
        self.kept[from..from + fits].copy_from_slice(&part[..fits]);
        self.length += part.len();
        self.last = *last;
    }

    /// The kept part of the line without its end; `None` if its end is invalid.
    fn text(&self) -> Option<&[u8]> {
        let whole = self.length - 1;
        (self.last == b'\r').then(|| &self.kept[..whole.min(self.kept.len())])
    }
}

fn decimal(text: &[u8]) -> Option<u64> {
    let digits = (1..=18).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
    if !digits {
        return None;
    }
    Some(text.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

/// The size of a chunk. Chunk extensions are ignored (RFC 9112, 7.1.1).
fn chunk_size(line: &[u8]) -> Option<u64> {
    let end = memchr(b';', line).unwrap_or(line.len());
    let digits = line[..end].trim_ascii_end();
    if end > MAX_LINE || !(1..=15).contains(&digits.len()) {
        return None;
    }
    let digit = |byte: &u8| char::from(*byte).to_digit(16).map(u64::from);
    digits.iter().try_fold(0, |size, byte| Some(size * 16 + digit(byte)?))
}

#[cfg(test)]
mod tests;
