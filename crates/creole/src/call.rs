//! One call as it travels, and what its handler may do meanwhile.

use std::collections::BTreeMap;
use std::fmt;
use std::iter::successors;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use creole_proto::model::{InputRequest, Level, TaskPreference};
use creole_proto::operation::{Caller, Event, Operation};
use creole_proto::revision::{Era, Rules};
use creole_proto::server::{CallKey, InputResponse};
use creole_proto::wire::Raw;
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, oneshot, watch};

use crate::chain::BoxFuture;
use crate::input::lower_input_request;
use crate::tool::ToolError;

/// One call as it travels through the chain.
#[derive(Clone, Debug)]
pub struct Call {
    /// What is asked.
    pub operation: Operation,
    /// By whom, and how to reach them.
    pub context: Context,
}

/// Where a call comes from.
#[derive(Clone, Debug)]
pub struct Origin {
    /// Who is responsible: whom state, cursors and tasks are bound to.
    pub principal: Arc<str>,
    /// The connection or session, under a name that no other has while the process lives.
    pub session_name: Option<Arc<str>>,
}

impl Origin {
    /// Calls of somebody on a connection or session that gets a name of its own.
    pub fn new(principal: Arc<str>) -> Self {
        static CONVERSATIONS: AtomicU64 = AtomicU64::new(0);
        let number = CONVERSATIONS.fetch_add(1, Ordering::Relaxed);
        Self { principal, session_name: Some(number.to_string().into()) }
    }

    /// Calls of somebody whose requests stand alone.
    pub fn sessionless(principal: Arc<str>) -> Self {
        Self { principal, session_name: None }
    }
}

/// How events and questions of a call reach the client.
pub trait ClientChannel: Send + Sync {
    /// Tells what happens; waits while the client is slow.
    fn send_event(&self, call: CallKey, event: Event) -> BoxFuture<'_, ()>;
    /// Asks a question of a client that is asked in the middle of a call.
    fn request_input(&self, call: CallKey, question: InputRequest) -> BoxFuture<'_, InputResponse>;
    /// Lets a client that can come back for the answer go until then. Most transports cannot.
    fn release_connection(&self, _call: CallKey, _retry: Duration) {}
    /// Sends a log message that belongs to no call, if the client has a session and wants messages of this level. A
    /// slow client misses it.
    fn send_log(&self, _event: Event) {}
    /// Asks the client of a session a question that belongs to no call. The answer comes later; nothing comes if the
    /// client cannot be asked.
    fn request_session_input(&self, _question: InputRequest) -> oneshot::Receiver<InputResponse> {
        oneshot::channel().1
    }
    /// Changes whenever the client of a session says that its roots changed; nothing where there is no session.
    fn watch_roots(&self) -> Option<watch::Receiver<()>> {
        None
    }
    /// The connection that it belongs to.
    fn connection_id(&self) -> ConnectionId {
        ConnectionId::of(self)
    }
}

/// A connection or session of a client, or one request that stands alone. No two have the same at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(usize);

impl ConnectionId {
    /// That of the connection with this outlet.
    pub(crate) fn of<T: ?Sized>(outlet: &T) -> Self {
        Self(std::ptr::from_ref(outlet).cast::<()>() as usize)
    }
}

/// The session of a client, for what belongs to no call: log messages and questions.
#[derive(Clone)]
pub struct ClientSession {
    name: Arc<str>,
    channel: Weak<dyn ClientChannel>,
    rules: &'static Rules,
    /// The layers around the call that the session is known from.
    layers: Option<Arc<ContextLayer>>,
}

impl ClientSession {
    /// Sends a log message, as the layers around the call want it that the session is known from. Returns whether the
    /// session is still there.
    pub fn send_log(&self, event: Event) -> bool {
        let Some(outlet) = self.channel.upgrade() else { return false };
        if let Some(event) = rewrite_event(self.layers.as_deref(), event) {
            outlet.send_log(event);
        }
        true
    }

