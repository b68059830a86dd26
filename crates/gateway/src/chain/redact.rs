//! Takes secrets out of results.

use std::borrow::Cow;
use std::sync::Arc;

use creole::{BoxFuture, Call, Middleware, Next};
use creole_proto::model::{Content, Contents};
use creole_proto::op::{Event, Outcome, Payload, Relayed};
use creole_proto::wire::Raw;
use regex::Regex;
use serde_json::Value;

use super::edit::{Edit, members};

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
    pub(super) fn data(&self, data: &mut Value) -> bool {
        self.all(data, &NO_TEXTS)
    }

    fn all(&self, data: &mut Value, no_texts: &[&str]) -> bool {
        let mut found = self.texts_in(data, no_texts);
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

    /// JSON text with its data redacted, if something was.
    pub(super) fn raw(&self, raw: &str) -> Option<String> {
        let mut value: Value = serde_json::from_str(raw).ok()?;
        self.data(&mut value).then(|| value.to_string())
    }

    fn payload(&self, payload: &mut Payload) {
        match payload {
            Payload::Tool(result) => {
                result.content.iter_mut().for_each(|block| self.block(block));
                let redacted = result.structured.as_ref().and_then(|data| self.raw(data.as_str()));
                if let Some(data) = redacted.and_then(|text| Raw::parse(&text).ok()) {
                    result.structured = Some(data);
                }
            }
            Payload::Contents(contents, _) => contents.iter_mut().for_each(|it| self.contents(it)),
            Payload::Prompt(result) => {
                result.messages.iter_mut().for_each(|message| self.block(&mut message.content));
            }
            Payload::Relayed(relayed) => self.relayed(relayed),
            _ => {}
        }
    }

    fn block(&self, block: &mut Content) {
        match block {
            Content::Text { text, .. } => _ = self.text(text),
            Content::Resource { resource } => self.contents(resource),
            _ => {}
        }
    }

    fn contents(&self, contents: &mut Contents) {
        if let Some(text) = &mut contents.text {
            self.text(text);
        }
    }

    fn relayed(&self, relayed: &mut Relayed) {
        let change = |key: &str, value: &str| {
            let redacted = match key {
                "structuredContent" => self.raw(value),
                "content" | "contents" | "messages" => self.texts(value),
                _ => None,
            };
            redacted.map_or(Edit::Keep, Edit::Set)
        };
        let redacted = members(relayed.result.as_str(), change);
        if let Some(result) = redacted.and_then(|text| Raw::parse(&text).ok()) {
            relayed.result = result;
        }
    }

    fn texts(&self, raw: &str) -> Option<String> {
        let mut value: Value = serde_json::from_str(raw).ok()?;
        self.texts_in(&mut value, &NO_TEXTS).then(|| value.to_string())
    }

    /// Progress and log messages without what matches. All strings of a log message are texts.
    fn event(&self, mut event: Event) -> Event {
        match &mut event {
            Event::Progress { message, .. } => {
                message.iter_mut().for_each(|message| _ = self.text(message));
            }
            Event::Log { logger, data, .. } => {
                logger.iter_mut().for_each(|logger| _ = self.text(logger));
                let redacted = data.decode().ok().filter(|value: &Value| !value.is_null());
                if let Some(mut value) = redacted
                    && self.all(&mut value, &[])
                {
                    *data = Raw::of(&value);
                }
            }
            Event::Visited(_) => {}
        }
        event
    }
}

/// A layer that takes secrets out of results, out of the words of faults, and out of progress and log messages.
#[derive(Clone, Debug)]
pub struct Redact(Arc<Redactor>);

impl Redact {
    /// A layer that takes this out.
    pub fn new(redactor: Redactor) -> Self {
        Self(Arc::new(redactor))
    }
}

impl Middleware for Redact {
    fn handle<'a>(&'a self, mut call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        let redactor = Arc::clone(&self.0);
        call.context = call.context.with_events(move |event| Some(redactor.event(event)));
        Box::pin(async move {
            let mut outcome = next.call(call).await;
            match &mut outcome {
                Outcome::Complete(payload) => self.0.payload(payload),
                Outcome::Fail(fault) => _ = self.0.text(&mut fault.detail),
                _ => {}
            }
            outcome
        })
    }
}

#[cfg(test)]
mod tests;
