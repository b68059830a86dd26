//! The messages of a call, as they were sent and received.

use std::sync::Arc;
use std::time::Duration;

/// The maximum number of messages that a record keeps.
pub const MAX_FRAMES: usize = 64;

/// The maximum number of bytes that a record keeps of one message.
pub const MAX_FRAME_BYTES: usize = 256 * 1024;

/// Replaces what must not be shown in a message.
pub type FrameRedactor = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// Which way a message went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameDirection {
    /// From the client.
    ClientIn,
    /// To an upstream.
    UpstreamOut,
    /// From an upstream.
    UpstreamIn,
    /// To the client.
    ClientOut,
}

/// One message of a call. It may contain secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedFrame {
    /// Which way it went.
    pub direction: FrameDirection,
    /// When, since the start of the call.
    pub at: Duration,
    /// The step that it belongs to, if it is one of an upstream.
    pub step: Option<u16>,
    /// The message, or its start: at most [`MAX_FRAME_BYTES`].
    pub text: Arc<str>,
    /// The length of the whole message in bytes.
    pub length: usize,
}

impl CapturedFrame {
    /// The part of a message that is kept. A character is never divided.
    pub(crate) fn text_of(message: &[u8]) -> Arc<str> {
        let mut end = message.len().min(MAX_FRAME_BYTES);
        while end < message.len() && end > 0 && message[end] & 0xc0 == 0x80 {
            end -= 1;
        }
        String::from_utf8_lossy(&message[..end]).into()
    }
}
