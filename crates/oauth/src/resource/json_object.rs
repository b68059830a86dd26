//! JSON objects of tokens and issuers, read strictly.

use creole_proto::wire::scan::{Frame, ScanLimits, scan};
use serde_json::{Map, Value};

/// Objects and arrays may be nested this deep, and a document has at most this many values.
const LIMITS: ScanLimits = ScanLimits { max_depth: 16, max_nodes: 1_000, max_batch: 1 };

/// Reads an object. `None` if it is something else, is longer than `max_bytes`, or repeats a name anywhere: two readers
/// of one document must not see different values.
pub(super) fn parse(bytes: &[u8], max_bytes: usize) -> Option<Map<String, Value>> {
    if bytes.len() > max_bytes {
        return None;
    }
    match scan(bytes, &LIMITS).ok()? {
        Frame::One(fields) if fields.is_object && !fields.repeated => {
            serde_json::from_slice(bytes).ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn only_strict_objects_are_read() {
        assert!(parse(br#"{"a":{"b":[1,"c"]}}"#, 100).is_some());
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(16), "]".repeat(16));
        let many = format!("{{\"a\":[{}0]}}", "0,".repeat(1_000));
        let texts = [
            "",
            "[]",
            "[{}]",
            "1",
            "{\"a\":1,\"a\":2}",
            "{\"a\":{\"b\":1,\"b\":1}}",
            "{\"a\":1,\"\\u0061\":2}",
            "{\"a\":1}x",
            "{'a':1}",
            &deep,
        ];
        for text in texts {
            assert_eq!(parse(text.as_bytes(), 1_000), None, "{text}");
        }
        assert_eq!(parse(many.as_bytes(), 100_000), None);
        assert_eq!(parse(b"{\"a\":\"\xff\"}", 100), None);
        assert_eq!(parse(b"{\"a\":1}", 6), None);
    }
}
