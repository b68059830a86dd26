//! Encodes a relayed result for a peer. Members that need no change are copied, and a result that needs none is copied
//! as a whole.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::result_target::{ResultTarget, write_related_task};
use super::{write_foreign_member, write_raw_member};
use crate::dialect::IsErrorPolicy;
use crate::model::adapt::{is_text, lower_raw_block, lower_raw_blocks, supports_all_blocks};
use crate::operation::{RelayedKind, RelayedResult};
use crate::revision::{Rules, StructuredContent, TaskModel};
use crate::wire::meta;
use crate::wire::{Object, ResultMembers, elements, unquote};

/// Writes the whole result.
pub(crate) fn write_relayed(out: &mut Vec<u8>, relayed: RelayedResult, target: &ResultTarget<'_>) {
    let stays = is_unchanged(&relayed, target);
    debug_assert!(!stays || rewrite(&relayed, target).is_none(), "{relayed:?}");
    let members = if stays { None } else { rewrite(&relayed, target) };
    let Some(members) = members else { return relayed.into_result().append_to(out) };
    out.push(b'{');
    for (name, value) in members {
        write_foreign_member(out, &name, &value);
    }
    out.push(b'}');
}

/// Whether a result has all members that its rules require, and none that concern only the gateway and the upstream.
pub(crate) fn is_verbatim(kind: RelayedKind, members: ResultMembers, rules: &Rules) -> bool {
    let is_dated = members.ttl_ms && members.cache_scope;
    let is_fit = match rules.structured_content {
        StructuredContent::Absent => !members.structured_content,
        StructuredContent::Object => !members.non_object_structured_content,
        StructuredContent::Any => true,
    };
    is_fit
        && supports_all_blocks(rules)
        && !members.non_object_meta
        && (members.content || kind != RelayedKind::Tool)
        && (is_dated || kind != RelayedKind::Contents || !rules.cache_hints)
        && (members.result_type || !rules.result_type)
        && (members.server_info || !rules.identity_in_results)
        && (!members.related_task || rules.tasks != TaskModel::ClientRequested)
}

/// Whether the peer gets the upstream's text unchanged, decided without reading the result.
fn is_unchanged(relayed: &RelayedResult, target: &ResultTarget<'_>) -> bool {
    relayed.is_verbatim()
        && core::ptr::eq(relayed.rules, target.rules)
        && target.dialect.is_error == IsErrorPolicy::WhenTrue
        && target.related_task.is_none()
}

/// A member of a result: its name and its value as JSON.
type ResultMember<'a> = (Cow<'a, str>, Cow<'a, str>);

/// The members for the peer, if they differ from the upstream's.
fn rewrite<'a>(
    relayed: &'a RelayedResult,
    target: &'a ResultTarget<'a>,
) -> Option<Vec<ResultMember<'a>>> {
    let result = relayed.result().as_object().unwrap_or(Object::EMPTY);
    let members = Vec::with_capacity(8);
    let mut relay =
        ResultRewriter { source: relayed.rules, target, result, members, is_changed: false };
    for (name, value) in result.members() {
        relay.rewrite_member(relayed.kind, name, value);
    }
    relay.add_required_members(relayed.kind);
    relay.is_changed.then_some(relay.members)
}

/// The joined texts of a tool result that reports a failure; `None` for a success.
pub(crate) fn relayed_failure(relayed: &RelayedResult) -> Option<String> {
    let result = relayed.result().as_object()?;
    if relayed.kind != RelayedKind::Tool || result.get("isError") != Some("true") {
        return None;
    }
    let blocks = result.array("content").ok().flatten().unwrap_or_default();
    let text = |block: &str| Object::new(block)?.get("text").and_then(unquote).map(Cow::into_owned);
    let texts: Vec<_> = blocks.into_iter().filter_map(text).collect();
    Some(texts.join("\n"))
}

/// Converts one result from the upstream's rules to the peer's.
struct ResultRewriter<'a> {
    source: &'static Rules,
    target: &'a ResultTarget<'a>,
    result: Object<'a>,
    /// The members for the peer so far.
    members: Vec<ResultMember<'a>>,
    /// Whether anything differs from the upstream's text.
    is_changed: bool,
}

impl<'a> ResultRewriter<'a> {
    /// Whether the peer gets a member with this name. Valid once all members of the upstream are processed.
    fn has(&self, name: &str) -> bool {
        self.members.iter().any(|(known, _)| known == name)
    }

    /// Adds a member that the upstream did not send.
    fn add(&mut self, name: &'static str, value: impl Into<Cow<'a, str>>) {
        self.members.push((Cow::Borrowed(name), value.into()));
        self.is_changed = true;
    }

