//! Resumes a session's stream that another replica has.
//!
//! The stream of a call has one holder, which reads it to its end for the requested replica. Each replica has a stream
//! for the messages that belong to no call: the requested replica gets the events that the client missed, and continues
//! with its own stream.
//!
//! The id of an event names the replica that has it, so nothing has to be saved before a client requests it.

use std::collections::HashSet;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use creole_proto::http::EventId;
use http::Response;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::chain::BoxFuture;
use crate::host::COMMON_STREAM;
use crate::replicas::{ReplicaError, ReplicaRequest, ReplicaResponder, ReplicaResponses, Replicas};
use crate::serve::http::mcp::response;
use crate::serve::http::mcp::response::{EventSource, McpBody};
use crate::serve::http::mcp::session::{Session, StreamReader};
use crate::serve::http::mcp::stateless_exchange::{push_event, push_retry};
use crate::serve::http::mcp::streams::{RECONNECT_AFTER, STREAM_RETENTION};
use crate::state::StateError;

/// The first response, if the stream exists; if not, there is none.
const STREAM_FOUND: &[u8] = b"found";

/// What precedes a request for the events that a client missed.
const MISSED: &str = "missed ";

/// How long a client waits for the events that it missed. It gets those of its new replica in any case.
const TAKEOVER_TIMEOUT: Duration = Duration::from_secs(3);

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

    /// Registers the streams of this session for other replicas. Only when a stream is first read, because a heartbeat
    /// costs a write every three seconds.
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

    /// Removes the registration once there are no streams left that a client may resume.
    pub(crate) fn unregister_if_empty(&self) {
        if self.replicas.is_some()
            && let Ok(mut shown) = self.registration.try_lock()
            && shown.is_some()
            && !self.is_busy()
            && self.unused_since().elapsed() >= STREAM_RETENTION
            && !self.host.has_streams()
        {
            *shown = None;
        }
    }

    /// The rest of a stream that another replica has, if it does; until this process drains.
    pub(crate) async fn read_from_replica(
        self: &Arc<Self>,
        place: EventLocation<'_>,
        draining: watch::Receiver<bool>,
    ) -> Option<Response<McpBody>> {
        let peers = self.replicas.as_ref()?;
        let home = place.replica.filter(|home| *home != peers.name())?;
        if place.event.stream == COMMON_STREAM {
            let missed = missed_events(peers, home, self, place.event);
            let missed = timeout(TAKEOVER_TIMEOUT, missed).await.ok()?.ok()?;
            self.register_streams().await;
            return Some(self.take_over_stream(missed));
        }
        match request_stream(peers, home, self, place.event).await {
            Ok(responses) => {
                Some(response::streaming_response(RelayedStream::new(responses, draining)))
            }
            Err(unreached) if unreached.is_temporary() => {
                let reason =
                    "the stream is in another replica that cannot be reached; try again later";
                Some(response::state_unavailable(reason))
            }
            Err(unreached) => {
                tracing::debug!(%unreached, "cannot open a stream of another replica");
                None
            }
        }
    }

    /// Our stream of messages that belong to no call, after the events that the client missed at its former replica.
    fn take_over_stream(self: &Arc<Self>, missed: Vec<u8>) -> Response<McpBody> {
        let (reader, last) = {
            let texts = event_texts(&missed);
            self.host.take_over_common(|text| texts.contains(text))
        };
        let mut preamble = missed;
        if self.host.rules().primed_streams {
            // From here on, this replica has what the client may miss.
            let id = self.event_id(EventId { stream: COMMON_STREAM, event: last });
            push_event(&mut preamble, Some(&id), b"");
        }
        let reader = StreamReader::resume(self, COMMON_STREAM, reader);
        response::streaming_response(reader.with_preamble(preamble))
    }
}

/// The texts of the events of a stream.
fn event_texts(events: &[u8]) -> HashSet<&[u8]> {
    let lines = events.split(|byte| *byte == b'\n');
    lines.filter_map(|line| line.strip_prefix(b"data: ")).collect()
}

