//! Servers of 2024-11-05 over HTTP: one stream brings everything, and its first event says where to POST.

use std::sync::Arc;

use bytes::Bytes;
use creole_proto::client::{CallKey, DropReason, FrameKind, OutgoingFrame};
use creole_proto::fault::Fault;
use creole_proto::http::request_headers::HeaderField;
use http::Method;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Duration, timeout};

use super::answer::Kind;
use super::target::Target;
use super::wire::{Events, Missed};
use super::{fault, head};
use crate::chain::BoxFuture;
use crate::client::link::{Carrier, Inbox, Link, Transport};
use crate::process::unavailable_fault;

/// How long the server may take to say where to POST.
const ENDPOINT: Duration = Duration::from_secs(10);

/// Messages that may wait to be sent before no more calls are begun.
const MESSAGES: usize = 256;

/// A server that speaks HTTP+SSE.
#[derive(Clone, Debug)]
pub struct OldSseServer(Target);

impl OldSseServer {
    /// The server whose stream is at this target.
    pub fn new(target: Target) -> Self {
        Self(target)
    }
}

impl Transport for OldSseServer {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn begin(self: Box<Self>, inbox: Inbox) -> Arc<dyn Link> {
        let (sender, messages) = mpsc::channel(MESSAGES);
        let name = self.0.name().to_owned();
        let task = tokio::spawn(run(self.0, inbox.clone(), messages));
        Arc::new(OldSseLink { name, messages: sender, task: task.abort_handle(), inbox })
    }
}

struct OldSseLink {
    name: String,
    messages: mpsc::Sender<Message>,
    task: AbortHandle,
    inbox: Inbox,
}

struct Message {
    call: Option<CallKey>,
    body: Bytes,
}

impl Link for OldSseLink {
    fn send(&self, frame: OutgoingFrame<'_>, _: Vec<HeaderField>) -> Option<Carrier> {
        let call = match frame.kind {
            FrameKind::Request(call) => Some(call),
            _ => None,
        };
        let message = Message { call, body: Bytes::copy_from_slice(frame.text) };
        if let Err(mpsc::error::TrySendError::Full(message)) = self.messages.try_send(message) {
            let call = message.call?;
            let inbox = self.inbox.clone();
            let detail = format!("`{}` does not take what it was sent before", self.name);
            let fault = unavailable_fault(&self.name, detail, "busy");
            // Not from here: whoever sends holds the connection.
            tokio::spawn(async move { inbox.failed(call, fault) });
        }
        None
    }

    fn is_full(&self) -> bool {
        self.messages.capacity() == 0
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        // The connection is the session.
        self.task.abort();
        Box::pin(std::future::ready(()))
    }
}

impl Drop for OldSseLink {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(target: Target, inbox: Inbox, messages: mpsc::Receiver<Message>) {
    let name = target.name().to_owned();
    let fault = match converse(&target, &inbox, messages).await {
        Ok(()) => {
            let detail = format!("`{name}` closed the connection");
            unavailable_fault(&name, detail, "upstream_ended")
        }
        Err(fault) => fault,
    };
    inbox.ended(fault);
}

async fn converse(
    target: &Target,
    inbox: &Inbox,
    messages: mpsc::Receiver<Message>,
) -> Result<(), Fault> {
    let request = target.request(Method::GET, head::listening(), Bytes::new());
    let (head, body) = target.begin(&request).await?;
    if !head.status.is_success() {
        return Err(fault::refused(target, &head));
    }
    if head.kind != Kind::Events {
        return Err(fault::no_answer(target.name(), "something else than a stream"));
    }
    let mut events = Events::new(body, target.longest(), target.hold());
    let posting = timeout(ENDPOINT, endpoint(target, &mut events)).await;
    let posting = posting.unwrap_or_else(|_| Err(no_endpoint(target)))?;
    tokio::select! {
        () = read(&mut events, inbox) => Ok(()),
        () = write(&posting, inbox, messages) => Ok(()),
    }
}

/// Where to POST: the first event says it, and only of its own origin is it believed.
async fn endpoint(target: &Target, events: &mut Events) -> Result<Target, Fault> {
    while let Some(event) = events.next().await {
        if let Ok(event) = event
            && event.event.as_deref() == Some("endpoint")
        {
            return target.at(event.data.trim()).ok_or_else(|| {
                let name = target.name();
                let detail = format!("`{name}` wants messages to be sent to another origin");
                unavailable_fault(name, detail, "foreign_origin")
            });
        }
    }
    Err(no_endpoint(target))
}

fn no_endpoint(target: &Target) -> Fault {
    fault::no_answer(target.name(), "no place to send messages to")
}

async fn read(events: &mut Events, inbox: &Inbox) {
    while let Some(event) = events.next().await {
        match event {
            Ok(event) if event.event.as_deref().is_none_or(|kind| kind == "message") => {
                if !event.data.is_empty() {
                    inbox.received(event.data.as_bytes(), None);
                }
            }
            Ok(_) => {}
            Err(missed) => {
                // The stream is that of all calls, and nothing of the event is left to tell whose answer it was.
                let why = match missed {
                    Missed::NoRoom => DropReason::NoMemory,
                    Missed::Garbled => DropReason::TooLong,
                };
                inbox.dropped(&[], why);
                inbox.dropped_end(&[]);
            }
        }
    }
}

/// One message after the other, so that none overtakes another.
async fn write(target: &Target, inbox: &Inbox, mut messages: mpsc::Receiver<Message>) {
    while let Some(Message { call, body }) = messages.recv().await {
        let request = target.request(Method::POST, head::posting(), body);
        let failed = match target.send(&request).await {
            Ok((head, _)) if head.status.is_success() => None,
            Ok((head, _)) => Some(fault::refused(target, &head)),
            Err(fault) => Some(fault),
        };
        if let (Some(call), Some(fault)) = (call, failed) {
            inbox.failed(call, fault);
        }
    }
    // Nobody sends any more; what was asked may still be answered.
    std::future::pending().await
}
