//! Tests of programs as tools: their input, and how their output is converted.

use serde_json::{Value, json};

use crate::ConfiguredServer;

/// A program that prints each of its arguments in brackets.
const PROBE: &str = r#"command = ["sh", "-c", "for a; do printf '[%s]' \"$a\"; done", "probe","#;

fn probe(words: &str, arguments: &str) -> ConfiguredServer {
    ConfiguredServer::start(&format!(
        "[tools.probe]\ndescription = 'Shows'\n{PROBE} {words}]\n[tools.probe.arguments]\n{arguments}"
    ))
}

#[test]
fn a_value_is_one_argument_whatever_is_in_it() {
    let mut server = probe("'{a}', 'x{a}y', '--', '{a}'", "a = { type = 'string' }");
    let hostile = [
        "; rm -rf /",
        "$(id)",
        "`id`",
        "a | b && c > d",
        "a\nb\r\n",
        "*",
        "~",
        "",
        "'\"\\",
        "{a}",
        "${HOME}",
        "%s%n",
        "ü\u{202e}",
    ];
    for value in hostile {
        let expected = format!("[{value}][x{value}y][--][{value}]");
        assert_eq!(server.call("probe", json!({ "a": value })), Ok(expected));
    }
}

#[test]
fn a_value_cannot_become_an_option() {
    let mut server = probe("'{a}'", "a = { type = 'string' }");
    for value in ["-x", "--upload-pack=touch x", "--", "-"] {
        let refused = server.call("probe", json!({ "a": value })).unwrap_err();
        assert!(refused.contains("must not begin with `-`"), "{refused}");
    }
    let refused = server.call("probe", json!({ "a": "a\u{0}b" })).unwrap_err();
    assert!(refused.contains("NUL"), "{refused}");
    let refused = server.call("probe", json!({ "a": "x".repeat(200_000) })).unwrap_err();
    assert!(refused.contains("too long"), "{refused}");
    let mut server = probe("'--', '{a}'", "a = { type = 'string' }");
    assert_eq!(server.call("probe", json!({ "a": "--x" })), Ok("[--][--x]".into()));
}

#[test]
fn lists_are_spread_and_missing_values_omitted() {
    let mut server = probe(
        "['-n', '{n}'], { when = 'all', words = ['--all'] }, '--', '{list}'",
        "n = { type = 'integer', minimum = 1, required = false }\n\
         all = { type = 'boolean', default = false }\n\
         list = { type = 'array', max_items = 3, default = [] }",
    );
    assert_eq!(server.call("probe", json!({})), Ok("[--]".into()));
    let all = json!({ "n": 2.0, "all": true, "list": ["a b", "-c"] });
    assert_eq!(server.call("probe", all), Ok("[-n][2][--all][--][a b][-c]".into()));
    for invalid in [
        json!({ "n": 0 }),
        json!({ "n": "1" }),
        json!({ "m": 1 }),
        json!({ "list": ["", "", "", ""] }),
    ] {
        assert!(server.call("probe", invalid.clone()).is_err(), "{invalid}");
    }
}

#[test]
fn a_tool_is_announced_as_it_was_described() {
    let mut server = ConfiguredServer::start(
        "[tools.t]\ntitle = 'T'\ndescription = 'Does t'\ncommand = ['true', '{a}']\nread_only = true\n\
         destructive = false\nidempotent = true\nopen_world = false\nresult = 'json'\n\
         output_schema = { type = 'object', required = ['n'] }\n\
         [tools.t.arguments.a]\ntype = 'string'\ndescription = 'An a'\nenum = ['x', 'y']\ndefault = 'x'",
    );
    let list = server.server.request("tools/list", &json!({}));
    let expected = json!({
        "name": "t", "title": "T", "description": "Does t",
        "inputSchema": {
            "type": "object", "required": [], "additionalProperties": false,
            "properties": { "a": { "type": "string", "description": "An a", "enum": ["x", "y"], "default": "x" } },
        },
        "outputSchema": { "type": "object", "required": ["n"] },
        "annotations": {
            "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false,
        },
    });
    assert_eq!(list["result"]["tools"], json!([expected]));
}

fn script(script: &str, keys: &str) -> ConfiguredServer {
    ConfiguredServer::start(&format!(
        "[tools.t]\ndescription = 'Runs'\ncommand = ['sh', '-c', '''{script}''']\n{keys}\n"
    ))
}

