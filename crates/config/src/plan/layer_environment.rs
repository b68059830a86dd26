//! What layers need of the process that runs them, and why they cannot be built.

use std::fmt;
use std::sync::Arc;

use creole::internal::telemetry::Telemetry;
use creole::state::State;
use creole_gateway::audit::{AuditExporter, AuditScope};
use creole_gateway::layers::SharedPinSet;

/// What layers need of the process that runs them.
#[derive(Clone)]
pub struct LayerEnvironment {
    /// The telemetry of the process.
    pub telemetry: Telemetry,
    /// Hands the lines of audit logs to a collector, if one is configured.
    pub audit_exporter: Option<AuditExporter>,
    /// Which calls audit logs record.
    pub audit_scope: AuditScope,
    /// Whether audit logs may be written to stdout: neither a client nor the user reads something else there.
    pub is_stdout_free: bool,
    /// The state, if several processes may share it.
    pub state: Option<State>,
    /// The pins of tools in that state.
    pub pins: Option<SharedPinSet>,
    /// The name of this process among those that share a state.
    pub replica: Option<Arc<str>>,
}

impl Default for LayerEnvironment {
    fn default() -> Self {
        Self {
            telemetry: Telemetry::default(),
            audit_exporter: None,
            audit_scope: AuditScope::Layer,
            is_stdout_free: false,
            state: None,
            pins: None,
            replica: None,
        }
    }
}

/// Why a layer or the address of an upstream cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerError(String);

impl LayerError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for LayerError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for LayerError {}
