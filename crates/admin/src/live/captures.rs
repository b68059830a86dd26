//! Captures: the payloads of calls, for a while, without what must not be shown.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use creole::internal::sync::Mutex;
use creole::internal::task::random_id;
use creole::internal::telemetry::{
    CallRecord, CallStart, CapturedFrame, Detail, FrameDirection, ReaderGuard, RecordReader,
    StepKind, Telemetry,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::clock;
use crate::settings::CapturePolicy;

/// Maximum number of captures at the same time.
const MAX_CAPTURES: usize = 8;
/// Maximum number of bytes of all kept messages, and of calls whose messages are kept.
const MAX_BYTES: usize = 32 * 1024 * 1024;
const MAX_CALLS: usize = 2000;
/// What is shown instead of a secret.
const HIDDEN: &str = "•••";
/// Members whose values are never shown, in lower case without `-` and `_`.
const SECRET_NAMES: [&str; 8] = [
    "authorization",
    "cookie",
    "password",
    "passwd",
    "secret",
    "apikey",
    "privatekey",
    "credential",
];
/// Members that are secrets if their name ends so.
const SECRET_ENDS: [&str; 2] = ["token", "passphrase"];
/// Members that only look like secrets.
const HARMLESS_NAMES: [&str; 2] = ["progresstoken", "maxtoken"];

/// Which calls are captured. An absent member matches every call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CaptureFilter {
    /// The server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    /// The upstream. It is known only when the call was sent there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    upstream: Option<String>,
    /// The method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    /// The tool, prompt or URI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    /// Who calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    principal: Option<String>,
}

impl CaptureFilter {
    fn matches_start(&self, start: &CallStart<'_>) -> bool {
        let is = |wanted: &Option<String>, value: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted.is_empty() || wanted == value)
        };
        is(&self.server, start.server)
            && is(&self.method, start.method)
            && is(&self.target, start.target)
            && is(&self.principal, start.principal.id())
    }

    fn matches(&self, record: &CallRecord) -> bool {
        let Some(wanted) = self.upstream.as_deref().filter(|name| !name.is_empty()) else {
            return self.matches_start(&record.start());
        };
        let is_sent = record.steps().iter().any(
            |step| matches!(&step.kind, StepKind::UpstreamRequest { upstream, .. } if **upstream == *wanted),
        );
        is_sent && self.matches_start(&record.start())
    }
}

/// A running capture.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Capture {
    /// Its id.
    pub(crate) id: String,
    /// Which calls it takes.
    filter: CaptureFilter,
    /// Who started it.
    by: String,
    /// When it started.
    started: String,
    /// When it ends by itself.
    ends: String,
    /// How many calls it takes at most.
    max: usize,
    /// How many it has taken.
    taken: usize,
}

struct Running {
    shown: Capture,
    ends: Instant,
}

/// A message of a call.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct FrameView {
    /// `client_in`, `upstream_out`, `upstream_in` or `client_out`.
    side: &'static str,
    /// When, since the start of the call.
    at_ms: f64,
    /// The upstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<String>,
    /// The step that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<u16>,
    /// The length of the whole message.
    bytes: usize,
    /// The message, with secrets replaced. Empty if it was too long to be searched for them.
    text: String,
    /// Whether the text is not the whole message.
    truncated: bool,
    /// Whether something was replaced.
    redacted: bool,
    /// The number of an earlier message whose arguments or result have the same bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    same_as: Option<usize>,
}

/// The captures of a process.
pub(crate) struct Captures {
    telemetry: Telemetry,
    policy: CapturePolicy,
    state: Mutex<CaptureState>,
}

#[derive(Default)]
struct CaptureState {
    running: Vec<Running>,
    kept: HashMap<u128, KeptPayloads>,
    /// The kept calls, oldest first.
    order: VecDeque<u128>,
    bytes: usize,
    reader: Option<ReaderGuard>,
}

struct KeptPayloads {
    frames: Vec<FrameView>,
    /// The capture that took the call. `None` if all calls are captured.
    capture: Option<String>,
    bytes: usize,
}

