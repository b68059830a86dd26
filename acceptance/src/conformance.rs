//! Runs the official conformance suite against a server or a client of ours, and reads its verdicts.
//!
//! The suite writes one `checks.json` for each scenario that it ran. Its exit code and its own summary are read too,
//! but only these files show what was checked and what was silently skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::peers::{Installed, Suite, installed_suite, process};

/// How long one run of the suite may take before it is killed.
const RUN: Duration = Duration::from_secs(240);

/// The status of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    /// It holds.
    Success,
    /// A MUST does not hold.
    Failure,
    /// A SHOULD does not hold.
    Warning,
    /// The suite did not check it.
    Skipped,
    /// The suite only reports information.
    Info,
}

/// One check of a scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// Its id.
    pub id: String,
    /// Its status.
    pub status: Status,
    /// What it checks.
    #[serde(default)]
    pub description: String,
    /// Why it does not hold.
    #[serde(default)]
    pub error_message: Option<String>,
}

/// The result of one run of the suite.
#[derive(Debug, Default)]
pub struct SuiteResult {
    /// The title for the table.
    pub title: String,
    /// Whether the suite succeeded, by its exit code.
    pub is_content: bool,
    /// The checks of each scenario.
    pub scenarios: BTreeMap<String, Vec<Check>>,
    /// The scenarios that the suite declares as not scored.
    pub not_scored: BTreeSet<String>,
    /// The output of the suite.
    pub printed: String,
}

/// Runs the suite against a server with these arguments, such as `--suite all`. The list of expected failures is empty.
pub fn run_suite(suite: Suite, url: &str, words: &[&str]) -> Result<SuiteResult, String> {
    let installed = installed_suite(suite).map_err(|missing| missing.to_string())?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let results = folder.path().join("results");
    let expected = folder.path().join("expected-failures.yaml");
    fs::write(&expected, "server: []\nclient: []\n").map_err(|error| error.to_string())?;
    let mut command = installed.command();
    command.args(["server", "--url", url]).args(words);
    if !words.contains(&"--scenario") {
        command.arg("--expected-failures").arg(&expected);
    }
    command.arg("--output-dir").arg(&results).current_dir(folder.path());
    let output = process::output(&mut command, Instant::now() + RUN)?;
    let printed = format!("{}{}", output.stdout, output.stderr);
    let scenarios = scenarios(&results).map_err(|error| format!("{error}\n{printed}"))?;
    Ok(SuiteResult {
        title: format!("{} {}", suite.name(), words.join(" ")),
        is_content: output.success,
        not_scored: match words {
            ["--requirements", revision] => {
                not_scored(&requirements(&installed, revision)?, "server").into_iter().collect()
            }
            _ => BTreeSet::new(),
        },
        scenarios,
        printed,
    })
}

/// Runs the suite against a client, one scenario after the other: some depend on time, and the suite would run all of
/// them at once. A warning counts as well, and so does a client that ends with an error.
pub fn judge_client(
    suite: Suite,
    client: &Path,
    names: &[&str],
    revision: Option<&str>,
) -> Result<SuiteResult, String> {
    let installed = installed_suite(suite).map_err(|missing| missing.to_string())?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let title = format!("{} client {}", suite.name(), revision.unwrap_or_default());
    let mut result = SuiteResult { title, is_content: true, ..SuiteResult::default() };
    for name in names {
        let results = folder.path().join(name);
        let mut command = installed.command();
        command.arg("client").arg("--command").arg(client).args(["--scenario", name]);
        if let Some(revision) = revision {
            // The suite assigns extensions to no revision and needs an explicit one to run them.
            command.args(["--spec-version", revision, "--force"]);
        }
        command.arg("--output-dir").arg(&results).current_dir(folder.path());
        let output = process::output(&mut command, Instant::now() + RUN)?;
        let printed = format!("{}{}", output.stdout, output.stderr);
        result.is_content &= output.success;
        result
            .scenarios
            .extend(scenarios(&results).map_err(|reason| format!("{reason}\n{printed}"))?);
        result.printed.push_str(&printed);
    }
    Ok(result)
}

