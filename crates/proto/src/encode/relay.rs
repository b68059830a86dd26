//! What another server answered, written for a peer: members that need no change are copied as they are, and a
//! result that needs none is copied as a whole.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::result::{Target, write_meta, write_related_task};
use super::{foreign_member, key, raw_member, text_member};
use crate::adapt::{is_text, lower_raw_block, lower_raw_blocks};
use crate::dialect::IsError;
use crate::meta;
use crate::op::{Relayed, RelayedKind};
use crate::revision::{Rules, Structured, Tasks};
use crate::wire::{Object, elements, unquote};

/// Writes the whole result.
pub(super) fn write_relayed(out: &mut Vec<u8>, relayed: &Relayed, target: &Target<'_>) {
    let start = out.len();
    let result = relayed.result.object().unwrap_or(Object::EMPTY);
    let mut relay = Relay { source: relayed.rules, target, result, is_changed: false };
    out.push(b'{');
    relay.open(out);
    for (name, value) in result.members() {
        relay.member(out, relayed.kind, &name, value);
    }
    relay.close(out, relayed.kind);
    out.push(b'}');
    if !relay.is_changed {
        out.truncate(start);
        out.extend_from_slice(result.text().as_bytes());
    }
}

/// What a tool's result tells of a failure, if it tells of one: its texts, joined.
pub(crate) fn relayed_failure(relayed: &Relayed) -> Option<String> {
    let result = relayed.result.object()?;
    if relayed.kind != RelayedKind::Tool || result.get("isError") != Some("true") {
        return None;
    }
    let blocks = result.array("content").ok().flatten().unwrap_or_default();
    let text = |block: &str| Object::new(block)?.get("text").and_then(unquote).map(Cow::into_owned);
    let texts: Vec<_> = blocks.into_iter().filter_map(text).collect();
    Some(texts.join("\n"))
}

/// One result on its way from one set of rules to another.
struct Relay<'a> {
    source: &'static Rules,
    target: &'a Target<'a>,
    result: Object<'a>,
    /// Whether anything differs from what the server wrote.
    is_changed: bool,
}

