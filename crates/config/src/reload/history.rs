//! What operators see of the reloads.

use std::sync::Arc;
use std::time::SystemTime;

use creole::internal::seal::digest;
use creole_proto::wire::hex;

use crate::{ConfigError, Plan};

/// The plan in force, and the reloads so far.
pub(crate) struct ReloadHistory {
    /// The plan in force.
    pub(crate) plan: Arc<Plan>,
    /// When it was put into force.
    pub(crate) loaded: SystemTime,
    /// The text of its file.
    pub(crate) text: Option<Arc<str>>,
    /// How many reloads were accepted.
    pub(crate) accepted: u64,
    /// How many reloads were rejected.
    pub(crate) rejected: u64,
    /// The last rejection, unless a later reload was accepted.
    pub(crate) rejection: Option<RejectedReload>,
}

/// The SHA-256 of the text of a configuration, in hexadecimal digits. Empty without a text.
pub(crate) fn config_digest(text: Option<&str>) -> String {
    text.map(|text| hex(&digest(text.as_bytes()))).unwrap_or_default()
}

/// A rejected reload.
#[derive(Clone)]
pub(crate) struct RejectedReload {
    /// When it was rejected.
    pub(crate) at: SystemTime,
    /// The text of its file.
    pub(crate) text: Option<Arc<str>>,
    /// The message for the user.
    pub(crate) message: String,
    /// The error in the configuration, if it is that.
    pub(crate) error: Option<Box<ConfigError>>,
    /// What cannot change while the server runs.
    pub(crate) restart_needed: Option<&'static str>,
}