/// The scenarios that a revision demands of a client, by the requirements of the suite: those that count, and those that
/// do not.
pub fn required_of_clients(
    suite: Suite,
    revision: &str,
) -> Result<(Vec<String>, Vec<String>), String> {
    let installed = installed_suite(suite).map_err(|missing| missing.to_string())?;
    let requirements = requirements(&installed, revision)?;
    Ok((scored(&requirements, "client"), not_scored(&requirements, "client")))
}

/// The client scenarios of a release of the suite.
pub fn client_scenarios(suite: Suite) -> Result<Vec<String>, String> {
    let installed = installed_suite(suite).map_err(|missing| missing.to_string())?;
    let mut command = installed.command();
    command.args(["list", "--client"]);
    let listed = process::output(&mut command, Instant::now() + RUN)?;
    let lines = listed.stdout.lines().filter_map(|line| line.trim().strip_prefix("- "));
    Ok(lines.filter_map(|line| line.split(' ').next().map(str::to_owned)).collect())
}

/// The folder of scenarios whose names have a slash.
const OAUTH_FOLDER: &str = "auth";

/// The checks of each scenario that the suite ran.
fn scenarios(results: &Path) -> Result<BTreeMap<String, Vec<Check>>, String> {
    let mut scenarios = BTreeMap::new();
    let entries =
        fs::read_dir(results).map_err(|error| format!("the suite ran no scenario: {error}"))?;
    for entry in entries {
        let folder = entry.map_err(|error| error.to_string())?;
        let name = folder.file_name().to_string_lossy().into_owned();
        if name == OAUTH_FOLDER {
            let inside = self::scenarios(&folder.path())?;
            let named = inside.into_iter().map(|(name, checks)| (format!("auth/{name}"), checks));
            scenarios.extend(named);
            continue;
        }
        let scenario = scenario_of(&name).ok_or_else(|| format!("unknown result folder {name}"))?;
        let checks = fs::read(folder.path().join("checks.json"))
            .map_err(|error| format!("{name}: {error}"))?;
        let checks = serde_json::from_slice(&checks).map_err(|error| format!("{name}: {error}"))?;
        if scenarios.insert(scenario.to_owned(), checks).is_some() {
            return Err(format!("{scenario} was run twice"));
        }
    }
    Ok(scenarios)
}

/// The scenario in a folder's name: `server-NAME-2026-11-15T06-18-34-914Z`, for a client without `server-`.
fn scenario_of(folder: &str) -> Option<&str> {
    let rest = folder.strip_prefix("server-").unwrap_or(folder);
    let stamp = "-2026-11-15T06-18-34-914Z".len();
    rest.get(..rest.len().checked_sub(stamp)?)
}

/// The requirements of a revision, as the suite states them.
fn requirements(installed: &Installed, revision: &str) -> Result<String, String> {
    let package = installed.folder().join("node_modules/@modelcontextprotocol/conformance");
    let file = package.join("requirements").join(format!("{revision}.yaml"));
    fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))
}

/// The scenarios of a leg, `server` or `client`, that count.
fn scored(requirements: &str, leg: &str) -> Vec<String> {
    let begin = format!("{leg}:");
    let lines = requirements.lines().skip_while(|line| *line != begin).skip(1);
    let listed = lines.map_while(|line| line.trim().strip_prefix("- "));
    listed.map(str::to_owned).collect()
}

/// The scenarios of a leg, `server` or `client`, that the requirements list as not scored.
fn not_scored(requirements: &str, leg: &str) -> Vec<String> {
    let mut lines = requirements.lines().skip_while(|line| *line != "not_scored:").peekable();
    let mut names = Vec::new();
    while let Some(line) = lines.next() {
        let Some(name) = line.trim().strip_prefix("- scenario: ") else { continue };
        if lines.peek().is_some_and(|line| line.trim() == format!("leg: {leg}")) {
            names.push(name.to_owned());
        }
    }
    names
}

impl SuiteResult {
    /// Whether a scenario ran, checked something, and found no failure.
    #[must_use]
    pub fn passed(&self, scenario: &str) -> bool {
        let checks = self.scenarios.get(scenario);
        checks.is_some_and(|checks| {
            !checks.is_empty() && checks.iter().all(|check| check.status != Status::Failure)
        })
    }

