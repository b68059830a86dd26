//! The gateway: upstreams, federation, and ready-made layers of a chain.
//!
//! [`upstream`] is one server that calls are forwarded to. [`federation`] merges several upstreams into one server.
//! [`layers`] are the ready-made layers around their calls, and [`audit`] is the log of their calls. [`feature_support`]
//! says what clients of each revision get of an upstream. The crate `creole-config` builds all of it from a configuration
//! file.

pub mod audit;
pub mod feature_support;
pub mod federation;
pub mod layers;
pub mod upstream;
