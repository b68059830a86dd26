//! Load over HTTP, and the history of what everybody got.
//!
//! A bounded pool of raw connections, clients of both eras, and a checker that finds an answer that came to
//! the wrong caller, twice or not at all. The pool repairs nothing and repeats nothing: a connection that
//! breaks is a call without an answer.

mod client;
mod descriptors;
mod dice;
mod events;
mod history;
mod pool;
mod requests;
mod server;
mod wire;

pub use client::{Client, Stream};
pub use descriptors::descriptors;
pub use dice::Dice;
pub use history::{Answer, Breach, Call, Finding, History};
pub use pool::Pool;
pub use requests::{Era, Requests};
pub use server::{HttpServer, Limits};
pub use wire::{Connection, Head, Response};
