//! Decodes request params into operations.

use alloc::borrow::{Cow, ToOwned};
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::calls::CallPurpose;
use crate::dialect::Dialect;
use crate::fault::{Fault, FaultKind};
use crate::method::Method;
use crate::model::{CompletionRequest, ListKind, TaskPreference};
use crate::operation::{ExtraMembers, Operation, SubscriptionFilter};
use crate::wire::{
    FieldError, FieldErrorKind, Object, ParamMembers, Raw, as_object, as_required_string, unquote,
};
use crate::wire::{meta, write_foreign_member};

/// The params of a request, with the members that most methods read.
#[derive(Clone, Copy)]
pub(super) struct Params<'a> {
    pub(super) all: Object<'a>,
    pub(super) members: ParamMembers<'a>,
}

/// Reads the extra members of a call.
pub(super) fn read_extra_members(method: Method, given: &Params<'_>) -> Option<Arc<ExtraMembers>> {
    let [more_params, more_meta] = given.members.has_extra;
    let is_call = matches!(method, Method::CallTool | Method::GetPrompt);
    let meta = given.members.meta.and_then(Object::new).filter(|_| more_meta);
    let params = Some(given.all).filter(|_| more_params && is_call);
    let extra = ExtraMembers {
        params: params
            .and_then(|params| filter_members(params, |name| !ParamMembers::is_known_member(name))),
        meta: meta.and_then(|meta| filter_members(meta, |name| !meta::is_reserved(name))),
    };
    (extra != ExtraMembers::default()).then(|| Arc::new(extra))
}

/// The object with only these members, if it has any.
fn filter_members(object: Object<'_>, is_kept: impl Fn(&str) -> bool) -> Option<Raw> {
    let mut out = Vec::from(b"{");
    for (name, value) in object.members().filter(|(name, _)| is_kept(name)) {
        write_foreign_member(&mut out, &name, value);
    }
    out.push(b'}');
    let text = String::from_utf8(out).ok().filter(|text| text.len() > 2)?;
    Some(Raw::from_validated(&text))
}

/// Reads the params of a method that the endpoint handles.
pub(super) fn read_operation(
    method: Method,
    given: Params<'_>,
    dialect: &Dialect,
) -> Result<(Operation, CallPurpose), Fault> {
    let params = given.all;
    let plain = |operation| Ok((operation, CallPurpose::Plain));
    let list = |kind| Ok((Operation::List(kind, read_cursor(params)?), CallPurpose::Plain));
    match method {
        Method::Initialize | Method::Discover => plain(Operation::Discover),
        Method::ListTools => list(ListKind::Tools),
        Method::ListResources => list(ListKind::Resources),
        Method::ListTemplates => list(ListKind::Templates),
        Method::ListPrompts => list(ListKind::Prompts),
        Method::ListSkills => list(ListKind::Skills),
        Method::CallTool => {
            let name = as_required_string("name", given.members.name)?.into_owned();
            let arguments = read_arguments(given.members.arguments, dialect.arguments_required)?;
            Ok((Operation::CallTool { name, arguments }, CallPurpose::Tool))
        }
        Method::ReadResource => plain(Operation::ReadResource { uri: required(params, "uri")? }),
        Method::ReadDirectory => {
            let (uri, cursor) = (required(params, "uri")?, read_cursor(params)?);
            plain(Operation::ReadDirectory { uri, cursor })
        }
        Method::GetSkill => plain(Operation::GetSkill { uri: required(params, "uri")? }),
        Method::GetPrompt => {
            let name = required(params, "name")?;
            plain(Operation::GetPrompt { name, arguments: read_prompt_arguments(params)? })
        }
        Method::Complete => plain(Operation::Complete(Box::new(CompletionRequest::read(params)?))),
        Method::Subscribe => {
            let uri = required(params, "uri")?;
            Ok((Operation::Subscribe { uri: uri.clone() }, CallPurpose::Subscribe(uri)))
        }
        Method::Unsubscribe => {
            let uri = required(params, "uri")?;
            Ok((Operation::Unsubscribe { uri: uri.clone() }, CallPurpose::Unsubscribe(uri)))
        }
        Method::Listen => Ok((Operation::Listen(read_filter(params)?), CallPurpose::Listen)),
        Method::GetTask => plain(Operation::GetTask { id: required(params, "taskId")? }),
        Method::CancelTask => plain(Operation::CancelTask { id: required(params, "taskId")? }),
        Method::ListTasks => plain(Operation::ListTasks(read_cursor(params)?)),
        Method::TaskResult => {
            let id = required(params, "taskId")?;
            Ok((Operation::TaskResult { id: id.clone() }, CallPurpose::TaskResult(id)))
        }
        Method::UpdateTask => {
            let id = required(params, "taskId")?;
            plain(Operation::UpdateTask {
                id,
                responses: read_input_responses(given.members.input_responses)?,
            })
        }
        other => Err(Fault::new(FaultKind::MethodNotFound, "").with_subject(other.name())),
    }
}

