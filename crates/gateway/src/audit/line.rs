//! The lines of an audit log. [`schema`](crate::audit::schema) describes them.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use creole::internal::seal::digest;
use creole::internal::task::random_id;
use creole::internal::telemetry::trace::IncomingTrace;
use creole::internal::telemetry::{CallRecord, Decision, PayloadView, StepKind, Via};
use creole::{Call, Context, Principal, TokenMethod};
use creole_proto::fault::FaultKind;
use creole_proto::model::format_timestamp;
use creole_proto::operation::Outcome;
use creole_proto::revision::Rules;
use creole_proto::wire::{Raw, canonical, escape_controls_in_json, hex};
use serde_json::{Map, Value, json};

use crate::audit::settings::AuditArguments;
use crate::layers::results::result_size::is_error_result;

/// The version of the schema of lines.
pub(crate) const VERSION: u64 = 1;

/// The maximum size of written arguments in bytes. Of larger ones the digest is written.
const MAX_ARGUMENTS: usize = 256 << 10;
/// The maximum length of a written target in bytes.
const MAX_TARGET: usize = 4096;

/// The layer of calls that lack a scope, which is before the chain.
const SCOPES_LAYER: &str = "scopes";

/// The method of lines about a person who looked at the messages of a call.
pub(crate) const VIEW_METHOD: &str = "payloads/view";

/// What the lines of one log have in common.
#[derive(Debug)]
pub(crate) struct LineFormat {
    pub(crate) server: String,
    pub(crate) arguments: AuditArguments,
    pub(crate) has_remote: bool,
    pub(crate) replica: Option<Arc<str>>,
}

/// A line that is not written yet.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    members: Map<String, Value>,
    pub(crate) trace: Option<[u8; 16]>,
}

impl LineFormat {
    /// The line of a call that starts now.
    pub(crate) fn start(&self, call: &Call) -> Line {
        let (operation, context) = (&call.operation, &call.context);
        let mut line = self.new_line(context.principal(), context.caller().rules);
        line.add_target(operation.method(), operation.target());
        if let Some(arguments) = operation.arguments() {
            self.add_arguments(&mut line, arguments);
        }
        match context.record() {
            Some(record) => self.add_record(&mut line, record),
            None => {
                line.insert("id", random_id().unwrap_or_default());
                line.insert("via", Via::Mcp.name());
            }
        }
        if line.trace.is_none() {
            line.set_trace(client_trace(context));
        }
        line
    }

    /// The line of a call that was refused before the chain.
    pub(crate) fn refused(&self, record: &CallRecord, kind: FaultKind) -> Line {
        let mut line = self.new_line(&record.principal, record.rules);
        line.insert("time", timestamp(record.started_at));
        line.add_target(record.method, &record.target);
        self.add_record(&mut line, record);
        line.insert("layer", SCOPES_LAYER);
        line.end("fault", Some(kind), record.duration());
        line
    }

    /// The line of a person who looked at the messages of a call.
    pub(crate) fn viewed(&self, view: &PayloadView<'_>) -> Line {
        let mut line = self.new_line(view.principal, view.rules);
        line.add_target(VIEW_METHOD, view.target);
        line.insert("id", format!("{:032x}", view.call));
        line.insert("via", Via::Console.name());
        if let Some(remote) = view.remote.filter(|_| self.has_remote) {
            line.insert("remote", remote.to_canonical().to_string());
        }
        line.insert("outcome", "ok");
        line
    }

    fn new_line(&self, principal: &Principal, rules: &'static Rules) -> Line {
        let mut line = Line { members: Map::new(), trace: None };
        line.insert("v", VERSION);
        line.insert("time", timestamp(SystemTime::now()));
        line.add_principal(principal);
        line.insert("server", self.server.as_str());
        line.insert("era", rules.era.name());
        line.insert("revision", rules.name);
        if let Some(replica) = &self.replica {
            line.insert("replica", &**replica);
        }
        line
    }

    fn add_arguments(&self, line: &mut Line, arguments: &Raw) {
        let sha256 = || hex(&digest(canonical(arguments.as_str()).as_bytes()));
        match &self.arguments {
            AuditArguments::None => {}
            AuditArguments::Digest => line.insert("argumentsSha256", sha256()),
            AuditArguments::Redacted(_) if arguments.as_str().len() > MAX_ARGUMENTS => {
                line.insert("argumentsSha256", sha256());
                line.insert("argumentsBytes", arguments.as_str().len());
            }
            AuditArguments::Redacted(redactor) => {
                let redacted = redactor.redact_data(arguments);
                if let Ok(value) = redacted.as_ref().unwrap_or(arguments).decode::<Value>() {
                    line.insert("arguments", value);
                }
            }
        }
    }

