//! One POST and its response, with the streams that are followed and resumed.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use creole_proto::client::{CallKey, DropReason};
use creole_proto::fault::Fault;
use http::{HeaderValue, Method, StatusCode};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep, timeout};

use crate::client::transport::LARGE_MESSAGE;
use crate::client::transport::http::conn::body_reader;
use crate::client::transport::http::conn::body_reader::{BodyReadError, EventError, EventStream};
use crate::client::transport::http::conn::request::HttpRequest;
use crate::client::transport::http::conn::request::{LAST_EVENT_NAME, SESSION_NAME};
use crate::client::transport::http::conn::response::{ResponseHead, ResponseKind};
use crate::client::transport::http::conn::response_body::ResponseBody;
use crate::client::transport::http::{HttpSession, fault};

/// How often a broken stream is resumed.
const MAX_RESUMES: u32 = 5;

/// Maximum total time of failed attempts to connect before a stream is no longer resumed. A server that restarts
/// refuses connections at once; one that vanished uses up the time with two attempts.
const MAX_CONNECT_TIME: Duration = Duration::from_secs(6);

/// Default and maximum pause before that; the server may set it.
const RETRY: Duration = Duration::from_secs(1);
const MAX_RETRY: Duration = Duration::from_secs(60);

/// How long a stream may continue after its response before its connection is closed.
const LINGER: Duration = Duration::from_secs(1);

/// The order of notifications: the one to wait for, and the signal for the next one.
pub(crate) type NotificationOrder = (Option<watch::Receiver<bool>>, Option<watch::Sender<bool>>);

/// Makes a call and delivers its response; starts a task for it if that is a stream.
pub(crate) async fn run_call(
    inner: Arc<HttpSession>,
    call: CallKey,
    request: HttpRequest,
    before: Option<watch::Receiver<bool>>,
) {
    if before.is_some() {
        wait_for(before).await;
    }
    if let Err(fault) = post(&inner, call, &request).await {
        inner.inbox.on_call_failed(call, fault);
    }
}

/// Sends a message that has no response.
pub(crate) async fn send_notification(
    inner: Arc<HttpSession>,
    request: HttpRequest,
    order: NotificationOrder,
) {
    let (before, own) = order;
    wait_for(before).await;
    match inner.target.send_short(&request).await {
        Ok((head, _)) if head.status == StatusCode::NOT_FOUND => inner.on_session_lost(),
        Ok((head, _)) if !head.status.is_success() => {
            tracing::debug!(
                upstream = inner.target.name(),
                status = head.status.as_u16(),
                "a notification was refused"
            );
        }
        Ok(_) => {}
        Err(fault) => {
            tracing::debug!(
                upstream = inner.target.name(),
                "cannot send a notification: {}",
                fault.detail
            );
        }
    }
    if let Some(own) = own {
        own.send_replace(true);
    }
}

async fn wait_for(before: Option<watch::Receiver<bool>>) {
    if let Some(mut before) = before {
        // A dropped sender has delivered all that it could.
        let _ = before.wait_for(|done| *done).await;
    }
}

async fn post(inner: &Arc<HttpSession>, call: CallKey, request: &HttpRequest) -> Result<(), Fault> {
    let had_session = request.has(&SESSION_NAME);
    let on_hold = |is_held| inner.inbox.on_call_held(call, is_held);
    let (head, body) = inner.target.send_held(request, &on_hold).await?;
    if head.status == StatusCode::NOT_FOUND && had_session {
        inner.on_session_lost();
        return Err(fault::session_lost(inner.target.name()));
    }
    inner.store_session(&head);
    match head.kind {
        ResponseKind::Events if head.status.is_success() => {
            inner.follow_stream(call, body);
            Ok(())
        }
        ResponseKind::Json if !is_final_status(head.status) => {
            receive_document(inner, call, &head, body).await
        }
        _ if head.status.is_success() => {
            Err(fault::no_response_fault(inner.target.name(), "content that is not an MCP message"))
        }
        _ => Err(inner.target.status_fault(&head)),
    }
}

