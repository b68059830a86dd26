//! A session of the handshake generation: its calls outlive the connections that asked for them.

mod ahead;
mod elsewhere;

pub(super) use elsewhere::Place;

use std::borrow::Cow;
use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use creole_proto::http::{EventId, response_status};
use creole_proto::server::Call;
use creole_proto::wire::{Frame, ScanError, hex};
use http::Response;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};

use self::ahead::Ahead;
use super::conversation::{COMMON, Conversation, First, StreamKey};
use super::exchange::{CHUNK, KEEP_ALIVE, PATIENCE, STILL_THERE, push_event};
use super::hub::{Hub, Listening};
use super::reply::{self, Body, Events};
use super::sessions::Holder;
use super::stream::{Next, Reader, Stream};
use crate::auth::LOCAL_PRINCIPAL;
use crate::call::Origin;
use crate::peers::{Registration, Replicas};
use crate::random;
use crate::server::Service;

/// A session.
pub(super) struct Session {
    id: Arc<str>,
    /// Who opened it: nobody else can use it.
    owner: Arc<str>,
    /// Whom it counts for.
    holder: Holder,
    conversation: Arc<Conversation>,
    started: Instant,
    /// Milliseconds from the start to the last use.
    last_used: AtomicU64,
    /// Whether its owner came back to it.
    was_used: AtomicBool,
    /// Milliseconds from the start to when it was last written down.
    last_saved: AtomicU64,
    /// Connections that read streams.
    readers: AtomicUsize,
    /// Whether everything goes to one stream.
    single: bool,
    closed: AtomicBool,
    listening: OnceLock<Listening>,
    /// The processes that share the state, where there may be several.
    peers: Option<Replicas>,
    /// Has other processes find its streams.
    shown: Mutex<Option<Registration>>,
}

/// How a session is written down.
#[derive(Serialize, Deserialize)]
struct Record<'a> {
    principal: Cow<'a, str>,
    session: Cow<'a, str>,
}

impl Session {
    /// A session in which nothing was said. `single` is for the transport with one stream for everything.
    pub(super) fn new(
        service: Service,
        owner: Arc<str>,
        holder: Holder,
        single: bool,
        peers: Option<Replicas>,
    ) -> Option<Arc<Self>> {
        let common = if single { Stream::endless() } else { Stream::kept() };
        let id = new_id()?;
        let conversation =
            Conversation::new(service, Origin::new(responsible(&owner, &id)), common);
        Some(Self::of(id.into(), (owner, holder), conversation, single, peers))
    }

    /// A session that goes on as it was written down, if it is the principal's.
    pub(super) fn resume(
        service: Service,
        id: &str,
        principal: &Arc<str>,
        holder: Holder,
        record: &[u8],
        peers: Option<Replicas>,
    ) -> Option<Arc<Self>> {
        let record: Record<'_> = serde_json::from_slice(record).ok()?;
        if *record.principal != **principal {
            return None;
        }
        let responsible = responsible(principal, id);
        let conversation = Conversation::resume(service, responsible, &record.session)?;
        let owner = (Arc::clone(principal), holder);
        Some(Self::of(id.into(), owner, conversation, false, peers))
    }

