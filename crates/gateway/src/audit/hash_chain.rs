//! The hash chain of an audit log: each line contains the hash of the line before it.
//!
//! A sealed line ends with the members `prev` and `hash`, in this order. `hash` is the SHA-256 of the exact bytes of the
//! line without the member `hash`, so a change of any byte is found without knowing how the JSON is written. The lines
//! of a file form one chain, whichever process writes them. The lines of a process on stdout or at a collector form a chain too:
//! they name their `writer`, because the lines of several processes may be collected in one place.

use creole::internal::seal::digest;
use creole_proto::wire::hex;

/// The number of hexadecimal digits of a hash.
const HASH_DIGITS: usize = 64;
/// The number of hexadecimal digits of a writer's name.
const WRITER_DIGITS: usize = 16;

const PREV: &str = ",\"prev\":\"";
const HASH: &str = ",\"hash\":\"";
const WRITER: &str = ",\"writer\":\"";
const END: &str = "\"}";

/// A link of the chain: the hash of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ChainHash([u8; 32]);

impl ChainHash {
    /// The hash before the first line.
    pub(crate) const START: Self = Self([0; 32]);

    /// Reads 64 lower-case hexadecimal digits.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != HASH_DIGITS {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = (digit(pair[0])? << 4) | digit(pair[1])?;
        }
        Some(Self(bytes))
    }
}

impl std::fmt::Display for ChainHash {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&hex(&self.0))
    }
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

/// A line with the hash of its predecessor and its own hash. `line` is a JSON object with at least one member.
pub(crate) fn seal(line: &str, writer: Option<&str>, prev: ChainHash) -> (String, ChainHash) {
    let members = line.strip_suffix('}').unwrap_or(line);
    let mut sealed = String::with_capacity(line.len() + 2 * (HASH_DIGITS + PREV.len()) + 32);
    sealed.push_str(members);
    if let Some(writer) = writer {
        sealed.extend([WRITER, writer, "\""]);
    }
    sealed.extend([PREV, &prev.to_string(), END]);
    let hash = ChainHash(digest(sealed.as_bytes()));
    sealed.pop();
    sealed.extend([HASH, &hash.to_string(), END]);
    (sealed, hash)
}

/// The end of a sealed line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SealedLine<'a> {
    /// The line without the member `hash` and without the last brace.
    signed: &'a str,
    /// The writer, if the line names one.
    pub(crate) writer: Option<&'a str>,
    /// The hash of the line before.
    pub(crate) prev: ChainHash,
    /// The hash that the line states.
    pub(crate) hash: ChainHash,
}

impl<'a> SealedLine<'a> {
    /// The parts of a line, if it is sealed.
    pub(crate) fn parse(line: &'a str) -> Option<Self> {
        let (signed, hash) = last_member(line.strip_suffix(END)?, HASH, HASH_DIGITS)?;
        let hash = ChainHash::parse(hash)?;
        let (rest, prev) = last_member(signed.strip_suffix('"')?, PREV, HASH_DIGITS)?;
        let prev = ChainHash::parse(prev)?;
        let writer = rest.strip_suffix('"').and_then(|rest| {
            let (_, writer) = last_member(rest, WRITER, WRITER_DIGITS)?;
            writer.bytes().all(|byte| digit(byte).is_some()).then_some(writer)
        });
        Some(Self { signed, writer, prev, hash })
    }

    /// Whether the stated hash is that of the line.
    pub(crate) fn is_intact(&self) -> bool {
        let text = [self.signed, "}"].concat();
        ChainHash(digest(text.as_bytes())) == self.hash
    }
}

/// Splits off a member whose text value has a fixed length. `text` ends with the value.
fn last_member<'a>(text: &'a str, key: &str, digits: usize) -> Option<(&'a str, &'a str)> {
    let (rest, value) = text.split_at_checked(text.len().checked_sub(digits)?)?;
    Some((rest.strip_suffix(key)?, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_line_has_the_hash_of_the_line_before() {
        let (first, hash) = seal(r#"{"a":1}"#, None, ChainHash::START);
        let (second, _) = seal(r#"{"a":"}"}"#, Some("0123456789abcdef"), hash);
        let read = SealedLine::parse(&first).unwrap();
        assert_eq!((read.prev, read.hash, read.writer), (ChainHash::START, hash, None));
        let next = SealedLine::parse(&second).unwrap();
        assert_eq!((next.prev, next.writer), (hash, Some("0123456789abcdef")));
        assert!(read.is_intact() && next.is_intact());
        let value: serde_json::Value = serde_json::from_str(&second).unwrap();
        assert_eq!((&value["a"], &value["writer"]), (&"}".into(), &"0123456789abcdef".into()));
        assert_eq!(value["prev"], hash.to_string());
    }

    #[test]
    fn a_change_of_any_byte_is_found() {
        let (line, _) = seal(r#"{"principal":"ann","n":1.50}"#, None, ChainHash::START);
        for index in 0..line.len() {
            let mut bytes = line.clone().into_bytes();
            bytes[index] ^= 1;
            let Ok(changed) = String::from_utf8(bytes) else { continue };
            let is_intact = SealedLine::parse(&changed).is_some_and(|it| it.is_intact());
            assert!(!is_intact, "{changed}");
        }
    }

    #[test]
    fn other_texts_are_not_sealed() {
        let (line, _) = seal(r#"{"a":1}"#, None, ChainHash::START);
        let upper = line.replace("\"hash\":\"", "\"hash\":\"A");
        for text in ["", "{}", "}", r#"{"time":"x","lost":1}"#, "\u{20ac}\"}", &upper, &line[1..]] {
            assert!(SealedLine::parse(text).is_none_or(|it| !it.is_intact()), "{text}");
        }
    }
}
