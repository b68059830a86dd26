//! What the metrics count of a call: the decisions of layers, and input requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use creole_proto::operation::Outcome;

use super::Context;
use crate::telemetry::metrics::{ServerMetrics, table};

/// How often a layer has passed a call on.
#[derive(Default)]
pub(crate) struct LayerPass(AtomicU8);

impl LayerPass {
    /// What the layer did with the call, if it did not simply pass it on.
    pub(crate) fn decision(&self, outcome: &Outcome) -> Option<&'static str> {
        match (self.0.load(Ordering::Relaxed), outcome) {
            (0, Outcome::Fail(_)) => Some("refused"),
            (0, _) => Some("answered"),
            (1, _) => None,
            _ => Some("retried"),
        }
    }
}

impl Context {
    /// The same context of a call that is counted. Only a context that is not shared yet can become one.
    pub(crate) fn counted(mut self, metrics: Option<&Arc<ServerMetrics>>) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.metrics = metrics.cloned();
        }
        self
    }

    /// The metrics of the server, if the call is counted.
    pub(crate) fn server_metrics(&self) -> Option<&Arc<ServerMetrics>> {
        self.shared.metrics.as_ref()
    }

    /// Gives the call to a layer that is counted.
    pub(crate) fn begin_layer(&mut self) -> Arc<LayerPass> {
        Arc::clone(self.pass.insert(Arc::default()))
    }

    /// Counts that the layer which handles the call passes it on.
    pub(crate) fn count_pass(&self) {
        if let Some(pass) = &self.pass {
            // It wraps after 256 attempts, which no layer makes.
            pass.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts an input request to the client.
    pub(crate) fn count_input_request(&self, method: &str, outcome: &'static str) {
        if let Some(server) = self.server_metrics() {
            server.metrics().count(&table::INPUT_REQUESTS, &[method, outcome]);
        }
    }
}
