//! Files below a folder: opened without a way out of it, chosen by patterns, listed within limits, watched.

mod hub;
pub mod pattern;
mod problem;
pub(crate) mod root;
pub(crate) mod rules;
pub(crate) mod scan;
pub(crate) mod watch;

pub use pattern::Pattern;
pub use problem::Problem;
