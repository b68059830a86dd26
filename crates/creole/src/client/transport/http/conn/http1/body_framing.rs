//! Tracks the rest of a response's body, by the three framings of HTTP/1.1 (RFC 9112, 6.3).

use std::io;

/// Maximum overhead of a chunked body: chunk extensions and trailers.
const MAX_OVERHEAD: u32 = 16 * 1024;

/// The rest of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFraming {
    /// This many bytes.
    Length(u64),
    /// Chunks, each preceded by its size.
    Chunks(ChunkedBody),
    /// Everything until the connection closes.
    UntilClosed,
}

/// A chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkedBody {
    state: ChunkState,
    /// How much more overhead is allowed.
    overhead_left: u32,
}

/// The position within a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkState {
    /// In the digits of a size, after this many.
    Size {
        size: u64,
        digits: u32,
    },
    /// Behind the digits, where extensions may be.
    Extension {
        size: u64,
    },
    /// Before the newline that ends the size line.
    SizeEnd {
        size: u64,
    },
    /// In a chunk with this many bytes left.
    Data(u64),
    /// Before the two bytes that end a chunk.
    DataReturn,
    DataEnd,
    /// In a trailer line; whether it is non-empty.
    Trailer {
        is_empty: bool,
    },
    /// Before the newline that ends a trailer line.
    TrailerEnd {
        is_empty: bool,
    },
    Finished,
}

impl BodyFraming {
    /// An empty rest.
    pub(crate) const EMPTY: Self = Self::Length(0);

    /// A chunked body at its start.
    pub(crate) const CHUNKED: Self = Self::Chunks(ChunkedBody {
        state: ChunkState::Size { size: 0, digits: 0 },
        overhead_left: MAX_OVERHEAD,
    });

    /// Whether the body is complete.
    pub(crate) fn is_finished(&self) -> bool {
        match self {
            Self::Length(length) => *length == 0,
            Self::Chunks(chunks) => chunks.state == ChunkState::Finished,
            Self::UntilClosed => false,
        }
    }

    /// The length of the rest, if it is known.
    pub(crate) fn length(&self) -> Option<u64> {
        match self {
            Self::Length(length) => Some(*length),
            _ => None,
        }
    }

    /// Consumes received bytes and appends those of the body. Returns how many were consumed: all, unless the body ends
    /// before.
    pub(crate) fn take(&mut self, bytes: &[u8], buffer: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Self::Length(length) => {
                let count = min_len(bytes, *length);
                buffer.extend_from_slice(&bytes[..count]);
                *length -= count as u64;
                Ok(count)
            }
            Self::Chunks(chunks) => chunks.take(bytes, buffer),
            Self::UntilClosed => {
                buffer.extend_from_slice(bytes);
                Ok(bytes.len())
            }
        }
    }
}

impl ChunkedBody {
    fn take(&mut self, bytes: &[u8], buffer: &mut Vec<u8>) -> io::Result<usize> {
        let mut taken = 0;
        while taken < bytes.len() && self.state != ChunkState::Finished {
            if let ChunkState::Data(remaining) = self.state {
                let count = min_len(&bytes[taken..], remaining);
                buffer.extend_from_slice(&bytes[taken..taken + count]);
                taken += count;
                self.state = match remaining - count as u64 {
                    0 => ChunkState::DataReturn,
                    remaining => ChunkState::Data(remaining),
                };
            } else {
                self.state = self.step(bytes[taken]).ok_or_else(malformed)?;
                taken += 1;
            }
        }
        Ok(taken)
    }

