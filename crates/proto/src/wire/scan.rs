//! The border: bytes become a message whose every rule of form was checked, or are refused.
//!
//! One pass, no recursion and no tree. What this scan accepts is strict RFC 8259 in UTF-8 with
//! bounded depth and size, so code behind it may cut, splice and forward the text as it stands.

use alloc::vec::Vec;
use core::fmt;

use super::cursor::{Cursor, Refused, Text};
use super::inside::{Inside, Note};
use super::nesting::{Nesting, Shape};
use super::told::Told;

/// Checks `bytes` and finds the members JSON-RPC knows.
///
/// An array is a batch, possibly empty. Anything else is one message, if only to be refused by the
/// caller as no object, with a repeated key, or with members of the wrong type.
pub fn scan<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Frame<'a>, ScanError> {
    let mut scanner = Scanner::new(decode(bytes)?, limits);
    scanner.frame(limits.batch).map_err(|Refused| scanner.cursor.error())
}

/// How much one message may ask of us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Objects and arrays open at once.
    pub depth: usize,
    /// Values of any kind, scalars and containers alike; keys are not counted.
    pub nodes: usize,
    /// Elements of a batch.
    pub batch: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { depth: 128, nodes: 200_000, batch: 100 }
    }
}

/// What one line or one body holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "the usual variant is the large one: no box for it")]
pub enum Frame<'a> {
    /// One message, or a value that is no message at all.
    One(Fields<'a>),
    /// The elements of an array, in order.
    Batch(Vec<Fields<'a>>),
}

/// The raw JSON texts of the members JSON-RPC knows: `None` is absent, `Some("null")` is null.
///
/// Keys match exactly, case included, after unescaping. Other members are checked and ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields<'a> {
    /// The protocol marker.
    pub jsonrpc: Option<&'a str>,
    /// The id as it stands; `None` also when the message gives several.
    pub id: Option<&'a str>,
    /// The method, still quoted.
    pub method: Option<&'a str>,
    /// The parameters of a request or notification.
    pub params: Option<&'a str>,
    /// The result of a response.
    pub result: Option<&'a str>,
    /// The error of a response.
    pub error: Option<&'a str>,
    /// Whether the value is an object at all.
    pub is_object: bool,
    /// Whether an object anywhere in this message repeats a key. Such a message must be refused:
    /// of the equal members only the first is shown here, and another reader may take the last.
    pub repeated: bool,
    /// What most methods look at inside of `params`, found on the way.
    pub inside: Inside<'a>,
    /// Which members `result` has, found on the way.
    pub told: Told,
}

/// Why bytes were refused, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanError {
    /// The rule that was broken.
    pub reason: Reason,
    /// The offset of the byte at which that became known.
    pub at: usize,
}

impl fmt::Display for ScanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.reason, self.at)
    }
}

impl core::error::Error for ScanError {}

/// The rule that refused bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There is nothing but whitespace.
    Empty,
    /// A byte order mark stands before the value.
    ByteOrderMark,
    /// The bytes are not UTF-8.
    NotUtf8,
    /// The grammar asks for something else here.
    Syntax(&'static str),
    /// An escape names one half of a surrogate pair, which is no character.
    LoneSurrogate,
    /// More text follows the value.
    Trailing,
    /// More containers are open than [`Limits::depth`].
    TooDeep,
    /// There are more values than [`Limits::nodes`].
    TooManyNodes,
    /// There are more elements than [`Limits::batch`].
    BatchTooLong,
}

impl Reason {
    /// Whether the bytes are not JSON (-32700); otherwise they are JSON we decline (-32600).
    pub fn is_syntax(self) -> bool {
        !matches!(self, Self::TooDeep | Self::TooManyNodes | Self::BatchTooLong)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "expected a value but the message ends",
            Self::ByteOrderMark => "expected a value but found a byte order mark",
            Self::NotUtf8 => "expected UTF-8",
            Self::Syntax(expected) => expected,
            Self::LoneSurrogate => "expected a whole surrogate pair",
            Self::Trailing => "expected nothing after the value",
            Self::TooDeep => "too many nested values",
            Self::TooManyNodes => "too many values",
            Self::BatchTooLong => "too many messages in a batch",
        })
    }
}

/// Checks that `text` is one JSON value, and tells whether an object in it repeats a key.
pub(super) fn check(text: &str, limits: &Limits) -> Result<bool, ScanError> {
    let mut scanner = Scanner::new(text, limits);
    scanner.only_value().map_err(|Refused| scanner.cursor.error())
}

/// Whether a value in valid text has more containers open at once than this.
pub(crate) fn nests_deeper(text: &str, depth: usize) -> bool {
    // Most values have not even so many brackets.
    if text.bytes().filter(|byte| matches!(byte, b'{' | b'[')).take(depth + 1).count() <= depth {
        return false;
    }
    let limits = Limits { depth, nodes: usize::MAX, batch: usize::MAX };
    matches!(check(text, &limits), Err(ScanError { reason: Reason::TooDeep, .. }))
}

