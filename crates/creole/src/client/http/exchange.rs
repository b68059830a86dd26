//! One POST and what comes of it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use creole_proto::client::{CallKey, DropReason};
use creole_proto::fault::Fault;
use creole_proto::revision::Era;
use http::{HeaderValue, Method, StatusCode};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep, timeout};

use super::answer::{Body, Head, Kind};
use super::head::{LAST_EVENT_NAME, SESSION_NAME};
use super::request::Request;
use super::wire::{self, Events, Missed, Unread};
use super::{Inner, fault};
use crate::client::link::LARGE;

/// How often a stream that broke off is taken up again.
const RESUMES: u32 = 5;

/// How long may be spent on connections to a server in vain before a stream of it is not taken up again. One that is
/// started again refuses them, which takes no time; one that vanished takes all of it twice.
const IN_VAIN: Duration = Duration::from_secs(6);

/// How long to wait before that, unless the server says otherwise, and at most.
const RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(60);

/// How long a stream may go on after its answer until its connection is given up.
const LINGER: Duration = Duration::from_secs(1);

/// Order among notifications: what to wait for, and whom to tell.
pub(super) type Order = (Option<watch::Receiver<bool>>, Option<watch::Sender<bool>>);

/// Makes a call and brings in its answer, or sees to it that somebody does if that is a stream.
pub(super) async fn call(
    inner: Arc<Inner>,
    call: CallKey,
    request: Request,
    before: Option<watch::Receiver<bool>>,
) {
    if before.is_some() {
        wait_for(before).await;
    }
    if let Err(fault) = post(&inner, call, &request).await {
        inner.inbox.failed(call, fault);
    }
}

/// Tells something that has no answer.
pub(super) async fn tell(inner: Arc<Inner>, request: Request, order: Order) {
    let (before, own) = order;
    wait_for(before).await;
    match inner.target.send(&request).await {
        Ok((head, _)) if head.status == StatusCode::NOT_FOUND => inner.lost_session(),
        Ok((head, _)) if !head.status.is_success() => {
            tracing::debug!(
                upstream = inner.target.name(),
                status = head.status.as_u16(),
                "a notification was refused"
            );
        }
        Ok(_) => {}
        Err(fault) => {
            tracing::debug!(upstream = inner.target.name(), "not notified: {}", fault.detail);
        }
    }
    if let Some(own) = own {
        own.send_replace(true);
    }
}

async fn wait_for(before: Option<watch::Receiver<bool>>) {
    if let Some(mut before) = before {
        // One that is gone has told what it could.
        let _ = before.wait_for(|done| *done).await;
    }
}

async fn post(inner: &Arc<Inner>, call: CallKey, request: &Request) -> Result<(), Fault> {
    let had_session = request.has(&SESSION_NAME);
    let (head, body) = inner.target.begin(request).await?;
    if head.status == StatusCode::NOT_FOUND && had_session {
        inner.lost_session();
        return Err(fault::session_lost(inner.target.name()));
    }
    inner.keep_session(&head);
    match head.kind {
        Kind::Events if head.status.is_success() => {
            inner.follow(call, body);
            Ok(())
        }
        Kind::Document if !speaks_for_itself(head.status) => answer(inner, call, &head, body).await,
        _ if head.status.is_success() => {
            Err(fault::no_answer(inner.target.name(), "something else than a message"))
        }
        _ => Err(fault::refused(&inner.target, &head)),
    }
}

/// Whether a status says more than a body could: these come from whoever guards or hides the server.
fn speaks_for_itself(status: StatusCode) -> bool {
    matches!(status.as_u16(), 300..=399 | 401 | 403 | 429 | 502..=504)
}

/// Takes an answer that is one document. In the stateless era errors have their own status as well.
async fn answer(inner: &Arc<Inner>, call: CallKey, head: &Head, body: Body) -> Result<(), Fault> {
    let name = inner.target.name();
    match wire::document(body, inner.target.longest(), inner.target.hold()).await {
        Ok(document) if document.bytes.len() < LARGE => {
            inner.inbox.received(&document.bytes, Some(call));
        }
        Ok(document) => inner.inbox.received_large(document.into_bytes(), Some(call)),
        Err(Unread::NoRoom) => return Err(fault::no_room(name)),
        Err(Unread::TooLong) => return Err(fault::no_answer(name, "a message that is too long")),
        Err(Unread::Broken) => return Err(fault::stream_lost(name)),
    }
    match inner.inbox.is_open(call) {
        false => Ok(()),
        true if head.status.is_success() => Err(fault::no_answer(name, "another message")),
        true => Err(fault::refused(&inner.target, head)),
    }
}