#[test]
fn exit_codes_distinguish_success_from_failure() {
    let mut server = script("echo out; echo why >&2; exit 3", "");
    assert_eq!(server.call("t", json!({})), Err("the program exited with code 3:\nwhy".into()));
    let mut server = script("echo out; echo why >&2; exit 3", "exit_codes = [0, 3]");
    assert_eq!(server.call("t", json!({})), Ok("out\n".into()));
    let mut server = script("echo out; exit 4", "");
    assert_eq!(server.call("t", json!({})), Err("the program exited with code 4:\nout".into()));
    let mut server = script("kill -9 $$", "");
    assert_eq!(server.call("t", json!({})), Err("the program was killed by signal 9".into()));
    let mut server = script("head -c 1000000 /dev/zero | tr \"\\0\" x >&2; exit 1", "");
    assert!(server.call("t", json!({})).unwrap_err().len() < 10_000);
}

#[test]
fn a_program_reads_its_input_and_runs_in_its_directory() {
    let mut server = ConfiguredServer::start(
        "[tools.t]\ndescription = 'Runs'\ncommand = ['sh', '-c', 'pwd; cat']\ncwd = '/'\nstdin = 'Dear {who},\n'\n\
         [tools.t.arguments]\nwho = { type = 'string' }"
            .replace("{who},\n'", "{who}!'")
            .as_str(),
    );
    assert_eq!(server.call("t", json!({ "who": "$(id)" })), Ok("/\nDear $(id)!".into()));
    // More input than a pipe holds, for a program that reads nothing.
    let mut server = ConfiguredServer::start(
        "[tools.t]\ndescription = 'Runs'\ncommand = ['true']\nstdin = '{a}'\n\
         [tools.t.arguments]\na = { type = 'string' }",
    );
    assert_eq!(server.call("t", json!({ "a": "x".repeat(500_000) })), Ok(String::new()));
}

#[test]
fn results_are_data_or_images_if_configured() {
    let mut server = script(
        "echo \"{{\\\"n\\\": 1}}\"",
        "result = 'json'\noutput_schema = { required = ['n'] }",
    );
    let response = server.server.call("t", &json!({}));
    assert_eq!(response["result"]["structuredContent"], json!({ "n": 1 }));
    let mut server =
        script("echo \"{{}}\"", "result = 'json'\noutput_schema = { required = ['n'] }");
    assert!(server.call("t", json!({})).unwrap_err().contains("does not match"));
    let mut server = script("echo no", "result = 'json'");
    assert!(server.call("t", json!({})).unwrap_err().contains("is not JSON"));
    let mut server = script("printf abc", "result = 'image'\nmime_type = 'image/png'");
    let content = server.server.call("t", &json!({}))["result"]["content"].clone();
    assert_eq!(content, json!([{ "type": "image", "data": "YWJj", "mimeType": "image/png" }]));
}

#[test]
fn too_much_output_or_time_ends_the_program() {
    let mut server = script("yes", "output_limit_bytes = 1000");
    let text = server.call("t", json!({})).unwrap_err();
    assert!(text.contains("more than 1000 bytes") && text.len() < 2000, "{text}");
    let mut server = script("sleep 1000", "timeout_seconds = 1");
    assert_eq!(
        server.call("t", json!({})),
        Err("the call took longer than 1 s and was cancelled".into())
    );
}

#[test]
fn lines_on_stderr_are_progress_if_configured() {
    let mut server = script("echo one >&2; read go < go; echo done", "progress = true");
    let fifo = server.path().join("go");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    let params = json!({ "name": "t", "arguments": {}, "_meta": { "progressToken": "p" } });
    server.server.write(creole_acceptance::process_under_test::request(7, "tools/call", &params));
    let message: Value = server.server.answer();
    assert_eq!(message["method"], "notifications/progress", "{message}");
    assert_eq!(
        (&message["params"]["message"], &message["params"]["progress"]),
        (&json!("one"), &json!(1))
    );
    std::fs::write(&fifo, "go\n").unwrap();
    let response = server.server.answer();
    assert_eq!(response["result"]["content"][0]["text"], "done\n", "{response}");
}

#[test]
fn a_missing_program_is_reported_at_startup() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[server]\n[tools.t]\ndescription = 'x'\ncommand = ['no-such-program-here']\n";
    std::fs::write(folder.path().join("creole.toml"), text).unwrap();
    let server =
        creole_acceptance::process_under_test::Server::start_in(folder.path(), &["creole.toml"]);
    let ended = server.finish();
    assert_ne!(ended.code, Some(0));
    assert!(
        ended.log.contains("the program `no-such-program-here` was not found"),
        "{}",
        ended.log
    );
}
