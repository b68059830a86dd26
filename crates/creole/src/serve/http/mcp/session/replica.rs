//! Resumes a session's stream that another replica has: the holder reads the stream, and the requested replica relays
//! its events.
//!
//! The id of an event names the replica that has it, so nothing has to be saved before a client requests it.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use creole_proto::http::EventId;
use http::Response;
use tokio::sync::watch;

use crate::chain::BoxFuture;
use crate::replicas::{ReplicaError, ReplicaRequest, ReplicaResponder, ReplicaResponses, Replicas};
use crate::serve::http::mcp::response;
use crate::serve::http::mcp::response::{EventSource, McpBody};
use crate::serve::http::mcp::session::{Session, StreamReader};

/// The first response, if the stream exists; if not, there is none.
const STREAM_FOUND: &[u8] = b"found";

/// The last event that a client received, and the replica that has its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventLocation<'a> {
    pub(crate) event: EventId,
    pub(crate) replica: Option<&'a str>,
}

impl<'a> EventLocation<'a> {
    /// Parses an id that [`Session::event_id`] wrote.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (event, home) = match text.split_once('.') {
            Some((event, home)) => (event, Some(home)),
            None => (text, None),
        };
        Some(Self { event: EventId::parse(event)?, replica: home })
    }
}

impl Session {
    /// The id of an event, by which any replica finds it.
    pub(crate) fn event_id(&self, event: EventId) -> String {
        match &self.replicas {
            Some(peers) => format!("{event}.{}", peers.name()),
            None => event.to_string(),
        }
    }

    /// Registers the streams of this session for other replicas. Only when the stream of a call is first read: each
    /// replica sends the messages that belong to no call itself, and a heartbeat costs a write every three seconds.
    pub(crate) async fn register_streams(self: &Arc<Self>) {
        let Some(peers) = self.replicas.as_ref().filter(|_| !self.is_single_stream) else { return };
        let mut shown = self.registration.lock().await;
        if shown.is_none() {
            let session = Arc::downgrade(self);
            let take = move |request| drop(tokio::spawn(serve(Weak::clone(&session), request)));
            let streams = peers.register(&target(&self.id), take).await;
            *shown = Some([streams, self.register_messages(peers).await]);
        }
    }

    /// Removes the registration once there are no streams left.
    pub(crate) fn unregister_if_empty(&self) {
        if self.replicas.is_some()
            && let Ok(mut shown) = self.registration.try_lock()
            && shown.is_some()
            && !self.host.has_streams()
        {
            *shown = None;
        }
    }

    /// The rest of a stream that another replica has, if it does; until this process drains.
    pub(crate) async fn read_from_replica(
        &self,
        place: EventLocation<'_>,
        draining: watch::Receiver<bool>,
    ) -> Option<Response<McpBody>> {
        let peers = self.replicas.as_ref()?;
        let home = place.replica.filter(|home| *home != peers.name())?;
        match request_stream(peers, home, self, place.event).await {
            Ok(responses) => {
                Some(response::streaming_response(RelayedStream::new(responses, draining)))
            }
            Err(unreached) => {
                tracing::debug!(%unreached, "cannot open a stream of another replica");
                None
            }
        }
    }
}

async fn request_stream(
    peers: &Replicas,
    home: &str,
    session: &Session,
    event: EventId,
) -> Result<ReplicaResponses, ReplicaError> {
    let request = format!("{event} {}", session.owner()).into();
    let mut responses = peers.send(home, &target(&session.id), request).await?;
    match responses.next().await? {
        bytes if bytes == STREAM_FOUND => Ok(responses),
        _ => Err(ReplicaError::Unknown),
    }
}

/// A stream that another replica reads.
struct RelayedStream {
    next: BoxFuture<'static, Option<(Bytes, ReplicaResponses)>>,
    draining: watch::Receiver<bool>,
}

impl RelayedStream {
    fn new(responses: ReplicaResponses, draining: watch::Receiver<bool>) -> Self {
        Self { next: next_event(responses, draining.clone()), draining }
    }
}

/// The next bytes; `None` at the end, whatever its cause. The client may then resume again.
fn next_event(
    mut responses: ReplicaResponses,
    mut draining: watch::Receiver<bool>,
) -> BoxFuture<'static, Option<(Bytes, ReplicaResponses)>> {
    Box::pin(async move {
        let bytes = tokio::select! {
            said = responses.next() => said.ok()?,
            _ = draining.wait_for(|draining| *draining) => return None,
        };
        (!bytes.is_empty()).then_some((bytes, responses))
    })
}

impl EventSource for RelayedStream {
    fn poll_bytes(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let said = ready!(self.next.as_mut().poll(context));
        let Some((bytes, responses)) = said else {
            self.next = Box::pin(std::future::ready(None));
            return Poll::Ready(None);
        };
        self.next = next_event(responses, self.draining.clone());
        Poll::Ready(Some(bytes))
    }
}

/// Reads a stream for a client of another replica, if the session belongs to that client.
async fn serve(session: Weak<Session>, request: ReplicaRequest) {
    let ReplicaRequest { payload, responder, requester: sender } = request;
    let reading = session.upgrade().and_then(|session| open_reader(&session, &payload));
    let passed = async {
        match reading {
            Some(reading) => relay_stream(reading, &responder).await,
            None => responder.send(&[]).await,
        }
    };
    tokio::select! {
        passed = passed => {
            if let Err(error) = passed {
                tracing::warn!(%error, "cannot forward a stream to another replica");
            }
        }
        () = sender.disconnected() => {}
    }
}

fn open_reader(session: &Arc<Session>, request: &[u8]) -> Option<StreamReader> {
    let (event, owner) = std::str::from_utf8(request).ok()?.split_once(' ')?;
    let event = EventId::parse(event)?;
    if session.owner() != owner || session.is_closed() {
        return None;
    }
    session.mark_used();
    let reader = session.host.attach(event.stream, Some(event.event))?;
    Some(StreamReader::resume(session, event.stream, reader))
}

async fn relay_stream(
    mut reading: StreamReader,
    responder: &ReplicaResponder,
) -> Result<(), crate::state::StateError> {
    responder.send(STREAM_FOUND).await?;
    while let Some(bytes) = poll_fn(|context| Pin::new(&mut reading).poll_bytes(context)).await {
        responder.send(&bytes).await?;
    }
    responder.send(&[]).await
}

fn target(id: &str) -> String {
    format!("events/{id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_may_name_its_process() {
        let event = EventId { stream: 7, event: 12 };
        assert_eq!(EventLocation::parse("7-12"), Some(EventLocation { event, replica: None }));
        assert_eq!(
            EventLocation::parse("7-12.ab"),
            Some(EventLocation { event, replica: Some("ab") })
        );
        for other in ["", ".", "7.ab", "7-12ab", ".7-12"] {
            assert_eq!(EventLocation::parse(other), None, "{other}");
        }
    }
}
