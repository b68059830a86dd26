//! What a transport is to a connection: it carries frames away and brings messages in.

pub mod http;
pub(crate) mod lines;

use std::fmt;
use std::sync::{Arc, Weak};

use creole_proto::client::{CallKey, DropReason, NegotiationResult, OutgoingFrame};
use creole_proto::fault::Fault;
use creole_proto::http::request_headers::HeaderField;

use super::dispatcher::Dispatcher;
use crate::chain::BoxFuture;

/// A way to a server that was not gone yet.
pub trait Transport: Send {
    /// What the server is called in messages.
    fn name(&self) -> &str;

    /// Goes it; what arrives is handed to the inbox. Within a tokio runtime.
    fn connect(self: Box<Self>, inbox: Inbox) -> Arc<dyn TransportHandle>;
}

/// Carries a request to a server and its answer to the inbox. Driven by whoever waits for that, it needs no task, and
/// nobody has to be woken. Dropping it cuts the request off.
pub type Exchange = BoxFuture<'static, ()>;

/// A way to a server. Dropping it closes it.
pub trait TransportHandle: Send + Sync {
    /// Carries a frame away without waiting. What goes wrong is told to the inbox, later. The headers repeat what is
    /// in the frame, if the transport [has any](TransportHandle::has_headers). A request may be left to whoever waits for its
    /// answer: it goes out when they first look for that.
    fn send(&self, frame: OutgoingFrame<'_>, headers: Vec<HeaderField>) -> Option<Exchange>;

    /// Whether frames travel with headers.
    fn has_headers(&self) -> bool {
        false
    }

    /// The conversation is open on these terms.
    fn on_opened(&self, _greeting: &NegotiationResult) {}

    /// A call was answered or failed; nothing more is expected on its own channel.
    fn on_call_done(&self, _call: CallKey) {}

    /// A call was given up: its own channel is to be closed.
    fn on_call_cancelled(&self, call: CallKey) {
        self.on_call_done(call);
    }

    /// Another process goes on with a call: its own channel is to be closed, and its session must stay.
    fn on_call_handed_over(&self, call: CallKey) {
        self.on_call_cancelled(call);
    }

    /// Where a call could be gone on with by another process, if the server lets its stream be taken up again.
    fn resume_point(&self, _call: CallKey) -> Option<ResumePoint> {
        None
    }

    /// Whether so much waits to be carried away that no more calls should be begun.
    fn is_full(&self) -> bool {
        false
    }

    /// Closes it in peace.
    fn close(&self) -> BoxFuture<'static, ()>;
}

/// Where another process can go on with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumePoint {
    /// The session that it was made in, if the server has such.
    pub session: Option<String>,
    /// The last event that came of it.
    pub last_event: String,
}

/// The size from which on a message is large.
pub(super) const LARGE_MESSAGE: usize = 128 * 1024;

/// Where a link puts what it brings. It does not keep the connection alive.
#[derive(Clone)]
pub struct Inbox(pub(super) Weak<Dispatcher>);

impl Inbox {
    /// One message, or an array of them; with the call on whose own channel it came, if calls have one.
    pub fn on_message(&self, message: &[u8], origin: Option<CallKey>) {
        if let Some(hub) = self.0.upgrade() {
            hub.on_message(message, origin);
        }
    }

    /// The same for a message that is not to be copied, because it is large.
    pub fn on_large_message(&self, message: Vec<u8>, origin: Option<CallKey>) {
        match String::from_utf8(message) {
            Ok(message) => {
                if let Some(hub) = self.0.upgrade() {
                    hub.on_large_message(message, origin);
                }
            }
            // What is no text is no message either.
            Err(error) => self.on_message(error.as_bytes(), origin),
        }
    }

    /// Something that is too long or too broken to be looked at as a message.
    pub fn on_unreadable(&self, origin: Option<CallKey>) {
        if let Some(hub) = self.0.upgrade() {
            hub.on_dropped_start(&[], DropReason::TooLong, origin);
        }
    }

    /// A message that is dropped begins with these bytes; it came on a channel that all calls share.
    pub fn on_dropped_start(&self, start: &[u8], why: DropReason) {
        if let Some(hub) = self.0.upgrade() {
            hub.on_dropped_start(start, why, None);
        }
    }

    /// The message that was dropped ended with these bytes.
    pub fn on_dropped_end(&self, end: &[u8]) {
        if let Some(hub) = self.0.upgrade() {
            hub.on_dropped_end(end);
        }
    }

    /// A call's own channel broke.
    pub fn on_call_failed(&self, call: CallKey, fault: Fault) {
        if let Some(hub) = self.0.upgrade() {
            hub.on_call_failed(call, fault);
        }
    }

    /// The whole way is closed; every call fails with this.
    pub fn on_closed(&self, fault: Fault) {
        if let Some(hub) = self.0.upgrade() {
            hub.on_closed(fault, false);
        }
    }

    /// The server forgot our session; every call fails with this, and a new conversation may be opened.
    pub fn on_session_lost(&self, fault: Fault) {
        if let Some(hub) = self.0.upgrade() {
            hub.on_closed(fault, true);
        }
    }

    /// Whether what belongs to no call can be heard, from now on. A way that never says so always has it heard.
    pub fn set_notifications_available(&self, hears: bool) {
        if let Some(hub) = self.0.upgrade() {
            hub.set_notifications_available(hears);
        }
    }

    /// Whether the call is neither answered nor given up.
    pub fn is_call_open(&self, call: CallKey) -> bool {
        self.0.upgrade().is_some_and(|hub| hub.is_call_open(call))
    }

    /// Whether nobody is there any more.
    pub fn is_closed(&self) -> bool {
        self.0.strong_count() == 0
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Inbox").finish_non_exhaustive()
    }
}
