//! The HTTP+SSE transport of 2024-11-05: one stream carries all messages of the server, and its first event names the
//! URL for POSTs.

use std::sync::Arc;

use bytes::Bytes;
use creole_proto::client::{CallKey, DropReason, FrameKind, OutgoingFrame};
use creole_proto::fault::Fault;
use creole_proto::http::request_headers::HeaderField;
use http::Method;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Duration, timeout};

use crate::chain::BoxFuture;
use crate::client::transport::http::address::HttpAddress;
use crate::client::transport::http::conn::body_reader::{EventError, EventStream};
use crate::client::transport::http::conn::request::HeaderList;
use crate::client::transport::http::conn::response::ResponseKind;
use crate::client::transport::http::fault;
use crate::client::transport::{Exchange, Inbox, Transport, TransportHandle};
use crate::process::unavailable_fault;

/// How long the server may take to send that URL.
const ENDPOINT_TIMEOUT: Duration = Duration::from_secs(10);

/// Queued messages from which no more calls are started.
const MAX_QUEUED_MESSAGES: usize = 256;

/// A server that supports HTTP+SSE.
#[derive(Clone, Debug)]
pub struct LegacySseServer(HttpAddress);

impl LegacySseServer {
    /// The server whose stream is at this address.
    pub fn new(target: HttpAddress) -> Self {
        Self(target)
    }
}

impl Transport for LegacySseServer {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn connect(self: Box<Self>, inbox: Inbox) -> Arc<dyn TransportHandle> {
        let (sender, messages) = mpsc::channel(MAX_QUEUED_MESSAGES);
        let name = self.0.name().to_owned();
        let task = tokio::spawn(run(self.0, inbox.clone(), messages));
        Arc::new(LegacySseTransport { name, messages: sender, task: task.abort_handle(), inbox })
    }
}

struct LegacySseTransport {
    name: String,
    messages: mpsc::Sender<QueuedMessage>,
    task: AbortHandle,
    inbox: Inbox,
}

struct QueuedMessage {
    call: Option<CallKey>,
    body: Bytes,
}

impl TransportHandle for LegacySseTransport {
    fn send(&self, frame: OutgoingFrame<'_>, _: Vec<HeaderField>) -> Option<Exchange> {
        let call = match frame.kind {
            FrameKind::Request(call) => Some(call),
            _ => None,
        };
        let message = QueuedMessage { call, body: Bytes::copy_from_slice(frame.text) };
        if let Err(mpsc::error::TrySendError::Full(message)) = self.messages.try_send(message) {
            let call = message.call?;
            let inbox = self.inbox.clone();
            let detail =
                format!("`{}` is not reading its input; the send queue is full", self.name);
            let fault = unavailable_fault(&self.name, detail, "busy");
            // In a task: the sender holds the lock of the connection.
            tokio::spawn(async move { inbox.on_call_failed(call, fault) });
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

impl Drop for LegacySseTransport {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(target: HttpAddress, inbox: Inbox, messages: mpsc::Receiver<QueuedMessage>) {
    let name = target.name().to_owned();
    let fault = match run_session(&target, &inbox, messages).await {
        Ok(()) => {
            let detail = format!("`{name}` closed the connection");
            unavailable_fault(&name, detail, "upstream_ended")
        }
        Err(fault) => fault,
    };
    inbox.on_closed(fault);
}

async fn run_session(
    target: &HttpAddress,
    inbox: &Inbox,
    messages: mpsc::Receiver<QueuedMessage>,
) -> Result<(), Fault> {
    let request = target.request(Method::GET, HeaderList::of_listen(), Bytes::new());
    let (head, body) = target.send_request(&request).await?;
    if !head.status.is_success() {
        return Err(target.status_fault(&head));
    }
    if head.kind != ResponseKind::Events {
        return Err(fault::no_response_fault(target.name(), "content that is not an event stream"));
    }
    let mut events = EventStream::new(body, target.max_message_bytes(), target.reserve_memory());
    let posting = timeout(ENDPOINT_TIMEOUT, endpoint(target, &mut events)).await;
    let posting = posting.unwrap_or_else(|_| Err(no_endpoint_fault(target)))?;
    tokio::select! {
        () = read(&mut events, inbox) => Ok(()),
        () = write(&posting, inbox, messages) => Ok(()),
    }
}

/// The URL for POSTs: the first event names it, and it must have the same origin.
async fn endpoint(target: &HttpAddress, events: &mut EventStream) -> Result<HttpAddress, Fault> {
    while let Some(event) = events.next().await {
        if let Ok(event) = event
            && event.event.as_deref() == Some("endpoint")
        {
            return target.at_reference(event.data.trim()).ok_or_else(|| {
                let name = target.name();
                let detail = format!(
                    "`{name}` announced a message endpoint of another origin, which is not used"
                );
                unavailable_fault(name, detail, "foreign_origin")
            });
        }
    }
    Err(no_endpoint_fault(target))
}

fn no_endpoint_fault(target: &HttpAddress) -> Fault {
    fault::no_response_fault(target.name(), "no message endpoint")
}

async fn read(events: &mut EventStream, inbox: &Inbox) {
    while let Some(event) = events.next().await {
        match event {
            Ok(event) if event.event.as_deref().is_none_or(|kind| kind == "message") => {
                if !event.data.is_empty() {
                    inbox.on_message(event.data.as_bytes(), None);
                }
            }
            Ok(_) => {}
            Err(missed) => {
                // All calls share the stream, and nothing of the event is left to identify its call.
                let reason = match missed {
                    EventError::BudgetExhausted => DropReason::NoMemory,
                    EventError::Unreadable => DropReason::TooLong,
                };
                inbox.on_dropped_start(&[], reason);
                inbox.on_dropped_end(&[]);
            }
        }
    }
}

/// Sends one message after the other, so that none overtakes another.
async fn write(target: &HttpAddress, inbox: &Inbox, mut messages: mpsc::Receiver<QueuedMessage>) {
    while let Some(QueuedMessage { call, body }) = messages.recv().await {
        let request = target.request(Method::POST, HeaderList::of_post(), body);
        let failed = match target.send_short(&request).await {
            Ok((head, _)) if head.status.is_success() => None,
            Ok((head, _)) => Some(target.status_fault(&head)),
            Err(fault) => Some(fault),
        };
        if let (Some(call), Some(fault)) = (call, failed) {
            inbox.on_call_failed(call, fault);
        }
    }
    // There are no more senders; responses may still arrive.
    std::future::pending().await
}
