//! A position in JSON text, with the strict lexical rules of RFC 8259.

use alloc::borrow::Cow;

use super::scan_error::{ScanError, ScanErrorKind};
use super::text::{Escape, plain_run, unescape};

/// Reads one token after the other and rejects text that violates the grammar.
pub(super) struct Cursor<'a> {
    text: &'a str,
    /// The unread part of `text`.
    rest: &'a [u8],
    error_kind: Option<ScanErrorKind>,
}

/// The text was rejected. The cursor stores the reason.
///
/// The error itself is empty because small return values are faster.
pub(super) struct CursorError;

/// A string token without its quotes, and whether it contains escapes.
#[derive(Clone, Copy)]
pub(super) struct StringToken<'a> {
    pub(super) body: &'a [u8],
    pub(super) escaped: bool,
}

impl<'a> StringToken<'a> {
    /// The value of the string, as bytes.
    pub(super) fn value(self) -> Cow<'a, [u8]> {
        let unescaped = || unescape(core::str::from_utf8(self.body).ok()?);
        match self.escaped.then(unescaped).flatten() {
            Some(value) => Cow::Owned(value.into_bytes()),
            None => Cow::Borrowed(self.body),
        }
    }
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, rest: text.as_bytes(), error_kind: None }
    }

    pub(super) fn offset(&self) -> usize {
        self.text.len() - self.rest.len()
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// The text from `start`, an earlier position between two tokens, to the current one.
    pub(super) fn since(&self, start: usize) -> &'a str {
        &self.text[start..self.offset()]
    }

    /// The current byte, or [`END`].
    pub(super) fn peek(&self) -> u8 {
        self.rest.first().copied().unwrap_or(END)
    }

    /// Skips `count` bytes that were already checked.
    pub(super) fn advance(&mut self, count: usize) {
        if let Some(rest) = self.rest.get(count..) {
            self.rest = rest;
        }
    }

    /// Skips whitespace, usually none, and returns the byte after it.
    pub(super) fn skip_whitespace_and_peek(&mut self) -> u8 {
        let byte = self.peek();
        if byte > b' ' { byte } else { self.space() }
    }

    #[inline(never)]
    fn space(&mut self) -> u8 {
        while let b' ' | b'\n' | b'\r' | b'\t' = self.peek() {
            self.advance(1);
        }
        self.peek()
    }

    #[cold]
    pub(super) fn fail<T>(&mut self, reason: ScanErrorKind) -> Result<T, CursorError> {
        self.error_kind = Some(reason);
        Err(CursorError)
    }

    #[cold]
    pub(super) fn expected<T>(&mut self, description: &'static str) -> Result<T, CursorError> {
        self.fail(ScanErrorKind::Syntax(description))
    }

    /// The reason and the position of the rejection.
    pub(super) fn error(&self) -> ScanError {
        ScanError { kind: self.error_kind.unwrap_or(ScanErrorKind::Empty), at: self.offset() }
    }

    /// Skips a string, a number, `true`, `false` or `null`.
    pub(super) fn scalar(&mut self) -> Result<(), CursorError> {
        match self.peek() {
            b'"' => self.string().map(drop),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.literal("true"),
            b'f' => self.literal("false"),
            b'n' => self.literal("null"),
            _ => self.expected("expected a value"),
        }
    }

    /// Skips a string, starting at its opening quote.
    // Inlined, because the return value would otherwise stall on its way through memory.
    #[inline(always)]
    pub(super) fn string(&mut self) -> Result<StringToken<'a>, CursorError> {
        self.advance(1);
        let body = self.rest;
        self.advance(plain_run(body));
        let escaped = self.peek() != b'"';
        if escaped {
            self.escapes()?;
        }
        let length = body.len() - self.rest.len();
        self.advance(1);
        Ok(StringToken { body: &body[..length], escaped })
    }

    /// Skips the rest of a string up to its closing quote, starting at the first byte that is not plain.
    #[inline(never)]
    fn escapes(&mut self) -> Result<(), CursorError> {
        while self.peek() != b'"' {
            if self.is_at_end() {
                return self.expected("expected the end of a string");
            }
            if self.peek() != b'\\' {
                return self.expected("expected no control character in a string");
            }
            match Escape::read(self.rest) {
                Ok(escape) => self.advance(escape.length),
                Err(reason) => return self.fail(reason),
            }
            self.advance(plain_run(self.rest));
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), CursorError> {
        if self.peek() == b'-' {
            self.advance(1);
        }
        if self.peek() == b'0' {
            self.advance(1);
            if self.peek().is_ascii_digit() {
                return self.expected("expected no digit after a leading zero");
            }
        } else {
            self.digits()?;
        }
        if self.peek() == b'.' {
            self.advance(1);
            self.digits()?;
        }
        if let b'e' | b'E' = self.peek() {
            self.advance(1);
            if let b'+' | b'-' = self.peek() {
                self.advance(1);
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), CursorError> {
        let count = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return self.expected("expected a digit");
        }
        self.advance(count);
        Ok(())
    }

    fn literal(&mut self, word: &'static str) -> Result<(), CursorError> {
        match self.rest.strip_prefix(word.as_bytes()) {
            Some(rest) => self.rest = rest,
            None => return self.expected("expected a value"),
        }
        Ok(())
    }
}

/// Represents the end of the text. A NUL in the text looks the same, but no grammar rule allows one, so only the check
/// for trailing bytes has to distinguish them.
const END: u8 = 0;
