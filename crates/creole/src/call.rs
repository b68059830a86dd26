//! One call, and the context that its handler uses.

pub(crate) mod announcement;
mod call_telemetry;
mod canceller;
pub(crate) mod catch_panic;
mod channel;
mod context_layer;
mod origin;

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use context_layer::{ContextLayer, ContextRewrite, rewrite_event};
use creole_proto::fault::FaultKind;
use creole_proto::model::{InputRequest, Level};
use creole_proto::operation::{Caller, Event, Operation};
use creole_proto::server::{CallKey, InputResponse};
use creole_proto::wire::Raw;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::principal::Principal;
use crate::scopes::ScopeRules;
use crate::sync::Mutex;
use crate::telemetry::metrics::OperationSeries;
use crate::telemetry::outcome::ErrorType;
use crate::telemetry::record::{CallRecord, EarlierCall, StepGuard};

pub(crate) use call_telemetry::{CallTelemetry, HandlingLayer};
pub use canceller::Canceller;
pub use channel::{ClientChannel, ClientSession, ConnectionId};
pub use origin::Origin;

/// A boxed future: one per layer and message, whose cost is negligible beside that of the message.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One call on its way through the chain.
#[derive(Clone, Debug)]
pub struct Call {
    /// The requested operation.
    pub operation: Operation,
    /// The caller, and the channel to its client.
    pub context: Context,
}

/// The context of a call: its caller, and what a handler may do during the call.
#[derive(Clone)]
pub struct Context {
    shared: Arc<CallShared>,
    /// The responses and state that a retry of the call carries.
    round: Option<Arc<Round>>,
    /// The rewrites of events and input requests by the layers around the call.
    layers: Option<Arc<ContextLayer>>,
    /// The layer that handles the call, if the telemetry follows it.
    layer: Option<Arc<HandlingLayer>>,
}

/// The responses and state that a round of a call begins with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Round {
    /// The client's responses by key: all so far, or only the new ones for an endpoint that keeps its own state.
    pub(crate) answers: BTreeMap<String, Raw>,
    /// The state that the endpoint keeps between two rounds.
    pub(crate) state: Option<String>,
    /// The record of the round before, for the telemetry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) earlier: Option<EarlierCall>,
}

struct CallShared {
    key: CallKey,
    caller: Caller,
    /// The principal of the request.
    principal: Principal,
    /// The scopes that operations require of its access token.
    scopes: Option<Arc<ScopeRules>>,
    channel: Arc<dyn ClientChannel>,
    /// The connection or session of the call, if the client has one.
    session_name: Option<Arc<str>>,
    /// Whether the request has no session on its transport either.
    is_sessionless: bool,
    debug: bool,
    /// The task that the call runs as.
    task: Option<Box<str>>,
    /// [`CANCELLED`], and the kind of fault that the call ends with for its client, see [`Canceller::set_abort_fault`].
    stopped: AtomicU8,
    cancelled: Notify,
    /// The client's reason for the cancellation. It is made for those who wait for it, and by a cancellation.
    cancel_reason: Mutex<Option<CancelReason>>,
    /// The rule of a policy that refused the call.
    denied_by: OnceLock<Arc<str>>,
    /// What the telemetry follows of the call.
    telemetry: Option<Arc<CallTelemetry>>,
    /// What measures the calls of its tool or prompt, once that is found.
    item_series: Mutex<Option<Arc<OperationSeries>>>,
}

/// The flag of a cancelled call.
const CANCELLED: u8 = 1;

impl CallShared {
    fn cancel_reason(&self) -> CancelReason {
        self.cancel_reason.lock().get_or_insert_default().clone()
    }

    fn is_cancelled(&self) -> bool {
        self.stopped.load(Ordering::Acquire) & CANCELLED != 0
    }
}

/// The reason for a cancellation, once it is known.
pub type CancelReason = Arc<OnceLock<String>>;

/// The maximum length of a forwarded reason, in characters.
const MAX_CANCEL_REASON: usize = 256;

impl Context {
    #[inline]
    pub(crate) fn new(
        key: CallKey,
        caller: Caller,
        origin: Origin,
        channel: Arc<dyn ClientChannel>,
        debug: bool,
        telemetry: Option<Arc<CallTelemetry>>,
    ) -> Self {
        let Origin { principal, session_name: session, scopes, .. } = origin;
        let stands_alone = session.is_none();
        // Without sessions a caller is not tied to other requests of its connection.
        let session = session.filter(|_| caller.rules.has_sessions);
        Self::from_shared(CallShared {
            key,
            caller,
            principal,
            scopes,
            channel,
            session_name: session,
            is_sessionless: stands_alone,
            debug,
            task: None,
            stopped: AtomicU8::new(0),
            cancelled: Notify::new(),
            cancel_reason: Mutex::new(None),
            denied_by: OnceLock::new(),
            telemetry,
            item_series: Mutex::new(None),
        })
    }

