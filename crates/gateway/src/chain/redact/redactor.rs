//! What is taken out of texts and data: what matches a pattern, and what stands at a place.

use std::borrow::Cow;

use creole_proto::wire::Raw;
use regex::Regex;
use serde_json::Value;

/// Members whose strings are no texts: bytes in base64, and words of the protocol.
const NO_TEXTS: [&str; 5] = ["data", "blob", "type", "mimeType", "role"];

/// What is taken out of texts and data.
#[derive(Clone, Debug)]
pub struct Redactor {
    patterns: Vec<Regex>,
    /// Places in data: keys or indices, `*` for any.
    pointers: Vec<Vec<String>>,
    replacement: String,
}

impl Redactor {
    /// What matches a pattern in any text, and what stands at a JSON pointer, in which `*` is any key or index.
    ///
    /// # Errors
    /// When a pattern is no regular expression.
    pub fn new(
        patterns: &[String],
        pointers: &[String],
        replacement: &str,
    ) -> Result<Self, regex::Error> {
        let unescaped = |part: &str| part.replace("~1", "/").replace("~0", "~");
        let parts = |pointer: &String| pointer.split('/').skip(1).map(unescaped).collect();
        Ok(Self {
            patterns: patterns
                .iter()
                .map(|pattern| Regex::new(pattern))
                .collect::<Result<_, _>>()?,
            pointers: pointers.iter().map(parts).collect(),
            replacement: replacement.to_owned(),
        })
    }

    /// Takes out of a text what matches; tells whether something did.
    pub(super) fn text(&self, text: &mut String) -> bool {
        let mut found = false;
        for pattern in &self.patterns {
            let replacement = regex::NoExpand(&self.replacement);
            if let Cow::Owned(redacted) = pattern.replace_all(text, replacement) {
                *text = redacted;
                found = true;
            }
        }
        found
    }

    /// Takes out of data what stands at the places, and out of its texts what matches.
    pub(in crate::chain) fn data(&self, data: &mut Value) -> bool {
        let mut found = self.texts_in(data, &[]);
        for pointer in &self.pointers {
            found |= self.at(data, pointer);
        }
        found
    }

    fn texts_in(&self, value: &mut Value, no_texts: &[&str]) -> bool {
        let each = |found, item| self.texts_in(item, no_texts) | found;
        match value {
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter_mut().fold(false, each),
            Value::Object(members) => {
                let texts = members.iter_mut().filter(|(key, _)| !no_texts.contains(&key.as_str()));
                texts.map(|(_, member)| member).fold(false, each)
            }
            _ => false,
        }
    }

    fn at(&self, value: &mut Value, pointer: &[String]) -> bool {
        let Some((part, rest)) = pointer.split_first() else {
            *value = Value::String(self.replacement.clone());
            return true;
        };
        let is_it = |name: &str| part == "*" || part == name;
        match value {
            Value::Array(items) => {
                let of_part =
                    items.iter_mut().enumerate().filter(|(index, _)| is_it(&index.to_string()));
                of_part.fold(false, |found, (_, item)| self.at(item, rest) | found)
            }
            Value::Object(members) => {
                let of_part = members.iter_mut().filter(|(key, _)| is_it(key));
                of_part.fold(false, |found, (_, member)| self.at(member, rest) | found)
            }
            _ => false,
        }
    }

    /// The data without what is taken out, if something is.
    pub(super) fn raw(&self, raw: &Raw) -> Option<Raw> {
        let mut value: Value = raw.decode().ok()?;
        self.data(&mut value).then(|| Raw::of(&value))
    }

    /// Blocks of content, which have words of the protocol between their texts, if something is taken out.
    pub(super) fn blocks(&self, blocks: &str) -> Option<String> {
        let mut value: Value = serde_json::from_str(blocks).ok()?;
        self.texts_in(&mut value, &NO_TEXTS).then(|| value.to_string())
    }
}
