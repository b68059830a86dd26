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

use super::callers::Callers;
use super::pool::{Lease, Slot};
use super::{Affinity, Upstream, relay};
use crate::chain::Chain;

/// How long calls wait for a client that was asked for its roots outside of a call.
const ROOTS: Duration = Duration::from_secs(2);

/// How long a server gets to apply the roots that it was told before it is called: nothing in the protocol says that it
/// has applied them.
const APPLYING: Duration = Duration::from_millis(50);

/// Waits until a server has applied the roots that it was told, as far as that can be known.
pub(super) async fn apply_roots() {
    sleep(APPLYING).await;
}

/// The one client that a session with a server belongs to.
#[derive(Clone)]
pub(super) struct OnlyClient {
    session: ClientSession,
    /// What the layers around the server make of its questions.
    chain: Chain,
    /// How long the client may take to answer.
    patience: Duration,
    /// How many times the client is being asked for its roots.
    roots: watch::Sender<usize>,
    _following: Option<Arc<Following>>,
}

/// Ends a task that follows the roots of a client.
struct Following(AbortHandle);

impl Drop for Following {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl OnlyClient {
    fn new(session: ClientSession, upstream: &Upstream, slot: Weak<Slot>) -> Self {
        let changes = session.watch_roots();
        let following = changes.map(|changes| {
            Arc::new(Following(tokio::spawn(tell_changes(changes, slot)).abort_handle()))
        });
        Self {
            session,
            chain: upstream.settings.chain.clone(),
            patience: upstream.settings.patience,
            roots: watch::Sender::new(0),
            _following: following,
        }
    }

    /// Whether it can still be asked.
    pub(super) fn is_open(&self) -> bool {
        self.session.is_open()
    }

    /// Asks it what belongs to no call.
    pub(super) fn ask(self, asked: ServerInputRequest, callers: Callers) {
        let ServerInputRequest { request: mut question, responder: reply, .. } = asked;
        self.chain.change_question(&mut question);
        let roots = AskedRoots::of(&question, callers);
        let counted = roots.is_some().then(|| Counted::new(self.roots.clone()));
        tokio::spawn(async move {
            let answered = timeout(self.patience, self.session.request_input(question)).await;
            if let (Ok(answer), true) = (answered, self.session.is_open()) {
                roots.into_iter().for_each(|roots| roots.settle(&reply));
                reply.respond(answer.map_err(InputRequestError::declined));
            }
            if let Some(counted) = counted {
                apply_roots().await;
                drop(counted);
            }
        });
    }

    /// Waits while the client is being asked for its roots, but not long. Nothing waits for the same question again.
    async fn roots_settled(&self) {
        let mut roots = self.roots.subscribe();
        if timeout(ROOTS, roots.wait_for(|open| *open == 0)).await.is_err() {
            self.roots.send_replace(0);
        }
    }
}

/// Counts a question for roots while it is open.
struct Counted(watch::Sender<usize>);

impl Counted {
    fn new(roots: watch::Sender<usize>) -> Self {
        roots.send_modify(|open| *open += 1);
        Self(roots)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open = open.saturating_sub(1));
    }
}

/// A question for roots, which counts as missed until it is answered: whoever asks may be dropped at any time.
pub(super) struct AskedRoots(Callers);

impl AskedRoots {
    /// Nothing for other questions.
    pub(super) fn of(question: &InputRequest, callers: Callers) -> Option<Self> {
        matches!(question, InputRequest::Roots).then(|| {
            callers.miss_roots(true);
            Self(callers)
        })
    }

    /// The client has answered or refused. A server that does not wait any more missed it all the same.
    pub(super) fn settle(self, reply: &InputResponder) {
        if reply.id().is_some() {
            self.0.miss_roots(false);
        }
    }
}

/// Tells a server whenever the roots of its only client change.
async fn tell_changes(mut changes: watch::Receiver<()>, slot: Weak<Slot>) {
    while changes.changed().await.is_ok() {
        let Some(slot) = slot.upgrade() else { return };
        slot.roots_changed();
    }
}

impl Upstream {
    /// Notes which client a session belongs to, if it belongs to one that can be asked outside of calls.
    fn attach(&self, lease: &Lease, context: &Context) {
        let is_own = match self.settings.affinity {
            Affinity::Single => true,
            _ => context.session_name().is_some_and(|name| lease.is_of(name)),
        };
        if is_own && self.settings.interactive && !lease.joined.has_client() {
            let session = context.client_session();
            let client = session.map(|it| OnlyClient::new(it, self, lease.slot()));
            client.into_iter().for_each(|client| lease.joined.set_client(client));
        }
    }

    /// The only client that there is, for the gateway's own session.
    pub(super) fn only_client(&self, slot: Weak<Slot>) -> Option<OnlyClient> {
        let session = self.only_session.get().filter(|_| self.settings.interactive)?;
        Some(OnlyClient::new(session.clone(), self, slot))
    }

    /// Prepares a session for a caller that is asked while it waits: what the server asks before the call is answered
    /// before the call.
    pub(super) async fn prepare(&self, lease: &mut Lease, context: &Context) {
        self.attach(lease, context);
        let caller = context.caller();
        if !caller.capabilities.roots
            || caller.rules.input_request_style != InputRequestStyle::Inline
        {
            return;
        }
        if let Some(client) = lease.joined.client() {
            client.roots_settled().await;
        }
        if lease.asks_before_calls() {
            relay::settle(lease, context).await;
        }
    }
}