    /// Asks the client something. It is refused where the client did not declare that it answers this.
    ///
    /// # Errors
    /// When the client refuses, did not answer in time, or is gone.
    pub async fn request_input(&self, question: InputRequest) -> InputResponse {
        let (question, form) = lower_input_request(question, self.rules);
        // The session is not kept alive meanwhile.
        let waiting = self.channel.upgrade().map(|outlet| outlet.request_session_input(question));
        let answered = match waiting {
            Some(waiting) => waiting.await.ok(),
            None => None,
        };
        let answer = answered.unwrap_or_else(|| Err("the client cannot be asked".to_owned()))?;
        Ok(form.map_or_else(|| answer.clone(), |form| form.raise_response(&answer)))
    }

    /// Changes whenever the client says that its roots changed.
    pub fn watch_roots(&self) -> Option<watch::Receiver<()>> {
        self.channel.upgrade()?.watch_roots()
    }

    /// Whether the session is still there.
    pub fn is_open(&self) -> bool {
        self.channel.strong_count() > 0
    }

    /// The name of the session, as [`Context::session_name`] has it.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }
}

impl fmt::Debug for ClientSession {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ClientSession").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Who is calling, and what a handler may do while it works.
#[derive(Clone)]
pub struct Context {
    shared: Arc<CallShared>,
    /// What the client brings when the call is made again.
    round: Option<Arc<Round>>,
    /// What layers around the call have to say about its events and questions.
    layers: Option<Arc<ContextLayer>>,
}

/// One layer that events or questions pass on their way to the client, and those around it.
struct ContextLayer {
    rewrite: ContextRewrite,
    outer: Option<Arc<Self>>,
}

impl ContextLayer {
    /// What the layers make of what passes them, the innermost one first.
    fn rewrites(first: Option<&Self>) -> impl Iterator<Item = &ContextRewrite> {
        successors(first, |passing| passing.outer.as_deref()).map(|passing| &passing.rewrite)
    }
}

/// An event as the layers want it, if they want it at all.
fn rewrite_event(first: Option<&ContextLayer>, event: Event) -> Option<Event> {
    ContextLayer::rewrites(first).try_fold(event, |event, change| match change {
        ContextRewrite::Event(change) => change(event),
        ContextRewrite::Question(_) => Some(event),
    })
}

/// What becomes of what passes a layer.
enum ContextRewrite {
    /// Of an event: the same, another, or nothing.
    Event(Box<dyn Fn(Event) -> Option<Event> + Send + Sync>),
    /// Of a question: the same, or another.
    Question(Box<dyn Fn(InputRequest) -> InputRequest + Send + Sync>),
}

/// What one more round of a call begins with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Round {
    /// The client's answers by key: all so far, or the new ones for an endpoint that keeps its own state.
    pub(crate) answers: BTreeMap<String, Raw>,
    /// What the endpoint keeps between two rounds.
    pub(crate) state: Option<String>,
}

struct CallShared {
    key: CallKey,
    caller: Caller,
    /// Who is responsible: whom state and cursors are bound to.
    principal: Arc<str>,
    channel: Arc<dyn ClientChannel>,
    /// The connection or session that the call came on, of clients that have one.
    session_name: Option<Arc<str>>,
    /// Whether the call came as a request that stands alone also for its transport.
    is_sessionless: bool,
    debug: bool,
    /// The task that the call runs as.
    task: Option<Box<str>>,
    is_cancelled: AtomicBool,
    cancelled: Notify,
    /// What the client says why it cancelled.
    cancel_reason: CancelReason,
}

/// Why a call was cancelled, once that is known.
pub type CancelReason = Arc<OnceLock<String>>;

/// The longest reason that is passed on, in characters.
const MAX_CANCEL_REASON: usize = 256;

impl Context {
    pub(crate) fn new(
        key: CallKey,
        caller: Caller,
        origin: Origin,
        outlet: Arc<dyn ClientChannel>,
        debug: bool,
    ) -> Self {
        let Origin { principal, session_name: conversation } = origin;
        let stands_alone = conversation.is_none();
        // A caller whose requests stand alone is not tied to what else came the same way.
        let conversation = conversation.filter(|_| caller.rules.era == Era::Handshake);
        Self::from_shared(CallShared {
            key,
            caller,
            principal,
            channel: outlet,
            session_name: conversation,
            is_sessionless: stands_alone,
            debug,
            task: None,
            is_cancelled: AtomicBool::new(false),
            cancelled: Notify::new(),
            cancel_reason: CancelReason::default(),
        })
    }

