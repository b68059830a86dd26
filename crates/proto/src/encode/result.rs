//! Encodes results for a peer's rules and dialect.

use alloc::vec::Vec;

use super::relayed_result::write_relayed;
use super::result_target::{ResultTarget, write_related_task};
use super::server_info::write_server_info;
use super::task::{write_task, write_task_head};
use super::{
    write_comma, write_data, write_foreign_key, write_key, write_raw_member, write_text_member,
};
use crate::dialect::IsErrorPolicy;
use crate::model::adapt::{lower_blocks, lower_structured_content};
use crate::model::{CacheHints, Content, ToolResult};
use crate::operation::{Page, Payload, SubscriptionFilter, TaskPage};
use crate::revision::{Rules, TaskModel};
use crate::wire::meta;
use crate::wire::{Object, Raw, quote};

/// Writes a whole result object (2026-07-28 schema, `Result`).
pub(crate) fn write_result(out: &mut Vec<u8>, payload: &Payload, target: &ResultTarget<'_>) {
    if let Payload::Relayed(relayed) = payload {
        return write_relayed(out, relayed.clone(), target);
    }
    let opening: &[u8] = match (target.rules.result_type, payload) {
        (true, Payload::TaskCreated(_)) => br#"{"resultType":"task""#,
        (true, _) => br#"{"resultType":"complete""#,
        (false, _) => b"{",
    };
    out.extend_from_slice(opening);
    write_payload(out, payload, target);
    if let Some(hints) = cache_hints(payload).filter(|_| target.rules.cache_hints) {
        write_raw_member(out, "ttlMs", &alloc::format!("{}", hints.ttl_ms));
        write_text_member(out, "cacheScope", if hints.public { "public" } else { "private" });
    }
    let own = match payload {
        Payload::Tool(result) => result.meta.as_ref(),
        _ => None,
    };
    match payload {
        // A server that represents another one may use the other's identity.
        Payload::Server(card) if target.identity.is_some() => {
            let identity = Raw::from_value(&*card.identity);
            write_meta(out, own, &ResultTarget { identity: Some(&identity), ..*target });
        }
        _ => write_meta(out, own, target),
    }
    out.push(b'}');
}

fn write_payload(out: &mut Vec<u8>, payload: &Payload, target: &ResultTarget<'_>) {
    match payload {
        Payload::Empty => {}
        Payload::Server(card) => {
            write_server_info(out, card, target.version, target.dialect, target.rules);
        }
        Payload::Page(page) | Payload::Directory(page) => write_page(out, page, target.rules),
        Payload::Skill(skill, _) => write_raw_member(out, "skill", skill.text(target.rules)),
        Payload::Tool(result) => write_tool_result(out, result, target),
        Payload::Contents(contents, _) => {
            write_key(out, "contents");
            write_data(out, contents);
        }
        Payload::Prompt(prompt) => write_prompt(out, prompt, target.rules),
        Payload::Completion(completion) => {
            write_key(out, "completion");
            write_data(out, completion);
        }
        Payload::Listening(filter) => write_filter(out, filter),
        Payload::TaskCreated(task) => match target.rules.tasks {
            TaskModel::Extension => write_task_head(out, task, target),
            TaskModel::ClientRequested | TaskModel::Absent => {
                write_key(out, "task");
                out.push(b'{');
                write_task_head(out, task, target);
                out.push(b'}');
            }
        },
        Payload::Task(task) => write_task(out, task, target),
        Payload::Tasks(page) => write_tasks(out, page, target),
        // Relayed results are written by `write_relayed`.
        Payload::Relayed(_) => {}
    }
}

fn cache_hints(payload: &Payload) -> Option<CacheHints> {
    match payload {
        Payload::Server(card) => Some(card.cache),
        Payload::Page(page) => Some(page.cache),
        Payload::Contents(_, hints) | Payload::Skill(_, hints) => Some(*hints),
        _ => None,
    }
}