    fn rewrite_member(&mut self, kind: RelayedKind, name: Cow<'a, str>, value: &'a str) {
        let (source, target) = (self.source, self.target.rules);
        let written = match (kind, &*name) {
            (_, "resultType") => value_if(source.result_type == target.result_type, value),
            (RelayedKind::Contents, "ttlMs" | "cacheScope") => {
                value_if(source.cache_hints == target.cache_hints, value)
            }
            (_, "ttlMs" | "cacheScope") => {
                value_if(!source.cache_hints || target.cache_hints, value)
            }
            (_, "_meta") => self.rewrite_meta(value),
            (RelayedKind::Tool, "content") => Some(self.rewrite_content(value)),
            (RelayedKind::Tool, "structuredContent") => rewrite_structured_content(value, target),
            (RelayedKind::Tool, "isError") => {
                value_if(self.target.dialect.is_error != IsErrorPolicy::Never, value)
            }
            (RelayedKind::Prompt, "messages") => Some(rewrite_messages(value, target)),
            _ => Some(Cow::Borrowed(value)),
        };
        self.is_changed |= !matches!(written, Some(Cow::Borrowed(_)));
        self.members.extend(written.map(|text| (name, text)));
    }

    /// Adds the required members that the result lacks.
    fn add_required_members(&mut self, kind: RelayedKind) {
        if kind == RelayedKind::Tool && !self.has("content") {
            let content = self.rewrite_content("[]");
            self.add("content", content);
        }
        if kind == RelayedKind::Tool
            && self.target.dialect.is_error == IsErrorPolicy::Always
            && !self.has("isError")
        {
            self.add("isError", "false");
        }
        if kind == RelayedKind::Contents && self.target.rules.cache_hints {
            let lacks = |name| !self.source.cache_hints || !self.has(name);
            let (lacks_age, lacks_scope) = (lacks("ttlMs"), lacks("cacheScope"));
            if lacks_age {
                self.add("ttlMs", "0");
            }
            if lacks_scope {
                self.add("cacheScope", "\"private\"");
            }
        }
        if !self.has("_meta")
            && let Some(meta) = self.rewrite_meta("{}").filter(|meta| meta != "{}")
        {
            self.add("_meta", meta);
        }
        // `resultType` is required (2026-07-28 basic, result responses). It is written first.
        if self.target.rules.result_type && !self.has("resultType") {
            self.members.insert(0, (Cow::Borrowed("resultType"), Cow::Borrowed("\"complete\"")));
            self.is_changed = true;
        }
    }

    /// Converts the blocks. If the peer does not support structured content and no block repeats it as text, a text
    /// block is added.
    fn rewrite_content<'b>(&self, blocks: &'b str) -> Cow<'b, str> {
        let rules = self.target.rules;
        let is_unknown = rules.structured_content == StructuredContent::Absent;
        if !is_unknown && supports_all_blocks(rules) {
            return Cow::Borrowed(blocks);
        }
        let Some(listed) = elements(blocks) else { return Cow::Borrowed(blocks) };
        let data = is_unknown.then(|| self.result.get("structuredContent")).flatten();
        let more = data.filter(|_| !listed.iter().any(|block| is_text(block)));
        lower_raw_blocks(&listed, more, rules).map_or(Cow::Borrowed(blocks), Cow::Owned)
    }

    /// Converts `_meta`: removes members that concern only the gateway and the upstream, and adds the server's identity
    /// where results contain it (2026-07-28 schema, `ResultMetaObject`).
    fn rewrite_meta<'b>(&self, value: &'b str) -> Option<Cow<'b, str>> {
        let own = Object::new(value)?;
        let (source, target) = (self.source, self.target.rules);
        let goes = |name: &str| match name {
            meta::SERVER_INFO => source.identity_in_results && !target.identity_in_results,
            meta::RELATED_TASK => source.tasks == TaskModel::ClientRequested,
            _ => false,
        };
        let (mut is_named, mut is_whole) = (false, true);
        for (name, _) in own.members() {
            is_named |= name == meta::SERVER_INFO;
            is_whole &= !goes(&name);
        }
        let identity = self.target.identity.filter(|_| target.identity_in_results && !is_named);
        let is_same = identity.is_none() && self.target.related_task.is_none() && is_whole;
        if is_same {
            return Some(Cow::Borrowed(value));
        }
        let mut out = Vec::from(b"{");
        if let Some(identity) = identity {
            write_raw_member(&mut out, meta::SERVER_INFO, identity.as_str());
        }
        if let Some(id) = self.target.related_task {
            write_related_task(&mut out, id);
        }
        for (name, value) in own.members().filter(|(name, _)| !goes(name)) {
            write_foreign_member(&mut out, &name, value);
        }
        out.push(b'}');
        (out.len() > 2).then(|| Cow::Owned(String::from_utf8(out).unwrap_or_default()))
    }
}

fn value_if(stays: bool, value: &str) -> Option<Cow<'_, str>> {
    stays.then_some(Cow::Borrowed(value))
}

/// Converts structured content for the peer. The tool's schema is announced in the same shape.
fn rewrite_structured_content<'a>(value: &'a str, rules: &Rules) -> Option<Cow<'a, str>> {
    match rules.structured_content {
        StructuredContent::Absent => None,
        StructuredContent::Object if Object::new(value).is_none() => {
            Some(Cow::Owned(format!(r#"{{"result":{value}}}"#)))
        }
        StructuredContent::Object | StructuredContent::Any => Some(Cow::Borrowed(value)),
    }
}

/// Converts the messages of a prompt, each of which has one block.
fn rewrite_messages<'a>(value: &'a str, rules: &Rules) -> Cow<'a, str> {
    if supports_all_blocks(rules) {
        return Cow::Borrowed(value);
    }
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
                    write_foreign_member(
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
