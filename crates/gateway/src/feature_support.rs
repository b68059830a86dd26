//! Determines which features of a server a client of each revision gets through the gateway, from the rules of both
//! revisions and never from their versions.

use creole::proto::model::ServerCapabilities;
use creole::proto::revision::{ElicitationSupport, Revision, Rules, StructuredContent, TaskModel};

/// How a feature reaches a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// The server does not have the feature.
    Absent,
    /// The feature is unchanged.
    Same,
    /// The feature is complete, in another form.
    Translated,
    /// A part of the feature is lost.
    Degraded,
    /// The client cannot use the feature, and a request gets an error.
    Refused,
}

impl Support {
    /// The label in tables.
    pub fn label(self) -> &'static str {
        match self {
            Self::Absent => "-",
            Self::Same => "same",
            Self::Translated => "translated",
            Self::Degraded => "degraded",
            Self::Refused => "refused",
        }
    }
}

/// The level of support, and an explanation. The explanation is empty if there is nothing to say.
pub type SupportVerdict = (Support, &'static str);

const ABSENT: SupportVerdict = (Support::Absent, "");
const SAME: SupportVerdict = (Support::Same, "");

/// A feature in which revisions differ.
struct Feature {
    name: &'static str,
    assess: fn(&Rules, &Rules, &ServerCapabilities) -> SupportVerdict,
}

impl Feature {
    /// The support for a client with these rules.
    fn verdict(&self, server: &Rules, client: &Rules, can: &ServerCapabilities) -> SupportVerdict {
        (self.assess)(server, client, can)
    }
}

/// The features that are checked.
const FEATURES: [Feature; 9] = [
    Feature { name: "elicitation", assess: elicitation },
    Feature { name: "sampling", assess: sampling },
    Feature { name: "roots", assess: roots },
    Feature { name: "structured results", assess: structured },
    Feature { name: "audio", assess: audio },
    Feature { name: "resource links", assess: links },
    Feature { name: "tasks", assess: tasks },
    Feature { name: "log level", assess: log_level },
    Feature { name: "subscriptions", assess: subscriptions },
];

/// The support of one feature for the clients of each revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureRow {
    /// The name of the feature.
    pub feature: &'static str,
    /// For each revision of a client: its name, the support and an explanation.
    pub verdicts: Vec<(&'static str, Support, &'static str)>,
}

/// What clients of each revision get of a server with these rules and capabilities.
pub fn support_table(server: &Rules, can: &ServerCapabilities) -> Vec<FeatureRow> {
    let row = |feature: &Feature| FeatureRow {
        feature: feature.name,
        verdicts: clients()
            .map(|client| {
                let (support, how) = feature.verdict(server, client, can);
                (client.name, support, how)
            })
            .collect(),
    };
    FEATURES.iter().map(row).collect()
}

/// The names of what a server offers.
pub fn capability_names(can: ServerCapabilities) -> Vec<&'static str> {
    let all = [
        (can.tools, "tools"),
        (can.resources, "resources"),
        (can.prompts, "prompts"),
        (can.completions, "completions"),
        (can.logging, "log messages"),
        (can.list_changed, "list changes"),
        (can.subscribe, "subscriptions"),
        (can.tasks, "tasks"),
        (can.skills, "skills"),
    ];
    all.into_iter().filter(|(has, _)| *has).map(|(_, name)| name).collect()
}

/// The rules of every revision that a client may use.
pub fn clients() -> impl Iterator<Item = &'static Rules> {
    Revision::ALL.into_iter().map(Revision::rules)
}

/// How input requests of the server reach the client.
fn input_support(server: &Rules, client: &Rules) -> SupportVerdict {
    match server.input_request_style == client.input_request_style {
        true => SAME,
        false => (
            Support::Translated,
            "input requests within a call are converted to and from `input_required`",
        ),
    }
}

fn elicitation(server: &Rules, client: &Rules, _: &ServerCapabilities) -> SupportVerdict {
    let pages = |rules: &Rules| {
        matches!(
            rules.elicitation,
            ElicitationSupport::FormAndNamedUrl | ElicitationSupport::FormAndUrl
        )
    };
    match (server.elicitation, client.elicitation) {
        (ElicitationSupport::Absent, _) => ABSENT,
        (_, ElicitationSupport::Absent) => (
            Support::Refused,
            "the client does not support elicitation; the server sees no such capability",
        ),
        _ if pages(server) && !pages(client) => {
            (Support::Degraded, "forms are simplified; URL elicitations are refused")
        }
        _ => input_support(server, client),
    }
}

