//! The interface between a connection and its transport: frames go out through a [`TransportHandle`], messages come in
//! through an [`Inbox`].

#[cfg(feature = "http")]
pub(crate) mod http;
pub(crate) mod lines;

use std::fmt;
use std::sync::{Arc, Weak};

use creole_proto::client::{CallKey, DropReason, NegotiationResult, OutgoingFrame};
use creole_proto::fault::Fault;
use creole_proto::http::request_headers::HeaderField;

use crate::chain::BoxFuture;

/// A transport that has not been connected.
pub trait Transport: Send {
    /// The server's name in log and error messages.
    fn name(&self) -> &str;

    /// Connects; messages that arrive are passed to the inbox. Must be called within a tokio runtime.
    fn connect(self: Box<Self>, inbox: Inbox) -> Arc<dyn TransportHandle>;
}

/// Sends one request and passes its response to the inbox. The caller that waits for the response polls this future, so
/// it needs no task and no wake-up. Dropping it aborts the request.
pub type Exchange = BoxFuture<'static, ()>;

/// A connected transport. Dropping it closes it.
pub trait TransportHandle: Send + Sync {
    /// Sends a frame without waiting. Failures are reported to the inbox later. The headers repeat members of the
    /// frame, if the transport [has headers](TransportHandle::has_headers). A request may be returned as an
    /// [`Exchange`]: it goes out when the caller first polls for its response.
    fn send(&self, frame: OutgoingFrame<'_>, headers: Vec<HeaderField>) -> Option<Exchange>;

    /// Whether frames travel with headers.
    fn has_headers(&self) -> bool {
        false
    }

    /// The session is open under these rules.
    fn on_opened(&self, _greeting: &NegotiationResult) {}

    /// A call has its response or failed; its own channel expects nothing more.
    fn on_call_done(&self, _call: CallKey) {}

    /// A call was cancelled: its own channel is to be closed.
    fn on_call_cancelled(&self, call: CallKey) {
        self.on_call_done(call);
    }

    /// Another process continues a call: its own channel is to be closed, and its session must stay.
    fn on_call_handed_over(&self, call: CallKey) {
        self.on_call_cancelled(call);
    }

    /// Where another process could continue a call, if the server allows its stream to be resumed.
    fn resume_point(&self, _call: CallKey) -> Option<ResumePoint> {
        None
    }

    /// Whether the send queue is so full that no more calls should be started.
    fn is_full(&self) -> bool {
        false
    }

    /// Closes the transport gracefully.
    fn close(&self) -> BoxFuture<'static, ()>;
}

/// Where another process can continue a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumePoint {
    /// The session in which the call was made, if the server has sessions.
    pub session: Option<String>,
    /// The id of the last event that the call received.
    pub last_event: String,
}

/// The size from which a message counts as large.
pub(super) const LARGE_MESSAGE: usize = 128 * 1024;

/// Takes what a transport delivers. The methods are those of [`Inbox`].
pub(super) trait MessageReceiver: Send + Sync {
    fn on_message(&self, message: &[u8], origin: Option<CallKey>);
    fn on_large_message(&self, message: String, origin: Option<CallKey>);
    fn on_dropped_start(&self, start: &[u8], reason: DropReason, origin: Option<CallKey>);
    fn on_dropped_end(&self, end: &[u8]);
    fn on_call_failed(&self, call: CallKey, fault: Fault);
    fn on_call_held(&self, call: CallKey, is_held: bool);
    fn on_closed(&self, fault: Fault);
    fn on_session_lost(&self, fault: Fault);
    fn set_notifications_available(&self, is_listening: bool);
    fn is_call_open(&self, call: CallKey) -> bool;
}

/// Where a transport delivers messages. It does not keep the connection alive.
#[derive(Clone)]
pub struct Inbox(pub(super) Weak<dyn MessageReceiver>);

impl Inbox {
    /// Delivers one message or a batch, with the call on whose own channel it arrived, if calls have their own
    /// channels.
    pub fn on_message(&self, message: &[u8], origin: Option<CallKey>) {
        if let Some(receiver) = self.0.upgrade() {
            receiver.on_message(message, origin);
        }
    }

    /// The same for a large message, which is not copied.
    pub fn on_large_message(&self, message: Vec<u8>, origin: Option<CallKey>) {
        match String::from_utf8(message) {
            Ok(message) => {
                if let Some(receiver) = self.0.upgrade() {
                    receiver.on_large_message(message, origin);
                }
            }
            // Bytes that are not UTF-8 are no message; the dispatcher counts them as a violation.
            Err(error) => self.on_message(error.as_bytes(), origin),
        }
    }

    /// Reports input that is too long or too broken to be parsed as a message.
    pub fn on_unreadable(&self, origin: Option<CallKey>) {
        if let Some(receiver) = self.0.upgrade() {
            receiver.on_dropped_start(&[], DropReason::TooLong, origin);
        }
    }

    /// Reports the first bytes of a message that is dropped. It arrived on a channel that all calls share.
    pub fn on_dropped_start(&self, start: &[u8], reason: DropReason) {
        if let Some(receiver) = self.0.upgrade() {
            receiver.on_dropped_start(start, reason, None);
        }
    }

    /// Reports the last bytes of the message that was dropped.
    pub fn on_dropped_end(&self, end: &[u8]) {
        if let Some(receiver) = self.0.upgrade() {
            receiver.on_dropped_end(end);
        }
    }

    /// Reports that a call's own channel broke.
    pub fn on_call_failed(&self, call: CallKey, fault: Fault) {
        if let Some(receiver) = self.0.upgrade() {
            receiver.on_call_failed(call, fault);
        }
    }

    /// Reports that a call waits for this side, for example for a login, or does not wait any more. The time between does
    /// not count for its timeouts.
    pub(super) fn on_call_held(&self, call: CallKey, is_held: bool) {
        if let Some(receiver) = self.0.upgrade() {
            receiver.on_call_held(call, is_held);
        }
    }

    /// Reports that the transport is closed; every call fails with this fault.
    pub fn on_closed(&self, fault: Fault) {
        if let Some(receiver) = self.0.upgrade() {
            receiver.on_closed(fault);
        }
    }

    /// Reports that the server lost our session. Calls that begin later fail with this fault, and a new session may be
    /// opened. The open calls end by themselves, because the server may have processed them.
    pub fn on_session_lost(&self, fault: Fault) {
        if let Some(receiver) = self.0.upgrade() {
            receiver.on_session_lost(fault);
        }
    }

    /// Sets whether notifications can arrive from now on. For a transport that never calls this, they always can.
    pub fn set_notifications_available(&self, is_listening: bool) {
        if let Some(receiver) = self.0.upgrade() {
            receiver.set_notifications_available(is_listening);
        }
    }

    /// Whether the call has neither its response nor been cancelled.
    pub fn is_call_open(&self, call: CallKey) -> bool {
        self.0.upgrade().is_some_and(|receiver| receiver.is_call_open(call))
    }

    /// Whether the connection no longer exists.
    pub fn is_closed(&self) -> bool {
        self.0.strong_count() == 0
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Inbox").finish_non_exhaustive()
    }
}