    fn of(
        id: Arc<str>,
        (owner, holder): (Arc<str>, Holder),
        conversation: Arc<Conversation>,
        single: bool,
        peers: Option<Replicas>,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            owner,
            holder,
            conversation,
            started: Instant::now(),
            last_used: AtomicU64::new(0),
            was_used: AtomicBool::new(false),
            last_saved: AtomicU64::new(0),
            readers: AtomicUsize::new(0),
            single,
            closed: AtomicBool::new(false),
            listening: OnceLock::new(),
            peers,
            shown: Mutex::default(),
        })
    }

    /// What has to be kept of it, if that changed since this was last asked.
    pub(super) fn changed_record(&self) -> Option<Bytes> {
        let session = self.conversation.changed_record().filter(|_| !self.single)?;
        let record = Record { principal: self.owner().into(), session: session.into() };
        serde_json::to_vec(&record).ok().map(Bytes::from)
    }

    pub(super) fn id(&self) -> &Arc<str> {
        &self.id
    }

    pub(super) fn owner(&self) -> &str {
        &self.owner
    }

    /// Whom it counts for.
    pub(super) fn holder(&self) -> &Holder {
        &self.holder
    }

    pub(super) fn conversation(&self) -> &Arc<Conversation> {
        &self.conversation
    }

    /// Tells the session of changes from now on.
    pub(super) fn listen<'a>(&self, hub: impl FnOnce() -> &'a Arc<Hub>) {
        self.listening.get_or_init(|| hub().listen(&self.conversation));
    }

    /// Whether something of it has to be kept.
    pub(super) fn is_changed(&self) -> bool {
        self.conversation.is_changed()
    }

    /// Its owner came back to it.
    pub(super) fn used(&self) {
        self.was_used.store(true, Ordering::Relaxed);
        self.note(&self.last_used);
    }

    /// Whether its owner came back to it after it was opened.
    pub(super) fn was_used(&self) -> bool {
        self.was_used.load(Ordering::Relaxed)
    }

    pub(super) fn unused_since(&self) -> Instant {
        self.time(&self.last_used)
    }

    pub(super) fn saved(&self) {
        self.note(&self.last_saved);
    }

    pub(super) fn saved_since(&self) -> Instant {
        self.time(&self.last_saved)
    }

    fn note(&self, clock: &AtomicU64) {
        clock.store(self.started.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    fn time(&self, clock: &AtomicU64) -> Instant {
        self.started + Duration::from_millis(clock.load(Ordering::Relaxed))
    }

    /// Whether somebody is connected or waits for an answer.
    pub(super) fn is_busy(&self) -> bool {
        self.readers.load(Ordering::Relaxed) > 0 || self.conversation.is_busy()
    }

    /// Ends the session.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.conversation.close();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Takes a message and answers its POST.
    pub(super) async fn post(
        self: &Arc<Self>,
        scanned: Result<&Frame<'_>, &ScanError>,
        takes_events: bool,
    ) -> Response<Body> {
        let key = if self.single { COMMON } else { self.conversation.open_stream() };
        let mut started = self.conversation.receive(scanned, key);
        let mut begin = |context: &mut Context<'_>| self.begin(mem::take(&mut started), context);
        let ahead = poll_fn(|context| Poll::Ready(begin(context))).await;
        if self.single {
            return reply::empty(202);
        }
        let Some(reader) = self.conversation.attach(key, None) else { return reply::empty(202) };
        let first = match ahead.is_empty() {
            true => self.conversation.first_now(key, reader, takes_events),
            false => Box::pin(self.first(key, reader, takes_events, ahead)).await,
        };
        match first {
            First::Answer(text, fault) => {
                self.conversation.drop_stream(key);
                reply::json(response_status(fault, self.conversation.rules()), text)
            }
            First::Nothing => {
                self.conversation.drop_stream(key);
                reply::empty(202)
            }
            First::Events => {
                if self.peers.is_some() {
                    Box::pin(self.show()).await;
                }
                reply::events(Reading::new(self, key, reader))
            }
        }
    }

    /// Opens the stream of what belongs to no request, or goes on with one that was cut off.
    pub(super) fn get(self: &Arc<Self>, last: Option<Place<'_>>) -> Response<Body> {
        let own = self.peers.as_ref().map(Replicas::name);
        let last = last.filter(|last| last.home == own).map(|last| last.event);
        let resumed = last.and_then(|last| {
            let reader = self.conversation.attach(last.stream, Some(last.event))?;
            Some(Reading::resumed(self, last.stream, reader))
        });
        let common = || self.conversation.attach(COMMON, None);
        match resumed {
            Some(reading) => reply::lasting_events(reading),
            None => match common() {
                Some(reader) => reply::lasting_events(Reading::new(self, COMMON, reader)),
                None => reply::empty(404),
            },
        }
    }

    /// Begins calls; gives back those that have to wait.
    fn begin(&self, started: Vec<Call>, context: &mut Context<'_>) -> Ahead {
        let mut waiting = Vec::new();
        for call in started {
            waiting.extend(self.conversation.begin(call, context));
        }
        Ahead::new(&self.conversation, waiting)
    }

    /// What comes first; after a while it is a stream, if the client takes one.
    async fn first(
        &self,
        key: StreamKey,
        reader: Reader,
        takes_events: bool,
        mut ahead: Ahead,
    ) -> First {
        let conversation = &self.conversation;
        let patience = Instant::now() + PATIENCE;
        // Tasks also see to the time that their calls may take.
        let alone = conversation.deadline().map_or(patience, |deadline| deadline.min(patience));
        let soon = poll_fn(|context| {
            ahead.drive(key, context);
            conversation.poll_first(key, reader, takes_events, context)
        });
        if let Ok(first) = timeout_at(alone, soon).await {
            return first;
        }
        drop(ahead);
        let ready = poll_fn(|context| conversation.poll_first(key, reader, takes_events, context));
        match takes_events {
            true => timeout_at(patience, ready).await.unwrap_or(First::Events),
            false => ready.await,
        }
    }
}

/// A connection that reads a stream. When it ends, the stream goes on.
pub(super) struct Reading {
    session: Arc<Session>,
    key: StreamKey,
    reader: Reader,
    timer: Pin<Box<Sleep>>,
    /// What is said before anything else.
    opening: Vec<u8>,
    over: bool,
}

impl Reading {
    /// Reads a stream from its beginning; it opens with an empty event where the revision wants that.
    pub(super) fn new(session: &Arc<Session>, key: StreamKey, reader: Reader) -> Self {
        let mut reading = Self::resumed(session, key, reader);
        if session.conversation.rules().primed_streams && !session.single {
            let id = session.event_id(EventId { stream: key, event: 0 });
            push_event(&mut reading.opening, Some(&id), b"");
        }
        reading
    }

    /// Goes on with a stream.
    fn resumed(session: &Arc<Session>, key: StreamKey, reader: Reader) -> Self {
        session.readers.fetch_add(1, Ordering::Relaxed);
        Self {
            session: Arc::clone(session),
            key,
            reader,
            timer: Box::pin(sleep_until(Instant::now() + KEEP_ALIVE)),
            opening: Vec::new(),
            over: false,
        }
    }

    /// Says something before anything else.
    pub(super) fn opening(mut self, opening: Vec<u8>) -> Self {
        self.opening = opening;
        self
    }

    fn push(&self, bytes: &mut Vec<u8>, number: u64, text: &[u8]) {
        match self.session.single {
            true => {
                bytes.extend_from_slice(b"event: message\n");
                push_event(bytes, None, text);
            }
            false => {
                let id = self.session.event_id(EventId { stream: self.key, event: number });
                push_event(bytes, Some(&id), text);
            }
        }
    }
}

impl Events for Reading {
    fn poll_bytes(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.over {
            return Poll::Ready(None);
        }
        let mut bytes = mem::take(&mut self.opening);
        while bytes.len() < CHUNK {
            match self.session.conversation.poll_next(self.key, self.reader, context) {
                Poll::Ready(Next::Event(number, event)) => {
                    self.push(&mut bytes, number, &event.text);
                }
                Poll::Ready(Next::Released(retry)) => {
                    if let Some(retry) = retry {
                        bytes.extend_from_slice(
                            format!("retry: {}\n\n", retry.as_millis()).as_bytes(),
                        );
                    }
                    self.over = true;
                    break;
                }
                Poll::Ready(Next::Over) => {
                    self.over = true;
                    break;
                }
                Poll::Pending => break,
            }
        }
        if bytes.is_empty() && !self.over {
            if self.timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            bytes.extend_from_slice(STILL_THERE);
        }
        self.timer.as_mut().reset(Instant::now() + KEEP_ALIVE);
        // The new time has to be watched as well.
        _ = self.timer.as_mut().poll(context);
        Poll::Ready((!bytes.is_empty()).then(|| bytes.into()))
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.session.readers.fetch_sub(1, Ordering::Relaxed);
        self.session.used();
        if self.session.single {
            self.session.close();
        }
    }
}

/// Who is responsible for what is done in a session. Where callers are not asked who they are, each session
/// is somebody of its own: tasks of one are not shown to another (2025-11-25 basic/utilities/tasks, security).
fn responsible(owner: &str, id: &str) -> Arc<str> {
    match owner == LOCAL_PRINCIPAL {
        true => format!("session:{id}").into(),
        false => owner.into(),
    }
}

/// 144 bits that nobody can guess, in visible ASCII; `None` when the system has no randomness.
fn new_id() -> Option<String> {
    random::random_bytes::<18>().ok().map(|bytes| hex(&bytes))
}
