//! A screen in front of an HTTP/1 reader: it follows the bytes and refuses what two readers could read
//! differently, because a request that hides inside another one passes every check of the first reader.
//!
//! The reader behind it stays in charge of everything else. What readers are lenient about by tradition is
//! refused here: a line that ends without a carriage return, a length given twice or beside chunks, a
//! coding before `chunked`, a header that is continued on the next line (RFC 9112, 2.2, 5.2, 6.1 and 6.3).

use memchr::memchr;

/// The longest line of those that count, and how much of any line is kept while it arrives in parts.
const LONGEST: usize = 96;

/// What begins a connection of HTTP/2, which has no lines to screen.
const HTTP2: &[u8] = b"PRI * HTTP/2.0";

/// Follows the bytes of one connection.
#[derive(Clone, Debug)]
pub struct Screen {
    state: State,
    line: Line,
    length: Option<u64>,
    chunked: bool,
    /// The longest head, and how much of one was seen.
    longest: usize,
    head: usize,
}

/// Bytes that are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// How many of the bytes are right.
    pub at: usize,
    /// What is wrong with the next.
    pub flaw: Flaw,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// A line ends without a carriage return.
    BareLineFeed,
    /// A header is continued on the next line.
    ContinuedHeader,
    /// The length is no number, or given twice.
    Length,
    /// The body is coded in another way than `chunked`, or that is said twice.
    Coding,
    /// There is both a length and a coding.
    LengthAndCoding,
    /// The size of a chunk is no number, or its end is missing.
    Chunk,
    /// The head is too long, and its first line is not complete.
    LongRequestLine,
    /// The head is too long.
    LongHead,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Between two requests.
    Between,
    /// The line with method and target.
    RequestLine,
    Headers,
    Body(u64),
    ChunkSize,
    ChunkData(u64),
    /// The two bytes behind a chunk; the number of those that are still missing.
    ChunkEnd(u8),
    Trailers,
    /// Another protocol: nothing is screened.
    Through,
}

impl Screen {
    /// A screen for a new connection, on which a head has at most so many bytes.
    pub fn new(longest: usize) -> Self {
        let (state, line) = (State::Between, Line::default());
        Self { state, line, length: None, chunked: false, longest, head: 0 }
    }

    /// Whether a head has begun and is not complete.
    pub fn is_inside_head(&self) -> bool {
        matches!(self.state, State::RequestLine | State::Headers)
    }

    /// Whether no body has begun that is not complete, on a connection that is screened.
    pub fn is_outside_body(&self) -> bool {
        matches!(self.state, State::Between | State::RequestLine | State::Headers)
    }

    /// Whether every request that has begun is complete, with its body.
    pub fn is_between(&self) -> bool {
        matches!(self.state, State::Between | State::Through)
    }

