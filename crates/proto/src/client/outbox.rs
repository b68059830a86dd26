//! The outbox of the client's machine: frames to send, and events.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::CallKey;
use crate::fault::Fault;
use crate::framing::frame_buffer::FrameBuffer;
use crate::model::InputRequest;
use crate::operation::{Change, Event, Outcome, ServerInfo};
use crate::revision::Rules;
use crate::wire::Raw;

/// The kind of a frame, with which a transport that has a channel per call selects the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// A request. Its response is reported under this key.
    Request(CallKey),
    /// A notification.
    Notification {
        /// The cancelled call. Over HTTP, a stateless server learns of the cancellation when the call's stream closes,
        /// and this frame is not sent (2026-07-28 basic/transports/streamable-http, cancellation).
        about: Option<CallKey>,
    },
    /// A response to an input request.
    Response,
}

/// One message to send.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingFrame<'a> {
    /// Its kind.
    pub kind: FrameKind,
    /// The message, without a newline.
    pub text: &'a [u8],
}

/// The key of a pending input request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InputRequestKey(pub u64);

/// The reason for refusing an input request, sent to the server as an error.
#[derive(Clone, Debug, PartialEq)]
pub struct InputRequestError {
    /// The code of the error.
    pub code: i64,
    /// The message.
    pub message: String,
}

impl InputRequestError {
    /// The user declined (2025-11-25 client/sampling, error handling).
    pub fn declined(message: impl Into<String>) -> Self {
        Self { code: -1, message: message.into() }
    }

    /// This client does not support the input request.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self { code: -32601, message: message.into() }
    }
}

/// The negotiated rules and the server's description.
#[derive(Clone, Debug, PartialEq)]
pub struct NegotiationResult {
    /// The rules in force from now on.
    pub rules: &'static Rules,
    /// The version as the server wrote it.
    pub version: String,
    /// The identity and capabilities as understood here.
    pub server_info: ServerInfo,
    /// The capabilities as received: an object.
    pub capabilities: Raw,
    /// The server's `Implementation` as received, if any.
    pub identity: Option<Raw>,
    /// The versions that a stateless server supports (2026-07-28 schema, `DiscoverResult`).
    pub supported_versions: Vec<String>,
}

/// An event for the driver.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientEvent {
    /// The connection is open.
    Opened(NegotiationResult),
    /// The connection could not be opened. The fault for an unsupported version has the supported ones as data.
    OpenFailed(Fault),
    /// The outcome of a call. Each call has exactly one, unless it was cancelled. An acknowledged listener stays open
    /// after it, until [`ClientEvent::ListenerEnded`].
    CallDone(CallKey, Outcome),
    /// An event of a running call.
    CallEvent(CallKey, Event),
    /// A log message that belongs to no known call.
    UnattributedLog(Event),
    /// An input request of the server. The driver must call [`super::Machine::respond`].
    InputRequested {
        /// The call that it belongs to, if known.
        call: Option<CallKey>,
        /// The key for the response.
        key: InputRequestKey,
        /// The input request.
        request: InputRequest,
        /// The server's id of the task that it belongs to.
        task: Option<String>,
    },
    /// The server sent an input request without the client's capability. It was refused
    /// (2026-07-28 basic/patterns/mrtr, server requirements).
    InputNotOffered {
        /// The call that it belongs to, if known.
        call: Option<CallKey>,
        /// The input request.
        request: InputRequest,
    },
    /// An input request that needs no response any more.
    InputWithdrawn(InputRequestKey),
    /// The URL elicitation with this id is complete (2025-11-25 schema, `ElicitationCompleteNotification`).
    ElicitationCompleted(String),
    /// A change in the server.
    Changed {
        /// The listener that received the change; `None` in a session.
        listener: Option<CallKey>,
        /// The change.
        change: Change,
    },
    /// An acknowledged listener ended: by the server, or with this fault.
    ListenerEnded(CallKey, Option<Fault>),
    /// The server sent a message without a meaning here. It fails no call.
    Violation(ProtocolViolation),
}

/// A message that violates the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProtocolViolation {
    /// Bytes that are not JSON or exceed a limit: the reason, and the first bytes.
    Unreadable(String, String),
    /// JSON that is not a message.
    NotAMessage(String),
    /// A response to a request that was never sent; its id.
    UnknownResponse(String),
    /// A request that the server may not send on this connection; its method.
    UnexpectedRequest(String),
    /// An unknown notification; its method.
    UnknownNotification(String),
    /// The limit of reports is reached. Further violations are only counted.
    LimitReached,
}

impl fmt::Display for ProtocolViolation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(reason, start) => write!(formatter, "not JSON: {reason}: {start}"),
            Self::NotAMessage(reason) => write!(formatter, "not a JSON-RPC message: {reason}"),
            Self::UnknownResponse(id) => {
                write!(formatter, "a response to an unknown request: {id}")
            }
            Self::UnexpectedRequest(method) => {
                write!(formatter, "a request that is not allowed: {method}")
            }
            Self::UnknownNotification(method) => {
                write!(formatter, "an unknown notification: {method}")
            }
            Self::LimitReached => formatter.write_str("further violations are not reported"),
        }
    }
}

/// Frames and events, in order of creation.
#[derive(Debug, Default)]
pub struct Outbox {
    frames: FrameBuffer<FrameKind>,
    events: VecDeque<ClientEvent>,
}

impl Outbox {
    /// The next event, oldest first.
    pub fn next_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }

    /// The bytes of all frames, each terminated by a newline.
    pub fn bytes(&self) -> &[u8] {
        self.frames.bytes()
    }

    /// Takes the bytes of all frames.
    pub fn take_bytes(&mut self) -> Vec<u8> {
        self.frames.take_bytes()
    }

    /// Removes all frames. The buffer keeps a limited capacity.
    pub fn clear_frames(&mut self) {
        self.frames.clear();
    }

    /// The frames, each with its kind.
    pub fn frames(&self) -> impl Iterator<Item = OutgoingFrame<'_>> {
        self.frames.iter().map(|(sending, text)| OutgoingFrame { kind: sending, text })
    }

    pub(super) fn push_event(&mut self, event: ClientEvent) {
        self.events.push_back(event);
    }

    /// Appends a frame that `write` produces.
    pub(super) fn push_frame(&mut self, sending: FrameKind, write: impl FnOnce(&mut Vec<u8>)) {
        self.frames.add(sending, write);
    }
}
