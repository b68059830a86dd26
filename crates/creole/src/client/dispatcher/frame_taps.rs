//! The messages of calls whose records keep messages.

use creole_proto::client::CallKey;

use crate::telemetry::frames::FrameDirection;
use crate::telemetry::record::FrameTap;

/// The calls of a connection whose records keep messages. Mostly there are none.
#[derive(Default)]
pub(super) struct FrameTaps {
    taps: Vec<(CallKey, FrameTap)>,
    /// The message that is being processed.
    received: Option<Box<[u8]>>,
}

impl FrameTaps {
    /// Keeps the messages of a call from now on, or none.
    pub(super) fn set(&mut self, call: CallKey, tap: Option<FrameTap>) {
        self.remove(call);
        self.taps.extend(tap.map(|tap| (call, tap)));
    }

    pub(super) fn remove(&mut self, call: CallKey) {
        if !self.taps.is_empty() {
            self.taps.retain(|(key, _)| *key != call);
        }
    }

    /// A request is sent.
    pub(super) fn keep_sent(&self, call: CallKey, message: &[u8]) {
        self.keep(call, FrameDirection::UpstreamOut, message);
    }

    /// A message arrived. It is not known yet which call it belongs to.
    pub(super) fn begin_message(&mut self, message: &[u8]) {
        if !self.taps.is_empty() {
            self.received = Some(message.into());
        }
    }

    /// The message that arrived belongs to this call.
    pub(super) fn keep_received(&mut self, call: CallKey) {
        if let Some(message) = self.received.take() {
            self.keep(call, FrameDirection::UpstreamIn, &message);
        }
    }

    /// The message that arrived is processed.
    pub(super) fn end_message(&mut self) {
        self.received = None;
    }

    fn keep(&self, call: CallKey, direction: FrameDirection, message: &[u8]) {
        for (_, tap) in self.taps.iter().filter(|(key, _)| *key == call) {
            tap.add(direction, message);
        }
    }
}
