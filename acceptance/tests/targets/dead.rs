//! Tests of upstreams that do not respond: they are reported with the reason, never as a success.

use serde_json::Value;

use super::Sandbox;

/// One upstream without a program, and one that writes to stderr and exits.
const DEAD: &str = r#"
[upstreams.gone]
command = ["./no-such-program"]

[upstreams.broken]
command = ["sh", "-c", "echo the password is wrong >&2; exit 3"]
"#;

const ALIVE: &str = "[upstreams.alive]\npreset = \"fpf-governance\"\n";

#[test]
fn a_list_of_dead_upstreams_is_a_failure_with_reasons() {
    let output = Sandbox::with(DEAD).run(&["list", "--config", "creole.toml"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{output:?}");
    let gone =
        "creole: upstream `gone` is not available: the program `no-such-program` does not exist";
    assert!(output.stderr.contains(gone), "{output:?}");
    assert!(output.stderr.contains("creole: upstream `broken` is not available: "), "{output:?}");
    assert!(output.stderr.contains("the password is wrong"), "{output:?}");
    assert!(output.stderr.ends_with("error: no upstream responded\n"), "{output:?}");
}

#[test]
fn the_only_upstream_is_named_when_it_is_dead() {
    let only = "[upstreams.gone]\ncommand = [\"./no-such-program\"]\n";
    for verb in [&["list"][..], &["check"], &["call", "x"]] {
        let output = Sandbox::with(only).run(&[verb, &["--config", "creole.toml"]].concat());
        assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{output:?}");
        assert!(
            output.stderr.contains("upstream `gone` is not available: the program"),
            "{output:?}"
        );
    }
}

#[test]
fn responding_upstreams_are_listed_and_the_others_are_named() {
    let sandbox = Sandbox::with(&format!("{DEAD}{ALIVE}"));
    let listed = sandbox.run(&["list", "--config", "creole.toml", "tools"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert!(listed.stdout.starts_with("tools (2)\n"), "{listed:?}");
    assert!(listed.stderr.contains("upstream `gone` is not available"), "{listed:?}");
    let checked = sandbox.run(&["check", "--config", "creole.toml"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(checked.stderr.contains("upstream `broken` is not available"), "{checked:?}");
    assert!(checked.stdout.contains("\ngone      failed"), "{checked:?}");
    let checked = sandbox.run(&["check", "--config", "creole.toml", "--json"]);
    let document: Value = serde_json::from_str(&checked.stdout).unwrap();
    assert_eq!(document["upstreams"][0]["state"], "failed", "{document}");
}

#[test]
fn status_has_a_line_for_each_upstream() {
    let sandbox = Sandbox::with(&format!("{DEAD}{ALIVE}"));
    let output = sandbox.run(&["status"]);
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert!(lines[0].starts_with("UPSTREAM  STATE   REVISION"), "{output:?}");
    assert!(lines[1].starts_with("gone      failed  -"), "{output:?}");
    assert!(lines[1].ends_with("the program `no-such-program` does not exist"), "{output:?}");
    let alive = lines.iter().find(|line| line.starts_with("alive")).unwrap();
    let words: Vec<&str> = alive.split_whitespace().collect();
    assert_eq!((words[1], words[3], words[4]), ("ready", "stdio", "2"), "{output:?}");
    let output = sandbox.run(&["status", "creole.toml", "--json"]);
    let rows: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(rows[2]["name"], "alive");
    assert_eq!(rows[2]["items"]["tools"], 2, "{rows}");
    assert_eq!(rows[1]["stderr"], "the password is wrong", "{rows}");
}

#[test]
fn the_operator_sees_the_address_of_an_upstream() {
    let sandbox = Sandbox::with("[upstreams.wiki]\nurl = \"http://127.0.0.1:1/secret?key=1\"\n");
    let reason = "`wiki` (127.0.0.1:1) refuses connections";
    let listed = sandbox.run(&["list", "--config", "creole.toml"]);
    assert!(
        listed.stderr.contains(&format!("upstream `wiki` is not available: {reason}\n")),
        "{listed:?}"
    );
    assert!(listed.stderr.contains(&format!("reason=\"{reason}\"")), "{listed:?}");
    let output = sandbox.run(&["status"]);
    assert!(output.stdout.contains(reason), "{output:?}");
    assert!(!format!("{listed:?}{output:?}").contains("secret"), "{listed:?} {output:?}");
}

#[test]
fn a_401_names_the_upstream_and_the_key_to_set() {
    let refusing = super::messages::serve_response(
        b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    );
    let upstream = format!("[upstreams.wiki]\nurl = \"http://{refusing}/mcp\"\n");
    let output = Sandbox::with(&upstream).run(&["list", "--config", "creole.toml"]);
    let asks = format!(
        "upstream `wiki` is not available: `wiki` ({refusing}) requires a login; run: creole login wiki --config \
         creole.toml; a key is set with `headers`"
    );
    assert!(output.stderr.contains(&asks), "{output:?}");
    let problem = format!("{upstream}headers = {{ Authorization = \"Bearer hunter2\" }}\n");
    let output = Sandbox::with(&problem).run(&["list", "--config", "creole.toml"]);
    let refused =
        format!("`wiki` ({refusing}) refused these credentials (status 401); correct `headers`");
    assert!(output.stderr.contains(&refused) && !output.stderr.contains("hunter2"), "{output:?}");
}

#[test]
fn status_of_dead_upstreams_is_a_failure() {
    let output = Sandbox::with(DEAD).run(&["status", "--config", "creole.toml"]);
    assert_eq!((output.code, output.stderr.as_str()), (Some(1), "error: no upstream responded\n"));
    assert!(output.stdout.contains("\n  the password is wrong\n"), "{output:?}");
}

#[test]
fn status_of_another_server_is_one_line() {
    let sandbox = Sandbox::with(ALIVE);
    let output = sandbox.run(&["status", "--preset", "fpf-governance"]);
    assert_eq!(output.stdout, "the configuration has no upstreams\n", "{output:?}");
    let binary = creole_acceptance::stage::stdio::binary().unwrap().display().to_string();
    let output = sandbox.run(&["status", "--", &binary, "serve", "--preset", "fpf-governance"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let words: Vec<&str> = output.stdout.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(words[1..5], ["ready", "2025-11-25", "stdio", "2"], "{output:?}");
    let nobody = sandbox.run(&["status", "http://127.0.0.1:1/mcp"]);
    assert_eq!((nobody.code, nobody.stdout.as_str()), (Some(1), ""), "{nobody:?}");
}

#[test]
fn status_names_a_document_that_cannot_be_fetched() {
    let text = "[server]\npacks = [\"echo\"]\n[openapi.api]\nurl = \
        'http://127.0.0.1:1/x'\nbase_url = 'https://x.org'\n";
    let output = Sandbox::with(text).run(&["status"]);
    assert!(output.stdout.contains("api       failed  -         openapi"), "{output:?}");
    assert!(output.stdout.contains("cannot fetch the document: "), "{output:?}");
    let listed = Sandbox::with(text).run(&["list", "--config", "creole.toml", "tools"]);
    assert!(listed.stdout.starts_with("tools (1)\n"), "{listed:?}");
    assert!(listed.stderr.contains("upstream `api` is not available"), "{listed:?}");
}

#[test]
fn a_configuration_with_nothing_but_a_document_that_cannot_be_fetched_is_a_failure() {
    let text = "[openapi.api]\nurl = 'http://127.0.0.1:1/x?key=1'\nbase_url = 'https://x.org'\n";
    let listed = Sandbox::with(text).run(&["list", "--config", "creole.toml"]);
    assert_eq!((listed.code, listed.stdout.as_str()), (Some(1), ""), "{listed:?}");
    assert!(listed.stderr.contains("(http://127.0.0.1:1/x)\n"), "{listed:?}");
    assert!(listed.stderr.ends_with("error: no upstream responded\n"), "{listed:?}");
}
