//! The metrics of a process.

/// The metrics of a process.
#[derive(Debug, Default)]
pub struct Metrics {}