    /// Looks at the next bytes.
    ///
    /// # Errors
    /// Where they are wrong, and why. Nothing may be shown to the screen afterwards.
    pub fn pass(&mut self, bytes: &[u8]) -> Result<(), Refused> {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            at += self.step(rest).map_err(|flaw| Refused { at, flaw })?;
        }
        Ok(())
    }

    /// Looks at some bytes and tells how many.
    fn step(&mut self, rest: &[u8]) -> Result<usize, Flaw> {
        match self.state {
            State::Through => Ok(rest.len()),
            State::Between => {
                // Empty lines between requests have a tradition, and harm nobody.
                if !matches!(rest[0], b'\r' | b'\n') {
                    (self.length, self.chunked, self.head) = (None, false, 0);
                    self.state = State::RequestLine;
                    return Ok(0);
                }
                Ok(1)
            }
            State::Body(left) => Ok(self.skip(rest, left, State::Body, State::Between)),
            State::ChunkData(left) => {
                Ok(self.skip(rest, left, State::ChunkData, State::ChunkEnd(2)))
            }
            State::ChunkEnd(missing) => {
                if rest[0] != if missing == 2 { b'\r' } else { b'\n' } {
                    return Err(Flaw::Chunk);
                }
                self.state = if missing == 2 { State::ChunkEnd(1) } else { State::ChunkSize };
                Ok(1)
            }
            State::RequestLine | State::Headers => self.head(rest),
            State::ChunkSize | State::Trailers => self.lines(rest),
        }
    }

    /// Takes a line of a head, or the part of it that is there and fits. What does not fit is refused before a carriage
    /// return, so that whoever goes on with other bytes is never between that and its line feed.
    fn head(&mut self, rest: &[u8]) -> Result<usize, Flaw> {
        let fits = self.longest - self.head;
        if fits == 0 {
            let in_first = self.state == State::RequestLine;
            return Err(if in_first { Flaw::LongRequestLine } else { Flaw::LongHead });
        }
        let mut part = &rest[..rest.len().min(fits)];
        let is_cut = part.len() == fits && !part.contains(&b'\n');
        if is_cut && part.ends_with(b"\r") {
            part = &part[..part.len() - 1];
        }
        let taken = if part.is_empty() { 0 } else { self.lines(part)? };
        self.head = if is_cut { self.longest } else { self.head + taken };
        Ok(taken)
    }

    fn skip(&mut self, rest: &[u8], left: u64, more: fn(u64) -> State, done: State) -> usize {
        let taken = left.min(rest.len() as u64);
        self.state = if taken == left { done } else { more(left - taken) };
        usize::try_from(taken).unwrap_or(rest.len())
    }

    /// Takes a line, or the part of it that is there.
    fn lines(&mut self, rest: &[u8]) -> Result<usize, Flaw> {
        let Some(end) = memchr(b'\n', rest) else {
            self.line.push(rest);
            return Ok(rest.len());
        };
        if self.line.is_empty() {
            let line = rest[..end].strip_suffix(b"\r").ok_or(Flaw::BareLineFeed)?;
            self.complete(line)?;
        } else {
            self.line.push(&rest[..end]);
            let kept = core::mem::take(&mut self.line);
            self.complete(kept.text().ok_or(Flaw::BareLineFeed)?)?;
        }
        Ok(end + 1)
    }

    fn complete(&mut self, line: &[u8]) -> Result<(), Flaw> {
        match self.state {
            State::RequestLine if line == HTTP2 => self.state = State::Through,
            State::RequestLine => self.state = State::Headers,
            State::Headers if line.is_empty() => self.state = self.body(),
            State::Headers => self.header(line)?,
            State::ChunkSize => {
                self.state = match chunk_size(line).ok_or(Flaw::Chunk)? {
                    0 => State::Trailers,
                    size => State::ChunkData(size),
                }
            }
            State::Trailers if line.is_empty() => self.state = State::Between,
            _ => {}
        }
        Ok(())
    }

    fn body(&self) -> State {
        match (self.chunked, self.length) {
            (true, _) => State::ChunkSize,
            (false, Some(length)) if length > 0 => State::Body(length),
            _ => State::Between,
        }
    }

    fn header(&mut self, line: &[u8]) -> Result<(), Flaw> {
        let colon = match line.first() {
            Some(b' ' | b'\t') => return Err(Flaw::ContinuedHeader),
            // Only two names count, and they have these letters in front.
            Some(b'c' | b'C' | b't' | b'T') => memchr(b':', line),
            _ => None,
        };
        let Some((name, value)) = colon.map(|colon| (&line[..colon], &line[colon + 1..])) else {
            return Ok(());
        };
        let (name, value) = (name.trim_ascii_end(), value.trim_ascii());
        let value = if line.len() > LONGEST { b"" } else { value };
        if name.eq_ignore_ascii_case(b"content-length") {
            if self.length.is_some() {
                return Err(Flaw::Length);
            }
            self.length = Some(decimal(value).ok_or(Flaw::Length)?);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(Flaw::Coding);
            }
            self.chunked = true;
        }
        if self.chunked && self.length.is_some() { Err(Flaw::LengthAndCoding) } else { Ok(()) }
    }
}

/// The beginning of a line that arrives in parts.
#[derive(Clone, Debug)]
struct Line {
    /// One more than counts, so that a longer line shows.
    kept: [u8; LONGEST + 1],
    length: usize,
    last: u8,
}

impl Default for Line {
    fn default() -> Self {
        Self { kept: [0; LONGEST + 1], length: 0, last: 0 }
    }
}

impl Line {
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

    /// The line without its end, as far as it was kept; nothing if its end is wrong.
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

/// The size in front of a chunk; extensions behind it mean nothing.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let end = memchr(b';', line).unwrap_or(line.len());
    let digits = line[..end].trim_ascii_end();
    if end > LONGEST || !(1..=15).contains(&digits.len()) {
        return None;
    }
    let digit = |byte: &u8| char::from(*byte).to_digit(16).map(u64::from);
    digits.iter().try_fold(0, |size, byte| Some(size * 16 + digit(byte)?))
}

#[cfg(test)]
mod tests;
