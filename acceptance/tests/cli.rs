//! Tests of the binary's command line: exit code, and exact stdout and stderr.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use creole_acceptance::process_under_test::finished_command::FinishedCommand;
use creole_acceptance::stage::stdio::{binary, repository};
use serde_json::Value;
use tempfile::TempDir;

const PRESETS: [&str; 7] = [
    "default",
    "bb-mcp-server",
    "mcp-chain",
    "bossman",
    "fpf-governance",
    "buddyboss",
    "everything",
];

/// Runs `creole` in this folder, with an empty stdin.
fn creole_in(folder: &Path, words: &[&str]) -> FinishedCommand {
    Command::new(binary().expect("the binary under test"))
        .args(words)
        .current_dir(folder)
        .env_remove("CREOLE_TEST_UNSET")
        .env("CREOLE_TEST_NAME", "ann")
        .env("CREOLE_WORDPRESS_URL", "https://example.org")
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs")
        .into()
}

fn creole(words: &[&str]) -> FinishedCommand {
    creole_in(&repository(), words)
}

/// Runs `config check` on a file `creole.toml` with this text.
fn check(text: impl AsRef<[u8]>) -> FinishedCommand {
    let folder = folder();
    fs::write(folder.path().join("creole.toml"), text).expect("the folder can be written");
    creole_in(folder.path(), &["config", "check", "creole.toml"])
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder for the test")
}

/// Asserts that a command succeeded and printed only this.
#[track_caller]
fn assert_prints(output: &FinishedCommand, stdout: &str) {
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    assert_eq!(output.stdout, stdout);
}

/// Asserts that a command failed and printed nothing on stdout.
#[track_caller]
fn assert_refused(output: &FinishedCommand, stderr: &str) {
    assert_eq!(output.stderr, stderr);
    assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""));
}

const SHORT_HELP: &str = "\
Connects any MCP client to any MCP server

Usage: creole <COMMAND>

Commands:
  serve        Serve a configuration to MCP clients
  connect      Bridge stdio to another server of any revision and transport
  list         List the tools, resources, templates and prompts of a server
  call         Call a tool of a server
  read         Read a resource of a server
  prompt       Render a prompt of a server
  check        Check a server: its revision and transport, what clients of each revision get, and problems of names and schemas
  status       Show the state of each upstream of a configuration, or of one server
  login        Log in to a server that requires OAuth, and store the login
  logout       Revoke and delete a stored login
  logins       List the stored logins
  init         Write a first configuration
  add          Add a server to a configuration
  install      Write an entry for Creole into the configuration of a client
  import       Convert the configuration of another client to a Creole configuration
  config       Show, check and describe configurations
  policy       Test and explain the policy of a configuration
  audit        Check and search audit logs
  passwd       Add, change and remove users and keys
  completions  Print a completion script for a shell
  man          Print the manual, or write one page per command
  console      Print a link that signs in to the console of a running server
  top          Show the upstreams of a running server: rates, latencies, errors and calls in flight
  trace        Print what happens in a call of a running server: layers, upstreams and translation
  approve      Show withheld tools whose definitions changed, and approve them
  help         Print this message or the help of the given subcommand(s)

Options:
  -h, --help     Print help (see more with '--help')
  -V, --version  Print version
";

const EXAMPLES: &str = r#"
Examples:
  creole serve                       serve the built-in tools on stdin and stdout
  creole init                        write a first configuration
  creole config check creole.toml    check the configuration and show what it means
  creole serve creole.toml           serve the configuration
  creole list -- creole serve        list the items of a server

A client such as Claude Desktop or Cursor starts Creole itself. `creole install` writes this entry into its configuration:
  { "mcpServers": { "creole": { "command": "creole", "args": ["serve"] } } }
"#;

