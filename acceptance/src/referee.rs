//! The referee: checks every message of a server against independent rules.
//!
//! It observes one connection in both directions and knows which revision applies to each message: the one in the
//! response to `initialize`, or the one that a request states in its `_meta`. Each message of the server is checked
//! against
//!
//! * the published types of that revision (`rust-mcp-schema`), always;
//! * the official `schema.json` of that revision, where `MCP_SPEC_DIR` names a folder of them;
//! * the laws of the stream: one response to each request and none to any other message, no input request without the
//!   client's capability, no log message below the requested level, no listener's notification without its
//!   subscription or before its acknowledgement.
//!
//! Neither covers messages of an extension. `extension` checks them against the extension's own document, and against
//! its schema if `MCP_SPEC_DIR` has it.
//!
//! A dialect with its own protocol name is checked as JSON-RPC and by the laws of the stream. Where a dialect
//! deliberately deviates from the revision that it claims, `exceptions` lists the deviation with the reason.

mod envelope;
mod exceptions;
mod extension;
mod laws;
pub mod schema;
mod sent;
mod skills;
mod types;

use creole::proto::dialect::Dialect;
use creole::proto::model::Level;
use creole::proto::revision::{Era, Revision};
use creole::proto::wire::Raw;
use serde_json::Value;
use serde_json::value::RawValue;

use self::sent::{LineJoiner, OpenMessage, SentMessage};
use crate::transcript::Direction;

/// Observes one connection.
#[derive(Debug)]
pub struct Referee {
    dialect: Dialect,
    pieces: LineJoiner,
    session: Session,
    /// Messages of the client that may still get a response, oldest first.
    open: Vec<OpenMessage>,
    /// Ids of the server's own requests without a response so far, as they were written.
    asked: Vec<String>,
}

/// The result of the handshake.
#[derive(Debug, Default)]
struct Session {
    version: Version,
    /// Whether the client sent a request without its own version.
    used: bool,
    client: Value,
    server: Value,
    level: Option<Level>,
    watched: Vec<String>,
}

/// Which revision applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Version {
    /// None was negotiated.
    #[default]
    Open,
    /// An official one.
    Official(Revision),
    /// A protocol of the server's own.
    Own,
}

/// The kind of a server message.
#[derive(Clone, Copy, Debug)]
enum ServerMessageKind<'a> {
    Error,
    Answer {
        method: &'a str,
        result: &'a Value,
    },
    /// A result with input requests.
    Asking {
        result: &'a Value,
    },
    /// A result with a task.
    Task {
        result: &'a Value,
    },
    Request {
        method: &'a str,
    },
    Notification {
        method: &'a str,
    },
}

impl Referee {
    /// A referee of one new connection with a server of this dialect.
    #[must_use]
    pub fn new(dialect: &Dialect) -> Self {
        Self {
            dialect: dialect.clone(),
            pieces: LineJoiner::default(),
            session: Session::default(),
            open: Vec::new(),
            asked: Vec::new(),
        }
    }

    /// Records the data of a client, in pieces of any size, and checks one message of the server.
    ///
    /// # Errors
    /// The problem of the server's message.
    pub fn observe(&mut self, direction: Direction, line: &str) -> Result<(), String> {
        match direction {
            Direction::ToServer => {
                self.pieces.take(line).iter().for_each(|line| self.note_line(line));
                Ok(())
            }
            Direction::ToClient => {
                let result = self.judge_line(line.trim_end());
                result.map_err(|reason| format!("{reason}\nin the message\n  {line}"))
            }
        }
    }

    fn note_line(&mut self, line: &str) {
        for sent in SentMessage::of_line(line, &self.dialect) {
            match sent {
                SentMessage::Answerable(open) => self.note_open(*open),
                SentMessage::Notification => {}
                SentMessage::Cancellation { id } => {
                    if let Some(offset) = self.find_open(|open| open.has_id(&id)) {
                        self.open[offset].cancelled = true;
                    }
                }
                SentMessage::Answer { id } => self.asked.retain(|asked| *asked != id),
            }
        }
    }

    fn note_open(&mut self, mut open: OpenMessage) {
        open.version = self.session.version;
        let newest = ["server/discover", "subscriptions/listen", "tasks/update"]
            .contains(&open.method.as_str());
        open.stateless |= self.dialect.stateless && newest && open.version == Version::Open;
        if !open.stateless {
            self.session.used |= !open.method.is_empty();
            open.level = self.session.level;
        }
        if open.method == "resources/subscribe" {
            self.session.watched.extend(open.params["uri"].as_str().map(str::to_owned));
        }
        self.open.push(open);
    }

    fn judge_line(&mut self, line: &str) -> Result<(), String> {
        Raw::parse(line)
            .map_err(|error| format!("not one JSON value without repeated keys: {error}"))?;
        if let Some(begun) = self.pieces.take_begun() {
            self.note_line(&begun);
        }
        match serde_json::from_str::<Vec<&RawValue>>(line) {
            Ok(elements) if elements.is_empty() => Err("an empty batch".to_owned()),
            Ok(elements) => {
                self.judge_batch(line)?;
                elements.iter().try_for_each(|element| self.judge_message(element.get()))
            }
            Err(_) => self.judge_message(line),
        }
    }