/// Why a capture cannot start.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CaptureRefusal {
    /// The configuration forbids it.
    Never,
    /// There are too many.
    TooMany,
}

struct CaptureReader(Weak<Captures>);

impl Captures {
    /// No capture runs yet.
    pub(crate) fn new(telemetry: Telemetry, policy: CapturePolicy) -> Self {
        Self { telemetry, policy, state: Mutex::default() }
    }

    /// Starts a capture.
    pub(crate) fn start(
        self: &Arc<Self>,
        filter: CaptureFilter,
        by: &str,
        lifetime: Duration,
        max: usize,
    ) -> Result<Capture, CaptureRefusal> {
        if self.policy == CapturePolicy::Never {
            return Err(CaptureRefusal::Never);
        }
        let now = SystemTime::now();
        let shown = Capture {
            id: random_id().map_err(|_| CaptureRefusal::TooMany)?,
            filter,
            by: by.to_owned(),
            started: clock::text(now),
            ends: clock::text(now + lifetime),
            max,
            taken: 0,
        };
        let mut state = self.state.lock();
        if state.running.len() >= MAX_CAPTURES {
            return Err(CaptureRefusal::TooMany);
        }
        state.running.push(Running { shown: shown.clone(), ends: Instant::now() + lifetime });
        let is_read = state.reader.is_some();
        drop(state);
        if !is_read {
            self.subscribe();
        }
        Ok(shown)
    }

    /// Captures all calls, if the configuration says so.
    pub(crate) fn start_always(self: &Arc<Self>) {
        if self.policy == CapturePolicy::Always {
            self.subscribe();
        }
    }

    /// Not under the lock: the telemetry asks its readers.
    fn subscribe(self: &Arc<Self>) {
        let reader = self.telemetry.subscribe(Arc::new(CaptureReader(Arc::downgrade(self))));
        let before = self.state.lock().reader.replace(reader);
        drop(before);
    }

    /// The running captures.
    pub(crate) fn list(&self) -> Vec<Capture> {
        self.state.lock().running.iter().map(|running| running.shown.clone()).collect()
    }

    /// Ends a capture and forgets its payloads; whether there was one.
    pub(crate) fn end(&self, id: &str) -> bool {
        self.end_where(|running| running.shown.id == id)
    }

    /// Ends captures whose time is over.
    pub(crate) fn end_expired(&self) {
        let now = Instant::now();
        self.end_where(|running| now >= running.ends);
    }

    fn end_where(&self, is_over: impl Fn(&Running) -> bool) -> bool {
        let mut state = self.state.lock();
        let (over, running): (Vec<_>, Vec<_>) =
            std::mem::take(&mut state.running).into_iter().partition(is_over);
        state.running = running;
        if over.is_empty() {
            return false;
        }
        let over: Vec<String> = over.into_iter().map(|running| running.shown.id).collect();
        state.forget(|kept| kept.capture.as_ref().is_some_and(|id| over.contains(id)));
        let is_unused = state.running.is_empty() && self.policy != CapturePolicy::Always;
        let reader = if is_unused { state.reader.take() } else { None };
        drop(state);
        drop(reader);
        true
    }

    /// Whether the payloads of a call are kept.
    pub(crate) fn has(&self, call: u128) -> bool {
        self.state.lock().kept.contains_key(&call)
    }

    /// The payloads of a call.
    pub(crate) fn frames(&self, call: u128) -> Option<Vec<FrameView>> {
        self.state.lock().kept.get(&call).map(|kept| kept.frames.clone())
    }

    fn wants(&self, start: &CallStart<'_>) -> bool {
        self.policy == CapturePolicy::Always
            || self.state.lock().running.iter().any(|running| {
                running.shown.taken < running.shown.max && running.shown.filter.matches_start(start)
            })
    }

