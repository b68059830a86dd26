//! Forwards HTTP+SSE messages to the replica that has the stream.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use creole_proto::revision::Rules;
use creole_proto::wire::{ScanLimits, scan};
use http::Response;

use crate::principal::Principal;
use crate::replicas::{Registration, ReplicaError, ReplicaRequest, Replicas};
use crate::serve::http::mcp::endpoint::legacy_sse::unknown_session;
use crate::serve::http::mcp::http_caller::{HttpCaller, ScopeRefusal};
use crate::serve::http::mcp::response;
use crate::serve::http::mcp::response::{EventSource, McpBody};
use crate::serve::http::mcp::session::{Session, StreamReader};
use crate::state::StateError;

/// A stream that other replicas can find as long as it is read.
pub(crate) struct RegisteredStream {
    reader: StreamReader,
    _registration: Registration,
}

impl EventSource for RegisteredStream {
    fn poll_bytes(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        Pin::new(&mut self.reader).poll_bytes(context)
    }
}

/// Registers the stream of a session for other replicas.
pub(crate) async fn register_stream(
    peers: &Replicas,
    session: &Arc<Session>,
    reading: StreamReader,
    limits: ScanLimits,
) -> RegisteredStream {
    let theirs = Arc::clone(session);
    let take = move |request| drop(tokio::spawn(serve(Arc::clone(&theirs), limits, request)));
    RegisteredStream {
        reader: reading,
        _registration: peers.register(&target(session.id()), take).await,
    }
}

/// Forwards a message to the replica that has the stream, and responds with that replica's status.
pub(crate) async fn forward_message(
    peers: &Replicas,
    home: &str,
    id: &str,
    caller: HttpCaller<'_>,
    body: &Bytes,
) -> Response<McpBody> {
    let request = encode_message(&caller.principal.to_record(), body);
    let status = async {
        let mut responses = peers.send(home, &target(id), request).await?;
        let response = responses.next().await?;
        responses.finish();
        Ok(response)
    };
    match status.await {
        Ok(taken) if &taken[..] == ACCEPTED => response::empty_response(202),
        Ok(refused) if refused.starts_with(REFUSED) => {
            let text = String::from_utf8_lossy(&refused[REFUSED.len()..]);
            caller.refuse(&ScopeRefusal::from_text(&text, Rules::OLDEST))
        }
        Ok(_) | Err(ReplicaError::Gone | ReplicaError::Unknown) => unknown_session(),
        Err(ReplicaError::State(StateError::TooLong { max, .. })) => {
            let reason =
                format!("the stream is in another replica, which accepts at most {max} bytes");
            response::error_response(413, &reason)
        }
        Err(unreached) => {
            tracing::warn!(%unreached, "cannot forward a message to the stream of another replica");
            response::state_unavailable(
                "the stream is in another replica that cannot be reached; try again later",
            )
        }
    }
}

const ACCEPTED: &[u8] = b"taken";

/// The caller lacks these scopes.
const REFUSED: &[u8] = b"scopes ";

/// Accepts a message for the session, if it is from its owner.
async fn serve(session: Arc<Session>, limits: ScanLimits, request: ReplicaRequest) {
    let ReplicaRequest { payload, responder, .. } = request;
    let sent = decode_message(&payload)
        .and_then(|(principal, message)| Some((Principal::from_record(principal)?, message)));
    let from_owner = sent.filter(|(caller, _)| session.is_owned_by(caller));
    let taken = from_owner.filter(|_| !session.is_closed());
    let mut reply = b"unknown".to_vec();
    if let Some((principal, message)) = &taken {
        session.mark_used();
        let scanned = scan(message, &limits);
        let caller = HttpCaller::forwarded(principal, session.resource());
        // The message is accepted; its response goes to the stream.
        reply = match session.try_post(scanned.as_ref(), false, caller).await {
            Ok(_) => ACCEPTED.to_vec(),
            Err(refusal) => [REFUSED, refusal.to_text().as_bytes()].concat(),
        };
    }
    if let Err(error) = responder.send(&reply).await {
        tracing::warn!(%error, "cannot confirm a forwarded message to its replica");
    }
}

/// The principal and the message. The length of the principal comes first.
fn encode_message(principal: &[u8], message: &[u8]) -> Bytes {
    let length = (principal.len() as u64).to_be_bytes();
    [&length, principal, message].concat().into()
}

fn decode_message(request: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = request.split_first_chunk::<8>()?;
    rest.split_at_checked(usize::try_from(u64::from_be_bytes(*length)).ok()?)
}

fn target(id: &str) -> String {
    format!("stream/{id}")
}
