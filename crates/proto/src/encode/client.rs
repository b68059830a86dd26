//! What a client sends: requests with their terms, and what it can be asked for.

use alloc::format;
use alloc::vec::Vec;

use super::result::write_filter;
use super::{comma, data, foreign_member, key, raw_member, text_member};
use crate::client::Terms;
use crate::dialect::Dialect;
use crate::meta;
use crate::method::Method;
use crate::model::{
    ClientCapabilities, CompletionRequest, Level, Reference, TASKS_EXTENSION, Tasking,
};
use crate::op::{Operation, Reentry};
use crate::revision::{Elicitation, Era, Rules, Tasks};
use crate::wire::{Inside, Object, Raw, quote};

/// How a request is written.
pub(crate) struct Manner<'a> {
    pub(crate) dialect: &'a Dialect,
    pub(crate) rules: &'static Rules,
    /// Who the client is: an object.
    pub(crate) identity: &'a Raw,
    /// The number that progress is reported under.
    pub(crate) token: u64,
}

/// Writes the members of the params of a call.
pub(crate) fn write_call(
    out: &mut Vec<u8>,
    operation: &Operation,
    terms: &Terms,
    manner: &Manner<'_>,
) {
    write_operation(out, operation, manner.dialect);
    if manner.rules.era == Era::Stateless && operation.may_ask() {
        write_reentry(out, terms.reentry.as_ref());
    }
    if let (Tasks::Wanted, Operation::CallTool { .. }) = (manner.rules.tasks, operation) {
        write_task_wish(out, terms.tasking);
    }
    if matches!(operation, Operation::CallTool { .. } | Operation::GetPrompt { .. }) {
        write_foreign(out, terms.params.as_ref(), |name| !Inside::knows(name));
    }
    write_meta(out, terms, manner);
}

/// Writes members of somebody else's names as they were given.
fn write_foreign(out: &mut Vec<u8>, given: Option<&Raw>, is_written: impl Fn(&str) -> bool) {
    let members = given.and_then(Raw::object).map(Object::members).into_iter().flatten();
    for (name, value) in members.filter(|(name, _)| is_written(name)) {
        foreign_member(out, &name, value);
    }
}

/// Writes the members of the params of `initialize`.
pub(crate) fn write_initialize(
    out: &mut Vec<u8>,
    version: &str,
    capabilities: &ClientCapabilities,
    manner: &Manner<'_>,
) {
    text_member(out, "protocolVersion", version);
    key(out, "capabilities");
    write_capabilities(out, capabilities, manner.rules);
    raw_member(out, "clientInfo", manner.identity.as_str());
}

/// Writes the params of `logging/setLevel`.
pub(crate) fn write_level(out: &mut Vec<u8>, level: Level) {
    text_member(out, "level", level.name());
}

fn write_operation(out: &mut Vec<u8>, operation: &Operation, dialect: &Dialect) {
    match operation {
        Operation::Discover => {}
        Operation::List(_, cursor) | Operation::ListTasks(cursor) => {
            write_cursor(out, cursor.as_deref());
        }
        Operation::CallTool { name, arguments } => {
            text_member(out, "name", name);
            let given = arguments.as_ref().map(Raw::as_str);
            if let Some(arguments) = given.or(dialect.arguments_required.then_some("{}")) {
                raw_member(out, "arguments", arguments);
            }
        }
        Operation::GetPrompt { name, arguments } => {
            text_member(out, "name", name);
            if let Some(arguments) = arguments {
                raw_member(out, "arguments", arguments.as_str());
            }
        }
        Operation::ReadDirectory { uri, cursor } => {
            text_member(out, "uri", uri);
            write_cursor(out, cursor.as_deref());
        }
        Operation::ReadResource { uri }
        | Operation::GetSkill { uri }
        | Operation::Subscribe { uri }
        | Operation::Unsubscribe { uri } => text_member(out, "uri", uri),
        Operation::Complete(wanted) => write_completion(out, wanted),
        Operation::Listen(filter) => write_filter(out, filter),
        Operation::GetTask { id } | Operation::TaskResult { id } | Operation::CancelTask { id } => {
            text_member(out, "taskId", id)
        }
        Operation::UpdateTask { id, answers } => {
            text_member(out, "taskId", id);
            raw_member(out, "inputResponses", answers.as_str());
        }
    }
}

fn write_cursor(out: &mut Vec<u8>, cursor: Option<&str>) {
    if let Some(cursor) = cursor {
        text_member(out, "cursor", cursor);
    }
}

fn write_completion(out: &mut Vec<u8>, wanted: &CompletionRequest) {
    let (kind, member, value) = match &wanted.reference {
        Reference::Prompt(name) => ("ref/prompt", "name", name),
        Reference::Resource(uri) => ("ref/resource", "uri", uri),
    };
    key(out, "ref");
    out.push(b'{');
    text_member(out, "type", kind);
    text_member(out, member, value);
    out.push(b'}');
    key(out, "argument");
    out.push(b'{');
    text_member(out, "name", &wanted.argument);
    text_member(out, "value", &wanted.value);
    out.push(b'}');
    if !wanted.context.is_empty() {
        key(out, "context");
        out.push(b'{');
        key(out, "arguments");
        data(out, &wanted.context);
        out.push(b'}');
    }
}

