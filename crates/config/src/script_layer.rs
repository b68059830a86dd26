//! The script layer: runs the functions of a script, `request` around calls and `metadata` on listed definitions.

mod json_conversion;

#[cfg(test)]
mod tests;

use creole::internal::sync::RwLock;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use creole::{BoxFuture, Call, Middleware, Next};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::{Definition, ListKind};
use creole_proto::operation::{Operation, Outcome};
use creole_proto::wire::Object;
use creole_tools::script::{Function, Script, ScriptError, ScriptStep};

use creole_gateway::layers::{item_of, newest_json, unknown_item_fault};
use json_conversion::{ForwardedCall, call_from_json, call_to_json, outcome_from_json};

/// A layer that runs the functions of a script.
#[derive(Debug)]
pub struct ScriptLayer {
    script: Script,
    /// The items that it hid, by the list member that names them.
    hidden: RwLock<HashSet<(&'static str, String)>>,
    /// Whether `metadata` timed out once. It is not called again, since lists wait for it.
    is_stuck: AtomicBool,
    /// The messages that were logged already.
    logged: RwLock<BTreeSet<String>>,
}

impl ScriptLayer {
    /// A layer that runs this script.
    pub fn new(script: Script) -> Self {
        let (hidden, told) = (RwLock::default(), RwLock::default());
        Self { script, hidden, is_stuck: AtomicBool::new(false), logged: told }
    }

    async fn request(&self, call: Call, next: Next<'_>) -> Outcome {
        let begun = self.script.begin(Function::Request, vec![call_to_json(&call)]).await;
        let mut session = match begun {
            Ok(session) => session,
            Err(error) => return self.error_outcome(&error, &call.operation),
        };
        let mut last: Option<ForwardedCall> = None;
        loop {
            match session.next_step().await {
                ScriptStep::Next(number, text) => {
                    let wanted = match call_from_json(&call, &text) {
                        Ok(wanted) => wanted,
                        Err(refusal) => {
                            session.resume(number, Err(refusal));
                            continue;
                        }
                    };
                    if call.context.observes_layers() && wanted.operation != call.operation {
                        call.context.record_change();
                    }
                    let passed = ForwardedCall::new(next.call(wanted).await);
                    // A call that needs input or becomes a task runs again from the beginning.
                    let Some(answer) = passed.script_result() else { return passed.outcome };
                    session.resume(number, answer);
                    last = Some(passed);
                }
                ScriptStep::Done(Ok(value)) => {
                    let failure = |message| ScriptError {
                        message,
                        name: "Result".into(),
                        ..ScriptError::default()
                    };
                    return outcome_from_json(value.as_deref(), &call, last).unwrap_or_else(
                        |message| self.error_outcome(&failure(message), &call.operation),
                    );
                }
                ScriptStep::Done(Err(error)) => {
                    // An uncaught fault of an inner layer or the upstream is returned unchanged.
                    return match last.and_then(|last| last.rethrown_outcome(&error)) {
                        Some(outcome) => outcome,
                        None => self.error_outcome(&error, &call.operation),
                    };
                }
            }
        }
    }

    /// The outcome of a call whose script threw an error.
    fn error_outcome(&self, error: &ScriptError, operation: &Operation) -> Outcome {
        let usual = match operation {
            Operation::CallTool { .. } => FaultKind::ToolFailed,
            _ => FaultKind::Internal,
        };
        let named = error.kind.as_deref().and_then(FaultKind::from_name);
        // A fault of another server has its own code, which scripts do not see.
        let named = named.filter(|kind| error.is_deliberate() && *kind != FaultKind::Foreign);
        let kind = named.unwrap_or(usual);
        let mut fault =
            Fault::new(kind, self.script.explain_error(error)).with_subject(operation.target());
        fault.data = error.data.as_ref().map(creole_proto::wire::Raw::from_value);
        fault.into()
    }

