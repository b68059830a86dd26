//! The audit layer: writes one line of JSON for each call.
//!
//! A separate thread writes the lines. Calls send them through a queue and never wait. Lines that arrive while the
//! queue is full are counted, and the count is written as soon as there is room.

mod file;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::SystemTime;

use creole::internal::seal::digest;
use creole::{BoxFuture, Call, Context, Middleware, Next, Principal, TokenMethod};
use creole_proto::model::format_timestamp;
use creole_proto::operation::{Operation, Outcome};
use creole_proto::wire::{canonical, hex};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::layers::results::redact::Redactor;
use crate::layers::results::result_size::is_error_result;
use file::AuditFile;

/// The capacity of the queue in lines.
const LINE_QUEUE: usize = 4096;

/// The settings of the audit log.
#[derive(Clone, Debug)]
pub struct AuditSettings {
    /// The file.
    pub file: PathBuf,
    /// The size in bytes at which the file is rotated.
    pub max_bytes: u64,
    /// The number of rotated files that are kept.
    pub keep: u32,
    /// Which form of the arguments is written.
    pub arguments: AuditArguments,
    /// Whether each write is synced to disk.
    pub sync: bool,
}

/// The form in which arguments are written.
#[derive(Clone, Debug)]
pub enum AuditArguments {
    /// Nothing.
    None,
    /// The SHA-256 of their canonical form.
    Digest,
    /// The arguments after redaction.
    Redacted(Redactor),
}

/// A layer that writes an audit log.
#[derive(Debug)]
pub struct Audit {
    server: String,
    arguments: AuditArguments,
    lines: Option<SyncSender<String>>,
    lost_lines: Arc<AtomicU64>,
    writer: Option<JoinHandle<()>>,
}

impl Audit {
    /// A layer around the upstream of this name.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn new(server: &str, settings: AuditSettings) -> std::io::Result<Self> {
        let mut journal = AuditFile::open(&settings)?;
        let (lines, waiting) = sync_channel::<String>(LINE_QUEUE);
        let lost = Arc::new(AtomicU64::new(0));
        let missing = Arc::clone(&lost);
        let writer =
            std::thread::Builder::new().name("creole-audit".to_owned()).spawn(move || {
                while let Ok(first) = waiting.recv() {
                    let rest = std::iter::from_fn(|| waiting.try_recv().ok());
                    let count = missing.swap(0, Ordering::AcqRel);
                    let gap = (count > 0)
                        .then(|| json!({ "time": timestamp(), "lost": count }).to_string());
                    journal.write(std::iter::once(first).chain(rest.take(LINE_QUEUE)).chain(gap));
                }
            })?;
        let (lines, writer) = (Some(lines), Some(writer));
        Ok(Self {
            server: server.to_owned(),
            arguments: settings.arguments,
            lines,
            lost_lines: lost,
            writer,
        })
    }

    fn start_record(&self, call: &Call) -> AuditRecord<'_> {
        let operation = &call.operation;
        let mut line = Map::new();
        line.insert("time".to_owned(), timestamp().into());
        add_principal(&mut line, call.context.principal());
        line.insert("server".to_owned(), self.server.as_str().into());
        line.insert("method".to_owned(), operation.method().into());
        if !operation.target().is_empty() {
            line.insert("target".to_owned(), operation.target().into());
        }
        if let Some((key, value)) = self.operation_fields(operation) {
            line.insert(key.to_owned(), value);
        }
        AuditRecord {
            audit: self,
            context: call.context.clone(),
            line,
            started: Instant::now(),
            outcome: "cancelled",
            fault: None,
        }
    }

    fn operation_fields(&self, operation: &Operation) -> Option<(&'static str, Value)> {
        let arguments = operation.arguments()?;
        match &self.arguments {
            AuditArguments::None => None,
            AuditArguments::Digest => {
                let digest = digest(canonical(arguments.as_str()).as_bytes());
                Some(("argumentsSha256", hex(&digest).into()))
            }
            AuditArguments::Redacted(redactor) => {
                let redacted = redactor.redact_data(arguments);
                Some(("arguments", redacted.as_ref().unwrap_or(arguments).decode().ok()?))
            }
        }
    }

    fn write(&self, line: &Map<String, Value>) {
        let text = serde_json::to_string(line).unwrap_or_default();
        let sent = self.lines.as_ref().map(|lines| lines.try_send(text));
        if !matches!(sent, Some(Ok(()))) {
            self.lost_lines.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl Drop for Audit {
    /// Waits until all lines are written.
    fn drop(&mut self) {
        self.lines = None;
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has nothing more to write.
            _ = writer.join();
        }
    }
}

/// A running call. It is written when it ends, also if it is cancelled.
struct AuditRecord<'a> {
    audit: &'a Audit,
    context: Context,
    line: Map<String, Value>,
    started: Instant,
    outcome: &'static str,
    fault: Option<&'static str>,
}

impl AuditRecord<'_> {
    fn set_outcome(&mut self, outcome: &Outcome) {
        self.outcome = match outcome {
            Outcome::Complete(payload) if is_error_result(payload) => "error",
            Outcome::Complete(_) => "ok",
            Outcome::InputRequired { .. } => "asked",
            Outcome::Detach(_) => "detached",
            Outcome::Fail(fault) => {
                self.fault = Some(fault.kind.name());
                "fault"
            }
        };
    }
}

impl Drop for AuditRecord<'_> {
    fn drop(&mut self) {
        self.line.insert("outcome".to_owned(), self.outcome.into());
        if let Some(fault) = self.fault {
            self.line.insert("fault".to_owned(), fault.into());
        }
        if let Some(rule) = self.context.denied_by() {
            self.line.insert("deniedBy".to_owned(), (&**rule).into());
        }
        let took = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.line.insert("durationUs".to_owned(), took.into());
        self.audit.write(&self.line);
    }
}

/// Adds the principal and, for an access token, what it says of its caller. The fingerprint finds the calls of a token,
/// and cannot be used as one.
fn add_principal(line: &mut Map<String, Value>, principal: &Principal) {
    line.insert("principal".to_owned(), principal.id().into());
    if let Some(method) = authentication_method(principal) {
        line.insert("auth".to_owned(), method.into());
    }
    let Some(token) = principal.token() else { return };
    line.insert("issuer".to_owned(), (*token.label).into());
    if let Some(client) = &token.client {
        line.insert("client".to_owned(), (**client).into());
    }
    line.insert("scopes".to_owned(), token.scopes.iter().map(|scope| &**scope).collect());
    line.insert("token".to_owned(), hex(&token.fingerprint).into());
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

fn timestamp() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format_timestamp(u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}

impl Middleware for Audit {
    fn kind(&self) -> &'static str {
        "audit"
    }

    fn handle<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let mut record = self.start_record(&call);
            let outcome = next.call(call).await;
            record.set_outcome(&outcome);
            outcome
        })
    }
}

#[cfg(test)]
mod tests;
