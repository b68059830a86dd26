//! The report of `creole check`, as text and as JSON.

use std::collections::BTreeMap;

use creole::client::{Address, Client, DetectedEra};
use creole::proto::client::NegotiationResult;
use creole::proto::revision::Rules;
use creole_gateway::feature_support::{
    FeatureRow, Support, capability_names, clients, support_table,
};
use serde_json::{Map, Value, json};

use super::ServerLists;
use super::authorization::AuthorizationReport;
use super::lint::{LintFinding, lint};
use crate::args::LIST_KINDS;
use crate::output;
use crate::output::layout::Layout;
use crate::output::render::first_line;
use crate::target::ServerTarget;

/// The dialect of servers that follow the specification.
const SPEC: &str = "spec";

/// The kind of a target.
#[derive(Clone, Copy, Debug)]
pub(super) enum TargetKind {
    Child,
    Http,
    InProcess,
}

/// The kind of this target.
pub(super) fn target_kind(target: &ServerTarget<'_>) -> TargetKind {
    match target {
        ServerTarget::Address(address) => match **address {
            Address::Child(_) => TargetKind::Child,
            Address::Http(_) => TargetKind::Http,
        },
        ServerTarget::Config(_) => TargetKind::InProcess,
    }
}

/// The findings about a server.
pub(super) struct ServerReport {
    identity: Value,
    /// The rules of the connection.
    rules: &'static Rules,
    version: String,
    versions: Vec<String>,
    transport: &'static str,
    dialect: String,
    /// Whether the user named the dialect.
    is_dialect_given: bool,
    offers: Vec<&'static str>,
    counts: Vec<(&'static str, usize)>,
    violations: u64,
    fidelity: Vec<FeatureRow>,
    findings: Vec<LintFinding>,
    /// The number of lists that the server declares but does not implement.
    unknown: usize,
    /// The login that the server requires.
    authorization: Option<AuthorizationReport>,
}

impl ServerReport {
    /// The report on a server whose dialect was given or detected.
    pub(super) fn new(
        client: &Client,
        reach: TargetKind,
        is_dialect_given: bool,
        lists: &ServerLists,
    ) -> Self {
        let connection = client.connection();
        let greeting = connection.greeting();
        let (rules, card) = (greeting.rules, &greeting.server_info);
        let counts = LIST_KINDS.iter().filter_map(|(name, kind)| {
            let (_, items) = lists.listed.iter().find(|(listed, _)| listed == kind)?;
            Some((*name, items.len()))
        });
        let identity = greeting.identity.as_ref().and_then(|identity| identity.decode().ok());
        let versions = match greeting.supported_versions.is_empty() {
            true => vec![greeting.version.clone()],
            false => greeting.supported_versions.clone(),
        };
        Self {
            identity: identity.unwrap_or(Value::Null),
            rules,
            version: greeting.version.clone(),
            versions,
            transport: transport(reach, client.detected_era()),
            dialect: dialect(client.dialect(), greeting),
            is_dialect_given,
            offers: capability_names(card.capabilities),
            counts: counts.collect(),
            violations: connection.violation_count(),
            fidelity: support_table(rules, &card.capabilities),
            findings: lint(lists),
            unknown: lists.unknown.len(),
            authorization: None,
        }
    }

    /// Adds the login that the server requires.
    pub(super) fn set_authorization(&mut self, authorization: Option<AuthorizationReport>) {
        self.findings.extend(authorization.iter().flat_map(AuthorizationReport::findings));
        self.authorization = authorization;
    }

    /// The number of problems.
    pub(super) fn problems(&self) -> usize {
        self.findings.len() + self.unknown + usize::from(self.violations > 0)
    }

    pub(super) fn json(&self) -> Value {
        let counts: Map<String, Value> =
            self.counts.iter().map(|(name, count)| ((*name).to_owned(), json!(count))).collect();
        let row = |row: &FeatureRow| {
            let verdict = |(client, support, how): &(&str, Support, &str)| {
                let fate = match support {
                    Support::Absent => "absent",
                    support => support.label(),
                };
                ((*client).to_owned(), json!({"support": fate, "how": how}))
            };
            let results: Map<String, Value> = row.verdicts.iter().map(verdict).collect();
            (row.feature.to_owned(), Value::Object(results))
        };
        let finding =
            |finding: &LintFinding| json!({"item": finding.item, "problem": finding.problem});
        json!({
            "server": self.identity,
            "era": self.rules.era.name(),
            "revision": self.rules.name,
            "versions": self.versions,
            "transport": self.transport,
            "dialect": self.dialect,
            "dialectIsCertain": self.certainty().is_empty(),
            "authorization": self.authorization.as_ref().map(AuthorizationReport::json),
            "offers": self.offers,
            "counts": counts,
            "violations": self.violations,
            "clients": self.fidelity.iter().map(row).collect::<Map<_, _>>(),
            "findings": self.findings.iter().map(finding).collect::<Vec<_>>(),
        })
    }