/// The events after this one, which a client missed at its former replica.
async fn missed_events(
    peers: &Replicas,
    home: &str,
    session: &Session,
    event: EventId,
) -> Result<Vec<u8>, ReplicaError> {
    let request = format!("{MISSED}{event} {}", session.owner()).into();
    let mut responses = peers.send(home, &target(&session.id), request).await?;
    if responses.next().await? != STREAM_FOUND {
        return Err(ReplicaError::Unknown);
    }
    let mut missed = Vec::new();
    loop {
        let bytes = responses.next().await?;
        if bytes.is_empty() {
            responses.finish();
            return Ok(missed);
        }
        missed.extend_from_slice(&bytes);
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
    next: BoxFuture<'static, Option<RelayedEvents>>,
    draining: watch::Receiver<bool>,
}

/// Bytes of a relayed stream, and where the next ones come from. The last ones come from nowhere.
type RelayedEvents = (Bytes, Option<ReplicaResponses>);

impl RelayedStream {
    fn new(responses: ReplicaResponses, draining: watch::Receiver<bool>) -> Self {
        Self { next: next_event(responses, draining.clone()), draining }
    }
}

/// The next bytes; `None` at the end, whatever its cause. The client may then resume again.
fn next_event(
    mut responses: ReplicaResponses,
    mut draining: watch::Receiver<bool>,
) -> BoxFuture<'static, Option<RelayedEvents>> {
    Box::pin(async move {
        let bytes = tokio::select! {
            said = responses.next() => said.ok()?,
            _ = draining.wait_for(|draining| *draining) => {
                let mut last = Vec::new();
                push_retry(&mut last, RECONNECT_AFTER);
                return Some((last.into(), None));
            }
        };
        (!bytes.is_empty()).then_some((bytes, Some(responses)))
    })
}

impl EventSource for RelayedStream {
    fn poll_bytes(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let said = ready!(self.next.as_mut().poll(context));
        let (bytes, responses) = said.map_or((None, None), |(bytes, rest)| (Some(bytes), rest));
        self.next = match responses {
            Some(responses) => next_event(responses, self.draining.clone()),
            None => Box::pin(std::future::ready(None)),
        };
        Poll::Ready(bytes)
    }
}

/// Reads a stream for a client of another replica, if the session belongs to that client.
async fn serve(session: Weak<Session>, request: ReplicaRequest) {
    let ReplicaRequest { payload, responder, requester: sender } = request;
    let request = std::str::from_utf8(&payload).unwrap_or_default();
    let missed = request.strip_prefix(MISSED);
    let reading =
        session.upgrade().and_then(|session| open_reader(&session, missed.unwrap_or(request)));
    let passed = async {
        match reading {
            Some(reading) if missed.is_some() => relay_missed(reading, &responder).await,
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

fn open_reader(session: &Arc<Session>, request: &str) -> Option<StreamReader> {
    let (event, owner) = request.split_once(' ')?;
    let event = EventId::parse(event)?;
    if session.owner() != owner || session.is_closed() {
        return None;
    }
    session.mark_used();
    let reader = session.host.attach(event.stream, Some(event.event))?;
    Some(StreamReader::resume(session, event.stream, reader))
}

/// Sends the events that were not read yet.
async fn relay_missed(
    mut reading: StreamReader,
    responder: &ReplicaResponder,
) -> Result<(), StateError> {
    responder.send(STREAM_FOUND).await?;
    while let Some(bytes) = ready_bytes(&mut reading) {
        responder.send(&bytes).await?;
    }
    responder.send(&[]).await
}

/// The next bytes, if there are some already.
fn ready_bytes(reading: &mut StreamReader) -> Option<Bytes> {
    let mut context = Context::from_waker(Waker::noop());
    match Pin::new(reading).poll_bytes(&mut context) {
        Poll::Ready(bytes) => bytes,
        Poll::Pending => None,
    }
}

async fn relay_stream(
    mut reading: StreamReader,
    responder: &ReplicaResponder,
) -> Result<(), StateError> {
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
