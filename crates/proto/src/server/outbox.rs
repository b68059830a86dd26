//! The outbox of the server's machine: frames to send and actions to perform.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::CallKey;
use crate::fault::FaultKind;
use crate::framing::frame_buffer::FrameBuffer;
use crate::operation::{Caller, Operation};
use crate::revision::Rules;
use crate::wire::Raw;

/// The destination of a frame. A transport with one channel may ignore it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameRoute {
    /// A response to the frame that is being received.
    Reply,
    /// A call: its response, its progress, an input request, or a listener's notification.
    Call(CallKey),
    /// The session as a whole.
    Session,
}

/// The role of a frame for the request it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameRole {
    /// The only response to the received frame: a result, an error or the responses to a batch. It carries the kind of
    /// fault, if any.
    Response(Option<FaultKind>),
    /// A notification or an input request before the response.
    Intermediate,
}

/// One message to send.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingFrame<'a> {
    /// Its destination.
    pub route: FrameRoute,
    /// Its role for the request it belongs to.
    pub role: FrameRole,
    /// The message, without a newline.
    pub text: &'a [u8],
}

/// The key of a pending input request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InputRequestKey(pub(super) u64);

/// The client's response to an input request: the raw result, or the reason for the failure.
pub type InputResponse = Result<Raw, String>;

/// A call to be started.
#[derive(Debug)]
pub struct Call {
    /// The key under which the driver reports the outcome.
    pub key: CallKey,
    /// The operation.
    pub operation: Operation,
    /// The caller.
    pub caller: Caller,
}

/// An action for the driver.
#[derive(Debug)]
pub enum Action {
    /// Start a call and report its outcome.
    Start(Call),
    /// Cancel a call whose outcome is not needed any more.
    Cancel(CallKey, String),
    /// Deliver the response to an input request.
    InputResponse(InputRequestKey, InputResponse),
    /// Release one subscription to each of these resources.
    ReleaseSubscriptions(Vec<String>),
    /// The roots of the session's client changed.
    RootsChanged,
    /// Record an observation, if the profile is observed.
    Observe(Observation),
}

/// A report for observers: each request once on arrival and once at its end.
#[derive(Clone, Debug, PartialEq)]
pub enum Observation {
    /// A request arrived.
    Received {
        /// Its method.
        method: String,
        /// Its raw id.
        id: String,
    },
    /// A request got its response, or will get none.
    Done {
        /// Its method.
        method: String,
        /// Its raw id.
        id: String,
        /// Its duration.
        duration: Duration,
        /// Its end.
        end: RequestEnd,
    },
    /// A request got its response without a call. Reported only to [observers](super::Profile::observers).
    Answered {
        /// Its method, if the protocol has it.
        method: Option<&'static str>,
        /// Its raw id.
        id: String,
        /// The rules of the response.
        rules: &'static Rules,
        /// The kind of fault in the response.
        fault: Option<FaultKind>,
        /// Its `_meta`.
        meta: Option<Raw>,
    },
    /// A notification arrived. Reported only to [observers](super::Profile::observers).
    Notified {
        /// Its method, if the protocol has it.
        method: Option<&'static str>,
        /// The rules of the session.
        rules: &'static Rules,
        /// Its `_meta`.
        meta: Option<Raw>,
    },
    /// A message was rejected before it could be read as a request.
    Refused {
        /// The reason.
        kind: FaultKind,
        /// The rules of the response.
        rules: &'static Rules,
    },
}

/// The end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestEnd {
    /// A result.
    Success,
    /// An error.
    Error(FaultKind),
    /// No response: it was cancelled.
    Cancelled,
}

/// Frames and actions, in order of creation.
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

    /// Frees the capacity for actions, for connections that are mostly idle.
    pub fn release_capacity(&mut self) {
        self.actions.shrink_to_fit();
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

    /// Removes the first `count` bytes, which were sent.
    pub fn discard(&mut self, count: usize) {
        self.frames.discard(count);
    }

    /// The frames, each with its route and role.
    pub fn frames(&self) -> impl Iterator<Item = OutgoingFrame<'_>> {
        self.frames.iter().map(|((route, role), text)| OutgoingFrame { route, role, text })
    }

    /// Reports that one subscription to each of these resources ended.
    pub(super) fn release_subscriptions(&mut self, uris: Vec<String>) {
        if !uris.is_empty() {
            self.push_action(Action::ReleaseSubscriptions(uris));
        }
    }

    pub(super) fn push_action(&mut self, action: Action) {
        if self.actions.capacity() == 0 {
            // Mostly there is one action at a time, and a call is large.
            self.actions.reserve_exact(1);
        }
        self.actions.push_back(action);
    }

    /// Appends a notification or an input request that `write` produces.
    pub(super) fn push_frame(&mut self, route: FrameRoute, write: impl FnOnce(&mut Vec<u8>)) {
        self.frames.add((route, FrameRole::Intermediate), write);
    }

    /// Appends a response that `write` produces.
    pub(super) fn push_response(
        &mut self,
        route: FrameRoute,
        fault: Option<FaultKind>,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        self.frames.add((route, FrameRole::Response(fault)), write);
    }

    /// Appends a response that `write` produces without line ends.
    pub(super) fn push_response_line(
        &mut self,
        route: FrameRoute,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        self.frames.add_line((route, FrameRole::Response(None)), write);
    }
}
