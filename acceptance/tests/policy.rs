//! Tests of the policy with the real binary: lists, refusals, the audit log, reload, and `creole policy`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use creole_acceptance::http::required_headers::fields;
use creole_acceptance::http::{ListeningServer, Request};
use creole_acceptance::process_under_test::Server;
use creole_acceptance::process_under_test::finished_command::output_of;
use creole_acceptance::stage::stdio::binary;
use creole_test_wait::blocking::eventually;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// The items are those of the built-in packs, and a tool of this file.
const ITEMS: &str = r#"
[server]
name = "house"
packs = ["hello", "echo", "calculate"]

[[server.chain]]
kind = "audit"
file = "audit.log"
"#;

const RULES: &str = r#"
[policy]

[[policy.rules]]
name = "staff"
effect = "allow"
roles = ["dev"]
tools = ["hello", "echo"]

[[policy.rules]]
name = "own words"
effect = "deny"
tools = ["echo"]
when = 'arguments.message.startsWith("secret")'
message = "Secrets are not echoed."

[[policy.rules]]
name = "sums"
effect = "allow"
tools = ["calculate"]
roles = ["dev"]
when = 'arguments.missing == principal.name'
"#;

/// A key of the test, with its row in the configuration.
fn key_row(name: &str, roles: &str) -> String {
    let digest = Sha256::digest(secret(name));
    let hex = digest.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    });
    format!("[[auth.keys]]\nname = \"{name}\"\nsha256 = \"{hex}\"\nroles = [{roles}]\n")
}

fn secret(name: &str) -> String {
    format!("{name}-secret-key-of-the-test")
}

fn auth() -> String {
    format!("\n[auth]\n{}{}", key_row("ada", "\"dev\""), key_row("eve", ""))
}

struct Serving {
    server: ListeningServer,
    folder: TempDir,
}

impl Serving {
    fn start(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("creole.toml");
        fs::write(&file, config).unwrap();
        Self { server: ListeningServer::start(&[file.to_str().unwrap()]).unwrap(), folder }
    }

    /// The lines of the audit log about refused calls, once there are this many.
    fn denials(&self, count: usize) -> Vec<Value> {
        let file = self.folder.path().join("audit.log");
        let read = || -> Vec<Value> {
            let text = fs::read_to_string(&file).unwrap_or_default();
            let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            lines.filter(|line| line.get("deniedBy").is_some()).collect()
        };
        eventually(|| format!("{} denials in {:?}", count, read()), || read().len() >= count);
        read()
    }
}

/// A client of one era, with a key.
struct Caller<'a> {
    server: &'a ListeningServer,
    name: &'a str,
    session: Option<String>,
}

impl<'a> Caller<'a> {
    fn stateless(server: &'a ListeningServer, name: &'a str) -> Self {
        Self { server, name, session: None }
    }

