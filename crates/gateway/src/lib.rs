//! Other servers behind one: upstreams, federation, and ready-made layers of a chain.
//!
//! [`upstream`] is one server that calls are forwarded to, [`federation`] joins several of them behind one server,
//! and [`layers`] are the ready-made layers around their calls. The crate `creole-config` builds all of it from a
//! configuration file.

pub mod federation;
pub mod layers;
pub mod upstream;