fn decode(bytes: &[u8]) -> Result<&str, ScanError> {
    if bytes.starts_with(b"\xef\xbb\xbf") {
        return Err(ScanError { reason: Reason::ByteOrderMark, at: 0 });
    }
    simdutf8::basic::from_utf8(bytes).map_err(|_| {
        let at =
            simdutf8::compat::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
        ScanError { reason: Reason::NotUtf8, at }
    })
}

struct Scanner<'a> {
    cursor: Cursor<'a>,
    depth_limit: usize,
    nodes_left: usize,
    nesting: Nesting<'a>,
    repeated: bool,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a str, limits: &Limits) -> Self {
        Self {
            cursor: Cursor::new(text),
            depth_limit: limits.depth,
            nodes_left: limits.nodes,
            nesting: Nesting::new(),
            repeated: false,
        }
    }

    fn frame(&mut self, batch_limit: usize) -> Result<Frame<'a>, Refused> {
        let frame = match self.first()? {
            b'[' => Frame::Batch(self.batch(batch_limit)?),
            _ => Frame::One(self.message()?),
        };
        self.end()?;
        Ok(frame)
    }

    /// Passes a value that stands alone and tells whether an object in it repeats a key.
    fn only_value(&mut self) -> Result<bool, Refused> {
        self.first()?;
        self.value()?;
        self.end()?;
        Ok(self.repeated)
    }

    fn first(&mut self) -> Result<u8, Refused> {
        let byte = self.cursor.token();
        if self.cursor.is_at_end() { self.cursor.fail(Reason::Empty) } else { Ok(byte) }
    }

    fn end(&mut self) -> Result<(), Refused> {
        self.cursor.token();
        if self.cursor.is_at_end() { Ok(()) } else { self.cursor.fail(Reason::Trailing) }
    }

    fn batch(&mut self, limit: usize) -> Result<Vec<Fields<'a>>, Refused> {
        let mut messages = Vec::new();
        let mut more = self.enter(Shape::Array)?;
        while more {
            if messages.len() == limit {
                return self.cursor.fail(Reason::BatchTooLong);
            }
            messages.push(self.message()?);
            more = self.next_or_leave(Shape::Array)?;
        }
        Ok(messages)
    }

    fn message(&mut self) -> Result<Fields<'a>, Refused> {
        self.repeated = false;
        let mut fields = Fields::default();
        if self.cursor.peek() == b'{' {
            self.members(&mut fields)?;
        } else {
            self.value()?;
        }
        fields.repeated = self.repeated;
        Ok(fields)
    }

    fn members(&mut self, fields: &mut Fields<'a>) -> Result<(), Refused> {
        let mut ids = 0;
        fields.is_object = true;
        let mut more = self.enter(Shape::Object)?;
        while more {
            let name = self.key()?.value();
            let value = match &*name {
                b"params" if self.cursor.peek() == b'{' => self.noted(&mut fields.inside, false)?,
                b"result" if self.cursor.peek() == b'{' => self.noted(&mut fields.told, false)?,
                _ => self.value()?,
            };
            ids += usize::from(*name == *b"id");
            if let Some(slot) = fields.slot(&name) {
                slot.get_or_insert(value);
            }
            more = self.next_or_leave(Shape::Object)?;
        }
        if ids > 1 {
            // Answering one of two ids could settle somebody else's call.
            fields.id = None;
        }
        Ok(())
    }

    /// Passes `params`, `result` or its `_meta`, has the members noted, and returns the text.
    fn noted(&mut self, notes: &mut impl Note<'a>, is_meta: bool) -> Result<&'a str, Refused> {
        let start = self.cursor.at();
        let mut more = self.enter(Shape::Object)?;
        while more {
            let name = self.key()?.value();
            let value = match !is_meta && *name == *b"_meta" && self.cursor.peek() == b'{' {
                true => self.noted(notes, true)?,
                false => self.value()?,
            };
            notes.note(&name, value, is_meta);
            more = self.next_or_leave(Shape::Object)?;
        }
        Ok(self.cursor.since(start))
    }

    /// Passes one value of any shape and returns its text.
    fn value(&mut self) -> Result<&'a str, Refused> {
        let start = self.cursor.at();
        let floor = self.nesting.depth();
        loop {
            let mut more = match self.cursor.peek() {
                b'{' => self.enter(Shape::Object)?,
                b'[' => self.enter(Shape::Array)?,
                _ => self.scalar()?,
            };
            let shape = loop {
                let innermost = self.nesting.innermost().filter(|_| self.nesting.depth() > floor);
                let Some(shape) = innermost else { return Ok(self.cursor.since(start)) };
                if more {
                    break shape;
                }
                more = self.next_or_leave(shape)?;
            };
            if shape == Shape::Object {
                self.key()?;
            }
        }
    }

    /// Passes a scalar; there is nothing more in it.
    fn scalar(&mut self) -> Result<bool, Refused> {
        self.count()?;
        self.cursor.scalar()?;
        Ok(false)
    }

    /// Passes a key and its colon.
    fn key(&mut self) -> Result<Text<'a>, Refused> {
        if self.cursor.peek() != b'"' {
            return self.cursor.expected("expected a key");
        }
        let key = self.cursor.string()?;
        if self.cursor.token() != b':' {
            return self.cursor.expected("expected `:`");
        }
        self.cursor.pass(1);
        self.cursor.token();
        self.nesting.key(key);
        Ok(key)
    }

    /// Passes an opening bracket and tells whether anything is inside; if not, the end too.
    fn enter(&mut self, shape: Shape) -> Result<bool, Refused> {
        self.count()?;
        if self.nesting.depth() >= self.depth_limit {
            return self.cursor.fail(Reason::TooDeep);
        }
        self.cursor.pass(1);
        self.nesting.open(shape);
        let is_empty = self.cursor.token() == shape.closing();
        if is_empty {
            self.leave();
        }
        Ok(!is_empty)
    }

    /// Passes what follows a value in a container: a comma (`true`) or the end (`false`).
    fn next_or_leave(&mut self, shape: Shape) -> Result<bool, Refused> {
        let byte = self.cursor.token();
        if byte == b',' {
            self.cursor.pass(1);
            self.cursor.token();
            return Ok(true);
        }
        if byte != shape.closing() {
            return self.cursor.expected(match shape {
                Shape::Array => "expected `,` or `]`",
                Shape::Object => "expected `,` or `}`",
            });
        }
        self.leave();
        Ok(false)
    }

    fn leave(&mut self) {
        self.cursor.pass(1);
        self.repeated |= self.nesting.close();
    }

    fn count(&mut self) -> Result<(), Refused> {
        match self.nodes_left.checked_sub(1) {
            Some(left) => self.nodes_left = left,
            None => return self.cursor.fail(Reason::TooManyNodes),
        }
        Ok(())
    }
}