fn sampling(server: &Rules, client: &Rules, _: &ServerCapabilities) -> SupportVerdict {
    match server.sampling_details && !client.sampling_details {
        true => (Support::Degraded, "sampling with tools is refused"),
        false => input_support(server, client),
    }
}

/// Every revision has roots. Only the form of the request differs.
fn roots(server: &Rules, client: &Rules, _: &ServerCapabilities) -> SupportVerdict {
    input_support(server, client)
}

fn structured(server: &Rules, client: &Rules, _: &ServerCapabilities) -> SupportVerdict {
    match (server.structured_content, client.structured_content) {
        (StructuredContent::Absent, _) => ABSENT,
        (_, StructuredContent::Absent) => {
            (Support::Degraded, "structured data arrives as text, without a schema")
        }
        (StructuredContent::Any, StructuredContent::Object) => {
            (Support::Translated, "values that are not objects are wrapped in an object")
        }
        _ => SAME,
    }
}

fn audio(server: &Rules, client: &Rules, _: &ServerCapabilities) -> SupportVerdict {
    match (server.audio, client.audio) {
        (false, _) => ABSENT,
        (true, true) => SAME,
        (true, false) => (Support::Degraded, "audio arrives as an embedded resource"),
    }
}

fn links(server: &Rules, client: &Rules, _: &ServerCapabilities) -> SupportVerdict {
    match (server.resource_links, client.resource_links) {
        (false, _) => ABSENT,
        (true, true) => SAME,
        (true, false) => (Support::Degraded, "a resource link arrives as text"),
    }
}

fn tasks(server: &Rules, client: &Rules, can: &ServerCapabilities) -> SupportVerdict {
    match (server.tasks, client.tasks) {
        _ if !can.tasks => ABSENT,
        (TaskModel::Absent, _) => ABSENT,
        (_, TaskModel::Absent) => (Support::Degraded, "the call waits until the task ends"),
        (ours, theirs) if ours == theirs => SAME,
        _ => (
            Support::Translated,
            "tasks of the core protocol are converted to and from the tasks extension",
        ),
    }
}

fn log_level(server: &Rules, client: &Rules, can: &ServerCapabilities) -> SupportVerdict {
    match (can.logging, server.session_log_level == client.session_log_level) {
        (false, _) => ABSENT,
        (true, true) => SAME,
        (true, false) => (
            Support::Translated,
            "the log level of a session is converted to and from the level of each request",
        ),
    }
}

fn subscriptions(server: &Rules, client: &Rules, can: &ServerCapabilities) -> SupportVerdict {
    match server.unsolicited_changes == client.unsolicited_changes {
        _ if !can.subscribe && !can.list_changed => ABSENT,
        true => SAME,
        false => (
            Support::Translated,
            "`resources/subscribe` is converted to and from `subscriptions/listen`",
        ),
    }
}

#[cfg(test)]
mod tests {
    use creole::proto::revision::Era;

    use super::*;

    fn everything() -> ServerCapabilities {
        ServerCapabilities {
            tasks: true,
            logging: true,
            subscribe: true,
            list_changed: true,
            ..ServerCapabilities::default()
        }
    }

    fn fates(server: &Rules, client: &Rules) -> Vec<&'static str> {
        let fate = |feature: &Feature| feature.verdict(server, client, &everything()).0.label();
        FEATURES.iter().map(fate).collect()
    }

    #[test]
    fn a_client_of_the_servers_own_revision_gets_all_that_it_has() {
        for rules in clients() {
            let all = fates(rules, rules);
            assert!(all.iter().all(|fate| ["same", "-"].contains(fate)), "{} {all:?}", rules.name);
        }
    }

    #[test]
    fn an_old_client_gets_less_of_a_new_server_and_a_new_client_all_of_an_old_one() {
        let (newest, oldest) = (Revision::newest(Era::Stateless), Revision::ALL[0]);
        assert_eq!(
            fates(newest.rules(), oldest.rules()),
            [
                "refused",
                "degraded",
                "translated",
                "degraded",
                "degraded",
                "degraded",
                "degraded",
                "translated",
                "translated"
            ]
        );
        assert_eq!(
            fates(oldest.rules(), newest.rules()),
            ["-", "translated", "translated", "-", "-", "-", "-", "translated", "translated"]
        );
    }

    #[test]
    fn a_feature_that_the_server_lacks_is_absent() {
        let rules = Rules::CANONICAL;
        for feature in &FEATURES[6..] {
            let verdict = feature.verdict(rules, rules, &ServerCapabilities::default());
            assert_eq!(verdict.0, Support::Absent, "{}", feature.name);
        }
    }
}
