//! Why the scanner rejects a message.

use core::fmt;

/// The reason and the position of a rejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanError {
    /// The violated rule.
    pub kind: ScanErrorKind,
    /// The offset of the byte at which the violation was detected.
    pub at: usize,
}

impl fmt::Display for ScanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.kind, self.at)
    }
}

impl core::error::Error for ScanError {}

/// A rule of the scanner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanErrorKind {
    /// There is only whitespace.
    Empty,
    /// A byte order mark precedes the value (RFC 8259, 8.1).
    ByteOrderMark,
    /// The bytes are not UTF-8 (RFC 8259, 8.1).
    NotUtf8,
    /// The grammar requires something else here.
    Syntax(&'static str),
    /// An escape is one half of a surrogate pair, which is not a character.
    LoneSurrogate,
    /// More text follows the value.
    Trailing,
    /// More containers are open than [`ScanLimits::max_depth`](crate::wire::ScanLimits::max_depth).
    TooDeep,
    /// There are more values than [`ScanLimits::max_nodes`](crate::wire::ScanLimits::max_nodes).
    TooManyNodes,
    /// There are more elements than [`ScanLimits::max_batch`](crate::wire::ScanLimits::max_batch).
    BatchTooLong,
}

impl ScanErrorKind {
    /// Whether the bytes are not JSON (-32700); otherwise they are JSON that exceeds a limit (-32600; JSON-RPC 2.0,
    /// section 5.1).
    pub fn is_syntax(self) -> bool {
        !matches!(self, Self::TooDeep | Self::TooManyNodes | Self::BatchTooLong)
    }
}

impl fmt::Display for ScanErrorKind {
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
