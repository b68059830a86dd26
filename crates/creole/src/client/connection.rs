//! One open connection to a server, shared by all its callers.

use std::fmt;
use std::sync::Arc;

use creole_proto::client::{CallRequest, NegotiationResult};
use creole_proto::fault::Fault;
use creole_proto::http::MirroredHeader;
use creole_proto::operation::Outcome;
use tokio::sync::{broadcast, watch};

pub use super::connection_setup::{
    CloseReason, ConnectionSetup, OnInputRequest, OnLog, OnViolation, ServerNotification,
};
use super::dispatcher::{AddedCall, Dispatcher};
use super::pending_call::{CallEvent, PendingCall};
use super::transport::Transport;
use crate::telemetry::record::FrameTap;

/// One connection to a server. Clones share it; it closes when the last clone and the last of its calls are dropped.
#[derive(Clone)]
pub struct Connection {
    dispatcher: Arc<Dispatcher>,
    greeting: Arc<NegotiationResult>,
}

impl Connection {
    /// Opens a connection. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When the server cannot be reached, refuses, or does not respond in time.
    pub async fn open(
        transport: Box<dyn Transport>,
        setup: ConnectionSetup,
    ) -> Result<Self, Fault> {
        let dispatcher = Dispatcher::start(transport, setup);
        let greeting = dispatcher.opened().await?;
        Ok(Self { dispatcher, greeting })
    }

    /// The server's name in messages.
    pub fn name(&self) -> &str {
        self.dispatcher.name()
    }

    /// The server's identity and the negotiated rules.
    pub fn greeting(&self) -> &Arc<NegotiationResult> {
        &self.greeting
    }

    /// Starts a call whose steps the caller follows.
    pub fn start_call(&self, request: CallRequest) -> PendingCall {
        self.start_call_with(request, [].into())
    }

    /// Starts a call with these mirrored headers, if the transport has headers.
    pub fn start_call_with(
        &self,
        request: CallRequest,
        mirrors: Arc<[MirroredHeader]>,
    ) -> PendingCall {
        self.start_recorded_call(request, mirrors, None)
    }

    /// The same. The messages of the call are kept in this record.
    pub fn start_recorded_call(
        &self,
        request: CallRequest,
        mirrors: Arc<[MirroredHeader]>,
        tap: Option<FrameTap>,
    ) -> PendingCall {
        self.pending(self.dispatcher.start_call(request, mirrors, tap))
    }

    fn pending(&self, added: AddedCall) -> PendingCall {
        PendingCall::new(&self.dispatcher, added)
    }

    /// Calls and waits for the outcome; `on_news` gets the events of the call. Dropping the future cancels the call.
    pub async fn call(&self, request: CallRequest, on_news: impl FnMut(CallEvent)) -> Outcome {
        self.start_call(request).outcome(on_news).await
    }

    /// Calls, and refuses all input requests.
    pub async fn call_without_input(&self, request: CallRequest) -> Outcome {
        self.call(request, drop).await
    }

    /// Checks that the server responds.
    ///
    /// # Errors
    /// When it does not respond in time.
    pub async fn ping(&self) -> Result<(), Fault> {
        match self.pending(self.dispatcher.ping()).outcome(drop).await {
            Outcome::Fail(fault) => Err(fault),
            _ => Ok(()),
        }
    }

    /// Sets the minimum log level of the session, if the revision has one.
    pub async fn set_level(&self, level: creole_proto::model::Level) -> Outcome {
        self.pending(self.dispatcher.set_level(level)).outcome(drop).await
    }

    /// Notifies the server that the client's roots changed, if the revision has that notification.
    pub fn roots_changed(&self) {
        self.dispatcher.roots_changed();
    }

    /// The server's notifications from now on that belong to no call.
    pub fn notifications(&self) -> broadcast::Receiver<ServerNotification> {
        self.dispatcher.notifications()
    }

    /// Whether notifications can arrive at present: an HTTP server may have no stream for them, or end it. Each opening
    /// of the stream is a change, since earlier notifications were missed.
    pub fn notifications_available(&self) -> watch::Receiver<bool> {
        self.dispatcher.watch_notifications_available()
    }

    /// The number of calls in flight.
    pub fn in_flight(&self) -> usize {
        self.dispatcher.in_flight()
    }

    /// The number of protocol violations of the server.
    pub fn violation_count(&self) -> u64 {
        self.dispatcher.violation_count()
    }

    /// Resolves when the connection is closed, with the reason.
    pub async fn wait_closed(&self) -> CloseReason {
        self.dispatcher.wait_closed().await
    }

    /// The same, without keeping the connection. `None` if it was dropped.
    pub fn closed_future(&self) -> impl Future<Output = Option<CloseReason>> + Send + use<> {
        self.dispatcher.closed_future()
    }

    /// Why the connection is closed, if it is.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.dispatcher.close_reason()
    }

    /// Closes the connection gracefully; calls in flight fail.
    pub async fn close(&self) {
        self.dispatcher.close().await;
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Connection").field("name", &self.name()).finish_non_exhaustive()
    }
}
