//! One conversation with a server, to be shared by all who call it.

use std::fmt;
use std::sync::Arc;

use creole_proto::client::{CallRequest, NegotiationResult, OpenMode, Profile};
use creole_proto::fault::Fault;
use creole_proto::http::MirroredHeader;
use creole_proto::operation::{Change, Event, Outcome};
use tokio::sync::{broadcast, watch};

use super::calling::{Asked, Calling, News};
use super::hub::Hub;
use super::link::Transport;

/// What a server tells that belongs to no call.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// Something changed.
    Changed(Change),
    /// A page that somebody was asked to visit has done its part; the id is the question's.
    Visited(String),
    /// Something to note.
    Logged(Event),
}

/// Why a conversation is over.
#[derive(Clone, Debug, PartialEq)]
pub struct Closed {
    /// What its calls were told.
    pub fault: Fault,
    /// Whether only the session is gone: the server is there, and a new conversation may be opened.
    pub session_lost: bool,
    /// Whether it was us who ended it.
    pub by_us: bool,
}

/// What to do with a question that belongs to no known call.
pub type OnQuestion = Arc<dyn Fn(Asked) + Send + Sync>;

/// What to do with a log message that belongs to no known call.
pub type OnLog = Arc<dyn Fn(Event) + Send + Sync>;

/// How a connection is set up.
pub struct Setup {
    /// How the server speaks, who we are, and how much we take.
    pub profile: Arc<Profile>,
    /// How the conversation is opened.
    pub opening: OpenMode,
    /// Who answers questions that belong to no known call; without, they are refused. Must not wait.
    pub on_question: Option<OnQuestion>,
    /// Who hears log messages that belong to no known call; without, they are among the notices. Must not wait.
    pub on_log: Option<OnLog>,
    /// The ids of calls go on after this number.
    pub after: u64,
    /// What was said already on a connection that somebody asked something on before.
    pub heard: Option<Before>,
}

/// What was said on a connection before.
#[derive(Debug)]
pub struct Before {
    /// What the server said, a message each. The answer to the opening request is among it, which is not sent again.
    pub messages: Vec<Vec<u8>>,
    /// The highest number of a request that was sent: late answers to those are for no call.
    pub last: u64,
}

impl Setup {
    /// A setup that answers no questions outside of calls.
    pub fn new(profile: Arc<Profile>, opening: OpenMode) -> Self {
        Self { profile, opening, on_question: None, on_log: None, after: 0, heard: None }
    }
}

/// One conversation with a server. Clones share it; it is closed when the last of them and of its calls is gone.
#[derive(Clone)]
pub struct Connection {
    hub: Arc<Hub>,
    greeting: Arc<NegotiationResult>,
}

impl Connection {
    /// Opens a conversation; to be called within a tokio runtime.
    ///
    /// # Errors
    /// When the server cannot be reached, refuses, or does not answer in time.
    pub async fn open(transport: Box<dyn Transport>, setup: Setup) -> Result<Self, Fault> {
        let hub = Hub::start(transport, setup);
        let greeting = hub.opened().await?;
        Ok(Self { hub, greeting })
    }

    /// What the server is called in messages.
    pub fn name(&self) -> &str {
        self.hub.name()
    }

    /// Who the server says it is, and the rules that hold.
    pub fn greeting(&self) -> &Arc<NegotiationResult> {
        &self.greeting
    }

    /// Begins a call, to be followed step by step.
    pub fn begin(&self, request: CallRequest) -> Calling {
        self.begin_with(request, [].into())
    }

    /// Begins a call; these of its arguments are repeated in headers, where the transport has headers.
    pub fn begin_with(&self, request: CallRequest, mirrors: Arc<[MirroredHeader]>) -> Calling {
        Hub::begin(&self.hub, request, mirrors)
    }

    /// Calls; `on_news` is told what happens on the way. Dropping the future cancels the call.
    pub async fn call(&self, request: CallRequest, on_news: impl FnMut(News)) -> Outcome {
        self.begin(request).outcome(on_news).await
    }

    /// Calls, and refuses all questions.
    pub async fn ask(&self, request: CallRequest) -> Outcome {
        self.call(request, drop).await
    }

    /// Whether the server answers at all.
    ///
    /// # Errors
    /// When it does not, or not in time.
    pub async fn ping(&self) -> Result<(), Fault> {
        match Hub::ping(&self.hub).outcome(drop).await {
            Outcome::Fail(fault) => Err(fault),
            _ => Ok(()),
        }
    }

    /// Sets the least serious log messages of the session, where there is such a thing.
    pub async fn set_level(&self, level: creole_proto::model::Level) -> Outcome {
        Hub::set_level(&self.hub, level).outcome(drop).await
    }

    /// Tells the server that the client's roots changed, where there is a notification for that.
    pub fn roots_changed(&self) {
        self.hub.roots_changed();
    }

    /// What the server tells from now on that belongs to no call.
    pub fn notices(&self) -> broadcast::Receiver<Notice> {
        self.hub.notices()
    }

    /// Whether notices can be heard right now: a server over HTTP may have no stream for them, or end it. Each time
    /// that it is opened is a change, since what was told before was missed.
    pub fn hearing(&self) -> watch::Receiver<bool> {
        self.hub.hearing()
    }

    /// Calls that are not done.
    pub fn in_flight(&self) -> usize {
        self.hub.in_flight()
    }

    /// How much was heard that means nothing.
    pub fn noise(&self) -> u64 {
        self.hub.noise()
    }

    /// Resolves when the conversation is over, and tells why.
    pub async fn closed(&self) -> Closed {
        self.hub.closed().await
    }

    /// The same, without keeping the conversation alive; nothing if it was just dropped.
    pub fn ending(&self) -> impl Future<Output = Option<Closed>> + Send + use<> {
        self.hub.ending()
    }

    /// Why the conversation is over, if it is.
    pub fn is_closed(&self) -> Option<Closed> {
        self.hub.is_closed()
    }

    /// Ends the conversation in peace; calls that are not done fail.
    pub async fn close(&self) {
        self.hub.close().await;
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Connection").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Setup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Setup").field("opening", &self.opening).finish_non_exhaustive()
    }
}
