//! One conversation with a server, to be shared by all who call it.

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

/// What a server tells that belongs to no call.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerNotification {
    /// Something changed.
    Changed(Change),
    /// A page that somebody was asked to visit has done its part; the id is the question's.
    ElicitationComplete(String),
    /// Something to note.
    Log(Event),
}

/// Why a conversation is over.
#[derive(Clone, Debug, PartialEq)]
pub struct CloseReason {
    /// What its calls were told.
    pub fault: Fault,
    /// Whether only the session is gone: the server is there, and a new conversation may be opened.
    pub session_lost: bool,
    /// Whether it was us who ended it.
    pub by_us: bool,
}

/// What to do with a question that belongs to no known call.
pub type OnInputRequest = Arc<dyn Fn(ServerInputRequest) + Send + Sync>;

/// What to do with a log message that belongs to no known call.
pub type OnLog = Arc<dyn Fn(Event) + Send + Sync>;

/// How a connection is set up.
pub struct ConnectionSetup {
    /// How the server speaks, who we are, and how much we take.
    pub profile: Arc<Profile>,
    /// How the conversation is opened.
    pub opening: OpenMode,
    /// Who answers questions that belong to no known call; without, they are refused. Must not wait.
    pub on_input_request: Option<OnInputRequest>,
    /// Who hears log messages that belong to no known call; without, they are among the notices. Must not wait.
    pub on_log: Option<OnLog>,
    /// The ids of calls go on after this number.
    pub after_id: u64,
    /// What was said already on a connection that somebody asked something on before.
    pub prior_messages: Option<PriorMessages>,
}

/// What was said on a connection before.
#[derive(Debug)]
pub struct PriorMessages {
    /// What the server said, a message each. The answer to the opening request is among it, which is not sent again.
    pub messages: Vec<Vec<u8>>,
    /// The highest number of a request that was sent: late answers to those are for no call.
    pub last_request_id: u64,
}

impl ConnectionSetup {
    /// A setup that answers no questions outside of calls.
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

/// One conversation with a server. Clones share it; it is closed when the last of them and of its calls is gone.
#[derive(Clone)]
pub struct Connection {
    dispatcher: Arc<Dispatcher>,
    greeting: Arc<NegotiationResult>,
}

impl Connection {
    /// Opens a conversation; to be called within a tokio runtime.
    ///
    /// # Errors
    /// When the server cannot be reached, refuses, or does not answer in time.
    pub async fn open(
        transport: Box<dyn Transport>,
        setup: ConnectionSetup,
    ) -> Result<Self, Fault> {
        let hub = Dispatcher::start(transport, setup);
        let greeting = hub.opened().await?;
        Ok(Self { dispatcher: hub, greeting })
    }

    /// What the server is called in messages.
    pub fn name(&self) -> &str {
        self.dispatcher.name()
    }

    /// Who the server says it is, and the rules that hold.
    pub fn greeting(&self) -> &Arc<NegotiationResult> {
        &self.greeting
    }

    /// Begins a call, to be followed step by step.
    pub fn start_call(&self, request: CallRequest) -> PendingCall {
        self.start_call_with(request, [].into())
    }

    /// Begins a call; these of its arguments are repeated in headers, where the transport has headers.
    pub fn start_call_with(
        &self,
        request: CallRequest,
        mirrors: Arc<[MirroredHeader]>,
    ) -> PendingCall {
        Dispatcher::start_call(&self.dispatcher, request, mirrors)
    }

    /// Calls; `on_news` is told what happens on the way. Dropping the future cancels the call.
    pub async fn call(&self, request: CallRequest, on_news: impl FnMut(CallEvent)) -> Outcome {
        self.start_call(request).outcome(on_news).await
    }

    /// Calls, and refuses all questions.
    pub async fn call_without_input(&self, request: CallRequest) -> Outcome {
        self.call(request, drop).await
    }

    /// Whether the server answers at all.
    ///
    /// # Errors
    /// When it does not, or not in time.
    pub async fn ping(&self) -> Result<(), Fault> {
        match Dispatcher::ping(&self.dispatcher).outcome(drop).await {
            Outcome::Fail(fault) => Err(fault),
            _ => Ok(()),
        }
    }

    /// Sets the least serious log messages of the session, where there is such a thing.
    pub async fn set_level(&self, level: creole_proto::model::Level) -> Outcome {
        Dispatcher::set_level(&self.dispatcher, level).outcome(drop).await
    }

    /// Tells the server that the client's roots changed, where there is a notification for that.
    pub fn roots_changed(&self) {
        self.dispatcher.roots_changed();
    }

    /// What the server tells from now on that belongs to no call.
    pub fn notifications(&self) -> broadcast::Receiver<ServerNotification> {
        self.dispatcher.notifications()
    }

    /// Whether notices can be heard right now: a server over HTTP may have no stream for them, or end it. Each time
    /// that it is opened is a change, since what was told before was missed.
    pub fn notifications_available(&self) -> watch::Receiver<bool> {
        self.dispatcher.watch_notifications_available()
    }

    /// Calls that are not done.
    pub fn in_flight(&self) -> usize {
        self.dispatcher.in_flight()
    }

    /// How much was heard that means nothing.
    pub fn violation_count(&self) -> u64 {
        self.dispatcher.violation_count()
    }

    /// Resolves when the conversation is over, and tells why.
    pub async fn wait_closed(&self) -> CloseReason {
        self.dispatcher.wait_closed().await
    }

    /// The same, without keeping the conversation alive; nothing if it was just dropped.
    pub fn closed_future(&self) -> impl Future<Output = Option<CloseReason>> + Send + use<> {
        self.dispatcher.closed_future()
    }

    /// Why the conversation is over, if it is.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.dispatcher.close_reason()
    }

    /// Ends the conversation in peace; calls that are not done fail.
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