    /// The context of the same call as a task. It has its own channel for events, and does not end with the request.
    pub(crate) fn for_task(
        &self,
        id: &str,
        channel: Arc<dyn ClientChannel>,
        record: Option<Arc<CallRecord>>,
    ) -> Self {
        let telemetry = self.shared.telemetry.as_ref().map(|own| own.for_task(record));
        Self::from_shared(CallShared {
            key: self.shared.key,
            caller: self.shared.caller.clone(),
            principal: self.shared.principal.clone(),
            scopes: self.shared.scopes.clone(),
            channel,
            session_name: self.shared.session_name.clone(),
            is_sessionless: self.shared.is_sessionless,
            debug: self.shared.debug,
            task: Some(id.into()),
            stopped: AtomicU8::new(0),
            cancelled: Notify::new(),
            cancel_reason: Mutex::new(None),
            denied_by: OnceLock::new(),
            telemetry: telemetry.map(Arc::new),
            item_series: Mutex::new(None),
        })
    }

    fn from_shared(shared: CallShared) -> Self {
        Self { shared: Arc::new(shared), round: None, layers: None, layer: None }
    }

    /// The same context with the responses and state of a round.
    pub(crate) fn with_round(&self, round: Round) -> Self {
        Self { round: Some(Arc::new(round)), ..self.clone() }
    }

    /// The same context for inner layers. `change` rewrites or drops their progress and log events before the outer
    /// layers and the client get them.
    #[must_use]
    #[doc(hidden)]
    pub fn map_events(
        &self,
        change: impl Fn(Event) -> Option<Event> + Send + Sync + 'static,
    ) -> Self {
        self.with_rewrite(ContextRewrite::Event(Box::new(change)))
    }

    /// The same for inline input requests. Input requests that are an outcome pass the layers as outcomes.
    #[must_use]
    #[doc(hidden)]
    pub fn map_input_requests(
        &self,
        change: impl Fn(InputRequest) -> InputRequest + Send + Sync + 'static,
    ) -> Self {
        self.with_rewrite(ContextRewrite::Question(Box::new(change)))
    }

    /// The same context for inner layers, whose inline input requests are refused if `check` returns a reason.
    #[must_use]
    #[doc(hidden)]
    pub fn check_input_requests(
        &self,
        check: impl Fn(&InputRequest) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.with_rewrite(ContextRewrite::Refusal(Box::new(check)))
    }

    fn with_rewrite(&self, change: ContextRewrite) -> Self {
        let passing = ContextLayer { rewrite: change, outer: self.layers.clone() };
        Self { layers: Some(Arc::new(passing)), ..self.clone() }
    }

    /// The rewrites of all layers around the call, innermost first.
    fn rewrites(&self) -> impl Iterator<Item = &ContextRewrite> {
        ContextLayer::rewrites(self.layers.as_deref())
    }

    /// The caller: revision, capabilities, self-description.
    pub fn caller(&self) -> &Caller {
        &self.shared.caller
    }

    /// The principal of the call's own request. Another request of the same session may have other scopes and roles.
    pub fn principal(&self) -> &Principal {
        &self.shared.principal
    }

    /// The scopes that operations require of the access token of the call's request.
    pub(crate) fn scopes(&self) -> Option<&ScopeRules> {
        self.shared.scopes.as_deref()
    }

    /// The connection or session of the call. `None` in the stateless era.
    #[doc(hidden)]
    pub fn session_name(&self) -> Option<&Arc<str>> {
        self.shared.session_name.as_ref()
    }

    /// The id of the call's connection, session or sessionless request.
    #[doc(hidden)]
    pub fn connection_id(&self) -> ConnectionId {
        self.shared.channel.connection_id()
    }

    /// The caller's session, if it has one, for messages outside of any call.
    #[doc(hidden)]
    pub fn client_session(&self) -> Option<ClientSession> {
        let name = self.shared.session_name.as_ref().filter(|_| !self.is_task())?;
        let channel = Arc::downgrade(&self.shared.channel);
        let (name, passing) = (Arc::clone(name), self.layers.clone());
        Some(ClientSession { name, channel, rules: self.shared.caller.rules, layers: passing })
    }

    /// Whether no other request shares the call's connection or session, as with HTTP requests without a session.
    pub(crate) fn is_sessionless(&self) -> bool {
        self.shared.is_sessionless
    }

