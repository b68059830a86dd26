//! What the machine wants done: frames to send, and what happened.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::CallKey;
use crate::fault::Fault;
use crate::frame_buffer::FrameBuffer;
use crate::model::InputRequest;
use crate::operation::{Change, Event, Outcome, ServerInfo};
use crate::revision::Rules;
use crate::wire::Raw;

/// What a frame is, so that a transport with a channel for each call knows where it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// A request; its answer is awaited under this key.
    Request(CallKey),
    /// A notification.
    Notification {
        /// The call that it is about: one that is given up. Over HTTP a stateless server is told that by closing
        /// the call's stream, and this is not sent.
        about: Option<CallKey>,
    },
    /// The answer to a question of the server.
    Response,
}

/// One message to send.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingFrame<'a> {
    /// What it is.
    pub kind: FrameKind,
    /// The message, without a newline.
    pub text: &'a [u8],
}

/// A question of the server that waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InputRequestKey(pub u64);

/// Why a question is not answered; told to the server as an error.
#[derive(Clone, Debug, PartialEq)]
pub struct InputRequestError {
    /// The code of the error.
    pub code: i64,
    /// Why, in words.
    pub message: String,
}

impl InputRequestError {
    /// The person said no (2025-11-25 client/sampling, error handling).
    pub fn declined(message: impl Into<String>) -> Self {
        Self { code: -1, message: message.into() }
    }

    /// Nobody here can be asked this.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self { code: -32601, message: message.into() }
    }
}

/// Who the server says it is.
#[derive(Clone, Debug, PartialEq)]
pub struct NegotiationResult {
    /// The rules that hold from now on.
    pub rules: &'static Rules,
    /// The version as the server writes it.
    pub version: String,
    /// What we understood.
    pub server_info: ServerInfo,
    /// The capabilities as the server wrote them: an object.
    pub capabilities: Raw,
    /// The self-description as the server wrote it, if it gave one.
    pub identity: Option<Raw>,
    /// The versions that a stateless server says it serves.
    pub supported_versions: Vec<String>,
}

/// What the driver is told.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientEvent {
    /// The conversation is open.
    Opened(NegotiationResult),
    /// The conversation could not be opened. An unsupported version carries those that are, as data.
    OpenFailed(Fault),
    /// A call came to this; each call is told of once, unless it was cancelled. A listener that is acknowledged
    /// stays open after it, until [`ClientEvent::ListenerEnded`].
    CallDone(CallKey, Outcome),
    /// Something happened on the way to it.
    CallEvent(CallKey, Event),
    /// The server noted something that belongs to no call that is known.
    UnattributedLog(Event),
    /// The server asks something; [`super::Machine::respond`] is owed.
    InputRequested {
        /// The call that it belongs to, where that is known.
        call: Option<CallKey>,
        /// What it is answered under.
        key: InputRequestKey,
        /// What is asked.
        request: InputRequest,
        /// The task that it belongs to, as the server names it.
        task: Option<String>,
    },
    /// The server asked something that was not offered to it, and was refused.
    InputNotOffered {
        /// The call that it belongs to, where that is known.
        call: Option<CallKey>,
        /// What was asked.
        request: InputRequest,
    },
    /// A question needs no answer any more.
    InputWithdrawn(InputRequestKey),
    /// A page that somebody was asked to visit has done its part; the id is the question's.
    ElicitationCompleted(String),
    /// Something changed.
    Changed {
        /// The listener that is told; sessions are told without one.
        listener: Option<CallKey>,
        /// What.
        change: Change,
    },
    /// An acknowledged listener is over: by the server's will, or by this fault.
    ListenerEnded(CallKey, Option<Fault>),
    /// The server said something that means nothing here. It is nobody's error.
    Violation(ProtocolViolation),
}

/// Something that a server should not have said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProtocolViolation {
    /// Bytes that are no JSON, or more of it than we read; why, and how they begin.
    Unreadable(String, String),
    /// JSON that is no message.
    NotAMessage(String),
    /// An answer to a request that was never sent; its id.
    UnknownResponse(String),
    /// A request that servers may not send in this conversation; its method.
    UnexpectedRequest(String),
    /// A notification that nobody here understands; its method.
    UnknownNotification(String),
    /// There was more than is reported; from now on it is only counted.
    LimitReached,
}

impl fmt::Display for ProtocolViolation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(why, start) => write!(formatter, "no JSON message: {why}: {start}"),
            Self::NotAMessage(why) => write!(formatter, "no JSON-RPC message: {why}"),
            Self::UnknownResponse(id) => write!(formatter, "an answer to no request of ours: {id}"),
            Self::UnexpectedRequest(method) => {
                write!(formatter, "a request that is not allowed: {method}")
            }
            Self::UnknownNotification(method) => {
                write!(formatter, "an unknown notification: {method}")
            }
            Self::LimitReached => {
                formatter.write_str("there is more, and it is no longer reported")
            }
        }
    }
}

/// Frames and happenings, in the order in which they arose.
#[derive(Debug, Default)]
pub struct Outbox {
    frames: FrameBuffer<FrameKind>,
    events: VecDeque<ClientEvent>,
}

impl Outbox {
    /// The next happening, oldest first.
    pub fn next_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }

    /// The bytes of all frames, each ended by a newline.
    pub fn bytes(&self) -> &[u8] {
        self.frames.bytes()
    }

    /// Takes the bytes of all frames out.
    pub fn take_bytes(&mut self) -> Vec<u8> {
        self.frames.take_bytes()
    }

    /// Forgets the frames, keeping the room they took; gives back what an unusually large frame took.
    pub fn clear_frames(&mut self) {
        self.frames.clear();
    }

    /// The frames, each with what it is.
    pub fn frames(&self) -> impl Iterator<Item = OutgoingFrame<'_>> {
        self.frames.iter().map(|(sending, text)| OutgoingFrame { kind: sending, text })
    }

    pub(super) fn push_event(&mut self, happening: ClientEvent) {
        self.events.push_back(happening);
    }

    /// Adds a frame that `write` writes.
    pub(super) fn push_frame(&mut self, sending: FrameKind, write: impl FnOnce(&mut Vec<u8>)) {
        self.frames.add(sending, write);
    }
}
