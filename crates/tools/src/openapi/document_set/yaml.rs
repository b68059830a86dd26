//! Reads YAML as JSON values, within limits.
//!
//! Plain scalars are read by the core schema of YAML 1.2, so that `no` is a text. Each use of an alias counts towards
//! the limit. A repeated key is rejected, because readers differ on which one counts.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, Span, Tag};
use serde_json::{Map, Number, Value};

/// Maximum number of values in a text, including those of aliases.
const MAX_VALUES: usize = 2_000_000;
/// Maximum nesting depth, the same as for JSON.
const MAX_DEPTH: usize = 127;

/// Parses a text.
///
/// # Errors
/// The error and its line.
pub(crate) fn read(text: &str) -> Result<Value, String> {
    let mut builder = YamlBuilder::default();
    for next in Parser::new_from_str(text) {
        let (event, span) = next.map_err(|error| {
            let marker = error.marker();
            format!("line {}, column {}: {}", marker.line(), marker.col() + 1, error.info())
        })?;
        let line = |message: String| format!("line {}: {message}", span_line(&span));
        builder.handle_event(event).map_err(line)?;
    }
    builder.done.ok_or_else(|| "the document is empty".to_owned())
}

fn span_line(span: &Span) -> usize {
    span.start.line()
}

/// A value under construction.
enum OpenNode {
    List(Vec<Value>),
    /// Members, the key that waits for its value, and the values of `<<`.
    Members(Map<String, Value>, Option<MappingKey>, Vec<Value>),
}

enum MappingKey {
    Name(String),
    Merge,
}

#[derive(Default)]
struct YamlBuilder {
    /// The open values, each with its anchor id and the number of values at its start.
    open: Vec<(OpenNode, usize, usize)>,
    anchors: HashMap<usize, (Value, usize)>,
    values: usize,
    done: Option<Value>,
}

impl YamlBuilder {
    fn handle_event(&mut self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::DocumentStart(..) if self.done.is_some() => {
                Err("a second document begins here".to_owned())
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.count(1)?;
                match self.awaits_key() {
                    // `<<` in quotes is an ordinary key.
                    true if text == "<<" && style == ScalarStyle::Plain => {
                        self.key(MappingKey::Merge)
                    }
                    true => self.key(MappingKey::Name(text.into_owned())),
                    false => {
                        let value = scalar(&text, style, tag.as_deref());
                        self.store_anchor(anchor, &value, 1);
                        self.push_value(value)
                    }
                }
            }
            Event::SequenceStart(_, anchor, _) => self.begin(OpenNode::List(Vec::new()), anchor),
            Event::MappingStart(_, anchor, _) => {
                self.begin(OpenNode::Members(Map::new(), None, Vec::new()), anchor)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => {
                let Some((value, values)) = self.anchors.get(&anchor).cloned() else {
                    return Err("an alias refers to a value that contains it".to_owned());
                };
                self.count(values)?;
                match (self.awaits_key(), value) {
                    (true, Value::String(name)) => self.key(MappingKey::Name(name)),
                    (true, _) => Err("a key is not a string".to_owned()),
                    (false, value) => self.push_value(value),
                }
            }
            _ => Ok(()),
        }
    }

    fn count(&mut self, values: usize) -> Result<(), String> {
        self.values = self.values.saturating_add(values);
        match self.values <= MAX_VALUES {
            true => Ok(()),
            false => {
                Err(format!("the document has more than {MAX_VALUES} values, including aliases"))
            }
        }
    }

    fn awaits_key(&self) -> bool {
        matches!(self.open.last(), Some((OpenNode::Members(_, None, _), ..)))
    }

    fn key(&mut self, key: MappingKey) -> Result<(), String> {
        let Some((OpenNode::Members(members, waiting, _), ..)) = self.open.last_mut() else {
            return Ok(());
        };
        match &key {
            MappingKey::Name(name) if members.contains_key(name) => {
                Err(format!("the key `{name}` is repeated"))
            }
            _ => {
                *waiting = Some(key);
                Ok(())
            }
        }
    }

    fn begin(&mut self, value: OpenNode, anchor: usize) -> Result<(), String> {
        if self.awaits_key() {
            return Err("a key is not a string".to_owned());
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(format!("the document is nested deeper than {MAX_DEPTH} levels"));
        }
        self.count(1)?;
        self.open.push((value, anchor, self.values));
        Ok(())
    }

    fn end(&mut self) -> Result<(), String> {
        let Some((open, anchor, before)) = self.open.pop() else { return Ok(()) };
        let value = match open {
            OpenNode::List(items) => Value::Array(items),
            OpenNode::Members(mut members, _, merged) => {
                for other in merged {
                    merge(&mut members, other)?;
                }
                Value::Object(members)
            }
        };
        self.store_anchor(anchor, &value, self.values - before + 1);
        self.push_value(value)
    }

