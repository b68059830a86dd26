//! Stages: the places where a transcript is played.
//!
//! The same file runs against the real binary over stdio and over HTTP and, faster and with a clock that can be
//! moved, against parts of it. A stage only carries bytes; the transcript says what is right.

pub mod http;
pub mod machine;
pub mod memory;
pub mod service;
pub mod stdio;

use std::time::Duration;

/// One server in its first state, and the client's end of the line to it.
pub trait Stage {
    /// Hands bytes to the server as a client would write them: usually one line with its newline.
    fn send(&mut self, bytes: &[u8]);

    /// The next message of the server, without its newline; nothing when none comes in time, or
    /// when none can come any more.
    fn receive(&mut self, wait: Duration) -> Option<String>;

    /// Moves the server's clock; false when the stage cannot.
    fn advance(&mut self, by: Duration) -> bool;

    /// Ends the client's side and waits for the server to finish; an error says how it ended badly.
    ///
    /// What the server said until its end can still be received.
    fn close(&mut self) -> Result<(), String>;

    /// What helps to understand a failure, such as the server's log.
    fn notes(&mut self) -> String {
        String::new()
    }
}
