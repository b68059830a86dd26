//! Encodes a client's requests with their options, and its capabilities.

use alloc::format;
use alloc::vec::Vec;

use super::result::write_filter;
use super::{
    write_comma, write_data, write_foreign_member, write_key, write_raw_member, write_text_member,
};
use crate::dialect::Dialect;
use crate::method::Method;
use crate::model::{
    ClientCapabilities, CompletionRequest, Level, Reference, TASKS_EXTENSION, TaskPreference,
    is_connection_extension,
};
use crate::operation::{CallOptions, InputResponses, Operation};
use crate::revision::{ElicitationSupport, InputRequestStyle, Rules, TaskModel};
use crate::wire::meta;
use crate::wire::{Object, ParamMembers, Raw, quote};

/// The parameters for encoding requests.
pub(crate) struct RequestStyle<'a> {
    pub(crate) dialect: &'a Dialect,
    pub(crate) rules: &'static Rules,
    /// The client's `Implementation`: an object.
    pub(crate) identity: &'a Raw,
    /// The extensions that the client uses besides tasks.
    pub(crate) extensions: &'a [&'static str],
    /// The progress token.
    pub(crate) progress_token: u64,
}

/// Writes the members of a call's params.
pub(crate) fn write_call(
    out: &mut Vec<u8>,
    operation: &Operation,
    options: &CallOptions,
    style: &RequestStyle<'_>,
) {
    write_operation(out, operation, style.dialect);
    if style.rules.input_request_style == InputRequestStyle::MultiRoundTrip
        && operation.may_require_input()
    {
        write_input_responses(out, options.input_responses.as_ref());
    }
    if let (TaskModel::ClientRequested, Operation::CallTool { .. }) = (style.rules.tasks, operation)
    {
        write_task_request(out, options.task_preference);
    }
    if matches!(operation, Operation::CallTool { .. } | Operation::GetPrompt { .. }) {
        write_extra_members(out, options.params.as_ref(), |name| {
            !ParamMembers::is_known_member(name)
        });
    }
    write_meta(out, options, style);
}

/// Writes extra members as given.
fn write_extra_members(out: &mut Vec<u8>, given: Option<&Raw>, is_written: impl Fn(&str) -> bool) {
    let members = given.and_then(Raw::as_object).map(Object::members).into_iter().flatten();
    for (name, value) in members.filter(|(name, _)| is_written(name)) {
        write_foreign_member(out, &name, value);
    }
}

/// Writes the members of the params of `initialize` (2025-11-25 schema, `InitializeRequestParams`).
pub(crate) fn write_initialize(
    out: &mut Vec<u8>,
    version: &str,
    capabilities: &ClientCapabilities,
    style: &RequestStyle<'_>,
) {
    write_text_member(out, "protocolVersion", version);
    write_key(out, "capabilities");
    write_capabilities(out, capabilities, style);
    write_raw_member(out, "clientInfo", style.identity.as_str());
}

/// Writes the params of `logging/setLevel`.
pub(crate) fn write_level(out: &mut Vec<u8>, level: Level) {
    write_text_member(out, "level", level.name());
}

fn write_operation(out: &mut Vec<u8>, operation: &Operation, dialect: &Dialect) {
    match operation {
        Operation::Discover => {}
        Operation::List(_, cursor) | Operation::ListTasks(cursor) => {
            write_cursor(out, cursor.as_deref());
        }
        Operation::CallTool { name, arguments } => {
            write_text_member(out, "name", name);
            let given = arguments.as_ref().map(Raw::as_str);
            if let Some(arguments) = given.or(dialect.arguments_required.then_some("{}")) {
                write_raw_member(out, "arguments", arguments);
            }
        }
        Operation::GetPrompt { name, arguments } => {
            write_text_member(out, "name", name);
            if let Some(arguments) = arguments {
                write_raw_member(out, "arguments", arguments.as_str());
            }
        }
        Operation::ReadDirectory { uri, cursor } => {
            write_text_member(out, "uri", uri);
            write_cursor(out, cursor.as_deref());
        }
        Operation::ReadResource { uri }
        | Operation::GetSkill { uri }
        | Operation::Subscribe { uri }
        | Operation::Unsubscribe { uri } => write_text_member(out, "uri", uri),
        Operation::Complete(request) => write_completion(out, request),
        Operation::Listen(filter) => write_filter(out, filter),
        Operation::GetTask { id } | Operation::TaskResult { id } | Operation::CancelTask { id } => {
            write_text_member(out, "taskId", id)
        }
        Operation::UpdateTask { id, responses } => {
            write_text_member(out, "taskId", id);
            write_raw_member(out, "inputResponses", responses.as_str());
        }
    }
}

fn write_cursor(out: &mut Vec<u8>, cursor: Option<&str>) {
    if let Some(cursor) = cursor {
        write_text_member(out, "cursor", cursor);
    }
}

fn write_completion(out: &mut Vec<u8>, request: &CompletionRequest) {
    let (kind, member, value) = match &request.reference {
        Reference::Prompt(name) => ("ref/prompt", "name", name),
        Reference::Resource(uri) => ("ref/resource", "uri", uri),
    };
    write_key(out, "ref");
    out.push(b'{');
    write_text_member(out, "type", kind);
    write_text_member(out, member, value);
    out.push(b'}');
    write_key(out, "argument");
    out.push(b'{');
    write_text_member(out, "name", &request.argument);
    write_text_member(out, "value", &request.value);
    out.push(b'}');
    if !request.context.is_empty() {
        write_key(out, "context");
        out.push(b'{');
        write_key(out, "arguments");
        write_data(out, &request.context);
        out.push(b'}');
    }
}

