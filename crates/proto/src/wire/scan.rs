//! The scanner: validates the bytes of a message, or rejects them.
//!
//! It takes one pass, without recursion and without a tree. Accepted text is strict RFC 8259 in UTF-8 with bounded
//! depth and size, so other code may slice, splice and forward it unchanged.

use alloc::vec::Vec;

use super::cursor::{Cursor, CursorError, StringToken};
use super::nesting::{ContainerKind, Nesting};
use super::param_members::{MemberVisitor, ParamMembers};
use super::result_members::ResultMembers;
use super::scan_error::{ScanError, ScanErrorKind};

/// Validates `bytes` and finds the JSON-RPC members.
///
/// An array is a batch, possibly empty. Any other value is one message. The caller rejects it if it is not an object,
/// repeats a key, or has members of the wrong type.
pub fn scan<'a>(bytes: &'a [u8], limits: &ScanLimits) -> Result<Frame<'a>, ScanError> {
    let mut scanner = Scanner::new(decode_utf8(bytes)?, limits);
    scanner.frame(limits.max_batch).map_err(|CursorError| scanner.cursor.error())
}

/// Limits for one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanLimits {
    /// Maximum number of objects and arrays open at once.
    pub max_depth: usize,
    /// Maximum number of values, scalars and containers alike. Keys are not counted.
    pub max_nodes: usize,
    /// Maximum number of elements in a batch.
    pub max_batch: usize,
}

impl Default for ScanLimits {
    fn default() -> Self {
        Self { max_depth: 128, max_nodes: 200_000, max_batch: 100 }
    }
}

/// The content of one line or one body.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "the common variant is the large one, so it is not boxed"
)]
pub enum Frame<'a> {
    /// One message, or a value that is not a message.
    One(Fields<'a>),
    /// The elements of an array, in order.
    Batch(Vec<Fields<'a>>),
}

/// The raw JSON texts of the JSON-RPC members: `None` is absent, `Some("null")` is null.
///
/// Keys match exactly, including case, after unescaping. Other members are validated and ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields<'a> {
    /// The protocol marker, `"2.0"` in a valid message (2025-11-25 schema, `JSONRPCRequest`).
    pub jsonrpc: Option<&'a str>,
    /// The raw id; `None` also when the message has several.
    pub id: Option<&'a str>,
    /// The method, with its quotes.
    pub method: Option<&'a str>,
    /// The parameters of a request or notification.
    pub params: Option<&'a str>,
    /// The result of a response.
    pub result: Option<&'a str>,
    /// The error of a response.
    pub error: Option<&'a str>,
    /// Whether the value is an object.
    pub is_object: bool,
    /// Whether an object anywhere in this message repeats a key. Such a message must be rejected: only the first of the
    /// equal members is available here, and another reader may take the last.
    pub repeated: bool,
    /// The members of `params` that most methods read.
    pub param_members: ParamMembers<'a>,
    /// The members that `result` has.
    pub result_members: ResultMembers,
}

/// Checks that `text` is one JSON value. Returns whether an object in it repeats a key.
pub(super) fn scan_value(text: &str, limits: &ScanLimits) -> Result<bool, ScanError> {
    let mut scanner = Scanner::new(text, limits);
    scanner.scan_single_value().map_err(|CursorError| scanner.cursor.error())
}

/// Whether a value in valid text is nested deeper than `depth`.
pub(crate) fn is_nested_deeper_than(text: &str, depth: usize) -> bool {
    // Most values have fewer brackets than that.
    if text.bytes().filter(|byte| matches!(byte, b'{' | b'[')).take(depth + 1).count() <= depth {
        return false;
    }
    let limits = ScanLimits { max_depth: depth, max_nodes: usize::MAX, max_batch: usize::MAX };
    matches!(scan_value(text, &limits), Err(ScanError { kind: ScanErrorKind::TooDeep, .. }))
}

