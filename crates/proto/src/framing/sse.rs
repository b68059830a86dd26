//! Server-sent events in both directions, in the WHATWG "text/event-stream" format.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::{fmt, mem};

use memchr::{memchr, memchr2};

use super::RETAINED_CAPACITY;

/// A received event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The id of this event. The receiver keeps track of the last id of the stream.
    pub id: Option<String>,
    /// The type; absent means `message`.
    pub event: Option<String>,
    /// The data lines, joined by `\n`.
    pub data: String,
    /// The reconnection time in milliseconds.
    pub retry: Option<u64>,
}

/// An event to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SseEventRef<'a> {
    /// See [`SseEvent::id`].
    pub id: Option<&'a str>,
    /// See [`SseEvent::event`].
    pub event: Option<&'a str>,
    /// See [`SseEvent::data`].
    pub data: &'a str,
    /// See [`SseEvent::retry`].
    pub retry: Option<u64>,
}

impl<'a> From<&'a SseEvent> for SseEventRef<'a> {
    fn from(event: &'a SseEvent) -> Self {
        Self {
            id: event.id.as_deref(),
            event: event.event.as_deref(),
            data: &event.data,
            retry: event.retry,
        }
    }
}

/// A comment, which clients ignore. It keeps a silent stream alive.
pub const KEEP_ALIVE_COMMENT: &[u8] = b":\n\n";

/// Appends exactly one event, for any content of its fields.
///
/// Each line of the data gets its own `data` field; CR and CRLF arrive as LF. Line breaks in the id and the type, and
/// NUL in the id, are removed, since the format cannot carry them.
pub fn encode_event(out: &mut Vec<u8>, event: &SseEventRef<'_>) {
    if let Some(id) = event.id {
        push_field(out, b"id: ", id.split(['\r', '\n', '\0']));
    }
    if let Some(name) = event.event {
        push_field(out, b"event: ", name.split(['\r', '\n']));
    }
    if let Some(retry) = event.retry {
        push_field(out, b"retry: ", [&*retry.to_string()]);
    }
    push_data(out, event.data.as_bytes());
    out.push(b'\n');
}

/// Decodes an event stream with bounded memory.
///
/// An event has an id, a type, data or a retry time before its blank line. Events without data are included, because
/// their ids are resumption points (2025-11-25 basic/transports, sending messages to the server). An event that is cut
/// off by the end of the stream is dropped. The division of the stream into chunks does not matter.
#[derive(Debug)]
pub struct SseDecoder {
    limit: usize,
    /// The start of an incomplete line.
    pending: Vec<u8>,
    event: SseEvent,
    /// Number of bytes of the fields in `event`; `None` if there are no fields yet.
    field_bytes: Option<usize>,
    has_data: bool,
    skipping: SkipState,
    /// Whether the last line ended in a CR, which an LF may complete.
    after_return: bool,
    is_first_line: bool,
}

/// The reason why an event was dropped. The decoder continues with the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SseError {
    /// It exceeds the limit.
    TooLong,
    /// It is not UTF-8.
    NotUtf8,
}

impl fmt::Display for SseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "an event is too long",
            Self::NotUtf8 => "an event is not UTF-8",
        })
    }
}

