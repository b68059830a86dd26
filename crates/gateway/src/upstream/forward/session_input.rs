//! Questions that a server asks outside of calls, and roots that change there.
//!
//! A session with a server may belong to one session of a client of the handshake era. Then the server may ask that client
//! at any time, and is told when the client's roots change. In all other sessions nobody can be asked outside of a call.
//! A server that asked for roots in vain is told before the next call that they changed, so that it asks again.

use std::sync::{Arc, Weak};
use std::time::Duration;

use creole::call::{ClientSession, Context};
use creole::client::{InputResponder, ServerInputRequest};
use creole::proto::client::InputRequestError;
use creole::proto::model::InputRequest;
use creole::proto::revision::InputRequestStyle;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use crate::layers::Chain;
use crate::upstream::connections::pool::{UpstreamLease, UpstreamSlot};
use crate::upstream::forward::active_calls::ActiveCalls;
use crate::upstream::forward::relay;
use crate::upstream::{Affinity, Upstream};

/// How long calls wait for a client that was asked for its roots outside of a call.
const ROOTS_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a server gets to apply the roots that it was told before it is called: nothing in the protocol says that it
/// has applied them.
const ROOTS_APPLY_DELAY: Duration = Duration::from_millis(50);

/// Waits until a server has applied the roots that it was told, as far as that can be known.
pub(crate) async fn apply_roots() {
    sleep(ROOTS_APPLY_DELAY).await;
}

/// The one client that a session with a server belongs to.
#[derive(Clone)]
pub(crate) struct SessionClient {
    session: ClientSession,
    /// What the layers around the server make of its questions.
    chain: Chain,
    /// How long the client may take to answer.
    input_timeout: Duration,
    /// How many times the client is being asked for its roots.
    pending_roots_requests: watch::Sender<usize>,
    _roots_watch: Option<Arc<RootsWatchGuard>>,
}

/// Ends a task that follows the roots of a client.
struct RootsWatchGuard(AbortHandle);

impl Drop for RootsWatchGuard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl SessionClient {
    fn new(session: ClientSession, upstream: &Upstream, slot: Weak<UpstreamSlot>) -> Self {
        let changes = session.watch_roots();
        let following = changes.map(|changes| {
            Arc::new(RootsWatchGuard(
                tokio::spawn(forward_roots_changes(changes, slot)).abort_handle(),
            ))
        });
        Self {
            session,
            chain: upstream.settings.chain.clone(),
            input_timeout: upstream.settings.input_timeout,
            pending_roots_requests: watch::Sender::new(0),
            _roots_watch: following,
        }
    }

    /// Whether it can still be asked.
    pub(crate) fn is_open(&self) -> bool {
        self.session.is_open()
    }

    /// Asks it what belongs to no call.
    pub(crate) fn request_input(self, asked: ServerInputRequest, callers: ActiveCalls) {
        let ServerInputRequest { request: mut question, responder: reply, .. } = asked;
        self.chain.rewrite_input_request(&mut question);
        let roots = RootsRequestGuard::of(&question, callers);
        let counted =
            roots.is_some().then(|| PendingRootsGuard::new(self.pending_roots_requests.clone()));
        tokio::spawn(async move {
            let answered = timeout(self.input_timeout, self.session.request_input(question)).await;
            if let (Ok(answer), true) = (answered, self.session.is_open()) {
                roots.into_iter().for_each(|roots| roots.resolve(&reply));
                reply.respond(answer.map_err(InputRequestError::declined));
            }
            if let Some(counted) = counted {
                apply_roots().await;
                drop(counted);
            }
        });
    }

    /// Waits while the client is being asked for its roots, but not long. Nothing waits for the same question again.
    async fn wait_for_roots(&self) {
        let mut roots = self.pending_roots_requests.subscribe();
        if timeout(ROOTS_TIMEOUT, roots.wait_for(|open| *open == 0)).await.is_err() {
            self.pending_roots_requests.send_replace(0);
        }
    }
}

/// Counts a question for roots while it is open.
struct PendingRootsGuard(watch::Sender<usize>);

impl PendingRootsGuard {
    fn new(roots: watch::Sender<usize>) -> Self {
        roots.send_modify(|open| *open += 1);
        Self(roots)
    }
}

impl Drop for PendingRootsGuard {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open = open.saturating_sub(1));
    }
}

/// A question for roots, which counts as missed until it is answered: whoever asks may be dropped at any time.
pub(crate) struct RootsRequestGuard(ActiveCalls);

impl RootsRequestGuard {
    /// Nothing for other questions.
    pub(crate) fn of(question: &InputRequest, callers: ActiveCalls) -> Option<Self> {
        matches!(question, InputRequest::Roots).then(|| {
            callers.set_missed_roots(true);
            Self(callers)
        })
    }

    /// The client has answered or refused. A server that does not wait any more missed it all the same.
    pub(crate) fn resolve(self, reply: &InputResponder) {
        if reply.id().is_some() {
            self.0.set_missed_roots(false);
        }
    }
}

/// Tells a server whenever the roots of its only client change.
async fn forward_roots_changes(mut changes: watch::Receiver<()>, slot: Weak<UpstreamSlot>) {
    while changes.changed().await.is_ok() {
        let Some(slot) = slot.upgrade() else { return };
        slot.notify_roots_changed();
    }
}

impl Upstream {
    /// Notes which client a session belongs to, if it belongs to one that can be asked outside of calls.
    fn attach_client(&self, lease: &UpstreamLease, context: &Context) {
        let is_own = match self.settings.affinity {
            Affinity::Single => true,
            _ => context.session_name().is_some_and(|name| lease.belongs_to(name)),
        };
        if is_own && self.settings.interactive && !lease.active_call.has_client() {
            let session = context.client_session();
            let client = session.map(|it| SessionClient::new(it, self, lease.weak_slot()));
            client.into_iter().for_each(|client| lease.active_call.set_client(client));
        }
    }

    /// The only client that there is, for the gateway's own session.
    pub(crate) fn gateway_session_client(&self, slot: Weak<UpstreamSlot>) -> Option<SessionClient> {
        let session = self.only_session.get().filter(|_| self.settings.interactive)?;
        Some(SessionClient::new(session.clone(), self, slot))
    }

    /// Prepares a session for a caller that is asked while it waits: what the server asks before the call is answered
    /// before the call.
    pub(crate) async fn prepare_session(&self, lease: &mut UpstreamLease, context: &Context) {
        self.attach_client(lease, context);
        let caller = context.caller();
        if !caller.capabilities.roots
            || caller.rules.input_request_style != InputRequestStyle::Inline
        {
            return;
        }
        if let Some(client) = lease.active_call.client() {
            client.wait_for_roots().await;
        }
        if lease.may_request_input_first() {
            relay::answer_initial_requests(lease, context).await;
        }
    }
}