#[test]
fn version_prints_name_and_version() {
    assert_prints(&creole(&["--version"]), &format!("creole {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn help_explains_itself_to_a_newcomer() {
    assert_prints(&creole(&["-h"]), &format!("{SHORT_HELP}{EXAMPLES}"));
    let long = creole(&["--help"]);
    assert_eq!((long.code, long.stderr.as_str()), (Some(0), ""));
    assert!(long.stdout.contains("over the Model Context Protocol"), "{}", long.stdout);
    assert!(long.stdout.ends_with(EXAMPLES), "{}", long.stdout);
}

#[test]
fn every_verb_has_help_with_an_example() {
    let verbs = "serve connect list call read prompt check status init add install import passwd completions man";
    let of_config = ["config show", "config check", "config schema", "config reference"];
    for verb in verbs.split(' ').chain(of_config) {
        let words: Vec<&str> = verb.split(' ').chain(["--help"]).collect();
        let help = creole(&words);
        assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""), "{verb:?}");
        assert!(help.stdout.contains("Example"), "{verb:?}\n{}", help.stdout);
    }
}

#[test]
fn no_arguments_show_the_short_help_and_are_refused() {
    assert_refused(&creole(&[]), &format!("{SHORT_HELP}{EXAMPLES}"));
}

#[test]
fn a_wrong_flag_is_refused_with_a_hint() {
    let expected = "\
error: unexpected argument '--pre' found

  tip: a similar argument exists: '--preset'
  tip: to pass '--pre' as a value, use '-- --pre'

Usage: creole serve [FILE | --preset <NAME>] [OPTIONS] [-- <COMMAND> [ARGS]...]

For more information, try '--help'.
";
    assert_refused(&creole(&["serve", "--pre"]), expected);
}

#[test]
fn a_wrong_verb_is_refused_with_a_hint() {
    let expected = "\
error: unrecognized subcommand 'sreve'

  tip: a similar subcommand exists: 'serve'

Usage: creole <COMMAND>

For more information, try '--help'.
";
    assert_refused(&creole(&["sreve"]), expected);
}

#[test]
fn a_file_and_a_preset_together_are_refused() {
    for verb in [&["serve"][..], &["config", "show"]] {
        let output = creole(&[verb, &["creole.toml", "--preset", "bossman"]].concat());
        let expected = format!(
            "error: the argument '[FILE]' cannot be used with '--preset <NAME>'\n\n\
             Usage: creole {} [FILE | --preset <NAME>]",
            verb.join(" ")
        );
        assert!(output.stderr.starts_with(&expected), "{}", output.stderr);
        assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""));
    }
}

#[test]
fn an_unknown_preset_is_refused_with_those_that_there_are() {
    let expected = "\
error: unknown preset `bosman`
  = help: did you mean `bossman`? the known presets are `default`, `bb-mcp-server`, `mcp-chain`, \
`bossman`, `fpf-governance`, `buddyboss`, `everything`
";
    assert_refused(&creole(&["serve", "--preset", "bosman"]), expected);
    assert_refused(&creole(&["config", "show", "--preset", "bosman"]), expected);
}

#[test]
fn a_missing_file_is_refused_with_a_way_to_begin() {
    let expected = "\
error: the file `creole.toml` does not exist
  = help: `creole config show > creole.toml` creates one
";
    let folder = folder();
    for verb in [&["serve"][..], &["config", "show"], &["config", "check"]] {
        let output = creole_in(folder.path(), &[verb, &["creole.toml"]].concat());
        assert_refused(&output, expected);
    }
}

#[test]
fn a_directory_is_refused() {
    let folder = folder();
    let output = creole_in(folder.path(), &["serve", "."]);
    assert_refused(&output, "error: `.` is a directory, not a configuration file\n");
}

#[test]
fn an_empty_path_is_refused() {
    let output = creole(&["serve", ""]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""));
    assert!(
        output.stderr.starts_with("error: a value is required for '[FILE]'"),
        "{}",
        output.stderr
    );
}

#[test]
fn a_file_that_is_not_utf_8_is_refused() {
    let expected = "\
error: `creole.toml` is not UTF-8 text (line 2)
  = help: save the file as UTF-8
";
    assert_refused(&check(b"[server]\nname = \"caf\xe9\"\n"), expected);
}

