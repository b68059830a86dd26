//! `creole audit search` finds what a plain filter of all lines finds.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::audit;

const FILES: usize = 5;
const LINES: usize = 4000;

/// Writes five files of a log. Returns their names and all lines, the newest first.
fn generate(folder: &Path) -> (Vec<String>, Vec<Value>) {
    let mut all = Vec::new();
    let mut names = Vec::new();
    for file in 0..FILES {
        let name = match FILES - 1 - file {
            0 => "audit.log".to_owned(),
            number => format!("audit.log.{number}"),
        };
        let mut text = String::new();
        for line in 0..LINES {
            let number = file * LINES + line;
            let (hour, minute) = (number / 3600 % 24, number / 60 % 60);
            let time = format!(
                "2026-11-18T{hour:02}:{minute:02}:{:02}.{:03}Z",
                number % 60,
                number % 1000
            );
            let line = json!({
                "v": 1, "time": time, "method": "tools/call", "outcome": if number.is_multiple_of(7) { "fault" } else { "ok" },
                "principal": format!("user:{}", number % 13), "target": format!("tool_{}", number % 17),
                "server": "acme", "durationUs": number, "trace": format!("{number:032x}"),
                "arguments": { "target": "tool_3", "text": "x".repeat(number % 300) },
            });
            writeln!(text, "{line}").unwrap();
            all.push(line);
        }
        fs::write(folder.join(&name), text).unwrap();
        names.push(name);
    }
    all.reverse();
    (names, all)
}

/// All pages of a search.
fn search(folder: &Path, names: &[String], words: &[&str]) -> Vec<Value> {
    let mut found = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut all = vec!["search", "--json", "--limit", "500"];
        all.extend(names.iter().map(String::as_str));
        all.extend(words);
        if let Some(cursor) = &cursor {
            all.extend(["--cursor", cursor]);
        }
        let output = audit(folder, &all).succeeded();
        let page: Value = serde_json::from_str(&output.stdout).unwrap();
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 500);
        found.extend(items.iter().cloned());
        match page["next"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => return found,
        }
    }
}

#[test]
fn a_search_finds_what_a_filter_of_all_lines_finds() {
    let folder = tempfile::tempdir().unwrap();
    let (names, all) = generate(folder.path());
    let filtered = |keep: &dyn Fn(&Value) -> bool| -> Vec<Value> {
        all.iter().filter(|line| keep(line)).cloned().collect()
    };
    let same = |words: &[&str], expected: &[Value]| {
        let found = search(folder.path(), &names, words);
        assert!(
            !expected.is_empty() && found.len() == expected.len(),
            "{words:?}: {}",
            found.len()
        );
        assert!(found == expected, "{words:?}");
    };
    let tool = filtered(&|line| line["target"] == "tool_3");
    same(&["--tool", "tool_3"], &tool);
    let (since, until) = ("2026-11-18T01:00:00Z", "2026-11-18T04:30:00Z");
    let within = |line: &Value| {
        let time = line["time"].as_str().unwrap();
        ("2026-11-18T01:00:00.000Z"..="2026-11-18T04:30:00.000Z").contains(&time)
    };
    let in_period = filtered(&|line| line["target"] == "tool_3" && within(line));
    same(&["--tool", "tool_3", "--since", since, "--until", until], &in_period);
    let both = filtered(&|line| line["principal"] == "user:5" && line["outcome"] == "fault");
    same(&["--principal", "user:5", "--outcome", "fault"], &both);
    let trace = format!("{:032x}", 777);
    same(&["--trace", &trace], &filtered(&|line| line["trace"] == trace.as_str()));
}

#[test]
fn a_page_for_people_has_one_row_for_each_line() {
    let folder = tempfile::tempdir().unwrap();
    let lines = [
        json!({"v": 1, "time": "2026-11-18T12:00:00.000Z", "principal": "user:ada", "server": "acme",
            "method": "tools/call", "target": "echo\u{1b}[2J", "outcome": "fault", "fault": "busy",
            "layer": "rate-limit", "durationUs": 1500}),
        json!({"v": 1, "time": "2026-11-18T12:00:01.000Z", "lost": 3}),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(folder.path().join("a.log"), text).unwrap();
    let found = audit(folder.path(), &["search", "a.log"]);
    let expected = "2026-11-18T12:00:01.000Z  3 lines were lost\n\
        2026-11-18T12:00:00.000Z  user:ada  acme  tools/call echo\\u{1b}[2J  fault (busy, rate-limit)  1.5 ms\n";
    assert_eq!((found.code, found.stdout.as_str(), found.stderr.as_str()), (Some(0), expected, ""));
    let found = audit(folder.path(), &["search", "a.log", "--limit", "1"]);
    assert!(found.stderr.contains("continue with --cursor"), "{}", found.stderr);
    let found = audit(folder.path(), &["search", "a.log", "--principal", "unknown"]);
    assert_eq!((found.stdout.as_str(), found.stderr.as_str()), ("", "creole: no line matches\n"));
    let found = audit(folder.path(), &["search", "none.log"]);
    assert_eq!(found.code, Some(2));
    assert!(found.stderr.contains("cannot read `none.log`"), "{}", found.stderr);
    let found = audit(folder.path(), &["search", "a.log", "--since", "yesterday"]);
    assert_eq!(found.code, Some(2));
    let found = audit(folder.path(), &["search", "a.log", "--since", "1h", "--until", "2h"]);
    assert_eq!(found.code, Some(2));
    assert!(found.stderr.contains("--since is later than --until"), "{}", found.stderr);
}