    /// A context for the same call as a task: its events go elsewhere, and the request's end is not its own.
    pub(crate) fn for_task(&self, id: &str, outlet: Arc<dyn ClientChannel>) -> Self {
        Self::from_shared(CallShared {
            key: self.shared.key,
            caller: self.shared.caller.clone(),
            principal: Arc::clone(&self.shared.principal),
            channel: outlet,
            session_name: self.shared.session_name.clone(),
            is_sessionless: self.shared.is_sessionless,
            debug: self.shared.debug,
            task: Some(id.into()),
            is_cancelled: AtomicBool::new(false),
            cancelled: Notify::new(),
            cancel_reason: CancelReason::default(),
        })
    }

    fn from_shared(shared: CallShared) -> Self {
        Self { shared: Arc::new(shared), round: None, layers: None }
    }

    /// The same context, with what one more round begins with.
    pub(crate) fn with_round(&self, round: Round) -> Self {
        Self { round: Some(Arc::new(round)), ..self.clone() }
    }

    /// The same context for what is further in: progress and log messages from there become what `change` makes of
    /// them, or nothing, before they reach the layers around this one and the client.
    #[must_use]
    pub fn map_events(
        &self,
        change: impl Fn(Event) -> Option<Event> + Send + Sync + 'static,
    ) -> Self {
        self.with_rewrite(ContextRewrite::Event(Box::new(change)))
    }

    /// The same for questions that are asked in the middle of the call. Those that are its outcome pass layers as such.
    #[must_use]
    pub fn map_input_requests(
        &self,
        change: impl Fn(InputRequest) -> InputRequest + Send + Sync + 'static,
    ) -> Self {
        self.with_rewrite(ContextRewrite::Question(Box::new(change)))
    }

    fn with_rewrite(&self, change: ContextRewrite) -> Self {
        let passing = ContextLayer { rewrite: change, outer: self.layers.clone() };
        Self { layers: Some(Arc::new(passing)), ..self.clone() }
    }

    /// What the layers around the call make of what passes them, the innermost one first.
    fn rewrites(&self) -> impl Iterator<Item = &ContextRewrite> {
        ContextLayer::rewrites(self.layers.as_deref())
    }

    /// Who is calling: revision, capabilities, self-description.
    pub fn caller(&self) -> &Caller {
        &self.shared.caller
    }

    /// Who is responsible for the call.
    pub fn principal(&self) -> &str {
        &self.shared.principal
    }

    /// The connection or session that the call came on; nothing for clients whose requests stand alone.
    pub fn session_name(&self) -> Option<&Arc<str>> {
        self.shared.session_name.as_ref()
    }

    /// The connection, session or request that stands alone which the call came by.
    pub fn connection_id(&self) -> ConnectionId {
        self.shared.channel.connection_id()
    }

    /// The caller's session, for what belongs to no call, if it has one.
    pub fn client_session(&self) -> Option<ClientSession> {
        let name = self.shared.session_name.as_ref().filter(|_| !self.is_task())?;
        let outlet = Arc::downgrade(&self.shared.channel);
        let (name, passing) = (Arc::clone(name), self.layers.clone());
        Some(ClientSession {
            name,
            channel: outlet,
            rules: self.shared.caller.rules,
            layers: passing,
        })
    }

    /// Whether nothing else comes the same way as the call, as with requests over HTTP without a session.
    pub(crate) fn is_sessionless(&self) -> bool {
        self.shared.is_sessionless
    }

    /// What the endpoint handed out with its questions, when the call is made again with the answers.
    pub fn request_state(&self) -> Option<&str> {
        self.round.as_ref()?.state.as_deref()
    }

    /// The client's answers by the keys of the questions: the new ones, for an endpoint that keeps
    /// [state](Self::request_state) of its own, else all so far.
    pub fn input_responses(&self) -> impl Iterator<Item = (&str, &Raw)> {
        let answers = self.round.as_ref().map(|round| &round.answers);
        answers.into_iter().flatten().map(|(key, answer)| (&**key, answer))
    }