impl Relay<'_> {
    fn has(&self, name: &str) -> bool {
        self.result.get(name).is_some()
    }

    /// What a result begins with. A server of an older revision that says `resultType` means something else by it.
    fn open(&mut self, out: &mut Vec<u8>) {
        let is_said = self.source.result_type && self.has("resultType");
        if self.target.rules.result_type && !is_said {
            text_member(out, "resultType", "complete");
            self.is_changed = true;
        }
    }

    fn member(&mut self, out: &mut Vec<u8>, kind: RelayedKind, name: &str, value: &str) {
        let (source, target) = (self.source, self.target.rules);
        let written = match (kind, name) {
            (_, "resultType") => same(source.result_type == target.result_type, value),
            (RelayedKind::Contents, "ttlMs" | "cacheScope") => {
                same(source.cache_hints == target.cache_hints, value)
            }
            (_, "ttlMs" | "cacheScope") => same(!source.cache_hints || target.cache_hints, value),
            (_, "_meta") => return self.meta(out, value),
            (RelayedKind::Tool, "content") => Some(self.content(value)),
            (RelayedKind::Tool, "structuredContent") => structured(value, target),
            (RelayedKind::Tool, "isError") => {
                same(self.target.dialect.is_error != IsError::Never, value)
            }
            (RelayedKind::Prompt, "messages") => Some(messages(value, target)),
            _ => Some(Cow::Borrowed(value)),
        };
        match written {
            Some(written) => {
                self.is_changed |= matches!(written, Cow::Owned(_));
                foreign_member(out, name, &written);
            }
            None => self.is_changed = true,
        }
    }

    /// What a result must have and this one lacks.
    fn close(&mut self, out: &mut Vec<u8>, kind: RelayedKind) {
        let start = out.len();
        if kind == RelayedKind::Tool && !self.has("content") {
            let content = self.content("[]");
            raw_member(out, "content", &content);
        }
        if kind == RelayedKind::Tool
            && self.target.dialect.is_error == IsError::Always
            && !self.has("isError")
        {
            raw_member(out, "isError", "false");
        }
        if kind == RelayedKind::Contents && self.target.rules.cache_hints {
            let lacks = |name| !self.source.cache_hints || !self.has(name);
            if lacks("ttlMs") {
                raw_member(out, "ttlMs", "0");
            }
            if lacks("cacheScope") {
                text_member(out, "cacheScope", "private");
            }
        }
        if !self.has("_meta") {
            write_meta(out, None, self.target);
        }
        self.is_changed |= out.len() > start;
    }

    /// The blocks; where data is not known and no block tells it in words, one more.
    fn content<'b>(&self, blocks: &'b str) -> Cow<'b, str> {
        let Some(listed) = elements(blocks) else { return Cow::Borrowed(blocks) };
        let rules = self.target.rules;
        let data = self.result.get("structuredContent");
        let data = data.filter(|_| rules.structured == Structured::Absent);
        let more = data.filter(|_| !listed.iter().any(|block| is_text(block)));
        lower_raw_blocks(&listed, more, rules).map_or(Cow::Borrowed(blocks), Cow::Owned)
    }

    /// `_meta`: what concerned only us and the server goes, and who the server is comes where results say so.
    fn meta(&mut self, out: &mut Vec<u8>, value: &str) {
        let Some(own) = Object::new(value) else { return self.is_changed = true };
        let (source, target) = (self.source, self.target.rules);
        let goes = |name: &str| match name {
            meta::SERVER_INFO => source.identity_in_results && !target.identity_in_results,
            meta::RELATED_TASK => source.tasks == Tasks::Wanted,
            _ => false,
        };
        let identity = self
            .target
            .identity
            .filter(|_| target.identity_in_results && own.get(meta::SERVER_INFO).is_none());
        let is_same = identity.is_none()
            && self.target.related_task.is_none()
            && !own.members().any(|(name, _)| goes(&name));
        if is_same {
            return foreign_member(out, "_meta", value);
        }
        self.is_changed = true;
        let start = out.len();
        key(out, "_meta");
        out.push(b'{');
        let opened = out.len();
        if let Some(identity) = identity {
            raw_member(out, meta::SERVER_INFO, identity.as_str());
        }
        if let Some(id) = self.target.related_task {
            write_related_task(out, id);
        }
        for (name, value) in own.members().filter(|(name, _)| !goes(name)) {
            foreign_member(out, &name, value);
        }
        match out.len() == opened {
            true => out.truncate(start),
            false => out.push(b'}'),
        }
    }
}

fn same(stays: bool, value: &str) -> Option<Cow<'_, str>> {
    stays.then_some(Cow::Borrowed(value))
}

/// Data as the peer may receive it; the tool's schema is announced in the same shape.
fn structured<'a>(value: &'a str, rules: &Rules) -> Option<Cow<'a, str>> {
    match rules.structured {
        Structured::Absent => None,
        Structured::Object if Object::new(value).is_none() => {
            Some(Cow::Owned(format!(r#"{{"result":{value}}}"#)))
        }
        Structured::Object | Structured::Any => Some(Cow::Borrowed(value)),
    }
}

/// The messages of a prompt, each with one block.
fn messages<'a>(value: &'a str, rules: &Rules) -> Cow<'a, str> {
    let mut is_changed = false;
    let mut out = Vec::from(b"[");
    for (position, message) in elements(value).unwrap_or_default().into_iter().enumerate() {
        if position > 0 {
            out.push(b',');
        }
        let content = Object::new(message).and_then(|message| message.get("content"));
        match content.and_then(|block| lower_raw_block(block, position, rules)) {
            None => out.extend_from_slice(message.as_bytes()),
            Some(lowered) => {
                is_changed = true;
                out.push(b'{');
                for (name, value) in Object::new(message).map(Object::members).into_iter().flatten()
                {
                    foreign_member(
                        &mut out,
                        &name,
                        if name == "content" { &lowered } else { value },
                    );
                }
                out.push(b'}');
            }
        }
    }
    out.push(b']');
    match is_changed {
        true => Cow::Owned(String::from_utf8(out).unwrap_or_default()),
        false => Cow::Borrowed(value),
    }
}
