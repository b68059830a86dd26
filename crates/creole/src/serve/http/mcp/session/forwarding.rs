//! Messages of a client for a call that another replica has: input responses and cancellations.
//!
//! The id of an input request names its replica. A cancellation names only the client's id of the call, so each replica gets
//! it that has streams of the session. So does each replica when the client changed its subscriptions or its log level.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use creole_proto::method::Method;
use creole_proto::wire::{Fields, Frame, ScanLimits, unquote};
use http::Response;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::Session;
use crate::chain::BoxFuture;
use crate::replicas::{Registration, ReplicaError, ReplicaRequest, Replicas};
use crate::serve::http::mcp::http_caller::HttpCaller;
use crate::serve::http::mcp::response;
use crate::serve::http::mcp::response::McpBody;
use crate::serve::http::mcp::session::forwarded_message;

/// How long another replica may take to accept a message.
const FORWARD_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum number of replicas that a message is sent to.
const MAX_REPLICAS: usize = 32;

/// The request to read the record of the session again.
const REFRESH: &[u8] = b"refresh";

/// Messages that are on their way to all other replicas. More are not sent: each costs the store some operations.
static SENT_TO_ALL: Semaphore = Semaphore::const_new(64);

impl Session {
    /// Accepts messages that other replicas received.
    pub(super) async fn register_messages(self: &Arc<Self>, peers: &Replicas) -> Registration {
        let session = Arc::downgrade(self);
        let take = move |request| drop(tokio::spawn(serve(Weak::clone(&session), request)));
        peers.register(&target(&self.id), take).await
    }

    /// Notes that a message follows the handshake, whose end another replica may have received.
    pub(crate) fn note_handshake(&self, frame: &Frame<'_>) {
        let is_of_handshake = |fields: &Fields<'_>| {
            let method = fields.method.and_then(unquote);
            let names = [Method::Initialize, Method::Initialized, Method::Ping].map(Method::name);
            method.is_some_and(|method| names.contains(&&*method))
        };
        match frame {
            Frame::One(fields) if is_of_handshake(fields) => {}
            _ if self.replicas.is_none() => {}
            _ => self.host.confirm_elsewhere(),
        }
    }

    fn scan_limits(&self) -> ScanLimits {
        self.host.service().profile().limits.scan
    }

    /// Sends an input response to the replica that requested the input. `None` if there is none, or if it expects no such
    /// response any more.
    pub(crate) async fn forward_input_response(
        &self,
        fields: &Fields<'_>,
        caller: HttpCaller<'_>,
    ) -> Option<Response<McpBody>> {
        let (peers, message) = (self.replicas.as_ref()?, caller.body()?);
        let id = fields.id.and_then(unquote)?;
        let (_, home) = id.rsplit_once('.').filter(|(_, home)| *home != peers.name())?;
        let target = target(&self.id);
        let sending = forwarded_message::send(peers, home, &target, caller.principal, message);
        match timeout(FORWARD_TIMEOUT, sending).await.unwrap_or(Err(ReplicaError::Busy)) {
            Ok(reply) if reply == forwarded_message::ACCEPTED => {
                Some(response::empty_response(202))
            }
            Err(unreached) if unreached.is_temporary() => {
                let reason =
                    "the call is in another replica that cannot be reached; try again later";
                Some(response::state_unavailable(reason))
            }
            Ok(_) | Err(_) => None,
        }
    }

    /// Sends a cancellation to the other replicas, if it is one and no such call runs here. A replica that does not get it
    /// finishes the call, as it does for a late cancellation.
    pub(crate) fn forward_cancellation(&self, fields: &Fields<'_>, caller: HttpCaller<'_>) {
        let (Some(peers), Some(message)) = (&self.replicas, caller.body()) else { return };
        if !is_cancellation(fields) || self.host.is_cancellable(fields.params) {
            return;
        }
        let request = forwarded_message::encode(&caller.principal.to_record(), message);
        self.send_to_all(peers, &request);
    }

    /// Whether a message changes what all replicas must know of the session.
    pub(crate) fn is_shared_change(&self, frame: &Frame<'_>) -> bool {
        let Frame::One(fields) = frame else { return false };
        let changes = [Method::Subscribe, Method::Unsubscribe, Method::SetLevel].map(Method::name);
        self.replicas.is_some()
            && fields.method.and_then(unquote).is_some_and(|method| changes.contains(&&*method))
    }

    /// Lets the replicas with streams of the session read its record again. The others do that when a stream is opened.
    pub(crate) fn announce_change(&self) {
        if let Some(peers) = &self.replicas {
            self.send_to_all(peers, &Bytes::from_static(REFRESH));
        }
    }

    fn send_to_all(&self, peers: &Replicas, request: &Bytes) {
        for other in peers.others().into_iter().take(MAX_REPLICAS) {
            let Ok(slot) = SENT_TO_ALL.try_acquire() else { return };
            let (peers, target, request) = (peers.clone(), target(&self.id), request.clone());
            tokio::spawn(async move {
                let sending = forwarded_message::request(&peers, &other.name, &target, request);
                // Most replicas have no stream of the session.
                _ = timeout(FORWARD_TIMEOUT, sending).await;
                drop(slot);
            });
        }
    }
}

/// Handles a message that another replica received. It is boxed, because a message may register the streams of a session.
fn serve(session: Weak<Session>, request: ReplicaRequest) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let session = session.upgrade();
        if request.payload == REFRESH {
            if let Some(session) = &session {
                session.refresh().await;
            }
            // The sender does not depend on it.
            _ = request.responder.send(forwarded_message::ACCEPTED).await;
            return;
        }
        let limits = session.as_deref().map_or_else(ScanLimits::default, Session::scan_limits);
        forwarded_message::serve(session.as_ref(), &limits, request, is_expected).await;
    })
}

/// Whether the session waits for this message of another replica.
fn is_expected(session: &Session, frame: &Frame<'_>) -> bool {
    let Frame::One(fields) = frame else { return false };
    match fields.method {
        None => session.host.is_expected_response(fields),
        Some(_) => is_cancellation(fields) && session.host.is_cancellable(fields.params),
    }
}

fn is_cancellation(fields: &Fields<'_>) -> bool {
    let method = fields.method.and_then(unquote);
    fields.id.is_none() && method.is_some_and(|method| method == Method::Cancelled.name())
}

fn target(id: &str) -> String {
    format!("session/{id}")
}