fn decode_utf8(bytes: &[u8]) -> Result<&str, ScanError> {
    if bytes.starts_with(b"\xef\xbb\xbf") {
        return Err(ScanError { kind: ScanErrorKind::ByteOrderMark, at: 0 });
    }
    simdutf8::basic::from_utf8(bytes).map_err(|_| {
        let offset =
            simdutf8::compat::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
        ScanError { kind: ScanErrorKind::NotUtf8, at: offset }
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
    fn new(text: &'a str, limits: &ScanLimits) -> Self {
        Self {
            cursor: Cursor::new(text),
            depth_limit: limits.max_depth,
            nodes_left: limits.max_nodes,
            nesting: Nesting::new(),
            repeated: false,
        }
    }

    fn frame(&mut self, batch_limit: usize) -> Result<Frame<'a>, CursorError> {
        let frame = match self.scan_start()? {
            b'[' => Frame::Batch(self.batch(batch_limit)?),
            _ => Frame::One(self.message()?),
        };
        self.scan_end()?;
        Ok(frame)
    }

    /// Scans a single value. Returns whether an object in it repeats a key.
    fn scan_single_value(&mut self) -> Result<bool, CursorError> {
        self.scan_start()?;
        self.value()?;
        self.scan_end()?;
        Ok(self.repeated)
    }

    fn scan_start(&mut self) -> Result<u8, CursorError> {
        let byte = self.cursor.skip_whitespace_and_peek();
        if self.cursor.is_at_end() { self.cursor.fail(ScanErrorKind::Empty) } else { Ok(byte) }
    }

    fn scan_end(&mut self) -> Result<(), CursorError> {
        self.cursor.skip_whitespace_and_peek();
        if self.cursor.is_at_end() { Ok(()) } else { self.cursor.fail(ScanErrorKind::Trailing) }
    }

    fn batch(&mut self, limit: usize) -> Result<Vec<Fields<'a>>, CursorError> {
        let mut messages = Vec::new();
        let mut more = self.enter(ContainerKind::Array)?;
        while more {
            if messages.len() == limit {
                return self.cursor.fail(ScanErrorKind::BatchTooLong);
            }
            messages.push(self.message()?);
            more = self.next_or_leave(ContainerKind::Array)?;
        }
        Ok(messages)
    }

    fn message(&mut self) -> Result<Fields<'a>, CursorError> {
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

    fn members(&mut self, fields: &mut Fields<'a>) -> Result<(), CursorError> {
        let mut ids = 0;
        fields.is_object = true;
        let mut more = self.enter(ContainerKind::Object)?;
        while more {
            let name = self.key()?.value();
            let value = match &*name {
                b"params" if self.cursor.peek() == b'{' => {
                    self.visit_members(&mut fields.param_members, false)?
                }
                b"result" if self.cursor.peek() == b'{' => {
                    self.visit_members(&mut fields.result_members, false)?
                }
                _ => self.value()?,
            };
            ids += usize::from(*name == *b"id");
            if let Some(slot) = fields.slot(&name) {
                slot.get_or_insert(value);
            }
            more = self.next_or_leave(ContainerKind::Object)?;
        }
        if ids > 1 {
            // A response to one of two ids could complete an unrelated call.
            fields.id = None;
        }
        Ok(())
    }

    /// Scans `params`, `result` or its `_meta`, reports the members to the visitor, and returns the text.
    fn visit_members(
        &mut self,
        notes: &mut impl MemberVisitor<'a>,
        is_meta: bool,
    ) -> Result<&'a str, CursorError> {
        let start = self.cursor.offset();
        let mut more = self.enter(ContainerKind::Object)?;
        while more {
            let name = self.key()?.value();
            let value = match !is_meta && *name == *b"_meta" && self.cursor.peek() == b'{' {
                true => self.visit_members(notes, true)?,
                false => self.value()?,
            };
            notes.visit_member(&name, value, is_meta);
            more = self.next_or_leave(ContainerKind::Object)?;
        }
        Ok(self.cursor.since(start))
    }

    /// Scans one value of any kind and returns its text.
    fn value(&mut self) -> Result<&'a str, CursorError> {
        let start = self.cursor.offset();
        let floor = self.nesting.depth();
        loop {
            let mut more = match self.cursor.peek() {
                b'{' => self.enter(ContainerKind::Object)?,
                b'[' => self.enter(ContainerKind::Array)?,
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
            if shape == ContainerKind::Object {
                self.key()?;
            }
        }
    }

    /// Scans a scalar, which contains no further values.
    fn scalar(&mut self) -> Result<bool, CursorError> {
        self.count_node()?;
        self.cursor.scalar()?;
        Ok(false)
    }

    /// Scans a key and its colon.
    fn key(&mut self) -> Result<StringToken<'a>, CursorError> {
        if self.cursor.peek() != b'"' {
            return self.cursor.expected("expected a key");
        }
        let key = self.cursor.string()?;
        if self.cursor.skip_whitespace_and_peek() != b':' {
            return self.cursor.expected("expected `:`");
        }
        self.cursor.advance(1);
        self.cursor.skip_whitespace_and_peek();
        self.nesting.key(key);
        Ok(key)
    }

    /// Scans an opening bracket. Returns whether the container has content; if not, its end is scanned too.
    fn enter(&mut self, shape: ContainerKind) -> Result<bool, CursorError> {
        self.count_node()?;
        if self.nesting.depth() >= self.depth_limit {
            return self.cursor.fail(ScanErrorKind::TooDeep);
        }
        self.cursor.advance(1);
        self.nesting.open(shape);
        let is_empty = self.cursor.skip_whitespace_and_peek() == shape.closing();
        if is_empty {
            self.leave();
        }
        Ok(!is_empty)
    }

    /// Scans the token after a value in a container: a comma (`true`) or the end (`false`).
    fn next_or_leave(&mut self, shape: ContainerKind) -> Result<bool, CursorError> {
        let byte = self.cursor.skip_whitespace_and_peek();
        if byte == b',' {
            self.cursor.advance(1);
            self.cursor.skip_whitespace_and_peek();
            return Ok(true);
        }
        if byte != shape.closing() {
            return self.cursor.expected(match shape {
                ContainerKind::Array => "expected `,` or `]`",
                ContainerKind::Object => "expected `,` or `}`",
            });
        }
        self.leave();
        Ok(false)
    }

    fn leave(&mut self) {
        self.cursor.advance(1);
        self.repeated |= self.nesting.close();
    }

    fn count_node(&mut self) -> Result<(), CursorError> {
        match self.nodes_left.checked_sub(1) {
            Some(remaining) => self.nodes_left = remaining,
            None => return self.cursor.fail(ScanErrorKind::TooManyNodes),
        }
        Ok(())
    }
}

