//! A session of the handshake era: its calls outlive the connections that requested them.

pub(crate) mod forwarded_message;
mod forwarding;
mod inline_calls;
mod inspect;
mod quota_holder;
mod replica;
mod stream_reader;

pub(crate) use quota_holder::QuotaHolder;
pub(crate) use replica::EventLocation;
pub(crate) use stream_reader::StreamReader;

use std::borrow::Cow;
use std::future::poll_fn;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::http::response_status;
use creole_proto::wire::{Frame, ScanError, hex};
use http::Response;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use crate::auth::ProtectedResource;
use crate::call::Origin;
use crate::host::{COMMON_STREAM, StartedCalls, StreamKey};
use crate::principal::Principal;
use crate::random;
use crate::replicas::{Registration, Replicas};
use crate::serve::http::mcp::change_fanout::{ChangeFanout, ChangeSubscription};
use crate::serve::http::mcp::http_caller::{HttpCaller, ScopeRefusal};
use crate::serve::http::mcp::response;
use crate::serve::http::mcp::response::{AtDeadline, McpBody};
use crate::serve::http::mcp::session::inline_calls::InlineCalls;
use crate::serve::http::mcp::stateless_exchange::STREAM_AFTER;
use crate::serve::http::mcp::stream::{ReaderId, ResponseStream};
use crate::serve::http::mcp::streams::{FirstReply, HttpHost};
use crate::server::Service;
use crate::state::StateEntry;
use crate::sync;
use crate::telemetry::metrics::{NetworkTransport, SessionMeter};

/// A session.
pub(crate) struct Session {
    id: Arc<str>,
    /// The binding of the principal that opened it; no other principal can use it.
    owner: Arc<str>,
    /// The holder whose quota it counts for.
    holder: QuotaHolder,
    host: Arc<HttpHost>,
    started: Instant,
    /// Milliseconds from the start to the last use.
    last_used: AtomicU64,
    /// Whether its owner used it after it was opened.
    was_used: AtomicBool,
    /// Milliseconds from the start to the last save.
    last_saved: AtomicU64,
    /// The format of its saved record, or zero.
    saved_format: AtomicU8,
    /// Number of connections that read streams.
    readers: AtomicUsize,
    /// Whether all messages go to one stream.
    is_single_stream: bool,
    closed: AtomicBool,
    listening: OnceLock<ChangeSubscription>,
    /// The replicas that share the state, if there may be several.
    replicas: Option<Replicas>,
    /// Lets other replicas find its streams, and send messages to it.
    registration: Mutex<Option<[Registration; 2]>>,
    /// What the access token is for that it was opened with: messages of other replicas are checked by it.
    resource: OnceLock<Arc<ProtectedResource>>,
    /// Counts the session until it is closed, if metrics are counted.
    meter: sync::Mutex<Option<SessionMeter>>,
}

/// The saved form of a session.
#[derive(Serialize, Deserialize)]
struct SessionRecord<'a> {
    principal: Cow<'a, str>,
    session: Cow<'a, str>,
}

impl Session {
    /// A session that has received no message. `single` is for the transport with one stream for all messages.
    pub(crate) fn new(
        service: Service,
        principal: &Principal,
        holder: QuotaHolder,
        single: bool,
        peers: Option<Replicas>,
    ) -> Option<Arc<Self>> {
        let common = if single { ResponseStream::endless() } else { ResponseStream::of_session() };
        let id = new_id()?;
        let host = HttpHost::open(service, Origin::new(principal_for(principal, &id)), common);
        let owner = (Arc::clone(principal.binding()), holder);
        Some(Self::from_parts(id.into(), owner, host, single, peers))
    }

    /// A session that continues from its saved record, if it belongs to the principal.
    pub(crate) fn resume(
        service: Service,
        id: &str,
        principal: &Principal,
        holder: QuotaHolder,
        saved: &StateEntry,
        peers: Option<Replicas>,
    ) -> Option<Arc<Self>> {
        let record: SessionRecord<'_> = serde_json::from_slice(&saved.value).ok()?;
        if *record.principal != **principal.binding() {
            return None;
        }
        let responsible = principal_for(principal, id);
        let host = HttpHost::resume(service, responsible, &record.session)?;
        let owner = (Arc::clone(principal.binding()), holder);
        let session = Self::from_parts(id.into(), owner, host, false, peers);
        session.mark_saved(saved.format);
        Some(session)
    }