impl core::error::Error for SseError {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SkipState {
    Nothing,
    /// The rest of an event, at the start of a line.
    Event,
    /// The rest of an event, within a line that is not blank.
    Line,
}

impl SseDecoder {
    /// A decoder for events whose fields have at most `limit` bytes, including names and excluding line ends.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            pending: Vec::new(),
            event: SseEvent::default(),
            field_bytes: None,
            has_data: false,
            skipping: SkipState::Nothing,
            after_return: false,
            is_first_line: true,
        }
    }

    /// Takes the next event from `chunk`. Call it until it returns `None`, which leaves `chunk` empty.
    pub fn next(&mut self, chunk: &mut &[u8]) -> Option<Result<SseEvent, SseError>> {
        loop {
            self.pass_line_feed(chunk);
            let Some(end) = memchr2(b'\r', b'\n', chunk) else {
                return self.buffer_part(mem::take(chunk));
            };
            let line = &chunk[..end];
            self.after_return = chunk[end] == b'\r';
            *chunk = &chunk[end + 1..];
            match self.end_line(line) {
                Ok(None) => {}
                Ok(Some(event)) => return Some(Ok(event)),
                Err(error) => return Some(Err(self.drop_event(error, SkipState::Event))),
            }
        }
    }

    /// The memory used by the incomplete event.
    pub fn buffered_bytes(&self) -> usize {
        self.pending.capacity() + self.event.data.capacity()
    }

    /// Calls `on_event` for each event that ends in `chunk`.
    pub fn feed(&mut self, mut chunk: &[u8], mut on_event: impl FnMut(Result<SseEvent, SseError>)) {
        while let Some(event) = self.next(&mut chunk) {
            on_event(event);
        }
    }

    fn pass_line_feed(&mut self, chunk: &mut &[u8]) {
        if let [first, rest @ ..] = *chunk
            && mem::take(&mut self.after_return)
            && *first == b'\n'
        {
            *chunk = rest;
        }
    }

    /// Buffers a part of a line without its end.
    fn buffer_part(&mut self, part: &[u8]) -> Option<Result<SseEvent, SseError>> {
        if part.is_empty() {
            return None;
        }
        if self.skipping != SkipState::Nothing {
            self.skipping = SkipState::Line;
            return None;
        }
        if self.exceeds(part) {
            return Some(Err(self.drop_event(SseError::TooLong, SkipState::Line)));
        }
        self.pending.extend_from_slice(part);
        None
    }

    /// Handles the end of a line, with `part` before it.
    fn end_line(&mut self, part: &[u8]) -> Result<Option<SseEvent>, SseError> {
        if self.skipping != SkipState::Nothing {
            let is_blank = self.skipping == SkipState::Event && part.is_empty();
            self.skipping = if is_blank { SkipState::Nothing } else { SkipState::Event };
            return Ok(None);
        }
        if self.exceeds(part) {
            return Err(SseError::TooLong);
        }
        if self.pending.is_empty() {
            return self.take_line(part);
        }
        let mut line = mem::take(&mut self.pending);
        line.extend_from_slice(part);
        let outcome = self.take_line(&line);
        line.clear();
        line.shrink_to(RETAINED_CAPACITY);
        self.pending = line;
        outcome
    }

    fn take_line(&mut self, line: &[u8]) -> Result<Option<SseEvent>, SseError> {
        let is_first = mem::take(&mut self.is_first_line);
        let line = if is_first { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line };
        if line.is_empty() {
            self.has_data = false;
            return Ok(self.field_bytes.take().map(|_| mem::take(&mut self.event)));
        }
        let (name, value) = split_field(line);
        if self.take_field(name, value)? {
            *self.field_bytes.get_or_insert(0) += line.len();
        }
        Ok(None)
    }

    /// Stores one field. Returns whether it is a known one.
    fn take_field(&mut self, name: &[u8], value: &[u8]) -> Result<bool, SseError> {
        match name {
            b"data" => {
                let value = text(value)?;
                if mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            b"event" => self.event.event = Some(text(value)?.into()),
            b"id" if memchr(0, value).is_none() => self.event.id = Some(text(value)?.into()),
            b"retry" => match milliseconds(value) {
                Some(retry) => self.event.retry = Some(retry),
                None => return Ok(false),
            },
            // Comments have an empty name. Unknown fields are ignored.
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn exceeds(&self, part: &[u8]) -> bool {
        self.field_bytes.unwrap_or(0) + self.pending.len() + part.len() > self.limit
    }

    fn drop_event(&mut self, error: SseError, skipping: SkipState) -> SseError {
        self.skipping = skipping;
        self.pending = Vec::new();
        self.event = SseEvent::default();
        self.field_bytes = None;
        self.has_data = false;
        self.is_first_line = false;
        error
    }
}

fn split_field(line: &[u8]) -> (&[u8], &[u8]) {
    let Some(colon) = memchr(b':', line) else { return (line, b"") };
    let value = &line[colon + 1..];
    (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
}

fn text(value: &[u8]) -> Result<&str, SseError> {
    simdutf8::basic::from_utf8(value).map_err(|_| SseError::NotUtf8)
}

/// Only digits are valid; `parse` alone would accept a sign.
fn milliseconds(value: &[u8]) -> Option<u64> {
    let digits = value.iter().all(u8::is_ascii_digit).then_some(value)?;
    text(digits).ok()?.parse().ok()
}

fn push_field<'a>(out: &mut Vec<u8>, name: &[u8], value: impl IntoIterator<Item = &'a str>) {
    out.extend_from_slice(name);
    for part in value {
        out.extend_from_slice(part.as_bytes());
    }
    out.push(b'\n');
}

fn push_data(out: &mut Vec<u8>, mut data: &[u8]) {
    loop {
        let end = memchr2(b'\r', b'\n', data);
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(&data[..end.unwrap_or(data.len())]);
        out.push(b'\n');
        let Some(end) = end else { return };
        let width = if data[end..].starts_with(b"\r\n") { 2 } else { 1 };
        data = &data[end + width..];
    }
}

#[cfg(test)]
mod tests {
    use alloc::{format, vec};

    use super::*;

    fn decoded(limit: usize, input: &[u8], size: usize) -> Vec<Result<SseEvent, SseError>> {
        let mut seen = Vec::new();
        let mut decoder = SseDecoder::new(limit);
        for chunk in input.chunks(size) {
            decoder.feed(chunk, |event| seen.push(event));
        }
        seen
    }

    fn agree(limit: usize, input: &[u8], expected: &[Result<SseEvent, SseError>]) {
        for size in 1..=input.len() {
            assert_eq!(decoded(limit, input, size), expected, "chunks of {size}");
        }
    }

    fn data(text: &str) -> Result<SseEvent, SseError> {
        Ok(SseEvent { data: text.into(), ..SseEvent::default() })
    }

    #[test]
    fn every_line_end_counts_once_even_when_split() {
        agree(
            99,
            b"data: a\n\ndata: b\r\n\r\ndata: c\r\rdata: d\r\n\ndata: e\n\r",
            &[data("a"), data("b"), data("c"), data("d"), data("e")],
        );
    }

    #[test]
    fn all_fields_are_read_and_data_lines_joined() {
        let input = b"id: 7\nevent:message\nretry: 1500\ndata: a\ndata:  b\ndata\ndata:\n\n";
        agree(
            99,
            input,
            &[Ok(SseEvent {
                id: Some("7".into()),
                event: Some("message".into()),
                data: "a\n b\n\n".into(),
                retry: Some(1500),
            })],
        );
    }

    #[test]
    fn an_event_without_data_is_reported_for_its_id_or_retry_time() {
        agree(
            99,
            b"id: 1\ndata: \n\nid\n\nretry: 5\n\n",
            &[
                Ok(SseEvent { id: Some("1".into()), ..SseEvent::default() }),
                Ok(SseEvent { id: Some("".into()), ..SseEvent::default() }),
                Ok(SseEvent { retry: Some(5), ..SseEvent::default() }),
            ],
        );
    }

    #[test]
    fn comments_unknown_fields_and_unusable_values_are_ignored() {
        agree(
            99,
            b": hello\n\n:\nfoo: bar\nData: x\n\nid: a\0b\nretry: -1\nretry: +1\nretry:\n\n",
            &[],
        );
        agree(99, b"retry: 99999999999999999999999\ndata: x\n:c\n\n", &[data("x")]);
    }

    #[test]
    fn a_byte_order_mark_is_ignored_at_the_start_only() {
        agree(
            99,
            b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\ndata: c\n\n",
            &[data("a"), data("c")],
        );
    }

    #[test]
    fn an_event_cut_off_by_the_end_is_not_delivered() {
        agree(99, b"data: a\n\ndata: b\n", &[data("a")]);
    }

    #[test]
    fn an_oversized_event_is_one_error_and_the_next_is_read() {
        agree(
            10,
            b"data: 1234\n\ndata: 12345\nmore\n\ndata: ok\n\n",
            &[data("1234"), Err(SseError::TooLong), data("ok")],
        );
        agree(10, b"data: 1\ndata\n\ndata: ok\n\n", &[Err(SseError::TooLong), data("ok")]);
        agree(10, b": a long comment\n\ndata: ok\n\n", &[Err(SseError::TooLong), data("ok")]);
    }

    #[test]
    fn memory_stays_bounded_within_one_endless_line() {
        let mut decoder = SseDecoder::new(100_000);
        let mut errors = 0;
        for _ in 0..100 {
            decoder.feed(&[b'x'; 10_000], |event| errors += usize::from(event.is_err()));
            assert!(decoder.pending.capacity() <= 200_000);
        }
        assert_eq!(errors, 1);
        assert_eq!(decoder.pending.capacity(), 0);
    }

    #[test]
    fn an_event_that_is_not_utf8_is_one_error_and_the_next_is_read() {
        agree(
            99,
            b"data: \xff\xfe\ndata: x\n\ndata: \xf0\x9f\x98\x80\n\n",
            &[Err(SseError::NotUtf8), data("😀")],
        );
    }

    #[test]
    fn data_that_looks_like_another_event_stays_one_event() {
        for text in ["a\n\ndata: {}\n\n", "a\r\rid: 1", "\r\n\r\n", "\n", "", "a\r", ": c"] {
            let mut out = Vec::new();
            encode_event(&mut out, &SseEventRef { data: text, ..SseEventRef::default() });
            let arrived = text.replace("\r\n", "\n").replace('\r', "\n");
            agree(99, &out, &[data(&arrived)]);
        }
    }

    #[test]
    fn an_id_or_type_cannot_smuggle_in_another_field() {
        let mut out = Vec::new();
        let event = SseEventRef {
            id: Some("1\n\ndata: x\0"),
            event: Some("a\r\nb"),
            data: "d",
            retry: Some(u64::MAX),
        };
        encode_event(&mut out, &event);
        let expected = format!("id: 1data: x\nevent: ab\nretry: {}\ndata: d\n\n", u64::MAX);
        assert_eq!(out, expected.as_bytes());
    }

    #[test]
    fn several_events_may_follow_each_other() {
        let events = vec![data("a"), data(" b\nc")];
        let mut out = Vec::new();
        for event in events.iter().flatten() {
            encode_event(&mut out, &event.into());
        }
        agree(99, &out, &events);
    }
}
