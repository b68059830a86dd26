//! One open connection to a server, shared by all its callers.

use std::fmt;
use std::sync::Arc;

use creole_proto::client::{CallRequest, NegotiationResult, OpenMode, Profile};
use creole_proto::fault::Fault;
use creole_proto::http::MirroredHeader;
use creole_proto::operation::{Change, Event, Outcome};
use tokio::sync::{broadcast, watch};

use super::dispatcher::Dispatcher;
use super::pending_call::{CallEvent, PendingCall, ServerInputRequest};
use super::transport::Transport;

/// A notification of a server that belongs to no call.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerNotification {
    /// A list or a resource changed.
    Changed(Change),
    /// A URL elicitation is complete; the id is the elicitation's.
    ElicitationComplete(String),
    /// A log message.
    Log(Event),
}

/// Why a connection is closed.
#[derive(Clone, Debug, PartialEq)]
pub struct CloseReason {
    /// The fault that its calls got.
    pub fault: Fault,
    /// Whether only the session is lost: the server is reachable, and a new session may be opened.
    pub session_lost: bool,
    /// Whether this side closed it.
    pub by_us: bool,
}

/// Handles an input request that belongs to no known call.
pub type OnInputRequest = Arc<dyn Fn(ServerInputRequest) + Send + Sync>;

/// Handles a log message that belongs to no known call.
pub type OnLog = Arc<dyn Fn(Event) + Send + Sync>;

/// How a connection is set up.
pub struct ConnectionSetup {
    /// The server's dialect, our identity, and the limits.
    pub profile: Arc<Profile>,
    /// How the session is opened.
    pub opening: OpenMode,
    /// Handles input requests that belong to no known call; without it they are refused. Must not block.
    pub on_input_request: Option<OnInputRequest>,
    /// Handles log messages that belong to no known call; without it they are among the notifications. Must not block.
    pub on_log: Option<OnLog>,
    /// The ids of calls continue after this number.
    pub after_id: u64,
    /// The messages that were already exchanged on the transport, if it was used before.
    pub prior_messages: Option<PriorMessages>,
}

/// The messages that were exchanged on a transport before.
#[derive(Debug)]
pub struct PriorMessages {
    /// The server's messages, one each. The response to the opening request is among them, so it is not sent again.
    pub messages: Vec<Vec<u8>>,
    /// The highest id of a request that was sent: late responses to those belong to no call.
    pub last_request_id: u64,
}

impl ConnectionSetup {
    /// A setup that refuses input requests outside of calls.
    pub fn new(profile: Arc<Profile>, opening: OpenMode) -> Self {
        Self {
            profile,
            opening,
            on_input_request: None,
            on_log: None,
            after_id: 0,
            prior_messages: None,
        }
    }
}

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
        let hub = Dispatcher::start(transport, setup);
        let greeting = hub.opened().await?;
        Ok(Self { dispatcher: hub, greeting })
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
        Dispatcher::start_call(&self.dispatcher, request, mirrors)
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
        match Dispatcher::ping(&self.dispatcher).outcome(drop).await {
            Outcome::Fail(fault) => Err(fault),
            _ => Ok(()),
        }
    }

    /// Sets the minimum log level of the session, if the revision has one.
    pub async fn set_level(&self, level: creole_proto::model::Level) -> Outcome {
        Dispatcher::set_level(&self.dispatcher, level).outcome(drop).await
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

impl fmt::Debug for ConnectionSetup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Setup").field("opening", &self.opening).finish_non_exhaustive()
    }
}