    fn handshake(server: &'a ListeningServer, name: &'a str) -> Self {
        let mut caller = Self { server, name, session: Some(String::new()) };
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
        });
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let response = caller.post(&message);
        let session = response.head.field("mcp-session-id").expect("a session").to_owned();
        caller.session = Some(session);
        caller
    }

    fn both(server: &'a ListeningServer, name: &'a str) -> [Self; 2] {
        [Self::stateless(server, name), Self::handshake(server, name)]
    }

    fn post(&self, message: &Value) -> creole_acceptance::http::Response {
        let mut request = Request::post(message.to_string())
            .with("Authorization", &format!("Bearer {}", secret(self.name)))
            .with_all(fields(message));
        if let Some(session) = self.session.as_deref().filter(|session| !session.is_empty()) {
            request = request.with("Mcp-Session-Id", session);
        }
        request.send(self.server.address()).unwrap()
    }

    /// The response to a request, as text.
    fn request_text(&self, method: &str, mut params: Value) -> String {
        if self.session.is_none() {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.post(&message).message().to_string()
    }

    fn request(&self, method: &str, params: Value) -> Value {
        serde_json::from_str(&self.request_text(method, params)).unwrap()
    }

    fn call(&self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    fn tools(&self) -> Vec<String> {
        names(&self.request("tools/list", json!({})))
    }
}

fn names(list: &Value) -> Vec<String> {
    let tools = list["result"]["tools"].as_array().unwrap_or_else(|| panic!("{list}"));
    let mut names: Vec<_> =
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_list_has_what_the_role_allows_and_a_hidden_name_is_answered_like_an_unknown_one() {
    let serving = Serving::start(&format!("{ITEMS}{RULES}{}", auth()));
    for caller in Caller::both(&serving.server, "ada") {
        assert_eq!(caller.tools(), ["calculate", "echo", "hello"]);
        let said = caller.call("echo", json!({"message": "hi"}));
        assert_eq!(said["result"]["content"][0]["text"], "hi", "{said}");
    }
    for caller in Caller::both(&serving.server, "eve") {
        assert_eq!(caller.tools(), [] as [&str; 0]);
        let params = |name: &str| json!({"name": name, "arguments": {"message": "hi"}});
        let hidden = caller.request_text("tools/call", params("echo"));
        let unknown = caller.request_text("tools/call", params("ohce"));
        assert_eq!(hidden.replace("echo", "NAME"), unknown.replace("ohce", "NAME"));
        assert!(unknown.contains("-32602"), "{unknown}");
    }
    let denials = serving.denials(4);
    assert!(denials.iter().all(|line| line["deniedBy"] == "default"), "{denials:?}");
    assert!(denials.iter().all(|line| line["principal"] == "key:eve"), "{denials:?}");
}

#[test]
fn a_condition_that_fails_denies_in_a_denial_and_does_not_allow_in_an_allowance() {
    let serving = Serving::start(&format!("{ITEMS}{RULES}{}", auth()));
    for caller in Caller::both(&serving.server, "ada") {
        let refused = caller.call("echo", json!({"message": "secret word"}));
        assert_eq!(refused["result"]["isError"], true, "{refused}");
        assert_eq!(refused["result"]["content"][0]["text"], "Secrets are not echoed.");
        // The argument has another type, and is missing.
        for arguments in [json!({"message": 3}), json!({})] {
            let refused = caller.call("echo", arguments);
            assert_eq!(refused["result"]["content"][0]["text"], "Secrets are not echoed.");
        }
        let refused = caller.call("calculate", json!({"expression": "1+1"}));
        assert_eq!(refused["result"]["content"][0]["text"], "not allowed: sums", "{refused}");
    }
    let rules: Vec<_> = serving
        .denials(8)
        .iter()
        .map(|line| line["deniedBy"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(rules.iter().filter(|rule| *rule == "own words").count(), 6, "{rules:?}");
    assert_eq!(rules.iter().filter(|rule| *rule == "sums").count(), 2, "{rules:?}");
}

#[test]
fn the_caller_of_stdio_is_local() {
    let folder = tempfile::tempdir().unwrap();
    let rules = "[policy]\n[[policy.rules]]\nname = \"here\"\neffect = \"allow\"\n\
                 principals = [\"local\"]\ntools = [\"hello\"]\n";
    fs::write(folder.path().join("creole.toml"), format!("{ITEMS}{rules}")).unwrap();
    let mut server = Server::start_in(folder.path(), &["creole.toml", "--stdio"]).greeted();
    assert_eq!(names(&server.request("tools/list", &json!({}))), ["hello"]);
    let greeted = server.call("hello", &json!({"name": "Ada"}));
    assert!(greeted["result"]["content"][0]["text"].as_str().unwrap().contains("Ada"), "{greeted}");
    let unknown = server.call("echo", &json!({"message": "x"}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    assert_eq!(server.finish().code, Some(0));
}

#[test]
fn a_reload_replaces_the_rules_as_a_whole() {
    let serving = Serving::start(&format!("{ITEMS}{RULES}{}", auth()));
    let [stateless, session] = Caller::both(&serving.server, "eve");
    assert_eq!(session.tools(), [] as [&str; 0]);
    let file = serving.folder.path().join("creole.toml");
    let broken = RULES.replace("arguments.missing", "arguments.missing ==");
    fs::write(&file, format!("{ITEMS}{broken}{}", auth())).unwrap();
    serving.server.until_said("was rejected");
    assert_eq!(stateless.tools(), [] as [&str; 0]);
    let open =
        RULES.replace("roles = [\"dev\"]\ntools = [\"hello\", \"echo\"]", "tools = [\"hello\"]");
    fs::write(&file, format!("{ITEMS}{open}{}", auth())).unwrap();
    serving.server.until_said("was reloaded");
    assert_eq!((stateless.tools(), session.tools()), (vec!["hello".into()], vec!["hello".into()]));
}

/// The exit code, stdout and stderr of `creole policy`.
fn policy(folder: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(binary().expect("the binary under test"));
    command.arg("policy").args(words).current_dir(folder).env("NO_COLOR", "1");
    let output = output_of(&mut command, "");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

const CASES: &str = r#"
[[cases]]
name = "staff echo"
as = { id = "key:ada", roles = ["dev"] }
call = "echo"
arguments = { message = "hi" }
expect = "allow"

[[cases]]
name = "staff secrets"
as = { id = "key:ada", roles = ["dev"] }
call = "echo"
arguments = { message = "secret" }
expect = "deny"

[[cases]]
name = "a guest"
as = { id = "key:eve" }
call = "echo"
arguments = { message = "hi" }
expect = "hidden"
"#;

#[test]
fn policy_test_reports_the_cases_that_are_not_as_expected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("creole.toml"), format!("{ITEMS}{RULES}")).unwrap();
    fs::write(path.join("cases.toml"), CASES).unwrap();
    let (code, stdout, stderr) = policy(path, &["test", "creole.toml", "cases.toml"]);
    let untested = "untested: no case is decided by `sums`\n";
    assert_eq!((code, stdout), (Some(0), format!("{untested}3 of 3 as expected\n")), "{stderr}");

    fs::write(path.join("wrong.toml"), CASES.replace("\"deny\"", "\"allow\"")).unwrap();
    let (code, stdout, stderr) = policy(path, &["test", "creole.toml", "wrong.toml"]);
    let wrong = "staff secrets: expected allow, found deny by `own words`\n";
    assert_eq!((code, stdout), (Some(1), format!("{wrong}{untested}2 of 3 as expected\n")));
    assert_eq!(stderr, "error: 1 case is not as expected\n");
    let (code, stdout, _) = policy(path, &["test", "creole.toml", "wrong.toml", "--json"]);
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &report["cases"][1]["rule"]), (Some(1), &json!("own words")));

    fs::write(path.join("broken.toml"), CASES.replace("\"hidden\"", "\"gone\"")).unwrap();
    let (code, stdout, stderr) = policy(path, &["test", "creole.toml", "broken.toml"]);
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    assert!(stderr.contains("broken.toml:21:10") && stderr.contains("\"hidden\""), "{stderr}");
    let broken = RULES.replace("principal.name", "principal.nam");
    fs::write(path.join("broken.toml"), format!("{ITEMS}{broken}")).unwrap();
    let (code, _, stderr) = policy(path, &["test", "broken.toml", "cases.toml"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("the rule `sums`: `principal` has no member `nam`"), "{stderr}");
    fs::write(path.join("none.toml"), ITEMS).unwrap();
    let (code, _, stderr) = policy(path, &["test", "none.toml", "cases.toml"]);
    assert_eq!(
        (code, stderr.as_str()),
        (Some(2), "error: `none.toml` has no policy; add a table `[policy]`\n")
    );
}

#[test]
fn policy_explain_and_list_name_the_deciding_rules() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("creole.toml"), format!("{ITEMS}{RULES}")).unwrap();
    let words = ["explain", "creole.toml", "--as", "key:ada", "--role", "dev", "--call", "echo"];
    let (code, stdout, stderr) =
        policy(path, &[&words[..], &["--args", r#"{"message":"hi"}"#]].concat());
    let expected = "echo: allowed by `staff`\n  \
                    deny   own words  does not match: `when` is false\n  \
                    allow  staff      matches\n  \
                    allow  sums       is about other requests\n";
    assert_eq!((code, stdout.as_str()), (Some(0), expected), "{stderr}");
    let (_, stdout, _) = policy(path, &words);
    assert!(
        stdout.starts_with("echo: denied by `own words`: Secrets are not echoed.\n"),
        "{stdout}"
    );
    assert!(
        stdout.contains("matches: `when` cannot be evaluated (there is no `message`)"),
        "{stdout}"
    );
    let (code, stdout, _) =
        policy(path, &["explain", "creole.toml", "--as", "key:eve", "--call", "echo", "--json"]);
    let explained: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &explained["decision"]), (Some(0), &json!("hidden")), "{stdout}");

    let (_, stdout, stderr) =
        policy(path, &["list", "creole.toml", "--as", "key:ada", "--role", "dev"]);
    let expected =
        "depends  tool      calculate\ndepends  tool      echo\nyes      tool      hello\n";
    assert_eq!(stdout, expected, "{stderr}");
    let items = json!({"tools": [{"name": "echo"}, {"name": "other"}], "resources": [{"uri": "file:///a"}]});
    fs::write(path.join("items.json"), items.to_string()).unwrap();
    let (_, stdout, _) =
        policy(path, &["list", "creole.toml", "--as", "key:eve", "--catalogue", "items.json"]);
    let expected = "no       tool      echo  (default)\nno       tool      other  (default)\n\
                    no       resource  file:///a  (default)\n";
    assert_eq!(stdout, expected);
}
