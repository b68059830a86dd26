//! The channel from a call to its client, and the client's session.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use creole_proto::model::InputRequest;
use creole_proto::operation::Event;
use creole_proto::revision::Rules;
use creole_proto::server::{CallKey, InputResponse};
use creole_proto::wire::Raw;
use tokio::sync::{oneshot, watch};

use super::BoxFuture;
use super::context_layer::{ContextLayer, rewrite_event};

/// The channel that carries the events and input requests of a call to the client.
pub trait ClientChannel: Send + Sync {
    /// Sends an event. Waits while the client is slow.
    fn send_event(&self, call: CallKey, event: Event) -> BoxFuture<'_, ()>;
    /// Sends an inline input request, with the members of this trace context in its `_meta`.
    fn request_input(
        &self,
        call: CallKey,
        input_request: InputRequest,
        trace: Option<Raw>,
    ) -> BoxFuture<'_, InputResponse>;
    /// Lets the client disconnect and fetch the response later. Most transports do not support it.
    fn release_connection(&self, _call: CallKey, _retry: Duration) {}
    /// Sends a log message outside of any call, if the client has a session and requested messages of this level. A
    /// slow client misses it.
    fn send_log(&self, _event: Event) {}
    /// Sends an input request outside of any call to the client of a session. The receiver fails if the client does not
    /// support the request.
    fn request_session_input(
        &self,
        _input_request: InputRequest,
    ) -> oneshot::Receiver<InputResponse> {
        oneshot::channel().1
    }
    /// Changes whenever the client of a session announces that its roots changed. `None` without a session.
    fn watch_roots(&self) -> Option<watch::Receiver<()>> {
        None
    }
    /// The connection of this channel.
    fn connection_id(&self) -> ConnectionId {
        ConnectionId::of(self)
    }
}

/// Identifies a connection, a session or a sessionless request. It is unique among those that are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(usize);

impl ConnectionId {
    /// The id of the connection with this channel.
    pub(crate) fn of<T: ?Sized>(outlet: &T) -> Self {
        Self(std::ptr::from_ref(outlet).cast::<()>() as usize)
    }
}

/// The session of a client, for log messages and input requests outside of any call.
#[derive(Clone)]
pub struct ClientSession {
    pub(super) name: Arc<str>,
    pub(crate) channel: Weak<dyn ClientChannel>,
    pub(crate) rules: &'static Rules,
    /// The layers around the call that the session was taken from.
    pub(super) layers: Option<Arc<ContextLayer>>,
}

impl ClientSession {
    /// Sends a log message through the layers around the call that the session was taken from. Returns whether the
    /// session is still open.
    pub fn send_log(&self, event: Event) -> bool {
        let Some(channel) = self.channel.upgrade() else { return false };
        if let Some(event) = rewrite_event(self.layers.as_deref(), event) {
            channel.send_log(event);
        }
        true
    }

    /// Changes whenever the client announces that its roots changed.
    pub fn watch_roots(&self) -> Option<watch::Receiver<()>> {
        self.channel.upgrade()?.watch_roots()
    }

    /// Whether the session is still open.
    pub fn is_open(&self) -> bool {
        self.channel.strong_count() > 0
    }

    /// The name of the session, the same as in [`Context::session_name`].
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }
}

impl fmt::Debug for ClientSession {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ClientSession").field("name", &self.name).finish_non_exhaustive()
    }
}