/// Writes `_meta`: the result's own members, and the server's identity where results contain it
/// (2026-07-28 schema, `ResultMetaObject`).
pub(crate) fn write_meta(out: &mut Vec<u8>, own: Option<&Raw>, target: &ResultTarget<'_>) {
    let own = own.and_then(Raw::as_object);
    let named = own.is_some_and(|own| own.get(meta::SERVER_INFO).is_some());
    let identity = target.identity.filter(|_| target.rules.identity_in_results && !named);
    if own.is_none() && identity.is_none() && target.related_task.is_none() {
        return;
    }
    write_key(out, "_meta");
    out.push(b'{');
    if let Some(identity) = identity {
        write_raw_member(out, meta::SERVER_INFO, identity.as_str());
    }
    if let Some(id) = target.related_task {
        write_related_task(out, id);
    }
    for (name, value) in own.map(Object::members).into_iter().flatten() {
        write_foreign_key(out, &name);
        out.extend_from_slice(value.as_bytes());
    }
    out.push(b'}');
}

fn write_tasks(out: &mut Vec<u8>, page: &TaskPage, target: &ResultTarget<'_>) {
    write_key(out, "tasks");
    out.push(b'[');
    for task in &page.tasks {
        write_comma(out);
        out.push(b'{');
        write_task_head(out, task, target);
        out.push(b'}');
    }
    out.push(b']');
    if let Some(next) = &page.next {
        write_text_member(out, "nextCursor", next);
    }
}

fn write_page(out: &mut Vec<u8>, page: &Page, rules: &Rules) {
    write_key(out, page.kind.member());
    // One reservation avoids copies of a long list while the buffer grows.
    out.reserve(page.items.size(rules) + 256);
    out.push(b'[');
    page.items.write(out, rules);
    out.push(b']');
    if let Some(next) = &page.next {
        write_text_member(out, "nextCursor", next);
    }
}

fn write_tool_result(out: &mut Vec<u8>, result: &ToolResult, target: &ResultTarget<'_>) {
    write_blocks(out, &lower_blocks(&result.content, target.rules));
    let structured = result.structured.as_ref();
    if let Some(value) = structured.and_then(|value| lower_structured_content(value, target.rules))
    {
        write_raw_member(out, "structuredContent", &value);
    }
    let is_notified = match target.dialect.is_error {
        IsErrorPolicy::Always => true,
        IsErrorPolicy::WhenTrue => result.is_error,
        IsErrorPolicy::Never => false,
    };
    if is_notified {
        write_raw_member(out, "isError", if result.is_error { "true" } else { "false" });
    }
}

fn write_blocks(out: &mut Vec<u8>, blocks: &[Content]) {
    write_key(out, "content");
    out.push(b'[');
    for (position, block) in blocks.iter().enumerate() {
        if position > 0 {
            out.push(b',');
        }
        match block {
            // The most common block, written without the serialiser.
            Content::Text { text, annotations: None } => {
                out.extend_from_slice(br#"{"type":"text","text":"#);
                quote(out, text);
                out.push(b'}');
            }
            other => write_data(out, other),
        }
    }
    out.push(b']');
}

fn write_prompt(out: &mut Vec<u8>, prompt: &crate::model::PromptResult, rules: &Rules) {
    if let Some(description) = &prompt.description {
        write_text_member(out, "description", description);
    }
    write_key(out, "messages");
    out.push(b'[');
    for (position, message) in prompt.messages.iter().enumerate() {
        if position > 0 {
            out.push(b',');
        }
        out.push(b'{');
        write_key(out, "role");
        write_data(out, &message.role);
        write_key(out, "content");
        let block = core::slice::from_ref(&message.content);
        write_data(out, &lower_blocks(block, rules)[0]);
        out.push(b'}');
    }
    out.push(b']');
}

/// Writes `notifications`: the part of the filter that the server honours
/// (2026-07-28 schema, `SubscriptionsAcknowledgedNotificationParams`).
pub(crate) fn write_filter(out: &mut Vec<u8>, filter: &SubscriptionFilter) {
    write_key(out, "notifications");
    out.push(b'{');
    let lists = [
        ("toolsListChanged", filter.tools),
        ("promptsListChanged", filter.prompts),
        ("resourcesListChanged", filter.resources),
    ];
    for (name, _) in lists.iter().filter(|(_, wanted)| *wanted) {
        write_raw_member(out, name, "true");
    }
    if !filter.uris.is_empty() {
        write_key(out, "resourceSubscriptions");
        write_data(out, &filter.uris);
    }
    if !filter.tasks.is_empty() {
        write_key(out, "taskIds");
        write_data(out, &filter.tasks);
    }
    out.push(b'}');
}