    fn add_record(&self, line: &mut Line, record: &CallRecord) {
        line.insert("id", record.id_text());
        line.insert("via", record.via.name());
        if let Some(session) = &record.session {
            line.insert("session", hex(session));
        }
        if let Some(remote) = record.remote.filter(|_| self.has_remote) {
            line.insert("remote", remote.to_canonical().to_string());
        }
        line.set_trace(record.trace.as_ref().map(|trace| trace.trace_id));
    }
}

impl Line {
    fn insert(&mut self, key: &str, value: impl Into<Value>) {
        self.members.insert(key.to_owned(), value.into());
    }

    fn set_trace(&mut self, trace: Option<[u8; 16]>) {
        self.trace = trace;
        if let Some(trace) = trace {
            self.insert("trace", hex(&trace));
        }
    }

    fn add_target(&mut self, method: &str, target: &str) {
        self.insert("method", method);
        if target.len() > MAX_TARGET {
            let end = (0..=MAX_TARGET).rev().find(|end| target.is_char_boundary(*end));
            self.insert("target", format!("{}…", &target[..end.unwrap_or(0)]));
        } else if !target.is_empty() {
            self.insert("target", target);
        }
    }

    /// Adds the principal and, for an access token, what it says of its caller. The fingerprint finds the calls of a
    /// token, and cannot be used as one.
    fn add_principal(&mut self, principal: &Principal) {
        self.insert("principal", principal.id());
        if let Some(method) = authentication_method(principal) {
            self.insert("auth", method);
        }
        let Some(token) = principal.token() else { return };
        self.insert("issuer", &*token.label);
        if let Some(client) = &token.client {
            self.insert("client", &**client);
        }
        self.insert("scopes", token.scopes.iter().map(|scope| &**scope).collect::<Value>());
        self.insert("token", hex(&token.fingerprint));
    }

    /// Adds how the call ended.
    pub(crate) fn end(
        &mut self,
        outcome: &'static str,
        fault: Option<FaultKind>,
        duration: Duration,
    ) {
        self.insert("outcome", outcome);
        if let Some(fault) = fault {
            self.insert("fault", fault.name());
        }
        self.insert("durationUs", u64::try_from(duration.as_micros()).unwrap_or(u64::MAX));
    }

    /// Adds the layer and the rule that refused the call.
    pub(crate) fn add_refusal(&mut self, context: &Context, is_fault: bool) {
        let rule = context.denied_by();
        if let Some(rule) = rule {
            self.insert("deniedBy", &**rule);
        }
        let layer = context.record().filter(|_| is_fault).and_then(|record| refusing_layer(record));
        if let Some(layer) = layer.or_else(|| rule.map(|_| "policy")) {
            self.insert("layer", layer);
        }
    }

    /// The line of a call that is about to run.
    pub(crate) fn started(&self) -> String {
        let mut line = self.clone();
        line.insert("outcome", "started");
        line.text()
    }

    /// The line as text. Characters that change how a text is shown are escaped.
    pub(crate) fn text(&self) -> String {
        let text = serde_json::to_string(&self.members).unwrap_or_default();
        escape_controls_in_json(&text).into_owned()
    }
}

/// A line that says how many lines were lost.
pub(crate) fn gap(lost: u64) -> String {
    json!({ "v": VERSION, "time": timestamp(SystemTime::now()), "lost": lost }).to_string()
}

/// The outcome of a call in one word, and its fault.
pub(crate) fn outcome(outcome: &Outcome) -> (&'static str, Option<FaultKind>) {
    match outcome {
        Outcome::Complete(payload) if is_error_result(payload) => ("error", None),
        Outcome::Complete(_) => ("ok", None),
        Outcome::InputRequired { .. } => ("asked", None),
        Outcome::Detach(_) => ("detached", None),
        Outcome::Fail(fault) => ("fault", Some(fault.kind)),
    }
}

/// The layer that refused a call: the last one that did, unless the call went to an upstream after that.
fn refusing_layer(record: &CallRecord) -> Option<&'static str> {
    record.steps().iter().rev().find_map(|step| match step.kind {
        StepKind::Layer { kind, decision: Decision::Refused, .. } => Some(Some(kind)),
        StepKind::UpstreamRequest { .. } => Some(None),
        _ => None,
    })?
}

/// The trace of the client, if it names one.
fn client_trace(context: &Context) -> Option<[u8; 16]> {
    let extra = context.caller().extra.as_ref()?;
    IncomingTrace::read(extra.meta.as_ref(), None).parent.map(|parent| parent.trace_id)
}

/// How the principal was authenticated, if it was.
fn authentication_method(principal: &Principal) -> Option<&'static str> {
    match principal.token() {
        Some(token) if token.is_dpop => Some("dpop"),
        Some(token) if token.method == TokenMethod::Introspection => Some("introspection"),
        Some(_) => Some("jwt"),
        None => match principal.id().split_once(':')?.0 {
            "key" => Some("key"),
            "user" | "wordpress" => Some("basic"),
            _ => None,
        },
    }
}

fn timestamp(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format_timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
