//! Forwards HTTP+SSE messages to the replica that has the stream.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use creole_proto::revision::Rules;
use creole_proto::wire::{Frame, ScanLimits};
use http::Response;

use crate::replicas::{Registration, ReplicaError, Replicas};
use crate::serve::http::mcp::endpoint::legacy_sse::unknown_session;
use crate::serve::http::mcp::http_caller::{HttpCaller, ScopeRefusal};
use crate::serve::http::mcp::response;
use crate::serve::http::mcp::response::{EventSource, McpBody};
use crate::serve::http::mcp::session::forwarded_message;
use crate::serve::http::mcp::session::forwarded_message::{ACCEPTED, REFUSED};
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
    let take = move |request| {
        let session = Arc::clone(&theirs);
        tokio::spawn(async move {
            let all = |_: &Session, _: &Frame<'_>| true;
            forwarded_message::serve(Some(&session), &limits, request, all).await;
        });
    };
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
    let target = target(id);
    match forwarded_message::send(peers, home, &target, caller.principal, body).await {
        Ok(taken) if taken == ACCEPTED => response::empty_response(202),
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

fn target(id: &str) -> String {
    format!("stream/{id}")
}
