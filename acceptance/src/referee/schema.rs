//! The schema referee: checks messages against the official `schema.json` of each revision.
//!
//! The files are not part of this repository. `MCP_SPEC_DIR` names a folder with `<revision>/schema.json`. Without it
//! this referee is disabled, which is reported once.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::{env, fs, io};

use creole::proto::revision::Revision;
use jsonschema::Validator;
use serde_json::{Value, json};

use super::ServerMessageKind;

/// The definition of each method's result.
const RESULTS: &[(&str, &str)] = &[
    ("initialize", "InitializeResult"),
    ("ping", "EmptyResult"),
    ("server/discover", "DiscoverResult"),
    ("tools/list", "ListToolsResult"),
    ("tools/call", "CallToolResult"),
    ("resources/list", "ListResourcesResult"),
    ("resources/templates/list", "ListResourceTemplatesResult"),
    ("resources/read", "ReadResourceResult"),
    ("resources/subscribe", "EmptyResult"),
    ("resources/unsubscribe", "EmptyResult"),
    ("prompts/list", "ListPromptsResult"),
    ("prompts/get", "GetPromptResult"),
    ("completion/complete", "CompleteResult"),
    ("logging/setLevel", "EmptyResult"),
    ("subscriptions/listen", "SubscriptionsListenResult"),
    ("tasks/get", "GetTaskResult"),
    ("tasks/list", "ListTasksResult"),
    ("tasks/cancel", "CancelTaskResult"),
    // The definition of the payload accepts anything. All tasks here are tool calls.
    ("tasks/result", "CallToolResult"),
];

/// The definition of each message that a server may initiate.
const MESSAGES: &[(&str, &str)] = &[
    ("notifications/cancelled", "CancelledNotification"),
    ("notifications/progress", "ProgressNotification"),
    ("notifications/message", "LoggingMessageNotification"),
    ("notifications/tools/list_changed", "ToolListChangedNotification"),
    ("notifications/resources/list_changed", "ResourceListChangedNotification"),
    ("notifications/prompts/list_changed", "PromptListChangedNotification"),
    ("notifications/resources/updated", "ResourceUpdatedNotification"),
    ("notifications/elicitation/complete", "ElicitationCompleteNotification"),
    ("notifications/subscriptions/acknowledged", "SubscriptionsAcknowledgedNotification"),
    ("notifications/tasks/status", "TaskStatusNotification"),
    ("ping", "PingRequest"),
    ("roots/list", "ListRootsRequest"),
    ("sampling/createMessage", "CreateMessageRequest"),
    ("elicitation/create", "ElicitRequest"),
];

/// Codes whose whole response has a definition, in the revisions that have them.
const ERRORS: &[(i64, &str)] = &[
    (-32020, "HeaderMismatchError"),
    (-32021, "MissingRequiredClientCapabilityError"),
    (-32022, "UnsupportedProtocolVersionError"),
    (-32042, "URLElicitationRequiredError"),
];

/// The maximum length of a reported error.
const LONGEST_COMPLAINT: usize = 400;

/// The folder that `MCP_SPEC_DIR` names, if it names one.
pub fn folder() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOLDER.get_or_init(|| env::var_os("MCP_SPEC_DIR").map(PathBuf::from)).as_deref()
}

/// Checks a value against one definition of a revision's schema. Without the schemas, every value passes.
pub fn validate(revision: Revision, definition: &str, value: &Value) -> Result<(), String> {
    let Some(official) = official() else { return Ok(()) };
    complaints(&*official.validator(revision, definition)?, definition, value)
}

fn complaints(validator: &Validator, definition: &str, value: &Value) -> Result<(), String> {
    let problems: Vec<String> = validator
        .iter_errors(value)
        .take(3)
        .map(|error| shortened(&format!("at `{}`: {error}", error.instance_path())))
        .collect();
    match problems.is_empty() {
        true => Ok(()),
        false => Err(format!("not a valid `{definition}`: {}", problems.join("; "))),
    }
}

/// Checks a value against one definition of the tasks extension's schema. If `MCP_SPEC_DIR` has none, every value
/// passes.
pub(super) fn validate_extension(definition: &str, value: &Value) -> Result<(), String> {
    static DOCUMENT: OnceLock<Option<Value>> = OnceLock::new();
    let read = || {
        let text = fs::read_to_string(folder()?.join("ext-tasks").join("schema.json")).ok()?;
        Some(serde_json::from_str(&text).expect("the extension's schema is JSON"))
    };
    let Some(document) = DOCUMENT.get_or_init(read) else { return Ok(()) };
    complaints(&compiled(document, definition)?, definition, value)
}

