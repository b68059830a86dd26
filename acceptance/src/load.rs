//! Load tests over HTTP, and a checker of the responses of all clients.
//!
//! A bounded pool of raw connections, clients of both eras, and a checker that finds responses that reached the wrong
//! caller, arrived twice or never. The pool repairs and repeats nothing: a connection that breaks is a call without a
//! response.

mod client;
mod descriptors;
mod events;
mod executions;
mod history;
mod pool;
mod requests;
mod seeded_random;
mod server;
mod wire;

pub use client::{Client, Stream};
pub use descriptors::descriptors;
pub use executions::{ExecutedCall, ExecutionBreach, execution_breaches};
pub use history::{Breach, Call, History, HistoryFinding, HistoryResponse};
pub use pool::Pool;
pub use requests::{Era, Requests};
pub use seeded_random::SeededRandom;
pub use server::{HttpLimitSettings, HttpServer};
pub use wire::{Connection, Head, Response};
