//! Reads arguments strictly: an object with the same name twice is refused.
//!
//! Programs read such an object differently. A policy that sees one of the two values while the tool sees the other
//! would decide about another call than the one that is made.

use creole_proto::wire::scan::{Frame, ScanLimits, scan};
use serde_json::Value;

/// The maximum size of arguments that rules see, in bytes.
const MAX_ARGUMENTS: usize = 64 << 10;

/// The arguments of a call, for rules.
///
/// # Errors
/// With the reason why rules cannot see them.
pub fn parse_arguments(text: &str) -> Result<Value, String> {
    if text.len() > MAX_ARGUMENTS {
        return Err(format!("the arguments are larger than {MAX_ARGUMENTS} bytes"));
    }
    match scan(text.as_bytes(), &ScanLimits::default()).map_err(|error| error.to_string())? {
        Frame::One(fields) if fields.repeated => Err("a name occurs twice in an object".to_owned()),
        _ => serde_json::from_str(text).map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_as_they_are_and_a_repeated_name_is_refused() {
        let text = r#"{"a":[1,-2,1.5,null,true,"x"],"b":{"c":18446744073709551615}}"#;
        assert_eq!(parse_arguments(text).unwrap(), serde_json::from_str::<Value>(text).unwrap());
        for text in [r#"{"a":1,"a":1}"#, r#"{"x":[{"a":1,"\u0061":2}]}"#] {
            assert!(parse_arguments(text).unwrap_err().contains("twice"), "{text}");
        }
        let long = format!("\"{}\"", "x".repeat(MAX_ARGUMENTS));
        assert!(parse_arguments(&long).unwrap_err().contains("larger"));
    }
}
