//! The messages of the client: which may still get a response, and under which rules.

use std::collections::BTreeMap;

use creole::proto::dialect::Dialect;
use creole::proto::model::Level;
use creole::proto::wire::Raw;
use creole::proto::wire::meta;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Version;
use super::exceptions::{Deviation, is_excused};

/// A message of the client that may get one response.
#[derive(Debug)]
pub(super) struct OpenMessage {
    /// The token of its id, as it was written. `None` if it cannot be read.
    pub(super) id: Option<String>,
    pub(super) method: String,
    pub(super) params: Value,
    /// Whether it is stateless: it carries the client's information, or only the stateless era has its method.
    pub(super) stateless: bool,
    /// The version at the time it was sent.
    pub(super) version: Version,
    /// The lowest log level that it requests: its own, or that of the session at the time.
    pub(super) level: Option<Level>,
    /// Whether the client has cancelled it. A response may have been on its way.
    pub(super) cancelled: bool,
    pub(super) last_progress: Option<f64>,
    /// The acknowledged part of a listener's filter, once it is known.
    pub(super) acknowledged: Option<Value>,
}

impl OpenMessage {
    /// A member of its `_meta`.
    pub(super) fn meta(&self, key: &str) -> &Value {
        &self.params["_meta"][key]
    }

    /// Whether this is its id, by value.
    pub(super) fn has_id(&self, id: &Value) -> bool {
        let own = self.id.as_deref().and_then(|token| serde_json::from_str::<Value>(token).ok());
        own.as_ref() == Some(id)
    }
}

/// A message of the client, by its possible effects.
#[derive(Debug)]
pub(super) enum SentMessage {
    /// It may get a response: it is a request, or an invalid message.
    Answerable(Box<OpenMessage>),
    /// It gets no response.
    Notification,
    /// It gets no response, and cancels the request with this id.
    Cancellation { id: Value },
    /// It is the response to the server's request with this id, as it was written.
    Answer { id: String },
}

impl SentMessage {
    /// Reads the messages of one line.
    pub(super) fn of_line(line: &str, dialect: &Dialect) -> Vec<Self> {
        match serde_json::from_str::<Vec<&RawValue>>(line) {
            Ok(elements) if !elements.is_empty() => {
                elements.iter().map(|element| Self::of(element.get(), dialect)).collect()
            }
            _ => vec![Self::of(line, dialect)],
        }
    }

    fn of(text: &str, dialect: &Dialect) -> Self {
        let members = members(text);
        let raw = |key: &str| members.get(key).map(|value| value.get());
        let value = |key: &str| raw(key).and_then(|text| serde_json::from_str::<Value>(text).ok());
        let method = value("method").and_then(|name| name.as_str().map(str::to_owned));
        let method = method.unwrap_or_default();
        let params = value("params").unwrap_or_default();
        // Invalid UTF-8 was replaced on the way here, so the bytes that the server saw are unknown.
        let readable = Raw::parse(text).is_ok() && !text.contains('\u{fffd}');
        let proper = readable && value("jsonrpc").is_some_and(|version| version == "2.0");
        let has = |key: &str| members.contains_key(key);
        let fair_params = raw("params").is_none_or(|text| text.starts_with('{') || text == "null");
        let tells =
            !method.is_empty() && fair_params && !has("id") && !has("result") && !has("error");
        if proper && tells && !is_excused(Deviation::AnsweredNotification, dialect, dialect.base) {
            return match method.as_str() {
                "notifications/cancelled" => Self::Cancellation { id: params["requestId"].clone() },
                _ => Self::Notification,
            };
        }
        let answers = !has("method") && has("result") != has("error");
        match id_token(text) {
            Some(id) if proper && answers => Self::Answer { id },
            id => Self::Answerable(Box::new(OpenMessage::new(id, method, params, dialect))),
        }
    }
}

impl OpenMessage {
    fn new(id: Option<String>, method: String, params: Value, dialect: &Dialect) -> Self {
        let about = [meta::PROTOCOL_VERSION, meta::CLIENT_CAPABILITIES, meta::CLIENT_INFO];
        let claims = about.iter().any(|key| params["_meta"].get(key).is_some());
        let level = params["_meta"][meta::LOG_LEVEL].as_str().and_then(Level::from_name);
        Self {
            id,
            method,
            params,
            stateless: dialect.stateless && claims,
            version: Version::Open,
            level,
            cancelled: false,
            last_progress: None,
            acknowledged: None,
        }
    }
}

/// The id of a message as it was written, if it is a string or a number.
pub(super) fn id_token(text: &str) -> Option<String> {
    let token = members(text).get("id")?.get();
    let is_id = token.starts_with(|first: char| matches!(first, '"' | '-' | '0'..='9'));
    is_id.then(|| token.to_owned())
}

/// The members of an object, as they were written and nested to any depth. Empty for any other value.
fn members(text: &str) -> BTreeMap<String, &RawValue> {
    serde_json::from_str(text).unwrap_or_default()
}

/// Joins pieces into lines.
#[derive(Debug, Default)]
pub(super) struct LineJoiner(String);

impl LineJoiner {
    /// The lines that these bytes complete.
    pub(super) fn take(&mut self, piece: &str) -> Vec<String> {
        self.0.push_str(piece);
        let Some(end) = self.0.rfind('\n') else { return Vec::new() };
        let rest = self.0.split_off(end + 1);
        let whole = std::mem::replace(&mut self.0, rest);
        let lines = whole.lines().filter(|line| !line.trim_ascii().is_empty());
        lines.map(str::to_owned).collect()
    }

    /// The incomplete line: the server may have read it as the last one, or as too long.
    pub(super) fn take_begun(&mut self) -> Option<String> {
        let begun = std::mem::take(&mut self.0);
        (!begun.trim_ascii().is_empty()).then_some(begun)
    }
}