    /// Whether the call runs as a task.
    pub fn is_task(&self) -> bool {
        self.shared.task.is_some()
    }

    /// Goes on as a task, where the client can follow one: the handler is ended by `?` and run again from its
    /// beginning, with the answers so far, while the client is told of the task. Elsewhere, and in a task,
    /// it just goes on. For tools that [ask first](crate::Tool::requests_input_first).
    pub fn detach(&self) -> Result<(), ToolError> {
        let stays = self.is_task() || self.shared.caller.task_preference == TaskPreference::Never;
        if stays { Ok(()) } else { Err(ToolError::Detach) }
    }

    /// Whether the server was started to be debugged.
    pub fn is_debug(&self) -> bool {
        self.shared.debug
    }

    /// Tells how far the work has come; also keeps the call from being taken for stuck.
    pub async fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let message = message.map(str::to_owned);
        self.send_event(Event::Progress { progress, total, message }).await;
    }

    /// Sends a log message, if the client wants messages of this level.
    pub async fn log(&self, level: Level, logger: Option<&str>, data: &impl Serialize) {
        if self.shared.caller.log.is_some_and(|least| level >= least) {
            let (logger, data) = (logger.map(str::to_owned), Raw::from_value(data));
            self.send_event(Event::Log { level, logger, data }).await;
        }
    }

    /// Lets the client close its connection and come back for the answer after `retry`, where its protocol can
    /// (2025-11-25 basic/transports, polling). Elsewhere it goes on waiting.
    pub fn release_connection(&self, retry: Duration) {
        self.shared.channel.release_connection(self.shared.key, retry);
    }

    /// Resolves when nobody waits for this call any more. A handler's future is dropped then, so this is
    /// for work that goes on elsewhere, such as on a thread.
    pub async fn cancelled(&self) {
        let mut cancelled = std::pin::pin!(self.shared.cancelled.notified());
        // Registered before the flag is read, so that a signal in between is not missed.
        cancelled.as_mut().enable();
        if !self.is_cancelled() {
            cancelled.await;
        }
    }

    /// Whether nobody waits for this call any more.
    pub fn is_cancelled(&self) -> bool {
        self.shared.is_cancelled.load(Ordering::Acquire)
    }

    /// What the client says why it cancelled the call, once it has.
    pub fn cancel_reason(&self) -> &CancelReason {
        &self.shared.cancel_reason
    }

    pub(crate) fn canceller(&self) -> Canceller {
        Canceller { shared: Arc::clone(&self.shared) }
    }

    pub(crate) fn input_response(&self, key: &str) -> Option<&Raw> {
        self.round.as_ref()?.answers.get(key)
    }

    pub(crate) async fn send_input_request(&self, mut question: InputRequest) -> InputResponse {
        for change in self.rewrites() {
            if let ContextRewrite::Question(change) = change {
                question = change(question);
            }
        }
        self.shared.channel.request_input(self.shared.key, question).await
    }

    /// Passes on what happens elsewhere for this call.
    pub async fn send_event(&self, event: Event) {
        if let Some(event) = rewrite_event(self.layers.as_deref(), event) {
            self.shared.channel.send_event(self.shared.key, event).await;
        }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Context")
            .field("caller", &self.shared.caller)
            .finish_non_exhaustive()
    }
}

/// Tells a call's workers that nobody waits for them.
#[derive(Clone)]
pub struct Canceller {
    shared: Arc<CallShared>,
}

impl Canceller {
    /// Tells it, and what the client says why.
    pub fn cancel_with_reason(&self, reason: &str) {
        _ = self.shared.cancel_reason.set(reason.chars().take(MAX_CANCEL_REASON).collect());
        self.cancel();
    }

    /// Tells it.
    pub fn cancel(&self) {
        self.shared.is_cancelled.store(true, Ordering::Release);
        self.shared.cancelled.notify_waiters();
    }
}

impl fmt::Debug for Canceller {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Canceller").finish_non_exhaustive()
    }
}