impl ContainerKind {
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
        scan(text.as_bytes(), &ScanLimits::default()).unwrap_err()
    }

    #[test]
    fn members_are_shown_as_they_stand_and_in_any_order() {
        let text = " {\"params\" : { \"a\" : [ 1 ] } ,\"id\":\"x\\u0041\",\n\"extra\":[],\"jsonrpc\":\"2.0\"} ";
        let expected = Fields {
            jsonrpc: Some("\"2.0\""),
            id: Some("\"x\\u0041\""),
            params: Some("{ \"a\" : [ 1 ] }"),
            is_object: true,
            param_members: ParamMembers { has_extra: [true, false], ..ParamMembers::default() },
            ..Fields::default()
        };
        assert_eq!(scan(text.as_bytes(), &ScanLimits::default()), Ok(Frame::One(expected)));
    }

    #[test]
    fn an_error_names_the_problem_and_its_position() {
        assert_eq!(refusal("{\"jsonrpc\": }").to_string(), "expected a value at byte 12");
        assert_eq!(refusal("[1 2]").to_string(), "expected `,` or `]` at byte 3");
        assert_eq!(refusal("{\"a\":1,}").to_string(), "expected a key at byte 7");
        assert_eq!(refusal("{\"a\u{308}\"\0}").to_string(), "expected `:` at byte 6");
        assert_eq!(refusal("  ").to_string(), "expected a value but the message ends at byte 2");
    }

    #[test]
    fn limits_may_be_set_to_anything() {
        let none = ScanLimits { max_depth: 0, max_nodes: 0, max_batch: 0 };
        assert_eq!(scan(b"1", &none).unwrap_err().kind, ScanErrorKind::TooManyNodes);
        assert_eq!(
            scan(b"[]", &ScanLimits { max_nodes: 1, ..none }).unwrap_err().kind,
            ScanErrorKind::TooDeep
        );
        let single = ScanLimits { max_nodes: 2, max_depth: 1, max_batch: 0 };
        assert_eq!(scan(b"[]", &single), Ok(Frame::Batch(Vec::new())));
        assert_eq!(scan(b"[1]", &single).unwrap_err().kind, ScanErrorKind::BatchTooLong);
    }
}
