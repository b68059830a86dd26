//! HTTP with SSE, the transport of 2024-11-05: one stream for everything that the server says, and a second
//! address to say something to it (2024-11-05 basic/transports, HTTP with SSE).

use std::sync::Arc;

use creole_proto::wire::{Frame, ScanError};
use http::{Response, Uri};

use super::conversation::COMMON;
use super::endpoint::{Endpoint, Refused};
use super::reply::{self, Body};
use super::session::Reading;

/// The part of the address that names the session.
const PARAMETER: &str = "sessionId=";

/// Opens the stream; its first event says where to send messages.
pub(super) fn open(endpoint: &Endpoint, path: &str, principal: Arc<str>) -> Response<Body> {
    let session = match endpoint.open_session(principal, true) {
        Ok(session) => session,
        Err(refused) => return endpoint.refused(refused),
    };
    let Some(reader) = session.conversation().attach(COMMON, None) else {
        return reply::empty(500);
    };
    let opening = format!("event: endpoint\ndata: {path}?{PARAMETER}{}\n\n", session.id());
    if !endpoint.keep_session(&session) {
        return endpoint.refused(Refused::Full);
    }
    let reading = Reading::new(&session, COMMON, reader).opening(opening.into_bytes());
    reply::lasting_events(reading)
}

/// Takes a message; its answer goes to the stream.
pub(super) async fn message(
    endpoint: &Endpoint,
    uri: &Uri,
    principal: &str,
    scanned: Result<&Frame<'_>, &ScanError>,
) -> Response<Body> {
    let id = uri
        .query()
        .and_then(|query| query.split('&').find_map(|parameter| parameter.strip_prefix(PARAMETER)));
    let Some(id) = id else {
        return reply::refusal(400, "the address lacks the sessionId that the stream named");
    };
    match endpoint.sessions().find(id, principal).await {
        Err(error) => endpoint.refused(error.into()),
        Ok(None) => reply::refusal(404, "there is no such session"),
        Ok(Some(session)) => session.post(scanned, false).await,
    }
}
