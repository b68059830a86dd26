//! One call as it travels, and what its handler may do meanwhile.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use creole_proto::model::{Level, Question};
use creole_proto::op::{Caller, Event, Operation};
use creole_proto::server::{Answer, CallKey};
use creole_proto::wire::Raw;
use serde::Serialize;
use tokio::sync::Notify;

use crate::chain::BoxFuture;

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
}

/// Who is calling, and what a handler may do while it works.
#[derive(Clone)]
pub struct Context {
    inner: Arc<Inner>,
}

struct Inner {
    key: CallKey,
    caller: Caller,
    /// Who is responsible: whom state and cursors are bound to.
    principal: Arc<str>,
    outlet: Arc<dyn Outlet>,
    cancelled: Canceller,
    /// Answers of the client so far, by key.
    answers: BTreeMap<String, Raw>,
    debug: bool,
}

impl Context {
    pub(crate) fn new(
        key: CallKey,
        caller: Caller,
        principal: Arc<str>,
        outlet: Arc<dyn Outlet>,
        debug: bool,
    ) -> Self {
        let cancelled = Canceller::default();
        let answers = BTreeMap::new();
        Self {
            inner: Arc::new(Inner { key, caller, principal, outlet, cancelled, answers, debug }),
        }
    }

    /// The same context with the client's answers so far.
    pub(crate) fn with_answers(&self, answers: BTreeMap<String, Raw>) -> Self {
        let inner = &self.inner;
        Self {
            inner: Arc::new(Inner {
                key: inner.key,
                caller: inner.caller.clone(),
                principal: Arc::clone(&inner.principal),
                outlet: Arc::clone(&inner.outlet),
                cancelled: inner.cancelled.clone(),
                answers,
                debug: inner.debug,
            }),
        }
    }

    /// Who is calling: revision, capabilities, self-description.
    pub fn caller(&self) -> &Caller {
        &self.inner.caller
    }

    /// Who is responsible for the call.
    pub fn principal(&self) -> &str {
        &self.inner.principal
    }

    /// Whether the server was started to be debugged.
    pub fn is_debug(&self) -> bool {
        self.inner.debug
    }

    /// Tells how far the work has come; also keeps the call from being taken for stuck.
    pub async fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let message = message.map(str::to_owned);
        self.event(Event::Progress { progress, total, message }).await;
    }

    /// Sends a log message, if the client wants messages of this level.
    pub async fn log(&self, level: Level, logger: Option<&str>, data: &impl Serialize) {
        if self.inner.caller.log.is_some_and(|least| level >= least) {
            let (logger, data) = (logger.map(str::to_owned), Raw::of(data));
            self.event(Event::Log { level, logger, data }).await;
        }
    }

    /// Resolves when nobody waits for this call any more. A handler's future is dropped then, so this is
    /// for work that goes on elsewhere, such as on a thread.
    pub async fn cancelled(&self) {
        self.inner.cancelled.wait().await;
    }

    /// Whether nobody waits for this call any more.
    pub fn is_cancelled(&self) -> bool {
        self.inner.cancelled.is_set()
    }

    pub(crate) fn canceller(&self) -> Canceller {
        self.inner.cancelled.clone()
    }

    pub(crate) fn answer(&self, key: &str) -> Option<&Raw> {
        self.inner.answers.get(key)
    }

    pub(crate) async fn ask_now(&self, question: Question) -> Answer {
        self.inner.outlet.ask(self.inner.key, question).await
    }

    async fn event(&self, event: Event) {
        self.inner.outlet.event(self.inner.key, event).await;
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Context")
            .field("caller", &self.inner.caller)
            .finish_non_exhaustive()
    }
}

/// Tells a call's workers that nobody waits for them.
#[derive(Clone, Debug, Default)]
pub struct Canceller {
    shared: Arc<(AtomicBool, Notify)>,
}

impl Canceller {
    /// Tells it.
    pub fn cancel(&self) {
        self.shared.0.store(true, Ordering::Release);
        self.shared.1.notify_waiters();
    }

    fn is_set(&self) -> bool {
        self.shared.0.load(Ordering::Acquire)
    }

    async fn wait(&self) {
        let notified = self.shared.1.notified();
        // Registered before the flag is read, so that a signal in between is not missed.
        let mut notified = std::pin::pin!(notified);
        notified.as_mut().enable();
        if !self.is_set() {
            notified.await;
        }
    }
}
