//! What the machine wants done: frames to send, and what happened.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::CallKey;
use crate::fault::Fault;
use crate::frames::Frames;
use crate::model::Question;
use crate::op::{Change, Event, Outcome, ServerCard};
use crate::revision::Rules;
use crate::wire::Raw;

/// What a frame is, so that a transport with a channel for each call knows where it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
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
pub struct Outgoing<'a> {
    /// What it is.
    pub sending: Sending,
    /// The message, without a newline.
    pub text: &'a [u8],
}

/// A question of the server that waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuestionKey(pub u64);

/// Why a question is not answered; told to the server as an error.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The code of the error.
    pub code: i64,
    /// Why, in words.
    pub message: String,
}

impl Refusal {
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
pub struct Greeting {
    /// The rules that hold from now on.
    pub rules: &'static Rules,
    /// The version as the server writes it.
    pub version: String,
    /// What we understood.
    pub card: ServerCard,
    /// The capabilities as the server wrote them: an object.
    pub capabilities: Raw,
    /// The self-description as the server wrote it, if it gave one.
    pub identity: Option<Raw>,
    /// The versions that a stateless server says it serves.
    pub supported: Vec<String>,
}

/// What the driver is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Happening {
    /// The conversation is open.
    Opened(Greeting),
    /// The conversation could not be opened. An unsupported version carries those that are, as data.
    Refused(Fault),
    /// A call came to this; each call is told of once, unless it was cancelled. A listener that is acknowledged
    /// stays open after it, until [`Happening::Ended`].
    Done(CallKey, Outcome),
    /// Something happened on the way to it.
    Event(CallKey, Event),
    /// The server noted something that belongs to no call that is known.
    Logged(Event),
    /// The server asks something; [`super::Machine::answer`] is owed.
    Asked {
        /// The call that it belongs to, where that is known.
        call: Option<CallKey>,
        /// What it is answered under.
        question: QuestionKey,
        /// What is asked.
        what: Question,
        /// The task that it belongs to, as the server names it.
        task: Option<String>,
    },
    /// The server asked something that was not offered to it, and was refused.
    NotOffered {
        /// The call that it belongs to, where that is known.
        call: Option<CallKey>,
        /// What was asked.
        what: Question,
    },
    /// A question needs no answer any more.
    Withdrawn(QuestionKey),
    /// A page that somebody was asked to visit has done its part; the id is the question's.
    Visited(String),
    /// Something changed.
    Changed {
        /// The listener that is told; sessions are told without one.
        listener: Option<CallKey>,
        /// What.
        change: Change,
    },
    /// An acknowledged listener is over: by the server's will, or by this fault.
    Ended(CallKey, Option<Fault>),
    /// The server said something that means nothing here. It is nobody's error.
    Noise(Noise),
}

/// Something that a server should not have said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Noise {
    /// Bytes that are no JSON, or more of it than we read; why, and how they begin.
    Unreadable(String, String),
    /// JSON that is no message.
    NoMessage(String),
    /// An answer to a request that was never sent; its id.
    UnknownAnswer(String),
    /// A request that servers may not send in this conversation; its method.
    Request(String),
    /// A notification that nobody here understands; its method.
    Notification(String),
    /// There was more than is reported; from now on it is only counted.
    More,
}

impl fmt::Display for Noise {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(why, start) => write!(formatter, "no JSON message: {why}: {start}"),
            Self::NoMessage(why) => write!(formatter, "no JSON-RPC message: {why}"),
            Self::UnknownAnswer(id) => write!(formatter, "an answer to no request of ours: {id}"),
            Self::Request(method) => write!(formatter, "a request that is not allowed: {method}"),
            Self::Notification(method) => write!(formatter, "an unknown notification: {method}"),
            Self::More => formatter.write_str("there is more, and it is no longer reported"),
        }
    }
}

/// Frames and happenings, in the order in which they arose.
#[derive(Debug, Default)]
pub struct Outbox {
    frames: Frames<Sending>,
    happenings: VecDeque<Happening>,
}

impl Outbox {
    /// The next happening, oldest first.
    pub fn next_happening(&mut self) -> Option<Happening> {
        self.happenings.pop_front()
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
    pub fn frames(&self) -> impl Iterator<Item = Outgoing<'_>> {
        self.frames.iter().map(|(sending, text)| Outgoing { sending, text })
    }

    pub(super) fn tell(&mut self, happening: Happening) {
        self.happenings.push_back(happening);
    }

    /// Adds a frame that `write` writes.
    pub(super) fn frame(&mut self, sending: Sending, write: impl FnOnce(&mut Vec<u8>)) {
        self.frames.add(sending, write);
    }
}