impl Shape {
    fn closing(self) -> u8 {
        match self {
            Self::Array => b']',
            Self::Object => b'}',
        }
    }
}

impl<'a> Fields<'a> {
    fn slot(&mut self, key: &[u8]) -> Option<&mut Option<&'a str>> {
        Some(match key {
            b"jsonrpc" => &mut self.jsonrpc,
            b"id" => &mut self.id,
            b"method" => &mut self.method,
            b"params" => &mut self.params,
            b"result" => &mut self.result,
            b"error" => &mut self.error,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    fn refusal(text: &str) -> ScanError {
        scan(text.as_bytes(), &Limits::default()).unwrap_err()
    }

    #[test]
    fn members_are_shown_as_they_stand_and_in_any_order() {
        let text = " {\"params\" : { \"a\" : [ 1 ] } ,\"id\":\"x\\u0041\",\n\"extra\":[],\"jsonrpc\":\"2.0\"} ";
        let expected = Fields {
            jsonrpc: Some("\"2.0\""),
            id: Some("\"x\\u0041\""),
            params: Some("{ \"a\" : [ 1 ] }"),
            is_object: true,
            inside: Inside { has_more: [true, false], ..Inside::default() },
            ..Fields::default()
        };
        assert_eq!(scan(text.as_bytes(), &Limits::default()), Ok(Frame::One(expected)));
    }

    #[test]
    fn a_refusal_says_in_plain_words_what_and_where() {
        assert_eq!(refusal("{\"jsonrpc\": }").to_string(), "expected a value at byte 12");
        assert_eq!(refusal("[1 2]").to_string(), "expected `,` or `]` at byte 3");
        assert_eq!(refusal("{\"a\":1,}").to_string(), "expected a key at byte 7");
        assert_eq!(refusal("{\"a\u{308}\"\0}").to_string(), "expected `:` at byte 6");
        assert_eq!(refusal("  ").to_string(), "expected a value but the message ends at byte 2");
    }

    #[test]
    fn limits_may_be_set_to_anything() {
        let none = Limits { depth: 0, nodes: 0, batch: 0 };
        assert_eq!(scan(b"1", &none).unwrap_err().reason, Reason::TooManyNodes);
        assert_eq!(scan(b"[]", &Limits { nodes: 1, ..none }).unwrap_err().reason, Reason::TooDeep);
        let single = Limits { nodes: 2, depth: 1, batch: 0 };
        assert_eq!(scan(b"[]", &single), Ok(Frame::Batch(Vec::new())));
        assert_eq!(scan(b"[1]", &single).unwrap_err().reason, Reason::BatchTooLong);
    }
}
