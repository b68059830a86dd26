//! Framing: splits byte streams that arrive in arbitrary pieces into messages.

pub(crate) mod frame_buffer;
pub mod lines;
pub mod sse;

pub use lines::{FramedLine, LineDecoder};
pub use sse::{SseDecoder, SseError, SseEvent, SseEventRef};

/// Maximum capacity that a buffer keeps between messages, so that one large message does not hold memory forever.
const RETAINED_CAPACITY: usize = 64 * 1024;
