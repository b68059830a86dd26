//! A server on HTTP: what it costs to be called, and what it costs to be waited for.

mod idle;
mod load;
mod memory;
mod process;
mod requests;
mod response;
mod sessions;

pub use idle::{Kind, idle};
pub use load::{Load, load, percentile};
pub use memory::memory;
pub use requests::{Asked, KEY, PATH};

use std::time::Duration;

/// How long a server may stay silent before it counts as dead.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a server gets to reach its idle state before memory and processor time are read.
const SETTLE: Duration = Duration::from_millis(20);
