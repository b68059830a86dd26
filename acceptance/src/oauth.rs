//! Logins in tests: a person who approves, a browser that follows redirects, and an authorization server that misbehaves.

pub mod browser;
mod person;
mod rogue_server;

pub use self::person::{AutomaticDevice, AutomaticPerson};
pub use self::rogue_server::{RogueRequest, RogueResponse, RogueServer};