    /// Takes over what another replica changed in the session, if the state can be reached.
    pub(crate) async fn refresh(&self) {
        let Some(replicas) = &self.replicas else { return };
        let Ok(Some(saved)) = replicas.state().get(&state_key(&self.id)).await else { return };
        if let Ok(record) = serde_json::from_slice::<SessionRecord<'_>>(&saved.value) {
            self.host.refresh(&record.session);
        }
    }

    fn from_parts(
        id: Arc<str>,
        (owner, holder): (Arc<str>, QuotaHolder),
        host: Arc<HttpHost>,
        single: bool,
        peers: Option<Replicas>,
    ) -> Arc<Self> {
        if let Some(peers) = peers.as_ref().filter(|_| !single) {
            host.name_input_requests(peers.name());
        }
        let meter = host.server_metrics().map(|server| server.session(NetworkTransport::Tcp));
        Arc::new(Self {
            id,
            owner,
            holder,
            host,
            started: Instant::now(),
            last_used: AtomicU64::new(0),
            was_used: AtomicBool::new(false),
            last_saved: AtomicU64::new(0),
            saved_format: AtomicU8::new(0),
            readers: AtomicUsize::new(0),
            is_single_stream: single,
            closed: AtomicBool::new(false),
            listening: OnceLock::new(),
            replicas: peers,
            registration: Mutex::default(),
            resource: OnceLock::new(),
            meter: sync::Mutex::new(meter),
        })
    }

    /// The record to save, if it changed since the last call of this function.
    pub(crate) fn changed_record(&self) -> Option<Bytes> {
        let session = self.host.changed_record().filter(|_| !self.is_single_stream)?;
        let record = SessionRecord { principal: self.owner().into(), session: session.into() };
        serde_json::to_vec(&record).ok().map(Bytes::from)
    }

    pub(crate) fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// The binding of its principal.
    pub(crate) fn owner(&self) -> &str {
        &self.owner
    }

    /// Whether this principal may use it.
    pub(crate) fn is_owned_by(&self, principal: &Principal) -> bool {
        self.owner == *principal.binding()
    }

    /// What the access token is for that it was opened with.
    pub(crate) fn resource(&self) -> Option<&Arc<ProtectedResource>> {
        self.resource.get()
    }

    /// Sets what the access token is for that it is opened with.
    pub(crate) fn set_resource(&self, resource: Option<&Arc<ProtectedResource>>) {
        if let Some(resource) = resource {
            _ = self.resource.set(Arc::clone(resource));
        }
    }

    /// The holder whose quota it counts for.
    pub(crate) fn holder(&self) -> &QuotaHolder {
        &self.holder
    }

    pub(crate) fn host(&self) -> &Arc<HttpHost> {
        &self.host
    }

    /// Subscribes the session to changes.
    pub(crate) fn listen<'a>(&self, fanout: impl FnOnce() -> &'a Arc<ChangeFanout>) {
        self.listening.get_or_init(|| fanout().subscribe(&self.host));
    }

    /// Whether there are unsaved changes.
    pub(crate) fn is_changed(&self) -> bool {
        self.host.is_changed()
    }

    /// Records that its owner used it.
    pub(crate) fn mark_used(&self) {
        self.was_used.store(true, Ordering::Relaxed);
        self.set_time(&self.last_used);
    }

    /// Whether its owner used it after it was opened.
    pub(crate) fn was_used(&self) -> bool {
        self.was_used.load(Ordering::Relaxed)
    }

    pub(crate) fn unused_since(&self) -> Instant {
        self.get_time(&self.last_used)
    }

    /// Records that it is saved, and the format of its record.
    pub(crate) fn mark_saved(&self, format: u8) {
        self.set_time(&self.last_saved);
        self.saved_format.store(format, Ordering::Relaxed);
    }

    /// The format of its saved record.
    pub(crate) fn saved_format(&self) -> u8 {
        self.saved_format.load(Ordering::Relaxed)
    }

    pub(crate) fn saved_since(&self) -> Instant {
        self.get_time(&self.last_saved)
    }

    fn set_time(&self, clock: &AtomicU64) {
        clock.store(self.started.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    fn get_time(&self, clock: &AtomicU64) -> Instant {
        self.started + Duration::from_millis(clock.load(Ordering::Relaxed))
    }

    /// Whether a client is connected or waits for a response.
    pub(crate) fn is_busy(&self) -> bool {
        self.readers.load(Ordering::Relaxed) > 0 || self.host.is_busy()
    }

    /// Ends the session.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        if let Some(meter) = self.meter.lock().take() {
            meter.end(self.host.rules());
        }
        self.host.close_session();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Handles the message of a POST of this caller and responds to it.
    pub(crate) async fn post(
        self: &Arc<Self>,
        scanned: Result<&Frame<'_>, &ScanError>,
        takes_events: bool,
        caller: HttpCaller<'_>,
    ) -> Response<McpBody> {
        match self.try_post(scanned, takes_events, caller).await {
            Ok(response) => response,
            Err(refusal) => caller.refuse(&refusal),
        }
    }

    /// The same; fails if the caller lacks a scope. Then nothing of the message was run.
    pub(crate) async fn try_post(
        self: &Arc<Self>,
        scanned: Result<&Frame<'_>, &ScanError>,
        takes_events: bool,
        caller: HttpCaller<'_>,
    ) -> Result<Response<McpBody>, ScopeRefusal> {
        let key = if self.is_single_stream { COMMON_STREAM } else { self.host.open_stream() };
        let caller = caller.with_session(&self.id);
        let request_caller = caller.in_session(&self.host.origin().principal);
        let mut started = self.host.receive_scanned(scanned, key, request_caller);
        if let Some((denial, rules)) = started.take_denial() {
            self.refuse_calls(started, key);
            return Err(ScopeRefusal { rules, denial });
        }
        let mut begin =
            |context: &mut Context<'_>| self.start_calls(mem::take(&mut started), context);
        let ahead = poll_fn(|context| Poll::Ready(begin(context))).await;
        if self.is_single_stream {
            return Ok(response::empty_response(202));
        }
        let Some(reader) = self.host.attach(key, None) else {
            return Ok(response::empty_response(202));
        };
        let first = match ahead.is_empty() {
            true => self.host.first_reply_now(key, reader, takes_events),
            false => Box::pin(self.first_reply(key, reader, takes_events, ahead)).await,
        };
        Ok(match first {
            FirstReply::Response(text, fault) => {
                self.host.drop_stream(key);
                let rules = self.host.rules();
                caller
                    .refuse_fault(fault, &text, rules)
                    .unwrap_or_else(|| response::json_response(response_status(fault, rules), text))
            }
            FirstReply::Nothing => {
                self.host.drop_stream(key);
                response::empty_response(202)
            }
            FirstReply::Events => {
                if self.replicas.is_some() {
                    Box::pin(self.register_streams()).await;
                }
                response::event_response(StreamReader::new(self, key, reader))
            }
        })
    }

    /// Ends calls that were never run.
    fn refuse_calls(&self, started: StartedCalls, key: StreamKey) {
        for call in started {
            let fault = Fault::new(FaultKind::InsufficientScope, "the access token lacks a scope");
            self.host.finish_call(call.key, fault.into());
        }
        if !self.is_single_stream {
            self.host.drop_stream(key);
        }
    }

    /// Opens the stream of messages that belong to no request, or resumes one that was interrupted. It ends at the
    /// deadline.
    pub(crate) fn open_stream(
        self: &Arc<Self>,
        last: Option<EventLocation<'_>>,
        deadline: Option<Instant>,
    ) -> Response<McpBody> {
        let response = self.open_endless_stream(last);
        response::with_deadline(response, deadline, &self.host, AtDeadline::Close)
    }

    fn open_endless_stream(self: &Arc<Self>, last: Option<EventLocation<'_>>) -> Response<McpBody> {
        let own = self.replicas.as_ref().map(Replicas::name);
        let last = last.filter(|last| last.replica == own).map(|last| last.event);
        let resumed = last.and_then(|last| {
            let reader = self.host.attach(last.stream, Some(last.event))?;
            Some(StreamReader::resume(self, last.stream, reader))
        });
        let common = || self.host.attach(COMMON_STREAM, None);
        match resumed {
            Some(reading) => response::streaming_response(reading),
            None => match common() {
                Some(reader) => {
                    response::streaming_response(StreamReader::new(self, COMMON_STREAM, reader))
                }
                None => response::empty_response(404),
            },
        }
    }

    /// Starts calls; returns those that are not finished at their first poll.
    fn start_calls(&self, started: StartedCalls, context: &mut Context<'_>) -> InlineCalls {
        let mut waiting = Vec::new();
        for call in started {
            waiting.extend(self.host.first_poll(call, context));
        }
        InlineCalls::new(&self.host, waiting)
    }

    /// The form of the response; after a while it is a stream, if the client accepts one.
    async fn first_reply(
        &self,
        key: StreamKey,
        reader: ReaderId,
        takes_events: bool,
        mut ahead: InlineCalls,
    ) -> FirstReply {
        let host = &self.host;
        let patience = Instant::now() + STREAM_AFTER;
        // Tasks also enforce the deadlines of their calls.
        let alone = host.deadline().map_or(patience, |deadline| deadline.min(patience));
        let soon = poll_fn(|context| {
            ahead.poll_calls(key, context);
            host.poll_first_reply(key, reader, takes_events, context)
        });
        if let Ok(first) = timeout_at(alone, soon).await {
            return first;
        }
        drop(ahead);
        let ready = poll_fn(|context| host.poll_first_reply(key, reader, takes_events, context));
        match takes_events {
            true => timeout_at(patience, ready).await.unwrap_or(FirstReply::Events),
            false => ready.await,
        }
    }
}

/// The key of the record of a session.
pub(crate) fn state_key(id: &str) -> String {
    format!("session/{id}")
}

/// The principal of a session. Without authentication, each session is its own principal: tasks of one session are not
/// shown to another (2025-11-25 basic/utilities/tasks, security).
fn principal_for(principal: &Principal, id: &str) -> Principal {
    match principal.is_local() {
        true => Principal::new(&format!("session:{id}"), &[]),
        false => principal.clone(),
    }
}

/// 144 random bits in visible ASCII, which cannot be guessed; `None` when the system has no random bytes.
fn new_id() -> Option<String> {
    random::random_bytes::<18>().ok().map(|bytes| hex(&bytes))
}
