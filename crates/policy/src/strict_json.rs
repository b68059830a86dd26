//! Reads arguments strictly: an object with the same name twice is refused.
//!
//! Programs read such an object differently. A policy that sees one of the two values while the tool sees the other
//! would decide about another call than the one that is made.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

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
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = StrictValue.deserialize(&mut deserializer).map_err(|error| error.to_string())?;
    deserializer.end().map_err(|error| error.to_string())?;
    Ok(value)
}

struct StrictValue;

impl<'de> DeserializeSeed<'de> for StrictValue {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictValue {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(value) = access.next_element_seed(Self)? {
            all.push(value);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = access.next_key::<String>()? {
            let value = access.next_value_seed(Self)?;
            if members.insert(name, value).is_some() {
                return Err(A::Error::custom("a name occurs twice in an object"));
            }
        }
        Ok(Value::Object(members))
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