    fn keep(&self, record: &CallRecord) {
        let frames = record.frames();
        if frames.is_empty() {
            return;
        }
        let mut state = self.state.lock();
        let is_taker = |running: &&mut Running| {
            running.shown.taken < running.shown.max && running.shown.filter.matches(record)
        };
        let capture = match state.running.iter_mut().find(is_taker) {
            Some(running) => {
                running.shown.taken += 1;
                Some(running.shown.id.clone())
            }
            None if self.policy == CapturePolicy::Always => None,
            None => return,
        };
        drop(state);
        let frames = views(record, &frames);
        let bytes = frames.iter().map(|frame| frame.text.len()).sum();
        self.state.lock().insert(record.id, KeptPayloads { frames, capture, bytes });
    }
}

impl CaptureState {
    fn insert(&mut self, call: u128, kept: KeptPayloads) {
        // The capture may have ended meanwhile.
        let is_over = |id: &String| !self.running.iter().any(|running| running.shown.id == *id);
        if kept.capture.as_ref().is_some_and(is_over) {
            return;
        }
        self.bytes += kept.bytes;
        self.order.push_back(call);
        self.kept.insert(call, kept);
        while self.bytes > MAX_BYTES || self.order.len() > MAX_CALLS {
            let Some(oldest) = self.order.pop_front() else { break };
            self.bytes -= self.kept.remove(&oldest).map_or(0, |kept| kept.bytes);
        }
    }

    fn forget(&mut self, is_forgotten: impl Fn(&KeptPayloads) -> bool) {
        self.kept.retain(|_, kept| !is_forgotten(kept));
        self.order.retain(|call| self.kept.contains_key(call));
        self.bytes = self.kept.values().map(|kept| kept.bytes).sum();
    }
}

impl RecordReader for CaptureReader {
    fn wants(&self, start: &CallStart<'_>) -> Detail {
        match self.0.upgrade().is_some_and(|captures| captures.wants(start)) {
            true => Detail::Frames,
            false => Detail::None,
        }
    }

    fn call_ended(&self, record: &Arc<CallRecord>) {
        if let Some(captures) = self.0.upgrade() {
            captures.keep(record);
        }
    }

    fn reads_frames(&self) -> bool {
        true
    }
}

fn views(record: &CallRecord, frames: &[CapturedFrame]) -> Vec<FrameView> {
    let steps = record.steps();
    let upstream_of = |step: Option<u16>| match &steps.get(usize::from(step?))?.kind {
        StepKind::UpstreamRequest { upstream, .. } => Some(upstream.to_string()),
        _ => None,
    };
    let contents: Vec<Option<&str>> = frames.iter().map(|frame| content(&frame.text)).collect();
    let view = |(index, frame): (usize, &CapturedFrame)| {
        let truncated = frame.text.len() < frame.length;
        let hidden = if truncated { None } else { redact(record, &frame.text) };
        let (text, redacted) = hidden.unwrap_or_default();
        let same = contents[..index].iter().position(|it| it.is_some() && *it == contents[index]);
        FrameView {
            side: match frame.direction {
                FrameDirection::ClientIn => "client_in",
                FrameDirection::UpstreamOut => "upstream_out",
                FrameDirection::UpstreamIn => "upstream_in",
                FrameDirection::ClientOut => "client_out",
            },
            at_ms: clock::ms(frame.at),
            upstream: upstream_of(frame.step),
            step: frame.step,
            bytes: frame.length,
            text,
            truncated,
            redacted,
            same_as: same,
        }
    };
    frames.iter().enumerate().map(view).collect()
}

/// The arguments or the result of a message, as its bytes.
fn content(text: &str) -> Option<&str> {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        params: Option<Parameters<'a>>,
        #[serde(borrow)]
        result: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Parameters<'a> {
        #[serde(borrow)]
        arguments: Option<&'a RawValue>,
    }
    let message: Message<'_> = serde_json::from_str(text).ok()?;
    message.result.or_else(|| message.params?.arguments).map(RawValue::get)
}

