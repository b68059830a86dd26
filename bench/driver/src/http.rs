//! Measures a server over HTTP: the cost of calls, and the cost of idle clients.

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

/// The timeout after which a silent server counts as dead.
const PATIENCE: Duration = Duration::from_secs(10);

/// The time for a server to become idle before memory and processor time are read.
const SETTLE: Duration = Duration::from_millis(20);
