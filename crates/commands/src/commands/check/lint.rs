//! Finds problems in the names and schemas that a server lists.

mod names;
mod schemas;

use creole::proto::model::ListKind;
use serde_json::Value;

use super::ServerLists;

/// The maximum number of reported findings.
const MAX_FINDINGS: usize = 200;

/// A problem of an item.
#[derive(Debug, PartialEq)]
pub(super) struct LintFinding {
    /// The item.
    pub(super) item: String,
    /// The problem, and how to fix it.
    pub(super) problem: String,
}

/// All problems, in the order of the lists.
pub(super) fn lint(lists: &ServerLists) -> Vec<LintFinding> {
    let mut findings = Vec::new();
    for (kind, excluded) in &lists.excluded {
        let item = format!("{} {:?}", noun(*kind), excluded.name);
        let problem =
            format!("is excluded, because clients reject a list with it: {}", excluded.reason);
        findings.push(LintFinding { item, problem });
    }
    for (kind, items) in &lists.listed {
        let items: Vec<Value> =
            items.iter().filter_map(|item| serde_json::from_str(item).ok()).collect();
        let description = noun(*kind);
        let mut add = |name: &str, problem: String| {
            findings.push(LintFinding { item: format!("{description} `{name}`"), problem });
        };
        let named: Vec<&str> = items.iter().filter_map(|item| item[kind.key()].as_str()).collect();
        match kind {
            ListKind::Tools | ListKind::Prompts => names::lint(&named, &mut add),
            _ => names::duplicates(&named, &mut add),
        }
        for item in &items {
            let name = item[kind.key()].as_str().unwrap_or_default();
            if !matches!(kind, ListKind::Resources) && is_blank(&item["description"]) {
                add(
                    name,
                    "has no description; models choose tools by their descriptions".to_owned(),
                );
            }
            if *kind == ListKind::Tools {
                if lists.repaired_tools.iter().any(|mended| mended == name) {
                    add(name, schemas::REQUIRED.to_owned());
                }
                schemas::lint(item, &mut |problem| add(name, problem));
            }
        }
    }
    findings.truncate(MAX_FINDINGS);
    findings
}

fn noun(kind: ListKind) -> &'static str {
    match kind {
        ListKind::Tools => "tool",
        ListKind::Prompts => "prompt",
        ListKind::Templates => "template",
        ListKind::Resources | ListKind::Skills => "resource",
    }
}

fn is_blank(text: &Value) -> bool {
    text.as_str().is_none_or(|text| text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use creole::proto::model::ExcludedItem;

    use super::*;

    fn problems(items: &[&str]) -> Vec<String> {
        let items = items.iter().map(|item| (*item).to_owned()).collect();
        let line = |finding: LintFinding| format!("{} {}", finding.item, finding.problem);
        let lists =
            ServerLists { listed: vec![(ListKind::Tools, items)], ..ServerLists::default() };
        lint(&lists).into_iter().map(line).collect()
    }

    #[test]
    fn a_tool_that_is_right_has_no_findings() {
        let right = r#"{"name":"add","description":"Adds","inputSchema":{"type":"object"}}"#;
        assert_eq!(problems(&[right]), Vec::<String>::new());
    }

    #[test]
    fn an_item_that_is_left_out_is_a_finding() {
        let excluded = ExcludedItem { name: "a\u{202e}".into(), reason: "bad".into() };
        let lists =
            ServerLists { excluded: vec![(ListKind::Prompts, excluded)], ..ServerLists::default() };
        let expected = LintFinding {
            item: r#"prompt "a\u{202e}""#.to_owned(),
            problem: "is excluded, because clients reject a list with it: bad".to_owned(),
        };
        assert_eq!(lint(&lists), [expected]);
    }

    #[test]
    fn each_finding_names_its_item() {
        let twice = r#"{"name":"add","description":" ","inputSchema":{"type":"object"}}"#;
        let expected = [
            "tool `add` is listed twice; clients see only one of them",
            "tool `add` has no description; models choose tools by their descriptions",
            "tool `add` has no description; models choose tools by their descriptions",
        ];
        assert_eq!(problems(&[twice, twice]), expected);
    }
}
