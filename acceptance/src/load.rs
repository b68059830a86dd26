//! Load over HTTP, and the history of what everybody got.
//!
//! A bounded pool of raw connections, clients of both eras, and a checker that finds an answer that came to
//! the wrong caller, twice or not at all. The pool repairs nothing and repeats nothing: a connection that
//! breaks is a call without an answer.

mod client;
mod descriptors;
mod events;
mod history;
mod pool;
mod requests;
mod seeded_random;
mod server;
mod wire;

pub use client::{Client, Stream};
pub use descriptors::descriptors;
pub use history::{Breach, Call, History, HistoryFinding, HistoryResponse};
pub use pool::Pool;
pub use requests::{Era, Requests};
pub use seeded_random::SeededRandom;
pub use server::{HttpLimitSettings, HttpServer};
pub use wire::{Connection, Head, Response};