    /// The request state that the endpoint sent with its input requests, when the client retries the call.
    #[doc(hidden)]
    pub fn request_state(&self) -> Option<&str> {
        self.round.as_ref()?.state.as_deref()
    }

    /// The client's input responses by key: only the new ones for an endpoint that keeps its own
    /// [state](Self::request_state), else all so far.
    #[doc(hidden)]
    pub fn input_responses(&self) -> impl Iterator<Item = (&str, &Raw)> {
        let answers = self.round.as_ref().map(|round| &round.answers);
        answers.into_iter().flatten().map(|(key, response)| (&**key, response))
    }

    /// Whether the call runs as a task.
    pub fn is_task(&self) -> bool {
        self.shared.task.is_some()
    }

    /// Whether the server runs in debug mode.
    pub(crate) fn is_debug(&self) -> bool {
        self.shared.debug
    }

    /// The rule of a policy that refused the call, for the audit log.
    #[doc(hidden)]
    pub fn denied_by(&self) -> Option<&Arc<str>> {
        self.shared.denied_by.get()
    }

    /// Records the rule of a policy that refuses the call. The first one stays.
    #[doc(hidden)]
    pub fn set_denied_by(&self, rule: Arc<str>) {
        // A second refusal, of a call that a script repeats, says nothing new.
        _ = self.shared.denied_by.set(rule);
    }

    /// Reports progress, which also restarts the timeout of the call.
    pub async fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let message = message.map(str::to_owned);
        self.send_event(Event::Progress { progress, total, message }).await;
    }

    /// Sends a log message, if the client requested messages of this level.
    pub async fn log(&self, level: Level, logger: Option<&str>, data: &impl Serialize) {
        if self.shared.caller.log.is_some_and(|min_level| level >= min_level) {
            let (logger, data) = (logger.map(str::to_owned), Raw::from_value(data));
            self.send_event(Event::Log { level, logger, data }).await;
        }
    }

    /// Lets the client close its connection and fetch the response after `retry`, if its protocol allows that
    /// (2025-11-25 basic/transports, polling). Otherwise the client keeps waiting.
    #[doc(hidden)]
    pub fn release_connection(&self, retry: Duration) {
        self.shared.channel.release_connection(self.shared.key, retry);
    }

    /// Resolves when the call is cancelled. The handler's future is dropped then, so this is for work outside of it,
    /// such as on a thread.
    pub async fn cancelled(&self) {
        let mut cancelled = std::pin::pin!(self.shared.cancelled.notified());
        // Registered before the flag is read, so that a signal in between is not missed.
        cancelled.as_mut().enable();
        if !self.is_cancelled() {
            cancelled.await;
        }
    }

    /// Whether the call is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.shared.is_cancelled()
    }

    /// The client's reason for the cancellation, once it is known.
    #[doc(hidden)]
    pub fn cancel_reason(&self) -> CancelReason {
        self.shared.cancel_reason()
    }

    pub(crate) fn canceller(&self) -> Canceller {
        Canceller { shared: Arc::clone(&self.shared) }
    }

    pub(crate) fn input_response(&self, key: &str) -> Option<&Raw> {
        self.round.as_ref()?.answers.get(key)
    }

    /// Sends an inline input request, which is a step of the call.
    pub(crate) async fn send_input_request(&self, input_request: InputRequest) -> InputResponse {
        let mut step = self.start_input_request(&input_request);
        if let Some(step) = &mut step {
            step.set_error(Some(ErrorType::Cancelled));
        }
        let trace = self.trace_for_client(step.as_ref().and_then(StepGuard::span_id));
        let response = self.send_traced_input_request(input_request, trace).await;
        if let Some(step) = step {
            let refused = ErrorType::Fault(FaultKind::InputRefused);
            step.end(response.is_err().then_some(refused));
        }
        response
    }

    async fn send_traced_input_request(
        &self,
        mut input_request: InputRequest,
        trace: Option<Raw>,
    ) -> InputResponse {
        for change in self.rewrites() {
            match change {
                ContextRewrite::Question(change) => input_request = change(input_request),
                ContextRewrite::Refusal(check) => check(&input_request)?,
                ContextRewrite::Event(_) => {}
            }
        }
        let method = input_request.method();
        let key = self.shared.key;
        let response = self.shared.channel.request_input(key, input_request, trace).await;
        self.count_input_request(method, if response.is_ok() { "answered" } else { "refused" });
        response
    }

    /// Forwards an event of this call from another source.
    #[doc(hidden)]
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