/// Whether the status alone determines the fault: these come from a proxy or gateway in front of the server.
fn is_final_status(status: StatusCode) -> bool {
    matches!(status.as_u16(), 300..=399 | 401 | 403 | 429 | 502..=504)
}

/// Delivers a response that is one document. In the stateless era errors have their own status as well.
async fn receive_document(
    inner: &Arc<HttpSession>,
    call: CallKey,
    head: &ResponseHead,
    body: ResponseBody,
) -> Result<(), Fault> {
    let name = inner.target.name();
    match body_reader::read_document(
        body,
        inner.target.max_message_bytes(),
        inner.target.reserve_memory(),
    )
    .await
    {
        Ok(document) if document.bytes.len() < LARGE_MESSAGE => {
            inner.inbox.on_message(&document.bytes, Some(call));
        }
        Ok(document) => inner.inbox.on_large_message(document.into_bytes(), Some(call)),
        Err(BodyReadError::BudgetExhausted) => return Err(fault::no_memory_fault(name)),
        Err(BodyReadError::TooLong) => {
            return Err(fault::no_response_fault(name, "a message that is too long"));
        }
        Err(BodyReadError::Broken) => return Err(fault::stream_lost(name)),
    }
    match inner.inbox.is_call_open(call) {
        false => Ok(()),
        true if head.status.is_success() => {
            Err(fault::no_response_fault(name, "a message for another request"))
        }
        true => Err(inner.target.status_fault(head)),
    }
}

/// Follows an event stream, and resumes it if necessary.
pub(crate) async fn follow_stream(
    inner: Arc<HttpSession>,
    call: CallKey,
    body: ResponseBody,
    over: oneshot::Receiver<()>,
) {
    // Pinned where it is created, since a variable would take its space twice in each call's task.
    let mut stream = std::pin::pin!(async {
        let mut position = StreamPosition::default();
        receive_events(&inner, Some(call), body, &mut position).await;
        if let Err(fault) = resume_stream(&inner, call, &mut position).await {
            inner.inbox.on_call_failed(call, fault);
        }
    });
    tokio::select! {
        biased;
        () = &mut stream => {}
        // The call has its response, or failed for another reason. If the stream is read to its end, its connection can
        // be reused.
        _ = over => {
            let _ = timeout(LINGER, stream).await;
        }
    }
}

/// Continues a call that another process made, after the last event that it received.
pub(crate) async fn resume_call(
    inner: Arc<HttpSession>,
    call: CallKey,
    last: &str,
    over: oneshot::Receiver<()>,
) {
    let last = HeaderValue::from_str(last).ok();
    let mut position =
        StreamPosition { last_event_id: last, retry: Duration::ZERO, has_progress: false };
    tokio::select! {
        biased;
        taken = resume_stream(&inner, call, &mut position) => {
            if let Err(fault) = taken {
                inner.inbox.on_call_failed(call, fault);
            }
        }
        // The stream of a finished call carries nothing else.
        _ = over => {}
    }
}

/// Resumes a stream, until its call is over.
async fn resume_stream(
    inner: &Arc<HttpSession>,
    call: CallKey,
    position: &mut StreamPosition,
) -> Result<(), Fault> {
    let (mut tries, mut in_vain) = (0, Duration::ZERO);
    while inner.inbox.is_call_open(call) {
        let Some(last) = position.resume_event_id(inner).filter(|_| tries < MAX_RESUMES) else {
            return Err(fault::stream_lost(inner.target.name()));
        };
        tries += 1;
        sleep(position.retry).await;
        let mut head = inner.listen_headers();
        head.set(LAST_EVENT_NAME, last);
        let request = inner.target.request(Method::GET, head, Bytes::new());
        let started = Instant::now();
        // A failure to connect is retried; a refusal is not.
        let Ok((head, body)) = inner.target.send_request(&request).await else {
            in_vain += started.elapsed();
            match in_vain < MAX_CONNECT_TIME {
                true => continue,
                false => return Err(fault::stream_gone(inner.target.name())),
            }
        };
        in_vain = Duration::ZERO;
        if !head.status.is_success() || head.kind != ResponseKind::Events {
            return Err(fault::stream_lost(inner.target.name()));
        }
        receive_events(inner, Some(call), body, position).await;
    }
    Ok(())
}

