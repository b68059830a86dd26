//! The Model Context Protocol as data and rules, without I/O.
//!
//! The crate reads no clock and needs no runtime. Bytes and times go in; bytes and actions come out. Revisions
//! ([`revision`]) and dialects ([`dialect`]) are tables. Each end of a connection is a state machine
//! ([`server::Machine`], [`client::Machine`]) that any driver can feed.
//!
//! ```
//! use core::time::Duration;
//! use creole_proto::dialect::builtin;
//! use creole_proto::server::{Machine, Outbox, Profile, ServerLimits};
//!
//! let profile = Profile::new(builtin("spec").expect("ships inside"), ServerLimits::default());
//! let mut machine = Machine::new(profile.into());
//! let mut out = Outbox::default();
//! machine.receive(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, Duration::ZERO, &mut out);
//! assert_eq!(out.take_bytes(), b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
//! ```

#![no_std]

extern crate alloc;

pub mod client;
pub mod dialect;
mod encode;
pub mod fault;
pub mod framing;
pub mod http;
pub mod lifecycle;
pub mod message;
pub mod method;
pub mod model;
pub mod monotonic_map;
pub mod operation;
pub mod revision;
pub mod server;
pub mod wire;
