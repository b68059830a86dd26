//! `creole policy test`: compares the decisions of a policy with those that a file expects.

use std::collections::BTreeSet;

use creole_config::{ExpectedDecision, PolicyCase, load_policy_cases};
use creole_policy::{Explanation, Request};
use serde_json::{Value, json};

use super::{LoadedPolicy, decision_words, method_of};
use crate::args::PolicyTestArgs;
use crate::failure::Failure;
use crate::output;

/// Runs the verb.
pub(super) fn run(args: &PolicyTestArgs) -> Result<(), Failure> {
    let loaded = LoadedPolicy::load(&args.file)?;
    let cases = load_policy_cases(&args.cases)?;
    let mut results = Vec::with_capacity(cases.len());
    for case in &cases {
        results.push((case, explain(&loaded, case)?));
    }
    let right = results.iter().filter(|(case, found)| is_as_expected(case, found)).count();
    let untested = untested_rules(&loaded, &results);
    let text = match args.json {
        true => format!("{:#}\n", report_json(&results, &untested)),
        false => report_text(&results, &untested, right),
    };
    output::write_data(&text)?;
    match results.len() - right {
        0 => Ok(()),
        1 => Err(Failure::Call("1 case is not as expected".to_owned())),
        wrong => Err(Failure::Call(format!("{wrong} cases are not as expected"))),
    }
}

type CaseResult<'a> = (&'a PolicyCase, Explanation);

fn explain(loaded: &LoadedPolicy, case: &PolicyCase) -> Result<Explanation, Failure> {
    let request = Request {
        server: loaded.server(case.server.as_deref())?,
        method: method_of(case.kind),
        item: Some((case.kind, &case.item)),
        annotations: case.annotations.as_ref(),
        arguments: Some(&case.arguments),
        now: case.now,
    };
    Ok(loaded.policy.explain(&case.subject, &request))
}

fn is_as_expected(case: &PolicyCase, found: &Explanation) -> bool {
    let (word, _, scopes) = decision_words(found);
    match &case.expected {
        ExpectedDecision::Allow => word == "allow",
        ExpectedDecision::Deny => word == "deny",
        ExpectedDecision::Hidden => word == "hidden",
        ExpectedDecision::Challenge(expected) => {
            let found: BTreeSet<&str> = scopes.iter().map(|scope| &**scope).collect();
            word == "challenge" && found == expected.iter().map(String::as_str).collect()
        }
    }
}

/// The rules that no case was decided by.
fn untested_rules<'a>(loaded: &'a LoadedPolicy, results: &[CaseResult<'_>]) -> Vec<&'a str> {
    let deciding: BTreeSet<&str> =
        results.iter().map(|(_, found)| decision_words(found).1).collect();
    loaded.policy.rule_names().filter(|name| !deciding.contains(name)).collect()
}

fn expected_text(expected: &ExpectedDecision) -> String {
    match expected {
        ExpectedDecision::Allow => "allow".to_owned(),
        ExpectedDecision::Deny => "deny".to_owned(),
        ExpectedDecision::Hidden => "hidden".to_owned(),
        ExpectedDecision::Challenge(scopes) => format!("challenge {}", scopes.join(" ")),
    }
}

fn found_text(found: &Explanation) -> String {
    let (word, rule, scopes) = decision_words(found);
    match word {
        "challenge" => format!("challenge {} by `{rule}`", scopes.join(" ")),
        _ => format!("{word} by `{rule}`"),
    }
}

fn report_text(results: &[CaseResult<'_>], untested: &[&str], right: usize) -> String {
    let wrong = results.iter().filter(|(case, found)| !is_as_expected(case, found));
    let mut lines: Vec<String> = wrong
        .map(|(case, found)| {
            let (expected, found) = (expected_text(&case.expected), found_text(found));
            format!("{}: expected {expected}, found {found}", case.name)
        })
        .collect();
    lines.extend(untested.iter().map(|rule| format!("untested: no case is decided by `{rule}`")));
    lines.push(format!("{right} of {} as expected", results.len()));
    output::printable(&format!("{}\n", lines.join("\n")))
}

fn report_json(results: &[CaseResult<'_>], untested: &[&str]) -> Value {
    let case = |(case, found): &CaseResult<'_>| {
        let (word, rule, scopes) = decision_words(found);
        let scopes: Vec<&str> = scopes.iter().map(|scope| &**scope).collect();
        json!({
            "name": case.name,
            "expected": expected_text(&case.expected),
            "decision": word,
            "rule": rule,
            "scopes": scopes,
            "asExpected": is_as_expected(case, found),
        })
    };
    let cases: Vec<Value> = results.iter().map(case).collect();
    json!({ "cases": cases, "untested": untested })
}
