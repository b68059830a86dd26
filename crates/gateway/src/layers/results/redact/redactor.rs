//! Redacts texts and JSON data by patterns and by JSON pointers. Everything else keeps its exact text, including the
//! form of numbers and the order of keys.

use std::borrow::Cow;

use creole_proto::wire::{Raw, elements, unquote};
use regex::Regex;

use crate::layers::definitions::json_edit::{Edit, edit_members, quoted};

/// Members whose strings are not texts: base64 data and protocol keywords.
const NON_TEXT_MEMBERS: [&str; 5] = ["data", "blob", "type", "mimeType", "role"];

/// The patterns and pointers to redact.
#[derive(Clone, Debug)]
pub struct Redactor {
    patterns: Vec<Regex>,
    /// Pointers into data: keys or indices, `*` for any.
    pointers: Vec<Vec<String>>,
    replacement: String,
}

/// The remaining parts of the pointers that lead through a value.
type Pointers<'a> = [&'a [String]];

impl Redactor {
    /// Redacts matches of the patterns in any text, and the values at the JSON pointers, in which `*` is any key or
    /// index.
    ///
    /// # Errors
    /// When a pattern is not a regular expression.
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

    /// Redacts matches in a text. A text that is a JSON object is treated as data too, since results repeat their data
    /// as text. Returns whether the text changed.
    pub(crate) fn redact_text(&self, text: &mut String) -> bool {
        let mut is_changed = false;
        for pattern in &self.patterns {
            let replacement = regex::NoExpand(&self.replacement);
            if let Cow::Owned(redacted) = pattern.replace_all(text, replacement) {
                is_changed |= redacted != *text;
                *text = redacted;
            }
        }
        let is_data = !self.pointers.is_empty() && text.trim_start().starts_with('{');
        let data = is_data.then(|| Raw::parse(text).ok()).flatten();
        if let Some(redacted) = data.and_then(|data| self.redact_data(&data)) {
            redacted.as_str().clone_into(text);
            is_changed = true;
        }
        is_changed
    }

    /// The redacted data. `None` if nothing was redacted.
    pub(crate) fn redact_data(&self, data: &Raw) -> Option<Raw> {
        let pointers: Vec<_> = self.pointers.iter().map(Vec::as_slice).collect();
        self.redact_value(data.as_str(), &pointers, &[]).and_then(|text| Raw::parse(&text).ok())
    }

    /// The redacted content blocks, in which some members hold protocol keywords. `None` if nothing was redacted.
    pub(crate) fn redact_blocks(&self, blocks: &str) -> Option<String> {
        self.redact_value(blocks, &[], &NON_TEXT_MEMBERS)
    }

    /// The redacted text of a whole message. The pointers lead into its arguments and its structured content. A
    /// message that cannot be read cannot be searched for them, so all of it is redacted.
    pub(crate) fn redact_message(&self, message: &str) -> String {
        let Ok(message) = Raw::parse(message) else {
            let mut text = message.to_owned();
            self.redact_text(&mut text);
            return if self.pointers.is_empty() { text } else { self.replacement.clone() };
        };
        let places = [["params", "arguments"], ["result", "structuredContent"]];
        let into = |pointer: &Vec<String>| {
            let pointer = pointer.clone();
            places
                .map(|place| place.map(str::to_owned).into_iter().chain(pointer.clone()).collect())
        };
        let pointers: Vec<Vec<String>> = self.pointers.iter().flat_map(into).collect();
        let pointers: Vec<_> = pointers.iter().map(Vec::as_slice).collect();
        let redacted = self.redact_value(message.as_str(), &pointers, &[]);
        redacted.unwrap_or_else(|| message.as_str().to_owned())
    }

    fn redact_value(
        &self,
        value: &str,
        pointers: &Pointers<'_>,
        no_texts: &[&str],
    ) -> Option<String> {
        if pointers.iter().any(|pointer| pointer.is_empty()) {
            return Some(quoted(&self.replacement));
        }
        match value.as_bytes().first() {
            Some(b'"') => self.redact_string(value),
            Some(b'[') => self.redact_array(value, pointers, no_texts),
            Some(b'{') => self.redact_object(value, pointers, no_texts),
            _ => None,
        }
    }

    /// A string that cannot be decoded cannot be searched, so all of it is redacted.
    fn redact_string(&self, value: &str) -> Option<String> {
        let Some(before) = unquote(value) else { return Some(quoted(&self.replacement)) };
        let mut text = before.into_owned();
        self.redact_text(&mut text).then(|| quoted(&text))
    }

    fn redact_array(
        &self,
        array: &str,
        pointers: &Pointers<'_>,
        no_texts: &[&str],
    ) -> Option<String> {
        let mut found = false;
        let mut items: Vec<Cow<'_, str>> = Vec::new();
        for (index, item) in elements(array)?.into_iter().enumerate() {
            let redacted =
                self.redact_value(item, &pointers_below(pointers, &index.to_string()), no_texts);
            found |= redacted.is_some();
            items.push(redacted.map_or(Cow::Borrowed(item), Cow::Owned));
        }
        found.then(|| format!("[{}]", items.join(",")))
    }

    fn redact_object(
        &self,
        object: &str,
        pointers: &Pointers<'_>,
        no_texts: &[&str],
    ) -> Option<String> {
        let mut found = false;
        let redacted = edit_members(object, |key, value| {
            let redacted = match no_texts.contains(&key) {
                true => None,
                false => self.redact_value(value, &pointers_below(pointers, key), no_texts),
            };
            found |= redacted.is_some();
            redacted.map_or(Edit::Keep, Edit::Set)
        });
        redacted.filter(|_| found)
    }
}

/// The remaining parts of the pointers that lead to this key or index.
fn pointers_below<'a>(pointers: &Pointers<'a>, name: &str) -> Vec<&'a [String]> {
    let leads = |pointer: &&'a [String]| {
        let (part, rest) = pointer.split_first()?;
        (part == "*" || part == name).then_some(rest)
    };
    pointers.iter().filter_map(leads).collect()
}