fn required(params: Object<'_>, key: &str) -> Result<String, FieldError> {
    params.required_string(key).map(Cow::into_owned)
}

fn read_cursor(params: Object<'_>) -> Result<Option<String>, FieldError> {
    Ok(params.string("cursor")?.map(Cow::into_owned))
}

fn read_arguments(raw: Option<&str>, needed: bool) -> Result<Option<Raw>, FieldError> {
    match as_object("arguments", raw)? {
        Some(arguments) => Ok(Some(Raw::from_validated(arguments.text()))),
        None if needed => {
            Err(FieldError { key: "arguments".to_owned(), kind: FieldErrorKind::Missing })
        }
        None => Ok(None),
    }
}

/// Reads the input responses for a task. `read_caller` has checked that each is an
/// object.
fn read_input_responses(raw: Option<&str>) -> Result<Raw, FieldError> {
    match as_object("inputResponses", raw)? {
        Some(responses) => Ok(Raw::from_validated(responses.text())),
        None => Err(FieldError { key: "inputResponses".to_owned(), kind: FieldErrorKind::Missing }),
    }
}

/// Reads the `task` member of a tool call (2025-11-25 schema, `TaskAugmentedRequestParams`).
pub(super) fn read_task_preference(raw: Option<&str>) -> Result<TaskPreference, FieldError> {
    let Some(task) = as_object("task", raw)? else { return Ok(TaskPreference::Never) };
    let whole = |raw: &str| raw.parse::<u64>().ok();
    match task.get("ttl").map(|raw| whole(raw).ok_or(raw)) {
        None => Ok(TaskPreference::Requested { ttl_ms: None }),
        Some(Ok(ttl)) => Ok(TaskPreference::Requested { ttl_ms: Some(ttl) }),
        Some(Err(_)) => Err(FieldError {
            key: "task.ttl".to_owned(),
            kind: FieldErrorKind::MustBe("an integer (milliseconds)"),
        }),
    }
}

/// The arguments of a prompt are strings (every revision, `GetPromptRequest`).
fn read_prompt_arguments(params: Object<'_>) -> Result<Option<Raw>, FieldError> {
    let Some(arguments) = params.object("arguments")? else { return Ok(None) };
    match arguments.members().find(|(_, value)| unquote(value).is_none()) {
        None => Ok(Some(Raw::from_validated(arguments.text()))),
        Some((key, _)) => Err(FieldError {
            key: alloc::format!("arguments.{key}"),
            kind: FieldErrorKind::MustBe("a string"),
        }),
    }
}

fn read_filter(params: Object<'_>) -> Result<SubscriptionFilter, FieldError> {
    let Some(wanted) = params.object("notifications")? else {
        return Err(FieldError { key: "notifications".to_owned(), kind: FieldErrorKind::Missing });
    };
    Ok(SubscriptionFilter {
        tools: wanted.bool("toolsListChanged")?.unwrap_or(false),
        prompts: wanted.bool("promptsListChanged")?.unwrap_or(false),
        resources: wanted.bool("resourcesListChanged")?.unwrap_or(false),
        uris: strings(wanted, "resourceSubscriptions")?,
        tasks: strings(wanted, "taskIds")?,
    })
}

fn strings(object: Object<'_>, key: &str) -> Result<Vec<String>, FieldError> {
    let elements = object.array(key)?.unwrap_or_default().into_iter();
    let strings = elements.map(|element| unquote(element).map(|text| text.to_string()));
    strings.collect::<Option<_>>().ok_or_else(|| FieldError {
        key: key.to_owned(),
        kind: FieldErrorKind::MustBe("an array of strings"),
    })
}