/// Writes what is brought when a call is made again, as it was given.
fn write_reentry(out: &mut Vec<u8>, reentry: Option<&Reentry>) {
    let Some(reentry) = reentry else { return };
    if let Some(answers) = &reentry.answers {
        raw_member(out, "inputResponses", answers.as_str());
    }
    if let Some(state) = &reentry.state {
        text_member(out, "requestState", state);
    }
}

fn write_task_wish(out: &mut Vec<u8>, tasking: Tasking) {
    let Tasking::Wanted { ttl_ms } = tasking else { return };
    key(out, "task");
    out.push(b'{');
    if let Some(ttl) = ttl_ms {
        raw_member(out, "ttl", &format!("{ttl}"));
    }
    out.push(b'}');
}

/// Writes `_meta`, where there is anything to say in it.
fn write_meta(out: &mut Vec<u8>, terms: &Terms, manner: &Manner<'_>) {
    let start = out.len();
    key(out, "_meta");
    out.push(b'{');
    let opened = out.len();
    if manner.rules.era == Era::Stateless {
        text_member(out, meta::PROTOCOL_VERSION, manner.rules.name);
        key(out, meta::CLIENT_CAPABILITIES);
        write_capabilities(out, &terms.capabilities, manner.rules);
        let client = terms.client.as_ref().unwrap_or(manner.identity);
        raw_member(out, meta::CLIENT_INFO, client.as_str());
        if let Some(level) = terms.log {
            text_member(out, meta::LOG_LEVEL, level.name());
        }
    }
    if terms.progress {
        raw_member(out, meta::PROGRESS_TOKEN, &format!("{}", manner.token));
    }
    write_foreign(out, terms.meta.as_ref(), |name| !meta::is_reserved(name));
    match out.len() == opened {
        true => out.truncate(start),
        false => out.push(b'}'),
    }
}

/// Writes what the client can be asked for, as far as these rules have it.
pub(crate) fn write_capabilities(out: &mut Vec<u8>, given: &ClientCapabilities, rules: &Rules) {
    let said = given.raw.as_ref().and_then(Raw::object);
    let own = |name: &str| said.and_then(|said| said.get(name)).and_then(Object::new);
    out.push(b'{');
    write_elicitation(out, given, rules);
    if given.sampling {
        let details = own("sampling").filter(|_| rules.sampling_details);
        raw_member(out, "sampling", details.map_or("{}", Object::text));
    }
    if given.roots {
        let changes = rules.methods.contains(Method::RootsChanged);
        let tells = own("roots").and_then(|roots| roots.get("listChanged")) == Some("true");
        let details = match (changes, tells) {
            (false, _) => "{}",
            (true, false) => r#"{"listChanged":false}"#,
            (true, true) => r#"{"listChanged":true}"#,
        };
        raw_member(out, "roots", details);
    }
    if rules.extensions {
        write_extensions(out, own("extensions"), given.tasks && rules.tasks == Tasks::Extension);
    }
    if let Some(experimental) = own("experimental") {
        raw_member(out, "experimental", experimental.text());
    }
    out.push(b'}');
}

fn write_elicitation(out: &mut Vec<u8>, given: &ClientCapabilities, rules: &Rules) {
    let modes = match rules.elicitation {
        Elicitation::Absent => return,
        Elicitation::Form if given.elicitation_form => return raw_member(out, "elicitation", "{}"),
        Elicitation::Form => return,
        Elicitation::FormAndNamedUrl | Elicitation::FormAndUrl => {
            [("form", given.elicitation_form), ("url", given.elicitation_url)]
        }
    };
    if modes.iter().all(|(_, can)| !can) {
        return;
    }
    key(out, "elicitation");
    out.push(b'{');
    for (mode, _) in modes.iter().filter(|(_, can)| *can) {
        raw_member(out, mode, "{}");
    }
    out.push(b'}');
}

/// Writes the extensions that were named; that of tasks is ours to declare.
fn write_extensions(out: &mut Vec<u8>, named: Option<Object<'_>>, tasks: bool) {
    let named = named.map(Object::members).into_iter().flatten();
    let mut named = named.filter(|(name, _)| name != TASKS_EXTENSION).peekable();
    if named.peek().is_none() && !tasks {
        return;
    }
    key(out, "extensions");
    out.push(b'{');
    if tasks {
        raw_member(out, TASKS_EXTENSION, "{}");
    }
    for (name, value) in named {
        comma(out);
        quote(out, &name);
        out.push(b':');
        out.extend_from_slice(value.as_bytes());
    }
    out.push(b'}');
}
