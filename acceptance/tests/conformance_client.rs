//! Runs the official conformance suite against `creole::client`, through a small program that performs each scenario.
//!
//! Every client scenario runs, with an empty list of expected failures. If the suite cannot be installed, the tests
//! report it on stderr. With `CI=true` they fail.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]
#![allow(clippy::print_stdout, reason = "the score is printed")]

use std::path::Path;

use creole_acceptance::conformance::{
    Status, SuiteResult, client_scenarios, judge_client, required_of_clients,
};
use creole_acceptance::peers::{Suite, is_suite_installed};

/// The client program under test.
const CLIENT: &str = env!("CARGO_BIN_EXE_conformance-client");

/// The scenarios of a client that uses skills.
const SKILLS: [&str; 4] = [
    "sep-2640-client-no-prefetch",
    "sep-2640-client-verify-digest",
    "sep-2640-client-verify-size",
    "sep-2640-client-verify-frontmatter",
];

/// The scenarios of logins at servers of 2025-03-26, which name no authorization server.
const LEGACY_LOGINS: [&str; 2] =
    ["auth/2025-03-26-oauth-metadata-backcompat", "auth/2025-03-26-oauth-endpoint-fallback"];

/// The scenarios of 2025-06-18, for which the suite has no requirements.
const REVISION_2025_06_18: [&str; 5] = [
    "initialize",
    "tools_call",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
];

#[test]
fn the_client_meets_the_requirements_of_revision_2025_11_25() {
    run_requirements("2025-11-25", 18, 7);
}

#[test]
fn the_client_meets_the_requirements_of_revision_2026_07_28() {
    run_requirements("2026-07-28", 32, 7);
}

#[test]
fn the_client_meets_the_requirements_of_revision_2025_06_18() {
    run_installed_suite(Suite::Newest, &REVISION_2025_06_18, Some("2025-06-18"));
}

#[test]
fn the_client_logs_in_as_revision_2025_03_26_requires() {
    run_installed_suite(Suite::Newest, &LEGACY_LOGINS, Some("2025-03-26"));
}

#[test]
fn the_client_meets_the_requirements_of_the_skills_extension() {
    run_installed_suite(Suite::Newest, &SKILLS, Some("2026-07-28"));
}

#[test]
fn the_client_passes_the_latest_suite_on_npm() {
    if is_suite_installed(Suite::Latest) {
        let listed = client_scenarios(Suite::Latest).unwrap();
        let names: Vec<_> = listed.iter().map(String::as_str).collect();
        assert!(names.len() >= 26, "{names:?}");
        run_installed_suite(Suite::Latest, &names, None);
    }
}

#[test]
fn no_scenario_is_left_out() {
    if is_suite_installed(Suite::Newest) {
        let mut known: Vec<_> =
            SKILLS.into_iter().chain(LEGACY_LOGINS).map(str::to_owned).collect();
        for revision in ["2025-11-25", "2026-07-28"] {
            let (scored, others) = required_of_clients(Suite::Newest, revision).unwrap();
            known.extend(scored.into_iter().chain(others));
        }
        let listed = client_scenarios(Suite::Newest).unwrap();
        let missed: Vec<_> = listed.iter().filter(|name| !known.contains(name)).collect();
        assert!(missed.is_empty() && !listed.is_empty(), "{missed:?}");
    }
}

/// Shows that the suite can fail. Otherwise the scores above would prove nothing.
#[test]
fn a_client_that_does_nothing_fails() {
    if is_suite_installed(Suite::Newest) {
        let result = judge_client(Suite::Newest, Path::new("true"), &["tools_call"], None).unwrap();
        assert!(!result.is_content && !result.passed("tools_call"), "{}", result.printed);
    }
}

/// Runs what a revision requires of a client, and asserts that all of it holds: these numbers of scenarios that count and
/// that do not.
#[track_caller]
fn run_requirements(revision: &str, scored: usize, others: usize) {
    if !is_suite_installed(Suite::Newest) {
        return;
    }
    let (counted, not_counted) = required_of_clients(Suite::Newest, revision).unwrap();
    let names: Vec<_> = counted.iter().chain(&not_counted).map(String::as_str).collect();
    let mut result =
        judge_client(Suite::Newest, Path::new(CLIENT), &names, Some(revision)).unwrap();
    result.not_scored = not_counted.into_iter().collect();
    let table = result.table();
    println!("{table}");
    let scores = (result.score(true), result.score(false));
    assert_eq!(scores, ((scored, scored), (others, others)), "{table}\n{}", result.printed);
    assert_clean(&result);
}

/// Runs the suite against the client. Asserts that every scenario passed, that none was skipped, and that the suite's
/// exit code agrees.
#[track_caller]
fn run_installed_suite(suite: Suite, names: &[&str], revision: Option<&str>) {
    if !is_suite_installed(suite) {
        return;
    }
    let result = judge_client(suite, Path::new(CLIENT), names, revision).unwrap();
    let table = result.table();
    println!("{table}");
    assert_eq!(result.score(true), (names.len(), names.len()), "{table}\n{}", result.printed);
    assert_clean(&result);
}

/// Asserts that nothing was bad or skipped, and that the suite's exit codes agree.
#[track_caller]
fn assert_clean(result: &SuiteResult) {
    let table = result.table();
    assert_eq!(bad(result), 0, "{table}\n{}", result.printed);
    assert_eq!(result.passed_over(), [""; 0], "{table}");
    assert!(result.is_content, "{}", result.printed);
}

/// The number of checks that do not hold, including those of a SHOULD.
fn bad(result: &SuiteResult) -> usize {
    result.of(Status::Failure).count() + result.of(Status::Warning).count()
}
