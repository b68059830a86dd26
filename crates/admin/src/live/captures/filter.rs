//! Which calls a capture takes.

use creole::internal::telemetry::{CallRecord, CallStart, StepKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which calls are captured. An absent member matches every call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CaptureFilter {
    /// The server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    /// The upstream. It is known only when the call was sent there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    upstream: Option<String>,
    /// The method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    /// The tool, prompt or URI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    /// Who calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    principal: Option<String>,
}

impl CaptureFilter {
    pub(super) fn matches_start(&self, start: &CallStart<'_>) -> bool {
        let is = |wanted: &Option<String>, value: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted.is_empty() || wanted == value)
        };
        is(&self.server, start.server)
            && is(&self.method, start.method)
            && is(&self.target, start.target)
            && is(&self.principal, start.principal.id())
    }

    pub(super) fn matches(&self, record: &CallRecord) -> bool {
        let Some(wanted) = self.upstream.as_deref().filter(|name| !name.is_empty()) else {
            return self.matches_start(&record.start());
        };
        let is_sent = record.steps().iter().any(
            |step| matches!(&step.kind, StepKind::UpstreamRequest { upstream, .. } if **upstream == *wanted),
        );
        is_sent && self.matches_start(&record.start())
    }
}
