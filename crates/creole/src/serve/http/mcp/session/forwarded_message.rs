//! A message of a client that one replica received and another one handles.

use std::sync::Arc;

use bytes::Bytes;
use creole_proto::wire::{Frame, ScanLimits, scan};

use crate::principal::Principal;
use crate::replicas::{ReplicaError, ReplicaRequest, Replicas};
use crate::serve::http::mcp::http_caller::HttpCaller;
use crate::serve::http::mcp::session::Session;

/// The reply for a message that was handled.
pub(crate) const ACCEPTED: &[u8] = b"taken";

/// What precedes the scopes that the caller lacks.
pub(crate) const REFUSED: &[u8] = b"scopes ";

/// The reply for a message that belongs to nothing here.
const UNKNOWN: &[u8] = b"unknown";

/// Sends a message to the replica `home`, and returns its reply.
pub(crate) async fn send(
    peers: &Replicas,
    home: &str,
    target: &str,
    principal: &Principal,
    message: &[u8],
) -> Result<Bytes, ReplicaError> {
    request(peers, home, target, encode(&principal.to_record(), message)).await
}

/// Sends an encoded message, and returns the reply.
pub(crate) async fn request(
    peers: &Replicas,
    home: &str,
    target: &str,
    request: Bytes,
) -> Result<Bytes, ReplicaError> {
    let mut responses = peers.send(home, target, request).await?;
    let response = responses.next().await?;
    responses.finish();
    Ok(response)
}

/// Handles a message of another replica for the session, if it is from its owner and the session expects it.
pub(crate) async fn serve(
    session: Option<&Arc<Session>>,
    limits: &ScanLimits,
    request: ReplicaRequest,
    is_expected: impl Fn(&Session, &Frame<'_>) -> bool,
) {
    let ReplicaRequest { payload, responder, .. } = request;
    let sent = decode(&payload)
        .and_then(|(principal, message)| Some((Principal::from_record(principal)?, message)));
    let session = session.filter(|session| !session.is_closed());
    let mut reply = UNKNOWN.to_vec();
    if let (Some(session), Some((principal, message))) = (session, &sent)
        && session.is_owned_by(principal)
    {
        let scanned = scan(message, limits);
        if scanned.as_ref().map_or(true, |frame| is_expected(session, frame)) {
            session.mark_used();
            let caller = HttpCaller::forwarded(principal, session.resource());
            // The message is accepted; its response goes to the stream.
            reply = match session.try_post(scanned.as_ref(), false, caller).await {
                Ok(_) => ACCEPTED.to_vec(),
                Err(refusal) => [REFUSED, refusal.to_text().as_bytes()].concat(),
            };
        }
    }
    if let Err(error) = responder.send(&reply).await {
        tracing::warn!(%error, "cannot confirm a forwarded message to its replica");
    }
}

/// The principal and the message. The length of the principal comes first.
pub(crate) fn encode(principal: &[u8], message: &[u8]) -> Bytes {
    let length = (principal.len() as u64).to_be_bytes();
    [&length, principal, message].concat().into()
}

fn decode(request: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = request.split_first_chunk::<8>()?;
    rest.split_at_checked(usize::try_from(u64::from_be_bytes(*length)).ok()?)
}
