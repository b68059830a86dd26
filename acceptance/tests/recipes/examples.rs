//! Tests of the examples: each is loaded unchanged, and its tools are called.

use std::fs;

use creole_acceptance::process_under_test::{Server, serve};
use creole_acceptance::stage::stdio::repository;
use serde_json::json;
use tempfile::TempDir;

use crate::service::{Service, json as good};
use crate::told;

fn start(example: &str, variables: &[(&str, &str)]) -> (Server, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = repository().join("examples").join(example);
    let mut command = serve(folder.path(), &[file.to_str().unwrap()]);
    command.envs(variables.iter().copied());
    (Server::start_command(command).greeted(), folder)
}

#[test]
fn programs_as_tools() {
    let (mut server, folder) = start("command.toml", &[]);
    fs::write(folder.path().join("a.md"), "one\nTwo -x\n").unwrap();
    fs::write(folder.path().join("b.rs"), "two\n").unwrap();
    let mut call = |tool: &str, arguments| told(&server.call(tool, &arguments)).unwrap();
    assert_eq!(call("search", json!({ "text": "two" })), "./b.rs:1:two\n");
    assert_eq!(
        call("search", json!({ "text": "two", "any_case": true, "kind": "*.md" })),
        "./a.md:2:Two -x\n"
    );
    assert_eq!(call("search", json!({ "text": "-x", "folder": "." })), "./a.md:2:Two -x\n");
    assert_eq!(call("search", json!({ "text": "none" })), "");
    assert_eq!(call("count_words", json!({ "text": "one two\nthree" })).trim(), "3");
}

#[test]
fn a_rest_service_as_tools() {
    let service = Service::start(|_, request| match request.line.starts_with("POST") {
        true => good(r#"{"html_url":"https://github.com/a/b/issues/1"}"#),
        false => good(
            r#"{"full_name":"a/b","description":"It","stargazers_count":3,"open_issues_count":1}"#,
        ),
    });
    let variables = [("GITHUB_API", service.url()), ("GITHUB_TOKEN", "token-of-ann".to_owned())];
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let (mut server, _folder) = start("rest.toml", &variables);
    let mut call = |tool: &str, arguments| told(&server.call(tool, &arguments));
    let text = call("repository", json!({ "owner": "a", "name": "b" })).unwrap();
    assert_eq!(text, "a/b: It\n3 stars, 1 open issues");
    let opened = call(
        "open_issue",
        json!({ "owner": "a", "name": "b", "title": "It \"fails\"", "labels": ["bug"] }),
    );
    assert_eq!(opened, Ok("https://github.com/a/b/issues/1".into()));
    let requests = service.requests();
    assert_eq!(requests[0].line, "GET /repos/a/b HTTP/1.1");
    assert_eq!(requests[1].line, "POST /repos/a/b/issues HTTP/1.1");
    assert_eq!(requests[1].header("authorization"), Some("Bearer token-of-ann"));
    let body: serde_json::Value = serde_json::from_str(&requests[1].body).unwrap();
    assert_eq!(body, json!({ "title": "It \"fails\"", "labels": ["bug"] }));
    assert!(call("repository", json!({ "owner": "a", "name": ".." })).is_err());
}
