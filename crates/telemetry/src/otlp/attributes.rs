//! Attributes, and the limits of their values.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};

/// The maximum length of a text that a client chose, in bytes.
const MAX_TEXT: usize = 1024;

/// The attributes of a span or a log record.
#[derive(Default)]
pub(super) struct Attributes(Vec<KeyValue>);

impl Attributes {
    /// Adds a text.
    pub(super) fn text(&mut self, key: &str, value: &str) {
        self.value(key, Value::StringValue(shorten(value, MAX_TEXT).to_owned()));
    }

    /// Adds a text, if there is one.
    pub(super) fn optional_text(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(key, value);
        }
    }

    /// Adds a number.
    pub(super) fn number(&mut self, key: &str, value: i64) {
        self.value(key, Value::IntValue(value));
    }

    /// Adds a value.
    pub(super) fn value(&mut self, key: &str, value: Value) {
        self.0.push(attribute(key, value));
    }

    /// All of them.
    pub(super) fn into_list(self) -> Vec<KeyValue> {
        self.0
    }
}

/// One attribute.
pub(super) fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

/// One attribute with a text.
pub(super) fn text_attribute(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::StringValue(value.to_owned()))
}

/// The start of a text, with at most this many bytes and without a divided character.
pub(super) fn shorten(text: &str, max_length: usize) -> &str {
    &text[..text.floor_char_boundary(max_length)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_shortened_between_characters() {
        assert_eq!(shorten("aé", 2), "a");
        assert_eq!(shorten("aé", 3), "aé");
        assert_eq!(shorten("", 2), "");
    }
}