    /// How many scored or unscored scenarios hold, and how many there are.
    #[must_use]
    pub fn score(&self, scored: bool) -> (usize, usize) {
        let of_kind = |name: &&String| self.not_scored.contains(*name) != scored;
        let all = self.scenarios.keys().filter(of_kind);
        (all.clone().filter(|name| self.passed(name)).count(), all.count())
    }

    /// The checks of one status, each with its scenario.
    pub fn of(&self, status: Status) -> impl Iterator<Item = (&str, &Check)> {
        let scenarios = self.scenarios.iter();
        scenarios.flat_map(move |(scenario, checks)| {
            let of_status = checks.iter().filter(move |check| check.status == status);
            of_status.map(move |check| (scenario.as_str(), check))
        })
    }

    /// How many checks of a scenario have a status.
    #[must_use]
    pub fn count(&self, scenario: &str, status: Status) -> usize {
        self.of(status).filter(|(listed, _)| *listed == scenario).count()
    }

    /// The scenarios without any success: the suite gave up on them silently.
    #[must_use]
    pub fn passed_over(&self) -> Vec<&str> {
        let names = self.scenarios.keys().map(String::as_str);
        names.filter(|name| self.count(name, Status::Success) == 0).collect()
    }

    /// All results in one table, followed by every check that neither holds nor is only information.
    #[must_use]
    pub fn table(&self) -> String {
        let (scored, all_scored) = self.score(true);
        let (others, all_others) = self.score(false);
        let mut table = format!(
            "{}: {scored}/{all_scored} scored, {others}/{all_others} not scored\n",
            self.title
        );
        for name in self.scenarios.keys() {
            let count = |status| self.count(name, status);
            let verdict = if self.passed(name) { "holds" } else { "FAILS" };
            let kind = if self.not_scored.contains(name) { "not scored" } else { "" };
            let (good, bad) = (count(Status::Success), count(Status::Failure));
            // Writing to a string cannot fail.
            let _ = writeln!(table, "  {verdict} {good:>3} {bad:>3}  {name:<48} {kind}");
        }
        for status in [Status::Failure, Status::Warning, Status::Skipped] {
            // One reason often applies to many checks.
            let mut last = "";
            for (scenario, check) in self.of(status) {
                let reason = check.error_message.as_deref().unwrap_or(&check.description);
                let shown = if reason == last { "the same" } else { reason };
                let _ = writeln!(table, "  {status:?}: {scenario}: {}: {shown}", check.id);
                last = reason;
            }
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_name_and_the_list_of_unscored_scenarios_are_parsed() {
        let folder = "server-tools-list-2026-11-15T06-18-34-914Z";
        assert_eq!(scenario_of(folder), Some("tools-list"));
        assert_eq!(scenario_of("server-x"), None);
        let requirements = "server:\n  - ping\n\nnot_scored:\n  - scenario: one\n    leg: client\n    \
                            reason: pending\n  - scenario: two\n    leg: server\n";
        assert_eq!(scored(requirements, "server"), ["ping"]);
        assert_eq!(not_scored(requirements, "server"), ["two"]);
        assert_eq!(not_scored(requirements, "client"), ["one"]);
    }

    #[test]
    fn a_scenario_without_a_check_fails_and_one_without_a_success_is_skipped() {
        let check = |status| Check {
            id: "c".into(),
            status,
            description: String::new(),
            error_message: None,
        };
        let scenarios = [
            ("empty", vec![]),
            ("fails", vec![check(Status::Success), check(Status::Failure)]),
            ("holds", vec![check(Status::Success), check(Status::Warning)]),
            ("tells", vec![check(Status::Info)]),
        ];
        let scenarios = scenarios.into_iter().map(|(name, checks)| (name.to_owned(), checks));
        let result = SuiteResult {
            title: "t".into(),
            is_content: true,
            scenarios: scenarios.collect(),
            not_scored: ["tells".to_owned()].into(),
            printed: String::new(),
        };
        assert_eq!(result.score(true), (1, 3));
        assert_eq!(result.score(false), (1, 1));
        assert_eq!(result.passed_over(), ["empty", "tells"]);
    }
}