    fn store_anchor(&mut self, anchor: usize, value: &Value, values: usize) {
        if anchor != 0 {
            self.anchors.insert(anchor, (value.clone(), values));
        }
    }

    fn push_value(&mut self, value: Value) -> Result<(), String> {
        match self.open.last_mut() {
            None => self.done = Some(value),
            Some((OpenNode::List(items), ..)) => items.push(value),
            Some((OpenNode::Members(members, waiting, merged), ..)) => match waiting.take() {
                Some(MappingKey::Name(name)) => {
                    members.insert(name, value);
                }
                Some(MappingKey::Merge) => merged.push(value),
                None => return Err("a key is not a string".to_owned()),
            },
        }
        Ok(())
    }
}

/// Merges the members of another value. Existing members take precedence.
fn merge(members: &mut Map<String, Value>, other: Value) -> Result<(), String> {
    match other {
        Value::Object(other) => {
            for (key, value) in other {
                members.entry(key).or_insert(value);
            }
            Ok(())
        }
        Value::Array(others) if others.iter().all(Value::is_object) => {
            others.into_iter().try_for_each(|other| merge(members, other))
        }
        _ => Err("`<<` refers to a value that is not a mapping".to_owned()),
    }
}

/// The value of a scalar.
fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    let is_text = match tag {
        Some(tag) => tag.core_suffix() == Some("str"),
        None => style != ScalarStyle::Plain,
    };
    if is_text {
        return Value::from(text);
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => number(text).map_or_else(|| Value::from(text), Value::Number),
    }
}

fn number(text: &str) -> Option<Number> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if let Some(octal) = text.strip_prefix("0o") {
        return u64::from_str_radix(octal, 8).ok().map(Number::from);
    }
    if let Some(hexadecimal) = text.strip_prefix("0x") {
        return u64::from_str_radix(hexadecimal, 16).ok().map(Number::from);
    }
    let is_number = digits.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        && digits.contains(|character: char| character.is_ascii_digit())
        && digits.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    if !is_number {
        return None;
    }
    let plain = text.strip_prefix('+').unwrap_or(text);
    let whole = || plain.parse::<i64>().map(Number::from).ok();
    let large = || plain.parse::<u64>().map(Number::from).ok();
    whole().or_else(large).or_else(|| plain.parse::<f64>().ok().and_then(Number::from_f64))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keywords_follow_the_core_schema() {
        let text = "a: no\nb: yes\nc: true\nd: ~\ne: 010\nf: 1.5\ng: '1'\nh: 1.2.3\ni: 0x1F\nj: -7\nk: 2020-01-01\n\
                    l: .5\nm: 1e3\nn:\no: !!str 1\np: +1\n200: ok\nnull: x\n";
        let expected = json!({
            "a": "no", "b": "yes", "c": true, "d": null, "e": 10, "f": 1.5, "g": "1", "h": "1.2.3", "i": 31, "j": -7,
            "k": "2020-01-01", "l": 0.5, "m": 1000.0, "n": null, "o": "1", "p": 1, "200": "ok", "null": "x",
        });
        assert_eq!(read(text).unwrap(), expected);
    }

    #[test]
    fn blocks_lists_and_aliases_are_resolved() {
        let text =
            "base: &base {a: 1, b: 2}\nown:\n  <<: *base\n  b: 3\nlist:\n- *base\n- |\n  x\n  y\n";
        let expected = json!({
            "base": { "a": 1, "b": 2 }, "own": { "a": 1, "b": 3 }, "list": [{ "a": 1, "b": 2 }, "x\ny\n"],
        });
        assert_eq!(read(text).unwrap(), expected);
        assert_eq!(read("{\"a\": [1, \"b\"]}").unwrap(), json!({ "a": [1, "b"] }));
    }

    #[test]
    fn ambiguous_values_are_refused() {
        let told = |text: &str| read(text).unwrap_err();
        assert_eq!(told("a: 1\nb: 2\na: 3"), "line 3: the key `a` is repeated");
        assert_eq!(told(""), "the document is empty");
        assert_eq!(told("a: 1\n---\nb: 2"), "line 2: a second document begins here");
        assert_eq!(told("? [a]\n: 1"), "line 1: a key is not a string");
        assert_eq!(told("a: &x\n  b: *x"), "line 2: an alias refers to a value that contains it");
        assert!(told("a: [1, 2").starts_with("line "), "{}", told("a: [1, 2"));
        assert!(told("a: *no").starts_with("line 1"));
    }

    #[test]
    fn a_bomb_of_aliases_is_not_set_off() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let before = format!("*a{}", level - 1);
            text += &format!("a{level}: &a{level} [{}]\n", vec![before; 10].join(", "));
        }
        assert!(read(&text).unwrap_err().ends_with("including aliases"));
        let deep = format!("{}{}", "[".repeat(3000), "]".repeat(3000));
        assert!(read(&deep).is_err());
    }
}
