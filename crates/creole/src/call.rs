//! One call as it travels, and what its handler may do meanwhile.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use creole_proto::model::{Level, Question, Tasking};
use creole_proto::op::{Caller, Event, Operation};
use creole_proto::server::{Answer, CallKey};
use creole_proto::wire::Raw;
use serde::Serialize;
use tokio::sync::Notify;

use crate::chain::BoxFuture;
use crate::tool::ToolError;

/// One call as it travels through the chain.
#[derive(Clone, Debug)]
pub struct Call {
    /// What is asked.
    pub operation: Operation,
    /// By whom, and how to reach them.
    pub context: Context,
}

/// How events and questions of a call reach the client.
pub trait Outlet: Send + Sync {
    /// Tells what happens; waits while the client is slow.
    fn event(&self, call: CallKey, event: Event) -> BoxFuture<'_, ()>;
    /// Asks a question of a client that is asked in the middle of a call.
    fn ask(&self, call: CallKey, question: Question) -> BoxFuture<'_, Answer>;
    /// Lets a client that can come back for the answer go until then. Most transports cannot.
    fn release(&self, _call: CallKey, _retry: Duration) {}
}

/// Who is calling, and what a handler may do while it works.
#[derive(Clone)]
pub struct Context {
    shared: Arc<Shared>,
    /// Answers of the client so far, by key.
    answers: Option<Arc<BTreeMap<String, Raw>>>,
}

struct Shared {
    key: CallKey,
    caller: Caller,
    /// Who is responsible: whom state and cursors are bound to.
    principal: Arc<str>,
    outlet: Arc<dyn Outlet>,
    debug: bool,
    /// The task that the call runs as.
    task: Option<Box<str>>,
    is_cancelled: AtomicBool,
    cancelled: Notify,
}

impl Context {
    pub(crate) fn new(
        key: CallKey,
        caller: Caller,
        principal: Arc<str>,
        outlet: Arc<dyn Outlet>,
        debug: bool,
    ) -> Self {
        let (is_cancelled, cancelled) = (AtomicBool::new(false), Notify::new());
        let task = None;
        let shared =
            Shared { key, caller, principal, outlet, debug, task, is_cancelled, cancelled };
        Self { shared: Arc::new(shared), answers: None }
    }

    /// A context for the same call as a task: its events go elsewhere, and the request's end is not its own.
    pub(crate) fn for_task(&self, id: &str, outlet: Arc<dyn Outlet>) -> Self {
        let shared = Shared {
            key: self.shared.key,
            caller: self.shared.caller.clone(),
            principal: Arc::clone(&self.shared.principal),
            outlet,
            debug: self.shared.debug,
            task: Some(id.into()),
            is_cancelled: AtomicBool::new(false),
            cancelled: Notify::new(),
        };
        Self { shared: Arc::new(shared), answers: None }
    }

    /// The same context with the client's answers so far.
    pub(crate) fn with_answers(&self, answers: BTreeMap<String, Raw>) -> Self {
        Self { shared: Arc::clone(&self.shared), answers: Some(Arc::new(answers)) }
    }

    /// Who is calling: revision, capabilities, self-description.
    pub fn caller(&self) -> &Caller {
        &self.shared.caller
    }

    /// Who is responsible for the call.
    pub fn principal(&self) -> &str {
        &self.shared.principal
    }

    /// Whether the call runs as a task.
    pub fn is_task(&self) -> bool {
        self.shared.task.is_some()
    }

    /// Goes on as a task, where the client can follow one: the handler is ended by `?` and run again from its
    /// beginning, with the answers so far, while the client is told of the task. Elsewhere, and in a task,
    /// it just goes on. For tools that [ask first](crate::Tool::asks_first).
    pub fn detach(&self) -> Result<(), ToolError> {
        let stays = self.is_task() || self.shared.caller.tasking == Tasking::Never;
        if stays { Ok(()) } else { Err(ToolError::Detach) }
    }

    /// Whether the server was started to be debugged.
    pub fn is_debug(&self) -> bool {
        self.shared.debug
    }

    /// Tells how far the work has come; also keeps the call from being taken for stuck.
    pub async fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let message = message.map(str::to_owned);
        self.event(Event::Progress { progress, total, message }).await;
    }

    /// Sends a log message, if the client wants messages of this level.
    pub async fn log(&self, level: Level, logger: Option<&str>, data: &impl Serialize) {
        if self.shared.caller.log.is_some_and(|least| level >= least) {
            let (logger, data) = (logger.map(str::to_owned), Raw::of(data));
            self.event(Event::Log { level, logger, data }).await;
        }
    }

    /// Lets the client close its connection and come back for the answer after `retry`, where its protocol can
    /// (2025-11-25 basic/transports, polling). Elsewhere it goes on waiting.
    pub fn release_connection(&self, retry: Duration) {
        self.shared.outlet.release(self.shared.key, retry);
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

    pub(crate) fn canceller(&self) -> Canceller {
        Canceller { shared: Arc::clone(&self.shared) }
    }

    pub(crate) fn answer(&self, key: &str) -> Option<&Raw> {
        self.answers.as_ref()?.get(key)
    }

    pub(crate) async fn ask_now(&self, question: Question) -> Answer {
        self.shared.outlet.ask(self.shared.key, question).await
    }

    async fn event(&self, event: Event) {
        self.shared.outlet.event(self.shared.key, event).await;
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
    shared: Arc<Shared>,
}

impl Canceller {
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