/// The text without secrets, and whether something was replaced. `None` if it cannot be read.
fn redact(record: &CallRecord, text: &str) -> Option<(String, bool)> {
    let hidden = match record.redactor() {
        Some(redactor) => redactor(text),
        None => text.to_owned(),
    };
    let mut value: Value = serde_json::from_str(&hidden).ok()?;
    match hide_secrets(&mut value) {
        true => Some((value.to_string(), true)),
        false => {
            let is_changed = hidden != text;
            Some((hidden, is_changed))
        }
    }
}

/// Replaces the values of members that are secrets by their name; whether there were any.
fn hide_secrets(value: &mut Value) -> bool {
    let mut is_changed = false;
    match value {
        Value::Array(values) => {
            values.iter_mut().for_each(|value| is_changed |= hide_secrets(value));
        }
        Value::Object(members) => {
            for (name, value) in members {
                if is_secret(name) && !value.is_null() && !is_schema(value) {
                    *value = HIDDEN.into();
                    is_changed = true;
                } else {
                    is_changed |= hide_secrets(value);
                }
            }
        }
        _ => {}
    }
    is_changed
}

/// Whether a value is the schema of a secret, as in a list of tools, and not a secret.
fn is_schema(value: &Value) -> bool {
    value
        .as_object()
        .is_some_and(|members| members.contains_key("type") || members.contains_key("$ref"))
}

fn is_secret(name: &str) -> bool {
    let plain: String = name
        .chars()
        .filter(|character| !matches!(character, '-' | '_'))
        .flat_map(char::to_lowercase)
        .collect();
    !HARMLESS_NAMES.contains(&plain.trim_end_matches('s'))
        && (SECRET_NAMES.iter().any(|secret| plain.contains(secret))
            || SECRET_ENDS.iter().any(|end| plain.ends_with(end)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_that_are_secrets_by_their_name_are_hidden_wherever_they_are() {
        let mut message = json!({"id": 1, "params": {"_meta": {"progressToken": 7}, "arguments": {
            "Authorization": "Bearer a", "api_key": "b", "list": [{"accessToken": "c"}],
            "client-secret": {"value": "d"}, "maxTokens": 5, "name": "e", "password": null}}});
        assert!(hide_secrets(&mut message));
        assert_eq!(
            message,
            json!({"id": 1, "params": {"_meta": {"progressToken": 7}, "arguments": {
            "Authorization": HIDDEN, "api_key": HIDDEN, "list": [{"accessToken": HIDDEN}],
            "client-secret": HIDDEN, "maxTokens": 5, "name": "e", "password": null}}})
        );
        let mut schema = json!({"properties": {"password": {"type": "string"}}});
        assert!(!hide_secrets(&mut schema));
    }

    #[test]
    fn the_content_of_a_message_is_its_bytes() {
        assert_eq!(content(r#"{"params":{"arguments":{"a": 1}}}"#), Some(r#"{"a": 1}"#));
        assert_eq!(content(r#"{"id":1,"result":{ }}"#), Some("{ }"));
        assert_eq!(content(r#"{"id":1,"error":{}}"#), None);
        assert_eq!(content("{"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_capture_ends_by_itself_and_stops_reading() {
        let telemetry = Telemetry::default();
        let captures = Arc::new(Captures::new(telemetry.clone(), CapturePolicy::Ask));
        let minute = Duration::from_secs(60);
        captures.start(CaptureFilter::default(), "anna", minute, 5).unwrap();
        assert!(!telemetry.modes().is_empty());
        captures.end_expired();
        assert_eq!(captures.list().len(), 1);
        tokio::time::advance(minute).await;
        captures.end_expired();
        assert!(captures.list().is_empty() && telemetry.modes().is_empty());
        for _ in 0..MAX_CAPTURES {
            captures.start(CaptureFilter::default(), "anna", minute, 5).unwrap();
        }
        let refused = captures.start(CaptureFilter::default(), "anna", minute, 5);
        assert_eq!(refused.unwrap_err(), CaptureRefusal::TooMany);
        let never = Arc::new(Captures::new(telemetry, CapturePolicy::Never));
        let refused = never.start(CaptureFilter::default(), "anna", minute, 5);
        assert_eq!(refused.unwrap_err(), CaptureRefusal::Never);
    }
}
