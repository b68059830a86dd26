//! Where one message ends and the next begins, on byte streams that arrive in arbitrary pieces.

pub mod lines;
pub mod sse;

pub use lines::{FramedLine, LineDecoder};
pub use sse::{SseDecoder, SseError, SseEvent, SseEventRef};

/// Capacity a buffer may keep between messages, so that one large message is not paid for forever.
const RETAINED_CAPACITY: usize = 64 * 1024;
