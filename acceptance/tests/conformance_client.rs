//! Runs the official conformance suite against `creole::client`, through a small program that performs each scenario.
//!
//! Every client scenario either runs, with an empty list of expected failures, or is one of those that need OAuth. If
//! the suite cannot be installed, the tests report it on stderr. With `CI=true` they fail.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]
#![allow(clippy::print_stdout, reason = "the score is printed")]
#![allow(clippy::print_stderr, reason = "a skipped test is reported on stderr")]

use std::env;
use std::path::Path;

use creole_acceptance::conformance::{Status, SuiteResult, client_scenarios, judge_client};
use creole_acceptance::peers::{Suite, installed_suite};

/// The client program under test.
const CLIENT: &str = env!("CARGO_BIN_EXE_conformance-client");

/// The scenarios of a client of the handshake era.
const HANDSHAKE: [&str; 5] = [
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
    "json-schema-2020-12-preservation",
];

/// The scenarios of a client of the stateless era.
const STATELESS: [&str; 8] = [
    "tools_call",
    "request-metadata",
    "sep-2322-client-request-state",
    "http-standard-headers",
    "http-custom-headers",
    "http-invalid-tool-headers",
    "json-schema-ref-no-deref",
    "json-schema-2020-12-preservation",
];

/// The scenarios of a client that uses skills.
const SKILLS: [&str; 4] = [
    "sep-2640-client-no-prefetch",
    "sep-2640-client-verify-digest",
    "sep-2640-client-verify-size",
    "sep-2640-client-verify-frontmatter",
];

/// The prefix of the omitted scenarios: all of them need OAuth, which this client does not support.
const OAUTH: &str = "auth/";

#[test]
fn the_client_meets_the_requirements_of_revision_2025_11_25() {
    run_installed_suite(Suite::Newest, &HANDSHAKE, Some("2025-11-25"));
}

#[test]
fn the_client_meets_the_requirements_of_revision_2025_06_18() {
    run_installed_suite(Suite::Newest, &["initialize", "tools_call"], Some("2025-06-18"));
}

#[test]
fn the_client_meets_the_requirements_of_revision_2026_07_28() {
    run_installed_suite(Suite::Newest, &STATELESS, Some("2026-07-28"));
}

#[test]
fn the_client_meets_the_requirements_of_the_skills_extension() {
    run_installed_suite(Suite::Newest, &SKILLS, Some("2026-07-28"));
}

#[test]
fn the_client_passes_the_latest_suite_on_npm() {
    run_installed_suite(Suite::Latest, &HANDSHAKE[..4], None);
}

#[test]
fn no_scenario_is_left_out_but_those_about_oauth() {
    let known = [&HANDSHAKE[..], &STATELESS, &SKILLS].concat();
    for suite in Suite::ALL.into_iter().filter(|suite| is_installed(*suite)) {
        let listed = client_scenarios(suite).unwrap();
        let is_oauth = |name: &&String| name.starts_with(OAUTH);
        let oauth = listed.iter().filter(is_oauth).count();
        println!("{}: {oauth} of {} scenarios left out: OAuth", suite.name(), listed.len());
        let missed: Vec<_> = listed.iter().filter(|name| !is_oauth(name)).collect();
        let missed: Vec<_> = missed.iter().filter(|name| !known.contains(&name.as_str())).collect();
        assert!(missed.is_empty() && !listed.is_empty(), "{}: {missed:?}", suite.name());
    }
}

/// Shows that the suite can fail. Otherwise the scores above would prove nothing.
#[test]
fn a_client_that_does_nothing_fails() {
    if is_installed(Suite::Newest) {
        let result = judge_client(Suite::Newest, Path::new("true"), &["tools_call"], None).unwrap();
        assert!(!result.is_content && !result.passed("tools_call"), "{}", result.printed);
    }
}

/// Runs the suite against the client. Asserts that every scenario passed, that none was skipped, and that the suite's
/// exit code agrees.
#[track_caller]
fn run_installed_suite(suite: Suite, names: &[&str], revision: Option<&str>) {
    if !is_installed(suite) {
        return;
    }
    let result = judge_client(suite, Path::new(CLIENT), names, revision).unwrap();
    let table = result.table();
    println!("{table}");
    assert_eq!(result.score(true), (names.len(), names.len()), "{table}\n{}", result.printed);
    assert_eq!(bad(&result), 0, "{table}\n{}", result.printed);
    assert_eq!(result.passed_over(), [""; 0], "{table}");
    assert!(result.is_content, "{}", result.printed);
}

/// The number of checks that do not hold, including those of a SHOULD.
fn bad(result: &SuiteResult) -> usize {
    result.of(Status::Failure).count() + result.of(Status::Warning).count()
}

/// Whether the suite is installed. If not, this is reported on stderr, and with `CI=true` the test fails.
fn is_installed(suite: Suite) -> bool {
    let Err(missing) = installed_suite(suite) else { return true };
    let name = suite.name();
    assert!(env::var("CI").as_deref() != Ok("true"), "{name} is not installed: {missing}");
    eprintln!("NOT TESTED with {name}: {missing}");
    false
}