    /// The state after the next byte, which is not part of the body.
    fn step(&mut self, byte: u8) -> Option<ChunkState> {
        Some(match (self.state, byte) {
            (ChunkState::Size { size, digits: digits @ 0..16 }, byte)
                if byte.is_ascii_hexdigit() =>
            {
                let digit = char::from(byte).to_digit(16)?;
                ChunkState::Size { size: size << 4 | u64::from(digit), digits: digits + 1 }
            }
            (ChunkState::Size { digits: 0, .. }, _) => return None,
            (ChunkState::Size { size, .. } | ChunkState::Extension { size }, b'\r') => {
                ChunkState::SizeEnd { size }
            }
            (ChunkState::Size { size, .. }, b';' | b' ' | b'\t') => ChunkState::Extension { size },
            (ChunkState::Extension { size }, byte) if byte != b'\n' => {
                self.count_overhead(ChunkState::Extension { size })?
            }
            (ChunkState::SizeEnd { size: 0 }, b'\n') => ChunkState::Trailer { is_empty: true },
            (ChunkState::SizeEnd { size }, b'\n') => ChunkState::Data(size),
            (ChunkState::DataReturn, b'\r') => ChunkState::DataEnd,
            (ChunkState::DataEnd, b'\n') => ChunkState::Size { size: 0, digits: 0 },
            (ChunkState::Trailer { is_empty }, b'\r') => ChunkState::TrailerEnd { is_empty },
            (ChunkState::Trailer { .. }, byte) if byte != b'\n' => {
                self.count_overhead(ChunkState::Trailer { is_empty: false })?
            }
            (ChunkState::TrailerEnd { is_empty: true }, b'\n') => ChunkState::Finished,
            (ChunkState::TrailerEnd { is_empty: false }, b'\n') => {
                ChunkState::Trailer { is_empty: true }
            }
            _ => return None,
        })
    }

    /// Counts one byte of overhead.
    fn count_overhead(&mut self, next: ChunkState) -> Option<ChunkState> {
        self.overhead_left = self.overhead_left.checked_sub(1)?;
        Some(next)
    }
}

fn min_len(bytes: &[u8], length: u64) -> usize {
    usize::try_from(length).map_or(bytes.len(), |length| length.min(bytes.len()))
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the chunks of the body are malformed")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The body, and how much of the text was consumed, in pieces of any size.
    fn taken(mut rest: BodyFraming, text: &str, step: usize) -> io::Result<(String, usize, bool)> {
        let (mut body, mut taken) = (Vec::new(), 0);
        for piece in text.as_bytes().chunks(step) {
            taken += rest.take(piece, &mut body)?;
        }
        Ok((String::from_utf8(body).unwrap(), taken, rest.is_finished()))
    }

    #[test]
    fn a_body_ends_where_its_length_or_its_last_piece_says() {
        let rows = [
            (BodyFraming::Length(3), "abc", "abc", 3, true),
            (BodyFraming::Length(3), "abcd", "abc", 3, true),
            (BodyFraming::Length(5), "abcd", "abcd", 4, false),
            (BodyFraming::UntilClosed, "abc", "abc", 3, false),
            (BodyFraming::CHUNKED, "3\r\nabc\r\n0\r\n\r\n", "abc", 13, true),
            (BodyFraming::CHUNKED, "3\r\nabc\r\n0\r\n\r\nrest", "abc", 13, true),
            (
                BodyFraming::CHUNKED,
                "02;a=b\r\nab\r\nA \r\n0123456789\r\n",
                "ab0123456789",
                28,
                false,
            ),
            (BodyFraming::CHUNKED, "1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n", "x", 23, true),
            (BodyFraming::CHUNKED, "0\r\n\r\n", "", 5, true),
        ];
        for (rest, text, body, count, is_over) in rows {
            for step in 1..=text.len() {
                let found = taken(rest, text, step).unwrap();
                assert_eq!((&*found.0, found.1, found.2), (body, count, is_over), "{text}");
            }
        }
    }

    #[test]
    fn a_body_that_two_parsers_could_read_differently_is_refused() {
        let long = format!("1;{}\r\nx\r\n", "a".repeat(20_000));
        let rows = [
            "\r\n",
            "g\r\n",
            "-1\r\n",
            "+1\r\n",
            "0x1\r\n",
            "1\nx",
            "1\r\nxy",
            "1\r\nx\n",
            "1;\n",
            "11111111111111111\r\n",
            "0\r\n\n",
            "0\r\nA: b\n",
            "1\rx",
            &long,
        ];
        for text in rows {
            assert!(taken(BodyFraming::CHUNKED, text, text.len()).is_err(), "{text}");
        }
    }
}