/// Writes the input responses and the request state of a retry, as given
/// (2026-07-28 schema, `InputResponseRequestParams`).
fn write_input_responses(out: &mut Vec<u8>, reentry: Option<&InputResponses>) {
    let Some(reentry) = reentry else { return };
    if let Some(responses) = &reentry.responses {
        write_raw_member(out, "inputResponses", responses.as_str());
    }
    if let Some(state) = &reentry.request_state {
        write_text_member(out, "requestState", state);
    }
}

fn write_task_request(out: &mut Vec<u8>, tasking: TaskPreference) {
    let TaskPreference::Requested { ttl_ms } = tasking else { return };
    write_key(out, "task");
    out.push(b'{');
    if let Some(ttl) = ttl_ms {
        write_raw_member(out, "ttl", &format!("{ttl}"));
    }
    out.push(b'}');
}

/// Writes `_meta`, unless it is empty (2026-07-28 schema, `RequestMetaObject`).
fn write_meta(out: &mut Vec<u8>, options: &CallOptions, style: &RequestStyle<'_>) {
    let start = out.len();
    write_key(out, "_meta");
    out.push(b'{');
    let opened = out.len();
    if style.rules.request_meta {
        write_text_member(out, meta::PROTOCOL_VERSION, style.rules.name);
        write_key(out, meta::CLIENT_CAPABILITIES);
        write_capabilities(out, &options.capabilities, style);
        let client = options.client_info.as_ref().unwrap_or(style.identity);
        write_raw_member(out, meta::CLIENT_INFO, client.as_str());
        if let Some(level) = options.log_level {
            write_text_member(out, meta::LOG_LEVEL, level.name());
        }
    }
    if options.progress {
        write_raw_member(out, meta::PROGRESS_TOKEN, &format!("{}", style.progress_token));
    }
    write_extra_members(out, options.meta.as_ref(), |name| !meta::is_reserved(name));
    match out.len() == opened {
        true => out.truncate(start),
        false => out.push(b'}'),
    }
}

/// Writes the client's capabilities, as far as the rules have them.
fn write_capabilities(
    out: &mut Vec<u8>,
    capabilities: &ClientCapabilities,
    style: &RequestStyle<'_>,
) {
    let rules = style.rules;
    let message = capabilities.raw.as_ref().and_then(Raw::as_object);
    let own = |name: &str| message.and_then(|message| message.get(name)).and_then(Object::new);
    out.push(b'{');
    write_elicitation(out, capabilities, rules);
    if capabilities.sampling {
        let details = own("sampling").filter(|_| rules.sampling_details);
        write_raw_member(out, "sampling", details.map_or("{}", Object::text));
    }
    if capabilities.roots {
        let changes = rules.methods.contains(Method::RootsChanged);
        let tells = own("roots").and_then(|roots| roots.get("listChanged")) == Some("true");
        let details = match (changes, tells) {
            (false, _) => "{}",
            (true, false) => r#"{"listChanged":false}"#,
            (true, true) => r#"{"listChanged":true}"#,
        };
        write_raw_member(out, "roots", details);
    }
    if rules.extensions {
        let has_tasks = capabilities.tasks && rules.tasks == TaskModel::Extension;
        let tasks = has_tasks.then_some(TASKS_EXTENSION);
        let used = tasks.into_iter().chain(style.extensions.iter().copied());
        write_extensions(out, own("extensions"), used);
    }
    if let Some(experimental) = own("experimental") {
        write_raw_member(out, "experimental", experimental.text());
    }
    out.push(b'}');
}

fn write_elicitation(out: &mut Vec<u8>, capabilities: &ClientCapabilities, rules: &Rules) {
    let modes = match rules.elicitation {
        ElicitationSupport::Absent => return,
        ElicitationSupport::Form if capabilities.elicitation_form => {
            return write_raw_member(out, "elicitation", "{}");
        }
        ElicitationSupport::Form => return,
        ElicitationSupport::FormAndNamedUrl | ElicitationSupport::FormAndUrl => {
            [("form", capabilities.elicitation_form), ("url", capabilities.elicitation_url)]
        }
    };
    if modes.iter().all(|(_, can)| !can) {
        return;
    }
    write_key(out, "elicitation");
    out.push(b'{');
    for (mode, _) in modes.iter().filter(|(_, can)| *can) {
        write_raw_member(out, mode, "{}");
    }
    out.push(b'}');
}

/// Writes the extensions that this program uses, and the given ones. Those that belong to one connection are declared by
/// this program only.
fn write_extensions(
    out: &mut Vec<u8>,
    named: Option<Object<'_>>,
    used: impl Iterator<Item = &'static str>,
) {
    let mut used = used.peekable();
    let named = named.map(Object::members).into_iter().flatten();
    let mut named = named.filter(|(name, _)| !is_connection_extension(name)).peekable();
    if named.peek().is_none() && used.peek().is_none() {
        return;
    }
    write_key(out, "extensions");
    out.push(b'{');
    for name in used {
        write_raw_member(out, name, "{}");
    }
    for (name, value) in named {
        write_comma(out);
        quote(out, &name);
        out.push(b':');
        out.extend_from_slice(value.as_bytes());
    }
    out.push(b'}');
}
