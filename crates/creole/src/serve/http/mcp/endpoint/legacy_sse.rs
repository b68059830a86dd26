//! The HTTP+SSE transport of 2024-11-05: one stream for all messages of the server, and a second address for messages
//! of the client (2024-11-05 basic/transports, HTTP with SSE).
//!
//! If replicas share a state, the address also names the replica that has the stream: a message that arrives at another
//! replica is forwarded to it.

mod replica;

use bytes::Bytes;
use creole_proto::wire::{Frame, ScanError};
use http::Response;

use crate::host::COMMON_STREAM;
use crate::principal::Principal;
use crate::serve::http::mcp::endpoint::McpEndpoint;
use crate::serve::http::mcp::http_caller::HttpCaller;
use crate::serve::http::mcp::response;
use crate::serve::http::mcp::response::{AtDeadline, McpBody};
use crate::serve::http::mcp::session::StreamReader;
use crate::serve::http::web::request::RequestHead;

/// The part of the address that names the session.
const PARAMETER: &str = "sessionId=";

/// Opens the stream; its first event is the address for messages.
pub(crate) async fn open_stream(
    endpoint: &McpEndpoint,
    head: &RequestHead,
    principal: &Principal,
) -> Response<McpBody> {
    let session = match endpoint.open_session(principal, head.client, true) {
        Ok(session) => session,
        Err(refused) => return endpoint.session_error_response(refused),
    };
    session.set_resource(head.resource.as_ref());
    let (path, deadline) = (head.uri.path(), HttpCaller::new(principal, head).stream_deadline());
    let Some(reader) = session.host().attach(COMMON_STREAM, None) else {
        return response::empty_response(500);
    };
    if let Err(refused) = endpoint.store_session(&session).await {
        return endpoint.session_error_response(refused);
    }
    let reading = StreamReader::new(&session, COMMON_STREAM, reader);
    let opening = |home: &str| {
        let id = session.id();
        format!("event: endpoint\ndata: {path}?{PARAMETER}{id}{home}\n\n").into_bytes()
    };
    let response = match endpoint.replicas() {
        None => response::streaming_response(reading.with_preamble(opening(""))),
        Some(peers) => {
            let reading = reading.with_preamble(opening(&format!(".{}", peers.name())));
            let limits = endpoint.wire_limits();
            response::streaming_response(
                replica::register_stream(peers, &session, reading, limits).await,
            )
        }
    };
    response::with_deadline(response, deadline, session.host(), AtDeadline::CloseWhenIdle)
}

/// Accepts a message; its response goes to the stream.
pub(crate) async fn handle_message(
    endpoint: &McpEndpoint,
    head: &RequestHead,
    principal: &Principal,
    body: &Bytes,
    scanned: Result<&Frame<'_>, &ScanError>,
) -> Response<McpBody> {
    let id = head
        .uri
        .query()
        .and_then(|query| query.split('&').find_map(|parameter| parameter.strip_prefix(PARAMETER)));
    let caller = HttpCaller::new(principal, head);
    let Some(id) = id else {
        return response::error_response(
            400,
            "the URL has no `sessionId`; use the endpoint that the stream announced",
        );
    };
    let (id, home) = id.split_once('.').map_or((id, None), |(id, home)| (id, Some(home)));
    if let (Some(peers), Some(home)) = (endpoint.replicas(), home)
        && home != peers.name()
    {
        return replica::forward_message(peers, home, id, caller, body).await;
    }
    match endpoint.sessions().find(id, principal, head.client).await {
        Err(refused) => endpoint.session_error_response(refused),
        Ok(None) => unknown_session(),
        Ok(Some(session)) => session.post(scanned, false, caller).await,
    }
}

fn unknown_session() -> Response<McpBody> {
    response::error_response(404, "unknown session")
}
