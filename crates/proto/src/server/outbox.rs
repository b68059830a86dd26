//! What the machine wants done: frames to send and actions to take.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::CallKey;
use crate::fault::FaultKind;
use crate::frame_buffer::FrameBuffer;
use crate::operation::{Caller, Operation};
use crate::wire::Raw;

/// Where a frame belongs; a transport with one channel may ignore it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameRoute {
    /// It answers the frame that is being received.
    Reply,
    /// It belongs to a call: its response, its progress, a question, or a listener's notification.
    Call(CallKey),
    /// It belongs to the session as a whole.
    Session,
}

/// What a frame is to the request it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameRole {
    /// The one answer to the frame that was received: a result, an error or the answers to a batch. With
    /// the kind of fault, if that is what it tells.
    Response(Option<FaultKind>),
    /// A notification or a question on the way there.
    Intermediate,
}

/// One message to send.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingFrame<'a> {
    /// Where it belongs.
    pub route: FrameRoute,
    /// What it is to the request it belongs to.
    pub role: FrameRole,
    /// The message, without a newline.
    pub text: &'a [u8],
}

/// A question that waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InputRequestKey(pub(super) u64);

/// What the client said to a question: the raw result, or why not.
pub type InputResponse = Result<Raw, String>;

/// A call to be started.
#[derive(Debug)]
pub struct Call {
    /// The key its outcome is reported under.
    pub key: CallKey,
    /// What is asked.
    pub operation: Operation,
    /// By whom.
    pub caller: Caller,
}

/// Something for the driver to do.
#[derive(Debug)]
pub enum Action {
    /// Start a call and report its outcome.
    Start(Call),
    /// Stop a call: nobody waits for it.
    Cancel(CallKey, String),
    /// Hand over the answer to a question.
    InputResponse(InputRequestKey, InputResponse),
    /// One who watched these resources does so no longer.
    ReleaseSubscriptions(Vec<String>),
    /// The roots of the session's client changed.
    RootsChanged,
    /// Note something, in a profile that is observed.
    Observe(Observation),
}

/// What an observer is told: each request once when it arrives and once when it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observation {
    /// A request arrived.
    Received {
        /// What it asks.
        method: String,
        /// Its id, as it was written.
        id: String,
    },
    /// A request was answered, or will never be.
    Done {
        /// What it asked.
        method: String,
        /// Its id, as it was written.
        id: String,
        /// How long it took.
        duration: Duration,
        /// What came of it.
        end: RequestEnd,
    },
    /// A message was refused before it could be read as a request.
    Refused {
        /// Why.
        kind: FaultKind,
    },
}

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestEnd {
    /// A result.
    Success,
    /// An error.
    Error(FaultKind),
    /// Nothing: it was cancelled.
    Cancelled,
}

/// Frames and actions, in the order in which they arose.
#[derive(Debug, Default)]
pub struct Outbox {
    frames: FrameBuffer<(FrameRoute, FrameRole)>,
    actions: VecDeque<Action>,
}

impl Outbox {
    /// The next action, oldest first.
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Gives back the room that actions took, for conversations that are mostly idle.
    pub fn release_capacity(&mut self) {
        self.actions.shrink_to_fit();
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

    /// Forgets the first bytes, which somebody has taken.
    pub fn discard(&mut self, count: usize) {
        self.frames.discard(count);
    }

    /// The frames, each with its route and role.
    pub fn frames(&self) -> impl Iterator<Item = OutgoingFrame<'_>> {
        self.frames.iter().map(|((route, role), text)| OutgoingFrame { route, role, text })
    }

    /// Tells that resources are no longer watched by one who did.
    pub(super) fn release_subscriptions(&mut self, uris: Vec<String>) {
        if !uris.is_empty() {
            self.push_action(Action::ReleaseSubscriptions(uris));
        }
    }

    pub(super) fn push_action(&mut self, action: Action) {
        if self.actions.capacity() == 0 {
            // Mostly there is one at a time, and a call is large.
            self.actions.reserve_exact(1);
        }
        self.actions.push_back(action);
    }

    /// Adds a notification or a question that `write` writes.
    pub(super) fn push_frame(&mut self, route: FrameRoute, write: impl FnOnce(&mut Vec<u8>)) {
        self.frames.add((route, FrameRole::Intermediate), write);
    }

    /// Adds an answer that `write` writes.
    pub(super) fn push_response(
        &mut self,
        route: FrameRoute,
        fault: Option<FaultKind>,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        self.frames.add((route, FrameRole::Response(fault)), write);
    }

    /// Adds an answer that `write` writes without line ends.
    pub(super) fn push_response_line(
        &mut self,
        route: FrameRoute,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        self.frames.add_line((route, FrameRole::Response(None)), write);
    }
}
