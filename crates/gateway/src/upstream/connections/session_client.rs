//! The client that alone owns an upstream session: input requests outside of calls, and changed roots.
//!
//! An upstream session may belong to one client session of the handshake era. The upstream may then send input requests
//! to that client at any time and is notified when the client's roots change. In all other sessions input requests
//! outside of calls are declined. If a request for roots was declined, the upstream is notified before the next call
//! that the roots changed, so that it requests them again.

use std::sync::{Arc, Weak};
use std::time::Duration;

use creole::internal::call::ClientSession;
use creole::internal::client::{InputResponder, ServerInputRequest};
use creole::proto::client::InputRequestError;
use creole::proto::model::InputRequest;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use crate::layers::Chain;
use crate::upstream::connections::active_calls::ActiveCalls;
use crate::upstream::connections::pool::UpstreamSlot;
use crate::upstream::settings::UpstreamSettings;

/// How long calls wait for the client's response to a request for roots outside of a call.
const ROOTS_TIMEOUT: Duration = Duration::from_secs(2);

/// How long an upstream gets to apply received roots before the call: the protocol has no message that confirms it.
const ROOTS_APPLY_DELAY: Duration = Duration::from_millis(50);

/// Waits until an upstream has probably applied the roots that it received.
pub(crate) async fn apply_roots() {
    sleep(ROOTS_APPLY_DELAY).await;
}

/// The client that alone owns an upstream session.
#[derive(Clone)]
pub(crate) struct SessionClient {
    session: ClientSession,
    /// The layers that rewrite the upstream's input requests.
    chain: Chain,
    /// How long the client may take to respond.
    input_timeout: Duration,
    /// The number of pending requests for roots.
    pending_roots_requests: watch::Sender<usize>,
    _roots_watch: Option<Arc<RootsWatchGuard>>,
}

/// Aborts the task that follows the roots of a client.
struct RootsWatchGuard(AbortHandle);

impl Drop for RootsWatchGuard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl SessionClient {
    pub(crate) fn new(
        session: ClientSession,
        settings: &UpstreamSettings,
        slot: Weak<UpstreamSlot>,
    ) -> Self {
        let changes = session.watch_roots();
        let following = changes.map(|changes| {
            Arc::new(RootsWatchGuard(
                tokio::spawn(forward_roots_changes(changes, slot)).abort_handle(),
            ))
        });
        Self {
            session,
            chain: settings.chain.clone(),
            input_timeout: settings.input_timeout,
            pending_roots_requests: watch::Sender::new(0),
            _roots_watch: following,
        }
    }

    /// Whether the client is still connected.
    pub(crate) fn is_open(&self) -> bool {
        self.session.is_open()
    }

    /// Sends the client an input request that belongs to no call.
    pub(crate) fn request_input(self, input_request: ServerInputRequest, callers: ActiveCalls) {
        let ServerInputRequest { mut request, responder, .. } = input_request;
        self.chain.rewrite_input_request(&mut request);
        let roots = RootsRequestGuard::of(&request, callers);
        let counted =
            roots.is_some().then(|| PendingRootsGuard::new(self.pending_roots_requests.clone()));
        tokio::spawn(async move {
            let result = timeout(self.input_timeout, self.session.request_input(request)).await;
            if let (Ok(response), true) = (result, self.session.is_open()) {
                roots.into_iter().for_each(|roots| roots.resolve(&responder));
                responder.respond(response.map_err(InputRequestError::declined));
            }
            if let Some(counted) = counted {
                apply_roots().await;
                drop(counted);
            }
        });
    }

    /// Waits until no request for roots is pending, up to a timeout. After a timeout later calls do not wait for the
    /// same request.
    pub(crate) async fn wait_for_roots(&self) {
        let mut roots = self.pending_roots_requests.subscribe();
        if timeout(ROOTS_TIMEOUT, roots.wait_for(|open| *open == 0)).await.is_err() {
            self.pending_roots_requests.send_replace(0);
        }
    }
}

/// Counts a pending request for roots.
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

/// A request for roots. It counts as missed until it gets a response, since the future that handles it may be dropped.
pub(crate) struct RootsRequestGuard(ActiveCalls);

impl RootsRequestGuard {
    /// `None` for other input requests.
    pub(crate) fn of(input_request: &InputRequest, callers: ActiveCalls) -> Option<Self> {
        matches!(input_request, InputRequest::Roots).then(|| {
            callers.set_missed_roots(true);
            Self(callers)
        })
    }

    /// Records that the client has responded or declined. If the upstream no longer waits, the request counts as
    /// missed.
    pub(crate) fn resolve(self, responder: &InputResponder) {
        if responder.id().is_some() {
            self.0.set_missed_roots(false);
        }
    }
}

/// Notifies an upstream whenever the roots of its only client change.
async fn forward_roots_changes(mut changes: watch::Receiver<()>, slot: Weak<UpstreamSlot>) {
    while changes.changed().await.is_ok() {
        let Some(slot) = slot.upgrade() else { return };
        slot.notify_roots_changed();
    }
}
