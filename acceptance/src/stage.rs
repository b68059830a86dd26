//! Stages: the environments in which a transcript is played.
//!
//! The same file runs against the real binary over stdio and over HTTP and, faster and with a simulated clock, against
//! parts of it. A stage only carries bytes. The transcript defines the expected result.

pub mod http;
pub mod machine;
pub mod memory;
pub mod service;
pub mod stdio;

use std::time::Duration;

/// One server in its initial state, and the client's end of its connection.
pub trait Stage {
    /// Sends bytes to the server as a client would write them: usually one line with its newline.
    fn send(&mut self, bytes: &[u8]);

    /// The next message of the server, without its newline. `None` when none arrives in time, or when none can arrive
    /// any more.
    fn receive(&mut self, wait: Duration) -> Option<String>;

    /// Advances the server's clock. Returns false if the stage cannot.
    fn advance(&mut self, by: Duration) -> bool;

    /// Closes the client's side and waits for the server to end. The error says how it failed.
    ///
    /// Messages that the server sent before its end can still be received.
    fn close(&mut self) -> Result<(), String>;

    /// Details for a failure report, such as the server's log.
    fn notes(&mut self) -> String {
        String::new()
    }
}