/// Where a stream can be resumed.
pub(crate) struct StreamPosition {
    pub(crate) last_event_id: Option<HeaderValue>,
    pub(crate) retry: Duration,
    /// Whether any event arrived.
    pub(crate) has_progress: bool,
}

impl Default for StreamPosition {
    fn default() -> Self {
        Self { last_event_id: None, retry: RETRY, has_progress: false }
    }
}

impl StreamPosition {
    /// The event to resume after, unless a broken stream is a cancelled call.
    fn resume_event_id(&self, inner: &HttpSession) -> Option<HeaderValue> {
        self.last_event_id.clone().filter(|_| !inner.cancels_by_closing())
    }
}

/// Delivers the messages of a stream until it ends.
pub(crate) async fn receive_events(
    inner: &Arc<HttpSession>,
    call: Option<CallKey>,
    body: ResponseBody,
    position: &mut StreamPosition,
) {
    let mut events =
        EventStream::new(body, inner.target.max_message_bytes(), inner.target.reserve_memory());
    while let Some(event) = events.next().await {
        let event = match (event, call) {
            (Ok(event), _) => event,
            (Err(EventError::BudgetExhausted), Some(call)) => {
                return inner
                    .inbox
                    .on_call_failed(call, fault::no_memory_fault(inner.target.name()));
            }
            (Err(EventError::BudgetExhausted), None) => {
                return inner.inbox.on_dropped_start(&[], DropReason::NoMemory);
            }
            (Err(EventError::Unreadable), call) => {
                inner.inbox.on_unreadable(call);
                continue;
            }
        };
        position.has_progress = true;
        if let Some(id) = &event.id {
            position.last_event_id = HeaderValue::from_str(id).ok().filter(|id| !id.is_empty());
        }
        if let Some(retry) = event.retry {
            position.retry = Duration::from_millis(retry).min(MAX_RETRY);
        }
        let is_message = event.event.as_deref().is_none_or(|kind| kind == "message");
        if is_message && !event.data.is_empty() {
            inner.inbox.on_message(event.data.as_bytes(), call);
        }
        // Recorded after delivery, so that a reader of the event id has the event's messages too.
        if let (Some(call), Some(_)) = (call, &event.id) {
            inner.note_event(call, position.last_event_id.as_ref());
        }
    }
}

impl HttpSession {
    /// Stores the session that the response to the opening request names.
    fn store_session(&self, head: &ResponseHead) {
        let mut state = self.lock();
        if state.session.is_none() && state.negotiated_rules.is_none() {
            state.session.clone_from(&head.session);
        }
    }

    /// The server lost our session.
    pub(crate) fn on_session_lost(&self) {
        if self.lock().session.take().is_some() {
            self.inbox.on_session_lost(fault::session_lost(self.target.name()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::transport::http::conn::server_connector;

    #[test]
    fn a_call_whose_server_disappeared_fails_within_the_budget() {
        assert!(
            server_connector::CONNECT_TIMEOUT < MAX_CONNECT_TIME
                && MAX_CONNECT_TIME < server_connector::CONNECT_TIMEOUT * 2
        );
        assert!(
            server_connector::DEAD_TIMEOUT + (RETRY + server_connector::CONNECT_TIMEOUT) * 2
                <= Duration::from_secs(45)
        );
    }
}
