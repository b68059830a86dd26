//! Continues a call that another process made in its own session: input responses are posted in that session, and the
//! stream is resumed after the last event that the other process received (2025-11-25 basic/transports, resumability
//! and redelivery).

use crate::sync::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use creole_proto::client::{CallKey, FrameKind, OutgoingFrame};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::http::request_headers::HeaderField;
use creole_proto::revision::Rules;
use http::HeaderValue;
use serde_json::json;
use tokio::sync::oneshot;

use crate::chain::BoxFuture;
use crate::client::transport::http::{
    CallStream, HttpAddress, HttpSession, HttpSessionState, exchange,
};
use crate::client::transport::{Exchange, Inbox, ResumePoint, Transport, TransportHandle};

/// A transport that continues one call of another process and accepts no other request.
#[derive(Debug)]
pub struct ResumedServer {
    target: HttpAddress,
    rules: &'static Rules,
    resume_point: ResumePoint,
    input_requests: Vec<String>,
}

impl ResumedServer {
    /// The server at this address, with these rules and the session of the call. The input requests are the server's
    /// pending ones, as messages.
    pub fn new(
        target: HttpAddress,
        rules: &'static Rules,
        resume_point: ResumePoint,
        questions: Vec<String>,
    ) -> Self {
        Self { target, rules, resume_point, input_requests: questions }
    }
}

impl Transport for ResumedServer {
    fn name(&self) -> &str {
        self.target.name()
    }

    fn connect(self: Box<Self>, inbox: Inbox) -> Arc<dyn TransportHandle> {
        let session = self.resume_point.session.as_deref();
        let session = session.and_then(|session| HeaderValue::from_str(session).ok());
        let state = HttpSessionState {
            session,
            negotiated_rules: Some(self.rules),
            ..HttpSessionState::default()
        };
        let inner = HttpSession { target: self.target, inbox, state: Mutex::new(state) };
        let rest = Mutex::new(Some((self.resume_point.last_event, self.input_requests)));
        let (inner, greeted) = (Arc::new(inner), AtomicBool::new(false));
        Arc::new(ResumedTransport {
            inner,
            rules: self.rules,
            is_handshake_done: greeted,
            pending_resume: rest,
        })
    }
}

struct ResumedTransport {
    inner: Arc<HttpSession>,
    rules: &'static Rules,
    /// Whether the handshake is done, from the view of this process.
    is_handshake_done: AtomicBool,
    /// Where the call continues, until it is requested.
    pending_resume: Mutex<Option<(String, Vec<String>)>>,
}

impl TransportHandle for ResumedTransport {
    fn send(&self, frame: OutgoingFrame<'_>, headers: Vec<HeaderField>) -> Option<Exchange> {
        match frame.kind {
            FrameKind::Request(call) if !self.is_handshake_done.swap(true, Ordering::AcqRel) => {
                self.answer_handshake(call);
            }
            FrameKind::Request(call) => self.resume_call(call),
            // The session was initialized by the other process.
            FrameKind::Notification { .. } if is_initialized(frame.text) => {}
            FrameKind::Notification { .. } | FrameKind::Response => {
                let request = self.inner.post_request(&mut self.inner.lock(), frame.text, headers);
                tokio::spawn(exchange::send_notification(
                    Arc::clone(&self.inner),
                    request,
                    (None, None),
                ));
            }
        }
        None
    }

    fn has_headers(&self) -> bool {
        true
    }

    fn on_call_done(&self, call: CallKey) {
        self.inner.lock().calls.remove(&call);
    }

    fn on_call_cancelled(&self, call: CallKey) {
        self.inner.cancel_call(call);
    }

    fn resume_point(&self, call: CallKey) -> Option<ResumePoint> {
        self.inner.resume_point(call)
    }

    /// The session stays open: other calls may run in it.
    fn close(&self) -> BoxFuture<'static, ()> {
        self.inner.close_all();
        Box::pin(async {})
    }
}

impl ResumedTransport {
    /// Responds on behalf of the server, whose handshake was with the other process.
    fn answer_handshake(&self, call: CallKey) {
        let (inner, version) = (Arc::clone(&self.inner), self.rules.name);
        tokio::spawn(async move {
            let server = json!({"name": inner.target.name(), "version": ""});
            let result =
                json!({"protocolVersion": version, "capabilities": {}, "serverInfo": server});
            let initialize_result = json!({"jsonrpc": "2.0", "id": call.0, "result": result});
            inner.inbox.on_message(initialize_result.to_string().as_bytes(), Some(call));
        });
    }

    fn resume_call(&self, call: CallKey) {
        let rest = self.pending_resume.lock().take();
        let inner = Arc::clone(&self.inner);
        let Some((last, questions)) = rest else {
            let fault = Fault::new(
                FaultKind::Internal,
                "a resumed connection serves only the resumed call",
            );
            tokio::spawn(async move { inner.inbox.on_call_failed(call, fault) });
            return;
        };
        let (done, over) = oneshot::channel();
        let channel = CallStream {
            task: None,
            last_event_id: HeaderValue::from_str(&last).ok(),
            _done: done,
        };
        self.inner.lock().calls.insert(call, channel);
        let task = tokio::spawn(async move {
            for question in questions {
                inner.inbox.on_message(question.as_bytes(), Some(call));
            }
            exchange::resume_call(inner, call, &last, over).await;
        });
        self.inner.set_task(call, task.abort_handle());
    }
}

impl Drop for ResumedTransport {
    fn drop(&mut self) {
        self.inner.close_all();
    }
}

fn is_initialized(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| text.contains("\"notifications/initialized\""))
}
