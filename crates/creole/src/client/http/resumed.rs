//! A call that another process made in a session of its own, and that goes on here: its answers are posted in that
//! session, and its stream is taken up after the last event that the other process saw
//! (2025-11-25 basic/transports, resumability and redelivery).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use creole_proto::client::{CallKey, FrameKind, OutgoingFrame};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::http::request_headers::HeaderField;
use creole_proto::revision::Rules;
use http::HeaderValue;
use serde_json::json;
use tokio::sync::oneshot;

use super::exchange;
use super::{Channel, Inner, State, Target};
use crate::chain::BoxFuture;
use crate::client::link::{Carrier, Inbox, Link, Transport, Whereabouts};

/// A conversation in which one call of another process goes on, and nothing else can be asked.
#[derive(Debug)]
pub struct ResumedServer {
    target: Target,
    rules: &'static Rules,
    whereabouts: Whereabouts,
    questions: Vec<String>,
}

impl ResumedServer {
    /// The server at this target, which speaks by these rules in the session of the call. The questions are those
    /// that it asked before and that nobody answered, as messages.
    pub fn new(
        target: Target,
        rules: &'static Rules,
        whereabouts: Whereabouts,
        questions: Vec<String>,
    ) -> Self {
        Self { target, rules, whereabouts, questions }
    }
}

impl Transport for ResumedServer {
    fn name(&self) -> &str {
        self.target.name()
    }

    fn begin(self: Box<Self>, inbox: Inbox) -> Arc<dyn Link> {
        let session = self.whereabouts.session.as_deref();
        let session = session.and_then(|session| HeaderValue::from_str(session).ok());
        let state = State { session, agreed: Some(self.rules), ..State::default() };
        let inner = Inner { target: self.target, inbox, state: Mutex::new(state) };
        let rest = Mutex::new(Some((self.whereabouts.last_event, self.questions)));
        let (inner, greeted) = (Arc::new(inner), AtomicBool::new(false));
        Arc::new(ResumedLink { inner, rules: self.rules, greeted, rest })
    }
}

struct ResumedLink {
    inner: Arc<Inner>,
    rules: &'static Rules,
    /// Whether hands were shaken, as far as anybody here can tell.
    greeted: AtomicBool,
    /// Where the call goes on, until somebody asks for it.
    rest: Mutex<Option<(String, Vec<String>)>>,
}

impl Link for ResumedLink {
    fn send(&self, frame: OutgoingFrame<'_>, headers: Vec<HeaderField>) -> Option<Carrier> {
        match frame.kind {
            FrameKind::Request(call) if !self.greeted.swap(true, Ordering::AcqRel) => {
                self.greet(call);
            }
            FrameKind::Request(call) => self.go_on(call),
            // The session has begun long ago.
            FrameKind::Notification { .. } if is_initialized(frame.text) => {}
            FrameKind::Notification { .. } | FrameKind::Response => {
                let request = self.inner.post(&mut self.inner.lock(), frame.text, headers);
                tokio::spawn(exchange::tell(Arc::clone(&self.inner), request, (None, None)));
            }
        }
        None
    }

    fn has_headers(&self) -> bool {
        true
    }

    fn done(&self, call: CallKey) {
        self.inner.lock().calls.remove(&call);
    }

    fn given_up(&self, call: CallKey) {
        self.inner.give_up(call);
    }

    fn whereabouts(&self, call: CallKey) -> Option<Whereabouts> {
        self.inner.whereabouts(call)
    }

    /// The session stays: other calls may be under way in it.
    fn close(&self) -> BoxFuture<'static, ()> {
        self.inner.shut();
        Box::pin(async {})
    }
}

impl ResumedLink {
    /// Answers for the server, which shook hands with somebody else.
    fn greet(&self, call: CallKey) {
        let (inner, version) = (Arc::clone(&self.inner), self.rules.name);
        tokio::spawn(async move {
            let server = json!({"name": inner.target.name(), "version": ""});
            let result =
                json!({"protocolVersion": version, "capabilities": {}, "serverInfo": server});
            let welcome = json!({"jsonrpc": "2.0", "id": call.0, "result": result});
            inner.inbox.received(welcome.to_string().as_bytes(), Some(call));
        });
    }

    fn go_on(&self, call: CallKey) {
        let rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner).take();
        let inner = Arc::clone(&self.inner);
        let Some((last, questions)) = rest else {
            let fault = Fault::new(FaultKind::Internal, "one call goes on here, and no other");
            tokio::spawn(async move { inner.inbox.failed(call, fault) });
            return;
        };
        let (done, over) = oneshot::channel();
        let channel = Channel { task: None, last: HeaderValue::from_str(&last).ok(), _done: done };
        self.inner.lock().calls.insert(call, channel);
        let task = tokio::spawn(async move {
            for question in questions {
                inner.inbox.received(question.as_bytes(), Some(call));
            }
            exchange::go_on(inner, call, &last, over).await;
        });
        self.inner.runs_in(call, task.abort_handle());
    }
}

impl Drop for ResumedLink {
    fn drop(&mut self) {
        self.inner.shut();
    }
}

fn is_initialized(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| text.contains("\"notifications/initialized\""))
}