/// Checks one message of a server against the schema of a revision.
pub(super) fn check_schema(
    revision: Revision,
    kind: ServerMessageKind<'_>,
    message: &Value,
) -> Result<(), String> {
    let Some(official) = official() else { return Ok(()) };
    let has = |name: &str| official.has(revision, name);
    validate(revision, "JSONRPCMessage", message)?;
    let validate = |definition: &str, value: &Value| validate(revision, definition, value);
    match kind {
        ServerMessageKind::Error => {
            let newer = has("JSONRPCErrorResponse")?;
            validate(if newer { "JSONRPCErrorResponse" } else { "JSONRPCError" }, message)?;
            let row = ERRORS.iter().find(|(code, _)| message["error"]["code"] == *code);
            match row {
                Some((_, definition)) if has(definition)? => validate(definition, message),
                _ => Ok(()),
            }
        }
        ServerMessageKind::Answer { method, result } => {
            let newer = has("JSONRPCResultResponse")?;
            validate(if newer { "JSONRPCResultResponse" } else { "JSONRPCResponse" }, message)?;
            validate(named(RESULTS, method)?, result)
        }
        ServerMessageKind::Asking { result } => validate("InputRequiredResult", result),
        ServerMessageKind::Task { result } => validate("CreateTaskResult", result),
        ServerMessageKind::Request { method } => {
            validate("JSONRPCRequest", message)?;
            validate("ServerRequest", message)?;
            validate(named(MESSAGES, method)?, message)
        }
        ServerMessageKind::Notification { method } => {
            validate("JSONRPCNotification", message)?;
            validate("ServerNotification", message)?;
            validate(named(MESSAGES, method)?, message)
        }
    }
}

/// Checks a whole batch.
pub(super) fn judge_batch(revision: Revision, batch: &Value) -> Result<(), String> {
    validate(revision, "JSONRPCMessage", batch)
}

fn named(rows: &[(&str, &'static str)], method: &str) -> Result<&'static str, String> {
    let row = rows.iter().find(|(name, _)| *name == method);
    row.map(|(_, definition)| *definition).ok_or_else(|| format!("no definition for `{method}`"))
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_COMPLAINT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The schemas, each read and compiled at its first use.
struct Official {
    folder: &'static Path,
    documents: Mutex<BTreeMap<Revision, Arc<Value>>>,
    validators: Mutex<BTreeMap<(Revision, String), Arc<Validator>>>,
}

fn official() -> Option<&'static Official> {
    static OFFICIAL: OnceLock<Option<Official>> = OnceLock::new();
    let open = || {
        let Some(folder) = folder() else {
            let news = "MCP_SPEC_DIR is not set: messages are checked by published types only, not by the official schemas";
            // Directly to the stream: the test harness captures the output of the macros.
            _ = writeln!(io::stderr(), "{news}");
            return None;
        };
        Some(Official { folder, documents: Mutex::default(), validators: Mutex::default() })
    };
    OFFICIAL.get_or_init(open).as_ref()
}

impl Official {
    fn validator(&self, revision: Revision, definition: &str) -> Result<Arc<Validator>, String> {
        let mut known = self.validators.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (revision, definition.to_owned());
        if let Some(validator) = known.get(&key) {
            return Ok(Arc::clone(validator));
        }
        let validator = Arc::new(self.compile(revision, definition)?);
        known.insert(key, Arc::clone(&validator));
        Ok(validator)
    }

    fn compile(&self, revision: Revision, definition: &str) -> Result<Validator, String> {
        if !self.has(revision, definition)? {
            return Err(format!("its schema has no `{definition}`"));
        }
        compiled(&*self.document(revision)?, definition)
    }

    fn has(&self, revision: Revision, definition: &str) -> Result<bool, String> {
        let document = self.document(revision)?;
        Ok(document[keyword(&document)].get(definition).is_some())
    }

    fn document(&self, revision: Revision) -> Result<Arc<Value>, String> {
        let mut known = self.documents.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(document) = known.get(&revision) {
            return Ok(Arc::clone(document));
        }
        let path = self.folder.join(revision.rules().name).join("schema.json");
        let told = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = fs::read_to_string(&path).map_err(|error| told(&error))?;
        let document: Value = serde_json::from_str(&text).map_err(|error| told(&error))?;
        let document = Arc::new(document);
        known.insert(revision, Arc::clone(&document));
        Ok(document)
    }
}

fn compiled(document: &Value, definition: &str) -> Result<Validator, String> {
    let mut schema = document.clone();
    schema["$ref"] = json!(format!("#/{}/{definition}", keyword(&schema)));
    jsonschema::options()
        .should_validate_formats(true)
        .build(&schema)
        .map_err(|error| format!("the schema of `{definition}` does not compile: {error}"))
}

/// The keyword for definitions: the newer revisions use 2020-12, the older ones draft-07.
fn keyword(document: &Value) -> &'static str {
    if document.get("$defs").is_some() { "$defs" } else { "definitions" }
}