/// Takes a stream of events, also where it has to be taken up again.
pub(super) async fn follow(
    inner: Arc<Inner>,
    call: CallKey,
    body: Body,
    over: oneshot::Receiver<()>,
) {
    // Pinned where it is made, since a variable before would be a second place for it in each call's task.
    let mut stream = std::pin::pin!(async {
        let mut place = Place::default();
        take(&inner, Some(call), body, &mut place).await;
        if let Err(fault) = take_up(&inner, call, &mut place).await {
            inner.inbox.failed(call, fault);
        }
    });
    tokio::select! {
        biased;
        () = &mut stream => {}
        // Answered, or failed for another reason. To its end the connection can be used again.
        _ = over => {
            let _ = timeout(LINGER, stream).await;
        }
    }
}

/// Goes on with a call that another process made, after the last event that it saw.
pub(super) async fn go_on(
    inner: Arc<Inner>,
    call: CallKey,
    last: &str,
    over: oneshot::Receiver<()>,
) {
    let last = HeaderValue::from_str(last).ok();
    let mut place = Place { last, retry: Duration::ZERO, moved: false };
    tokio::select! {
        biased;
        taken = take_up(&inner, call, &mut place) => {
            if let Err(fault) = taken {
                inner.inbox.failed(call, fault);
            }
        }
        // Nothing else would come on the stream of a call that is over.
        _ = over => {}
    }
}

/// Takes a stream up again, until its call is over.
async fn take_up(inner: &Arc<Inner>, call: CallKey, place: &mut Place) -> Result<(), Fault> {
    let (mut tries, mut in_vain) = (0, Duration::ZERO);
    while inner.inbox.is_open(call) {
        let Some(last) = place.resumable(inner).filter(|_| tries < RESUMES) else {
            return Err(fault::stream_lost(inner.target.name()));
        };
        tries += 1;
        sleep(place.retry).await;
        let mut head = inner.listening_head();
        head.set(LAST_EVENT_NAME, last);
        let request = inner.target.request(Method::GET, head, Bytes::new());
        let began = Instant::now();
        // Not being reached is worth another try; being refused is not.
        let Ok((head, body)) = inner.target.begin(&request).await else {
            in_vain += began.elapsed();
            match in_vain < IN_VAIN {
                true => continue,
                false => return Err(fault::stream_gone(inner.target.name())),
            }
        };
        in_vain = Duration::ZERO;
        if !head.status.is_success() || head.kind != Kind::Events {
            return Err(fault::stream_lost(inner.target.name()));
        }
        take(inner, Some(call), body, place).await;
    }
    Ok(())
}

/// Where a stream can be taken up again.
pub(super) struct Place {
    pub(super) last: Option<HeaderValue>,
    pub(super) retry: Duration,
    /// Whether anything came.
    pub(super) moved: bool,
}

impl Default for Place {
    fn default() -> Self {
        Self { last: None, retry: RETRY, moved: false }
    }
}

impl Place {
    /// Streams of the stateless era are never taken up again: there, a broken one is a cancelled call.
    fn resumable(&self, inner: &Inner) -> Option<HeaderValue> {
        self.last.clone().filter(|_| inner.era() != Some(Era::Stateless))
    }
}

/// Brings in the messages of a stream until it ends.
pub(super) async fn take(inner: &Arc<Inner>, call: Option<CallKey>, body: Body, place: &mut Place) {
    let mut events = Events::new(body, inner.target.longest(), inner.target.hold());
    while let Some(event) = events.next().await {
        let event = match (event, call) {
            (Ok(event), _) => event,
            (Err(Missed::NoRoom), Some(call)) => {
                return inner.inbox.failed(call, fault::no_room(inner.target.name()));
            }
            (Err(Missed::NoRoom), None) => {
                return inner.inbox.dropped(&[], DropReason::NoMemory);
            }
            (Err(Missed::Garbled), call) => {
                inner.inbox.garbled(call);
                continue;
            }
        };
        place.moved = true;
        if let Some(id) = &event.id {
            place.last = HeaderValue::from_str(id).ok().filter(|id| !id.is_empty());
        }
        if let Some(retry) = event.retry {
            place.retry = Duration::from_millis(retry).min(LONGEST_RETRY);
        }
        let is_message = event.event.as_deref().is_none_or(|kind| kind == "message");
        if is_message && !event.data.is_empty() {
            inner.inbox.received(event.data.as_bytes(), call);
        }
        // Afterwards, so that whoever knows of the event can have heard of what it brought.
        if let (Some(call), Some(_)) = (call, &event.id) {
            inner.note_event(call, place.last.as_ref());
        }
    }
}

impl Inner {
    /// Keeps the session that an answer to the opening names.
    fn keep_session(&self, head: &Head) {
        let mut state = self.lock();
        if state.session.is_none() && state.agreed.is_none() {
            state.session.clone_from(&head.session);
        }
    }

    /// The server forgot our session.
    pub(super) fn lost_session(&self) {
        if self.lock().session.take().is_some() {
            self.inbox.session_lost(fault::session_lost(self.target.name()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_whose_server_vanished_fails_within_the_budget() {
        assert!(wire::CONNECT < IN_VAIN && IN_VAIN < wire::CONNECT * 2);
        assert!(wire::DEAD + (RETRY + wire::CONNECT) * 2 <= Duration::from_secs(45));
    }
}
