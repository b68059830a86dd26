//! What a client is asked to do with a server, and what came of it.

use creole_acceptance::peers::{Behind, Steps};
use serde_json::Value;

use super::client::Client;
use super::repertoire::{self, Trick};

/// Structured results and forms exist from this revision on.
const FORMS: &str = "2025-06-18";

/// What a call may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Feature {
    /// It answers.
    Call,
    /// It answers with data.
    Structured,
    /// It tells of its progress, and ends when it is cancelled.
    Progress,
    /// It is cancelled.
    Cancel,
    /// It asks the person.
    Elicit,
    /// It asks the model.
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

    /// Whether both ends have it at all.
    pub(super) fn exists(self, client: Client, server: Behind) -> bool {
        if repertoire::trick(server, self, "").is_none() {
            return false;
        }
        match self {
            Self::Call | Self::Progress | Self::Sample => true,
            Self::Structured | Self::Elicit => client.revision().min(server.revision()) >= FORMS,
            Self::Cancel => client.cancels(),
            // FastMCP has no subscriptions, which is how servers without a handshake tell.
            Self::Changed => client.hears_changes() && server != Behind::FastMcp,
        }
    }

    /// Whether a client's document shows that it works.
    fn is_in(self, told: &Value, server: Behind) -> bool {
        let says = |call: &str| {
            let text = told[call]["content"][0]["text"].as_str();
            let wanted = repertoire::trick(server, self, "").map(|trick| trick.says);
            text.zip(wanted).is_some_and(|(text, wanted)| text.contains(&wanted))
        };
        match self {
            Self::Call => says("roots_call"),
            Self::Structured => told["call"]["structuredContent"] == repertoire::data(server),
            Self::Progress => {
                let heard = told["progress"].as_array().into_iter().flatten();
                let heard: Vec<_> = heard.map(|step| step["progress"].as_f64()).collect();
                // Of what a server tells while its caller is away to answer, the last counts.
                let is_heard = match server {
                    Behind::Everything => heard.last() == Some(&Some(3.0)),
                    _ => heard == [1.0, 2.0, 3.0].map(Some),
                };
                is_heard && says("progress_call")
            }
            Self::Cancel => told["cancelled"] == true,
            Self::Elicit => told["elicited"] == true && says("elicit_call"),
            Self::Sample => told["sampled"] == true && says("sample_call"),
            Self::Changed => told["list_changed"] == true,
        }
    }
}

/// All that both ends have. A peer makes one plain call; the other is made by a step for tools that ask for roots, and
/// this tool does not.
pub(super) fn steps(client: Client, server: Behind, file: &str) -> Steps {
    let mut steps = Steps::new();
    for feature in Feature::ALL.into_iter().filter(|feature| feature.exists(client, server)) {
        let Some(Trick { tool, arguments, .. }) = repertoire::trick(server, feature, file) else {
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

/// What was seen of one client with one server.
pub(super) struct Seen {
    whose: String,
    possible: usize,
    failed: Vec<Feature>,
    why: String,
}

impl Seen {
    pub(super) fn of(
        whose: String,
        client: Client,
        server: Behind,
        came: Result<Value, String>,
    ) -> Self {
        let possible = Feature::ALL.into_iter().filter(|feature| feature.exists(client, server));
        let (told, why) = match came {
            Ok(told) if told["protocol"] != client.revision() => {
                (Value::Null, format!("it spoke {}", told["protocol"]))
            }
            Ok(told) => (told.clone(), told["errors"].to_string()),
            Err(error) => (Value::Null, error),
        };
        let failed = possible.clone().filter(|feature| !feature.is_in(&told, server)).collect();
        Self { whose, possible: possible.count(), failed, why }
    }

    /// What stands in the table.
    pub(super) fn cell(&self) -> String {
        let possible = self.possible;
        if self.failed.is_empty() {
            return format!("{possible} of {possible}");
        }
        let failed: Vec<_> = self.failed.iter().map(|feature| feature.name()).collect();
        format!("{} of {possible}, not {}", possible - failed.len(), failed.join(", "))
    }

    /// Whether all that the published cell promises was seen.
    pub(super) fn keeps(&self, published: &str) -> bool {
        let known = published.split_once("not ").map_or("", |(_, failing)| failing);
        let is_known = |feature: &Feature| known.split(", ").any(|name| name == feature.name());
        !published.is_empty() && self.failed.iter().all(is_known)
    }

    /// What is wrong, if anything is.
    pub(super) fn complaint(&self) -> Option<String> {
        let is_fine = self.failed.is_empty();
        (!is_fine).then(|| format!("{}: {}: {}", self.whose, self.cell(), self.why))
    }
}