    fn judge_batch(&self, line: &str) -> Result<(), String> {
        let Version::Official(revision) = self.session.version else { return Ok(()) };
        if !revision.rules().batches {
            return Err(format!("{} has no batches", revision.rules().name));
        }
        let mut batch: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        for message in batch.as_array_mut().into_iter().flatten() {
            *message =
                exceptions::without_excused_id(message, &self.dialect, revision).into_owned();
        }
        schema::judge_batch(revision, &batch)
    }

    fn judge_message(&mut self, text: &str) -> Result<(), String> {
        let message: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        envelope::check(&message)?;
        let id = sent::id_token(text);
        match (message["method"].as_str(), id) {
            (Some(method), Some(id)) => self.judge_request(method, id, &message),
            (Some(method), None) => self.judge_notification(method, &message),
            (None, id) => self.judge_response(id.as_deref(), &message),
        }
    }

    fn judge_request(&mut self, method: &str, id: String, message: &Value) -> Result<(), String> {
        self.check_request(method, &id, message)?;
        self.asked.push(id);
        let versions = [self.session.version];
        self.compare(&versions, ServerMessageKind::Request { method }, message)
    }

    fn judge_notification(&mut self, method: &str, message: &Value) -> Result<(), String> {
        let stateless = self.check_notification(method, &message["params"])?;
        let version = match stateless {
            true => Version::Official(Revision::newest(Era::Stateless)),
            false => self.session.version,
        };
        self.compare(&[version], ServerMessageKind::Notification { method }, message)
    }

    fn judge_response(&mut self, id: Option<&str>, message: &Value) -> Result<(), String> {
        let open = self.take_open(id, message.get("error").is_some())?;
        let Some(result) = message.get("result") else {
            let mut versions = self.versions(&open);
            // A rejection of the whole message follows the rules of the session.
            versions.extend(id.is_none().then_some(self.session.version));
            return self.compare(&versions, ServerMessageKind::Error, message);
        };
        let method = open.method.as_str();
        if method == "initialize" && !open.stateless {
            self.agree(&open, result)?;
        }
        self.check_result(&open, result)?;
        let asking = open.stateless && result["resultType"] == "input_required";
        let kind = match result {
            _ if asking => ServerMessageKind::Asking { result },
            _ if laws::is_task(&open, result) => ServerMessageKind::Task { result },
            _ => ServerMessageKind::Answer { method, result },
        };
        self.compare(&self.versions(&open), kind, message)
    }

    /// Records the response to `initialize`.
    fn agree(&mut self, open: &OpenMessage, result: &Value) -> Result<(), String> {
        let name = result["protocolVersion"].as_str().ok_or("no `protocolVersion`")?;
        self.session.version = match Revision::from_name(name) {
            None => Version::Own,
            Some(revision) if revision.rules().era == Era::Handshake => Version::Official(revision),
            Some(_) => return Err(format!("{name} has no handshake")),
        };
        self.session.client = open.params["capabilities"].clone();
        self.session.server = result["capabilities"].clone();
        self.session.level = None;
        Ok(())
    }

    /// The versions that may apply to the response: the one at the time of the request, or the current one.
    fn versions(&self, open: &OpenMessage) -> Vec<Version> {
        if open.stateless {
            return vec![Version::Official(Revision::newest(Era::Stateless))];
        }
        match (open.version, self.session.version) {
            (Version::Open, now) => vec![now],
            (then, now) if then == now => vec![now],
            (then, now) => vec![now, then],
        }
    }

    /// Checks a message against the possible revisions, of which one must accept it. Without a negotiated one, all are
    /// possible.
    fn compare(
        &self,
        versions: &[Version],
        kind: ServerMessageKind<'_>,
        message: &Value,
    ) -> Result<(), String> {
        if versions.contains(&Version::Own) {
            return envelope::check_id(message);
        }
        let official = |version: &Version| match version {
            Version::Official(revision) => Some(*revision),
            _ => None,
        };
        let mut revisions: Vec<Revision> = versions.iter().filter_map(official).collect();
        if versions.contains(&Version::Open) {
            revisions.extend(Revision::ALL);
        }
        let mut problems = Vec::new();
        for revision in revisions {
            match self.compare_with(revision, kind, message) {
                Ok(()) => return Ok(()),
                Err(reason) => problems.push(format!("{}: {reason}", revision.rules().name)),
            }
        }
        Err(problems.join("\n"))
    }

    fn compare_with(
        &self,
        revision: Revision,
        kind: ServerMessageKind<'_>,
        message: &Value,
    ) -> Result<(), String> {
        let message = exceptions::without_excused_id(message, &self.dialect, revision);
        if message.get("id").is_some_and(Value::is_null) {
            return Err("an unreadable `id` must be omitted, not null".to_owned());
        }
        if extension::is_of(revision, kind) {
            return extension::check_extension(revision, kind, &message);
        }
        if skills::is_of(revision, kind) {
            return skills::check_skills(revision, kind);
        }
        types::check_types(revision, kind, &message)
            .map_err(|reason| format!("the published types reject it: {reason}"))?;
        schema::check_schema(revision, kind, &message)
            .map_err(|reason| format!("the official schema rejects it: {reason}"))
    }
}

#[cfg(test)]
mod tests;