    fn is_hidden(&self, kind: ListKind, name: &str) -> bool {
        let hidden = self.hidden.read();
        !hidden.is_empty() && hidden.contains(&(kind.member(), name.to_owned()))
    }

    /// Records whether an item is hidden, under all names that calls may use.
    fn record_visibility(&self, kind: ListKind, item: &Definition, is_shown: bool) {
        let uri = || {
            Object::new(newest_json(item))?.string("uriTemplate").ok()?.map(|uri| uri.into_owned())
        };
        let names = std::iter::once(item.name().to_owned()).chain(
            Some(kind).filter(|list_kind| *list_kind == ListKind::Templates).and_then(|_| uri()),
        );
        let mut hidden = self.hidden.write();
        for name in names {
            match is_shown {
                true => _ = hidden.remove(&(kind.member(), name)),
                false => _ = hidden.insert((kind.member(), name)),
            }
        }
    }

    /// One form of a definition after `metadata`. `None` if the script hides it.
    fn metadata(&self, kind: ListKind, item: &Definition, text: &str) -> Option<String> {
        if self.is_stuck.load(Ordering::Relaxed) {
            return None;
        }
        let arguments = [text.to_owned(), format!("\"{}\"", kind.member())];
        let message = match self.script.call_blocking(Function::Metadata, &arguments) {
            // Without a return value the definition is unchanged.
            Ok(None) => return Some(text.to_owned()),
            Ok(Some(text)) if text == "null" => return None,
            Ok(Some(changed)) if is_same_item(&changed, text) => return Some(changed),
            Ok(Some(_)) => {
                "the script must return a definition of the same item; use a `rename` layer to \
                    change names"
                    .to_owned()
            }
            Err(error) => {
                self.is_stuck.store(error.name == "Limit", Ordering::Relaxed);
                let line = error.line.map(|line| format!("line {line}: ")).unwrap_or_default();
                format!("{line}{error}")
            }
        };
        self.log_once(format!(
            "{}: `metadata` failed for {}: {message}; the item is not listed",
            self.script.file().display(),
            item.name()
        ));
        None
    }

    /// Logs once.
    fn log_once(&self, message: String) {
        let mut told = self.logged.write();
        if told.len() < 1000 && told.insert(message.clone()) {
            tracing::error!("{message}");
        }
    }
}

/// Whether a text is an object with the same name and uri.
fn is_same_item(changed: &str, text: &str) -> bool {
    let (Some(changed), Some(text)) = (Object::new(changed), Object::new(text)) else {
        return false;
    };
    let same = |key: &str| changed.string(key).ok().flatten() == text.string(key).ok().flatten();
    ["name", "uri", "uriTemplate"].into_iter().all(same)
}

impl Middleware for ScriptLayer {
    fn kind(&self) -> &'static str {
        "script"
    }

    fn admits_unlisted(&self, kind: ListKind, name: &str) -> bool {
        // Whether `metadata` would hide an item is only known for definitions.
        !self.script.has(Function::Metadata) || self.is_hidden(kind, name)
    }

    fn handle<'a>(&'a self, mut call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        if let Operation::Listen(filter) = &mut call.operation {
            filter.uris.retain(|uri| !self.is_hidden(ListKind::Resources, uri));
        }
        match item_of(&call.operation) {
            Some((kind, name)) if self.is_hidden(kind, name) => {
                let fault = unknown_item_fault(&call.operation);
                Box::pin(async move { fault.into() })
            }
            _ if self.script.has(Function::Request) && call.operation.may_require_input() => {
                Box::pin(self.request(call, next))
            }
            _ => next.call(call),
        }
    }

    fn rewrite_definition(&self, kind: ListKind, item: Arc<Definition>) -> Option<Arc<Definition>> {
        if !self.script.has(Function::Metadata) {
            return Some(item);
        }
        let shaped = item.map_texts(item.name(), |text| self.metadata(kind, &item, text));
        self.record_visibility(kind, &item, shaped.is_some());
        shaped.map(Arc::new)
    }
}
