//! The admin listener of a server: its API, its metrics and its console.
//!
//! The listener is separate from that of the protocol, and off unless it is configured. It needs a credential on every
//! request of its API, and no cookie exists. The process tells it about itself by an [`AdminHost`].

mod access;
mod api;
mod client;
mod clock;
mod console;
mod host;
mod http;
mod live;
mod openapi;
mod request;
mod routes;
mod serve;
mod settings;

use std::sync::Arc;
use std::time::SystemTime;

use creole::internal::telemetry::Telemetry;
use tokio::sync::Semaphore;
use tokio::time::Instant;

pub use access::{AdminLink, read_links};
pub use client::{AdminClient, AdminCredential, AdminError, AdminEvents};
pub use host::{
    AdminHost, ConfigView, Diagnostic, EffectiveValue, LayerView, RefusedConfig, ServerView, Stage,
};
pub use live::log_buffer::LogBuffer;
pub use serve::AdminListener;
pub use settings::{AdminAddress, AdminSettings, CapturePolicy, Role};

use access::Access;
use api::calls::run::Runs;
use live::LiveView;

/// Maximum number of event streams.
const MAX_STREAMS: usize = 8;

/// What the handlers of the API share.
struct Admin {
    settings: AdminSettings,
    host: Arc<dyn AdminHost>,
    telemetry: Telemetry,
    access: Access,
    live: LiveView,
    /// The last events of the log.
    log: Arc<LogBuffer>,
    /// The operations that run.
    runs: Runs,
    /// The places of event streams.
    streams: Arc<Semaphore>,
    /// Random, for the names that the API gives to things whose own names are secrets.
    replica: String,
    started: (SystemTime, Instant),
}