#[test]
fn invalid_toml_is_shown_with_its_position() {
    let expected = "\
error: not valid TOML: unclosed table, expected `]`
 --> creole.toml:1:8
  |
1 | [server
  |        ^
";
    assert_refused(&check("[server\nname = \"acme\"\n"), expected);
}

#[test]
fn an_unknown_key_is_shown_with_a_similar_one() {
    let expected = "\
error: unknown key `pakcs`
 --> creole.toml:3:1
  |
3 | pakcs = [\"echo\"]
  | ^^^^^
  = help: did you mean `packs`?
";
    assert_refused(&check("[server]\nname = \"acme\"\npakcs = [\"echo\"]\n"), expected);
}

#[test]
fn a_wrong_type_is_shown_with_the_expected_one() {
    let expected = "\
error: expected a list, found the string \"echo\"
 --> creole.toml:2:9
  |
2 | packs = \"echo\"
  |         ^^^^^^
  = help: write a list of strings: `[\"…\", \"…\"]`
";
    assert_refused(&check("[server]\npacks = \"echo\"\n"), expected);
}

#[test]
fn an_unknown_value_is_shown_with_the_allowed_ones() {
    let expected = "\
error: unknown value `jsno`
 --> creole.toml:3:10
  |
3 | format = \"jsno\"
  |          ^^^^^^
  = help: did you mean `json`? the allowed values are `text`, `json`, `off`
";
    assert_refused(&check("[server]\n[log]\nformat = \"jsno\"\n"), expected);
}

#[test]
fn an_unknown_pack_is_shown_with_the_known_ones() {
    let output = check("[server]\npacks = [\"echo\", \"task\"]\n");
    let expected = "\
error: unknown pack `task`
 --> creole.toml:2:18
  |
2 | packs = [\"echo\", \"task\"]
  |                  ^^^^^^
  = help: did you mean `tasks`?";
    assert!(output.stderr.starts_with(expected), "{}", output.stderr);
    assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""));
}

#[test]
fn an_unset_variable_is_shown_where_it_is_used() {
    let expected = "\
error: the environment variable `CREOLE_TEST_UNSET` is not set
 --> creole.toml:2:12
  |
2 | name = \"my-${CREOLE_TEST_UNSET}\"
  |            ^^^^^^^^^^^^^^^^^^^^
  = help: set it, or write `${CREOLE_TEST_UNSET:-text}` with a default value
";
    assert_refused(&check("[server]\nname = \"my-${CREOLE_TEST_UNSET}\"\n"), expected);
}

#[test]
fn a_dialect_that_contradicts_itself_is_refused() {
    let expected = "\
error: `lifecycle` is strict, but `methods` has no notifications/initialized
 --> creole.toml:3:11
  |
3 | methods = [\"initialize\", \"tools/list\"]
  |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  = help: keys that this table does not set are inherited from the dialect that it extends
";
    let text =
        "[server.dialect]\nextends = \"bossman\"\nmethods = [\"initialize\", \"tools/list\"]\n";
    assert_refused(&check(text), expected);
}

#[test]
fn serve_refuses_every_configuration_that_check_refuses() {
    let folder = folder();
    fs::write(folder.path().join("creole.toml"), "[server]\npage_size = 0\n").unwrap();
    let served = creole_in(folder.path(), &["serve", "creole.toml"]);
    assert_eq!(served.code, Some(2));
    assert_eq!(served, creole_in(folder.path(), &["config", "check", "creole.toml"]));
}

#[test]
fn show_prints_each_preset_verbatim() {
    for preset in PRESETS {
        let file = repository().join("presets").join(format!("{preset}.toml"));
        let text = fs::read_to_string(file).unwrap();
        assert_prints(&creole(&["config", "show", "--preset", preset]), &text);
    }
    assert_eq!(creole(&["config", "show"]), creole(&["config", "show", "--preset", "default"]));
}

#[test]
fn each_shown_preset_is_a_valid_file() {
    for preset in PRESETS {
        let shown = creole(&["config", "show", "--preset", preset]);
        let checked = check(&shown.stdout);
        assert_eq!((checked.code, checked.stderr.as_str()), (Some(0), ""), "{preset}");
        assert!(checked.stdout.starts_with("creole.toml is valid.\n"), "{preset}");
    }
}

#[test]
fn check_prints_a_summary() {
    let text = r#"
[server]
name = "acme-${CREOLE_TEST_NAME}"
title = "Acme"
version = "1.2.3"
packs = ["echo", "tasks"]
page_size = 20
limits = { call_timeout_seconds = 5, calls_in_flight = 10 }

[server.dialect]
extends = "bossman"
name = "house"
paging = true

[log]
level = "info"
payloads = true
"#;
    let expected = "\
creole.toml is valid.
  server   acme-ann 1.2.3 (Acme)
  dialect  house, based on 2025-03-26: Based on `bossman`, with changes.
  packs    echo, tasks
  limits   20 items per page, 1048576 bytes per message, 10 calls at once,
           timeouts: 5 s for a silent call, 600 s for any call, 600 s for input,
           2 s for the first lists of slow upstreams,
           1000 tasks, 100 per principal, kept for 900 s, at most 86400 s
  log      text, info, with arguments and results
";
    assert_prints(&check(text), expected);
}

#[test]
fn schema_prints_a_json_schema_with_every_table() {
    let output = creole(&["config", "schema"]);
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    let schema: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["properties"]["server"]["$ref"], "#/$defs/ServerTable");
    for table in ["ServerTable", "DialectTable", "ErrorTable", "LimitsTable", "LogTable"] {
        assert_eq!(schema["$defs"][table]["additionalProperties"], false, "{table}");
    }
    assert!(output.stdout.contains("\"tasks\""), "the packs are listed");
}

#[test]
fn serve_answers_on_stdout_and_logs_one_line_per_event_on_stderr() {
    let (stdout, stderr) = served(TALKATIVE, &["--log", "json"], &[PING_WITH_LINE_BREAK]);
    let response: Value = serde_json::from_str(&stdout).expect("one line of JSON");
    assert_eq!(response["id"], "a\nb");
    assert!(!stderr.is_empty());
    for line in stderr.lines() {
        let event: Value = serde_json::from_str(line).expect(line);
        assert_eq!(event["level"], "INFO", "{line}");
    }
    let (_, text) = served(TALKATIVE, &[], &[PING_WITH_LINE_BREAK]);
    assert_eq!(text.lines().count(), stderr.lines().count(), "{text}");
    assert!(text.lines().all(|line| line.contains("Z  INFO ")), "{text}");
    assert_eq!(served(TALKATIVE, &["--log", "off"], &[PING_WITH_LINE_BREAK]).1, "");
}

#[test]
fn an_unread_log_never_delays_a_response() {
    let folder = folder();
    fs::write(folder.path().join("creole.toml"), TALKATIVE).unwrap();
    let mut child = Command::new(binary().unwrap())
        .args(["serve", "creole.toml"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..2000 {
        writeln!(stdin, "{PING_WITH_LINE_BREAK}").unwrap();
        assert!(answers.next().unwrap().unwrap().contains("\"id\""));
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

/// A configuration that logs each request, whatever its outcome.
const TALKATIVE: &str = "[server]\n[log]\nlevel = \"info\"\n";

const PING_WITH_LINE_BREAK: &str = r#"{"jsonrpc":"2.0","id":"a\nb","method":"ping"}"#;

/// The stdout and stderr of `creole serve` for these input lines.
fn served(config: &str, flags: &[&str], lines: &[&str]) -> (String, String) {
    let folder = folder();
    fs::write(folder.path().join("creole.toml"), config).expect("the folder can be written");
    let mut child = Command::new(binary().expect("the binary under test"))
        .args(["serve", "creole.toml"])
        .args(flags)
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    for line in lines {
        writeln!(stdin, "{line}").expect("the server reads");
    }
    drop(stdin);
    let output = child.wait_with_output().expect("the server ends");
    assert!(output.status.success());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (text(output.stdout), text(output.stderr))
}

#[cfg(unix)]
#[test]
fn a_reader_that_stops_reading_is_no_failure() {
    let mut child = Command::new(binary().unwrap())
        .args(["config", "schema"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}
