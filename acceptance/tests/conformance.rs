//! Runs the official conformance suite against the binary over HTTP.
//!
//! The tests run exactly the scenarios that a revision requires, with an empty list of expected failures. Scenarios
//! that do not count must pass as well, and none may be skipped silently. If the suite cannot be installed, the tests
//! report it on stderr. With `CI=true` they fail.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]
#![allow(clippy::print_stdout, reason = "the score is printed")]

use creole_acceptance::conformance::{Status, SuiteResult, run_suite};
use creole_acceptance::http::ListeningServer;
use creole_acceptance::peers::{Suite, is_suite_installed};

/// The suite skips this scenario, because these notifications have moved to the stream of subscriptions.
const SKIPPED_BY_THE_SUITE: &str = "tasks-status-notifications";

/// The scenario in which a session's stream ends in the middle of a call: it is opened, closed and resumed.
const POLLING: &str = "server-sse-polling";

#[test]
fn the_requirements_of_revision_2025_11_25_are_met() {
    let Some(result) = run_installed_suite(Suite::Newest, &["--requirements", "2025-11-25"]) else {
        return;
    };
    scores(&result, (30, 30), (3, 3));
    assert_eq!(result.count(POLLING, Status::Success), 3, "{}", result.table());
}

#[test]
fn the_requirements_of_revision_2026_07_28_are_met() {
    let Some(result) = run_installed_suite(Suite::Newest, &["--requirements", "2026-07-28"]) else {
        return;
    };
    scores(&result, (37, 37), (13, 13));
}

#[test]
fn the_scenarios_of_the_skills_extension_pass() {
    for scenario in ["enumeration", "directory", "manifest"] {
        let scenario = format!("sep-2640-skills-{scenario}");
        let Some(result) = run_installed_suite(Suite::Newest, &["--scenario", &scenario]) else {
            return;
        };
        scores(&result, (1, 1), (0, 0));
    }
}

#[test]
fn every_scenario_of_the_latest_suite_on_npm_passes() {
    let Some(result) = run_installed_suite(Suite::Latest, &["--suite", "all"]) else { return };
    scores(&result, (32, 32), (0, 0));
    assert_eq!(result.count(POLLING, Status::Success), 3, "{}", result.table());
}

/// Shows that the suite can fail. Otherwise the scores above would prove nothing.
#[test]
fn a_server_without_the_tools_of_the_suite_fails() {
    if !is_suite_installed(Suite::Newest) {
        return;
    }
    let server = ListeningServer::start(&["--preset", "default"]).unwrap();
    for scenario in ["tools-call-image", "input-required-result-multi-round"] {
        let result = run_suite(Suite::Newest, &server.url(), &["--scenario", scenario]).unwrap();
        println!("{}", result.table());
        assert!(!result.is_content, "{}", result.printed);
        assert!(!result.passed(scenario), "{}", result.printed);
        assert_eq!(result.score(true), (0, 1), "{}", result.printed);
    }
}

/// Runs the suite against the preset `everything`, and prints the score.
fn run_installed_suite(suite: Suite, words: &[&str]) -> Option<SuiteResult> {
    if !is_suite_installed(suite) {
        return None;
    }
    let mut server = ListeningServer::start(&["--preset", "everything"]).unwrap();
    let result = run_suite(suite, &server.url(), words);
    let result = result.unwrap_or_else(|error| panic!("{error}\n{}", server.log()));
    println!("{}", result.table());
    // The clients of the suite have disconnected, so the server must stop at the signal.
    server.stop().unwrap();
    Some(result)
}

/// Asserts that every scenario passed, that none was skipped, and that the suite's exit code agrees.
#[track_caller]
fn scores(result: &SuiteResult, scored: (usize, usize), not_scored: (usize, usize)) {
    let table = result.table();
    assert_eq!(result.of(Status::Failure).count(), 0, "{table}");
    assert_eq!(result.score(true), scored, "{table}");
    assert_eq!(result.score(false), not_scored, "{table}");
    let passed_over = result.passed_over();
    let silent = passed_over.iter().filter(|name| **name != SKIPPED_BY_THE_SUITE);
    assert_eq!(silent.count(), 0, "skipped scenarios: {passed_over:?}\n{table}");
    let skipped = result.of(Status::Skipped).filter(|(name, _)| *name != SKIPPED_BY_THE_SUITE);
    assert_eq!(skipped.count(), 0, "{table}");
    assert!(result.is_content, "{}", result.printed);
}
