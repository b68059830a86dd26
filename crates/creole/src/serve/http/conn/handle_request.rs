//! Handles one request of a connection, and contains the panic of its handler.

use std::pin::pin;

use http::{Response, StatusCode};

use crate::call::catch_panic::{CatchPanic, CaughtPanic};
use crate::serve::http::conn::outgoing::OutgoingBody;
use crate::serve::http::conn::timeouts::RequestGuard;
use crate::serve::http::web::handler::{ConnectionPeer, ErrorResponse, HttpHandler};
use crate::serve::http::web::incoming::IncomingBody;
use crate::serve::http::web::request::RequestHead;
use crate::serve::http::web::router::{RoutedBody, Router};

/// Handles a request, which counts as in flight until its response is complete.
pub(crate) async fn handle_request<A: HttpHandler>(
    router: &Router<A>,
    running: RequestGuard,
    head: &mut RequestHead,
    body: IncomingBody,
    peer: &ConnectionPeer,
) -> Response<OutgoingBody<A::Body>> {
    head.certificate = peer.certificate.as_deref().copied();
    let result = CatchPanic(pin!(router.answer(head, body, peer.address))).await;
    result.unwrap_or_else(panic_response).map(|body| OutgoingBody::new(body, running))
}

/// The response to a request whose handler panicked.
fn panic_response<B>(panic: CaughtPanic) -> Response<RoutedBody<B>> {
    tracing::error!(target: "creole::http", message = %panic.message, "a request handler panicked");
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    ErrorResponse::new(status, "internal error: the request handler panicked").into_response()
}
