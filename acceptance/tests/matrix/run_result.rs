//! The steps that a client performs with a server, and their results.

use creole_acceptance::peers::{Steps, UpstreamServer};
use serde_json::Value;

use super::client::Client;
use super::feature_tools;
use super::feature_tools::FeatureTool;

/// The first revision with structured results and forms.
const FORMS: &str = "2025-06-18";

/// A feature of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Feature {
    /// It returns a result.
    Call,
    /// It returns structured content.
    Structured,
    /// It reports progress.
    Progress,
    /// It ends when it is cancelled.
    Cancel,
    /// It sends an elicitation request.
    Elicit,
    /// It sends a sampling request.
    Sample,
    /// It changes a list.
    Changed,
}

impl Feature {
    pub(super) const ALL: [Self; 7] = [
        Self::Call,
        Self::Structured,
        Self::Progress,
        Self::Cancel,
        Self::Elicit,
        Self::Sample,
        Self::Changed,
    ];

    /// Its name in the table.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Structured => "structured",
            Self::Progress => "progress",
            Self::Cancel => "cancel",
            Self::Elicit => "elicit",
            Self::Sample => "sample",
            Self::Changed => "changed",
        }
    }

    /// Whether client and server both support it.
    pub(super) fn exists(self, client: Client, server: UpstreamServer) -> bool {
        if feature_tools::tool_for(server, self, "").is_none() {
            return false;
        }
        match self {
            Self::Call | Self::Progress | Self::Sample => true,
            Self::Structured | Self::Elicit => client.revision().min(server.revision()) >= FORMS,
            Self::Cancel => client.cancels(),
            // FastMCP has no subscriptions, through which stateless servers send change notifications.
            Self::Changed => client.receives_list_changes() && server != UpstreamServer::FastMcp,
        }
    }

    /// Whether a client's document shows that it works.
    fn is_in(self, report: &Value, server: UpstreamServer) -> bool {
        let has_text = |call: &str| {
            let text = report[call]["content"][0]["text"].as_str();
            let wanted = feature_tools::tool_for(server, self, "").map(|tool| tool.text_part);
            text.zip(wanted).is_some_and(|(text, wanted)| text.contains(&wanted))
        };
        match self {
            Self::Call => has_text("roots_call"),
            Self::Structured => report["call"]["structuredContent"] == feature_tools::data(server),
            Self::Progress => {
                let values = report["progress"].as_array().into_iter().flatten();
                let values: Vec<_> = values.map(|step| step["progress"].as_f64()).collect();
                // While the client fetches input, only the last progress notification is kept.
                let is_complete = match server {
                    UpstreamServer::Everything => values.last() == Some(&Some(3.0)),
                    _ => values == [1.0, 2.0, 3.0].map(Some),
                };
                is_complete && has_text("progress_call")
            }
            Self::Cancel => report["cancelled"] == true,
            Self::Elicit => report["elicited"] == true && has_text("elicit_call"),
            Self::Sample => report["sampled"] == true && has_text("sample_call"),
            Self::Changed => report["list_changed"] == true,
        }
    }
}

/// All steps that both ends support. A peer makes one plain call. The second call uses a step for tools that request
/// roots, which this tool does not do.
pub(super) fn steps(client: Client, server: UpstreamServer, file: &str) -> Steps {
    let mut steps = Steps::new();
    for feature in Feature::ALL.into_iter().filter(|feature| feature.exists(client, server)) {
        let Some(FeatureTool { tool, arguments, .. }) =
            feature_tools::tool_for(server, feature, file)
        else {
            continue;
        };
        steps = match feature {
            Feature::Structured => steps.call(tool, arguments),
            Feature::Progress => steps.progress(tool, arguments),
            Feature::Cancel => steps.cancel(tool, arguments),
            Feature::Elicit => steps.elicit(tool, arguments),
            Feature::Sample => steps.sample(tool, arguments),
            Feature::Call => steps.roots(tool, arguments),
            Feature::Changed => steps.list_changed(tool, arguments),
        };
    }
    steps
}

/// The result of one client with one server.
pub(super) struct RunResult {
    label: String,
    possible: usize,
    failed: Vec<Feature>,
    reason: String,
}

impl RunResult {
    pub(super) fn of(
        label: String,
        client: Client,
        server: UpstreamServer,
        report: Result<Value, String>,
    ) -> Self {
        let possible = Feature::ALL.into_iter().filter(|feature| feature.exists(client, server));
        let (report, reason) = match report {
            Ok(report) if report["protocol"] != client.revision() => {
                (Value::Null, format!("it negotiated {}", report["protocol"]))
            }
            Ok(report) => (report.clone(), report["errors"].to_string()),
            Err(error) => (Value::Null, error),
        };
        let failed = possible.clone().filter(|feature| !feature.is_in(&report, server)).collect();
        Self { label, possible: possible.count(), failed, reason }
    }

    /// The text of its cell in the table.
    pub(super) fn cell(&self) -> String {
        let possible = self.possible;
        if self.failed.is_empty() {
            return format!("{possible} of {possible}");
        }
        let failed: Vec<_> = self.failed.iter().map(|feature| feature.name()).collect();
        format!("{} of {possible}, not {}", possible - failed.len(), failed.join(", "))
    }

    /// How it falls short of the published cell, or of all possible features if there is no published cell.
    pub(super) fn shortfall(&self, published: Option<&str>) -> Option<String> {
        let published = published.unwrap_or_default();
        let (counted, known) = published.split_once(", not ").unwrap_or((published, ""));
        let tried = counted.split_once(" of ").and_then(|(_, tried)| tried.parse().ok());
        let is_known = |feature: &Feature| known.split(", ").any(|name| name == feature.name());
        if !self.failed.iter().all(is_known) {
            return self.failure();
        }
        // A feature that is no longer tested did not fail.
        let is_tried = tried.is_none_or(|tried: usize| self.possible >= tried);
        (!is_tried).then(|| format!("{}: {} instead of {published}", self.label, self.cell()))
    }

    /// The failure, if there is one.
    pub(super) fn failure(&self) -> Option<String> {
        let passed = self.failed.is_empty();
        (!passed).then(|| format!("{}: {}: {}", self.label, self.cell(), self.reason))
    }
}

#[cfg(test)]
mod tests {
    use super::{Feature, RunResult};

    fn result(possible: usize, failed: &[Feature]) -> RunResult {
        RunResult { label: String::new(), possible, failed: failed.to_vec(), reason: String::new() }
    }

    #[test]
    fn a_failed_or_untested_feature_is_worse_than_the_table() {
        let cancelled = result(7, &[Feature::Cancel]);
        for (result, published, is_short) in [
            (result(7, &[]), Some("7 of 7"), false),
            (result(7, &[]), Some("5 of 5"), false),
            (result(7, &[]), None, false),
            (result(6, &[]), Some("7 of 7"), true),
            (result(6, &[]), Some("6 of 7, not cancel"), true),
            (result(7, &[Feature::Sample]), Some("6 of 7, not cancel"), true),
            (result(7, &[Feature::Sample]), Some("7 of 7"), true),
            (result(7, &[Feature::Sample]), None, true),
            (cancelled, Some("5 of 7, not elicit, cancel"), false),
        ] {
            let short = result.shortfall(published);
            assert_eq!(short.is_some(), is_short, "{} instead of {published:?}", result.cell());
        }
    }
}
