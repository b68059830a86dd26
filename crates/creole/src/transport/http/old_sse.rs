//! HTTP with SSE, the transport of 2024-11-05: one stream for everything that the server says, and a second
//! address to say something to it (2024-11-05 basic/transports, HTTP with SSE).
//!
//! Where several processes share a state, the address also names the process that has the stream: a message that
//! comes to another one is handed on.

mod elsewhere;

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use creole_proto::wire::{Frame, ScanError};
use http::Response;

use super::conversation::COMMON;
use super::endpoint::Endpoint;
use super::reply::{self, Body};
use super::request::Head;
use super::session::Reading;

/// The part of the address that names the session.
const PARAMETER: &str = "sessionId=";

/// Opens the stream; its first event says where to send messages.
pub(super) async fn open(
    endpoint: &Endpoint,
    path: &str,
    principal: Arc<str>,
    client: Option<IpAddr>,
) -> Response<Body> {
    let session = match endpoint.open_session(principal, client, true) {
        Ok(session) => session,
        Err(refused) => return endpoint.refused(refused),
    };
    let Some(reader) = session.conversation().attach(COMMON, None) else {
        return reply::empty(500);
    };
    if let Err(refused) = endpoint.keep_session(&session).await {
        return endpoint.refused(refused);
    }
    let reading = Reading::new(&session, COMMON, reader);
    let opening = |home: &str| {
        let id = session.id();
        format!("event: endpoint\ndata: {path}?{PARAMETER}{id}{home}\n\n").into_bytes()
    };
    match endpoint.peers() {
        None => reply::lasting_events(reading.opening(opening(""))),
        Some(peers) => {
            let reading = reading.opening(opening(&format!(".{}", peers.name())));
            let limits = endpoint.wire_limits();
            reply::lasting_events(elsewhere::found(peers, &session, reading, limits).await)
        }
    }
}

/// Takes a message; its answer goes to the stream.
pub(super) async fn message(
    endpoint: &Endpoint,
    head: &Head,
    principal: &Arc<str>,
    body: &Bytes,
    scanned: Result<&Frame<'_>, &ScanError>,
) -> Response<Body> {
    let id = head
        .uri
        .query()
        .and_then(|query| query.split('&').find_map(|parameter| parameter.strip_prefix(PARAMETER)));
    let Some(id) = id else {
        return reply::refusal(400, "the address lacks the sessionId that the stream named");
    };
    let (id, home) = id.split_once('.').map_or((id, None), |(id, home)| (id, Some(home)));
    if let (Some(peers), Some(home)) = (endpoint.peers(), home)
        && home != peers.name()
    {
        return elsewhere::hand_on(peers, home, id, principal, body).await;
    }
    match endpoint.sessions().find(id, principal, head.client).await {
        Err(refused) => endpoint.refused(refused),
        Ok(None) => unknown(),
        Ok(Some(session)) => session.post(scanned, false).await,
    }
}

fn unknown() -> Response<Body> {
    reply::refusal(404, "there is no such session")
}