    pub(super) fn text(&self, layout: Layout) -> String {
        let counts: Vec<String> = self.counts.iter().map(count_text).collect();
        let mut rows = vec![
            ("server", self.identity_line()),
            ("revision", self.protocol_line()),
            ("transport", self.transport.to_owned()),
            ("dialect", format!("{}{}", self.dialect, self.certainty())),
            ("offers", joined(&self.offers)),
            ("lists", joined(&counts)),
        ];
        if let Some(authorization) = &self.authorization {
            rows.push(("authorization", authorization.text()));
        }
        if self.violations > 0 {
            let description =
                "lines that are not MCP messages; a server must write only MCP to stdout";
            rows.push(("invalid", format!("{} {description}", self.violations)));
        }
        let width = rows.iter().map(|(label, _)| label.len() + 2).max().unwrap_or_default();
        let mut lines: Vec<String> = rows
            .iter()
            .map(|(label, text)| {
                let (lead, text) = (format!("{label:width$}"), output::printable(text));
                layout.entry(&lead, |text| layout.heading(text), &text, str::to_owned)
            })
            .collect();
        lines.push(String::new());
        lines.extend(self.table(layout));
        lines.push(String::new());
        lines.extend(self.finding_lines(layout));
        lines.join("\n")
    }

    /// How certain the dialect is: the handshake shows a dialect only if it has its own version, and its error codes
    /// show only in failures.
    fn certainty(&self) -> &'static str {
        match self.is_dialect_given || self.dialect != SPEC {
            true => "",
            false => ", according to its handshake",
        }
    }

    fn identity_line(&self) -> String {
        let text = |key: &str| self.identity[key].as_str().map(first_line);
        let title = text("title").map(|title| format!(" ({title})")).unwrap_or_default();
        match text("name") {
            Some(name) => format!("{name} {}{title}", text("version").unwrap_or_default()),
            None => "does not send its name".to_owned(),
        }
    }

    /// The negotiated version, how it was negotiated, and the other versions that the server supports.
    fn protocol_line(&self) -> String {
        let others: Vec<&str> = self.versions.iter().map(String::as_str).collect();
        let others: Vec<&str> =
            others.into_iter().filter(|version| *version != self.version).collect();
        let also = match others.is_empty() {
            true => String::new(),
            false => format!("; also {}", others.join(", ")),
        };
        format!("{} ({}){also}", first_line(&self.version), opening_in_words(self.rules))
    }

    /// A table of the support, followed by the explanations.
    fn table(&self, layout: Layout) -> Vec<String> {
        let heads: String = clients().map(|client| format!("  {:10}", client.name)).collect();
        let mut lines = vec![
            layout.heading("What clients of each revision get through Creole:"),
            format!("{:18}{heads}", ""),
        ];
        let mut notes: BTreeMap<&str, &str> = BTreeMap::new();
        for row in &self.fidelity {
            let cells: String = row
                .verdicts
                .iter()
                .map(|(_, support, _)| format!("  {:10}", support.label()))
                .collect();
            lines.push(format!("{:18}{cells}", row.feature).trim_end().to_owned());
            for (_, _, how) in row.verdicts.iter().filter(|(_, _, how)| !how.is_empty()) {
                notes.entry(how).or_insert(row.feature);
            }
        }
        let in_order = self.fidelity.iter().flat_map(|row| {
            notes.iter().filter(|(_, feature)| **feature == row.feature).map(|(how, feature)| {
                let lead = format!("  {feature}: ");
                layout.entry(&lead, str::to_owned, how, |text| layout.faint(text))
            })
        });
        lines.extend(in_order);
        lines
    }

    fn finding_lines(&self, layout: Layout) -> Vec<String> {
        if self.findings.is_empty() {
            return vec![layout.good("No findings in names and schemas.")];
        }
        let line = |finding: &LintFinding| {
            let lead = format!("  {} ", first_line(&finding.item));
            layout.entry(
                &lead,
                |text| layout.bad(text),
                &first_line(&finding.problem),
                str::to_owned,
            )
        };
        let heading = layout.heading(&format!("findings ({})", self.findings.len()));
        std::iter::once(heading).chain(self.findings.iter().map(line)).collect()
    }
}

fn count_text((name, count): &(&'static str, usize)) -> String {
    match count {
        1 => format!("1 {}", name.trim_end_matches('s')),
        count => format!("{count} {name}"),
    }
}

fn joined(words: &[impl AsRef<str>]) -> String {
    match words {
        [] => "nothing".to_owned(),
        words => words.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", "),
    }
}

fn opening_in_words(rules: &Rules) -> &'static str {
    match rules.has_handshake() {
        true => "handshake",
        false => "stateless",
    }
}

fn transport(reach: TargetKind, detected: DetectedEra) -> &'static str {
    match (reach, detected) {
        (TargetKind::Child, _) => "stdio",
        (TargetKind::InProcess, _) => "in this process",
        (TargetKind::Http, detected) if detected.is_legacy_sse() => "HTTP+SSE",
        (TargetKind::Http, _) => "Streamable HTTP",
    }
}

/// The dialect of the server, or whether it deviates from the specification.
fn dialect(taken: &str, greeting: &NegotiationResult) -> String {
    let capabilities: Value = greeting.capabilities.decode().unwrap_or(Value::Null);
    let is_boolean =
        capabilities.as_object().is_some_and(|all| all.values().any(Value::is_boolean));
    match is_boolean && taken == SPEC {
        true => "spec, with booleans as capabilities".to_owned(),
        false => taken.to_owned(),
    }
}
