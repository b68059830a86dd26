//! Tests of the binary's verbs that use another server: exit code, stdout and stderr.
#![cfg(unix)]

use std::fs;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use creole_acceptance::http::server::ListeningServer;
use creole_acceptance::process_under_test::finished_command::output_of;
use creole_acceptance::stage::stdio::{binary, repository};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;
use tempfile::TempDir;

/// The exit code, stdout and stderr of a command.
#[derive(Debug, PartialEq)]
struct CommandOutput {
    code: Option<i32>,
    stdout: Vec<u8>,
    stderr: String,
}

impl CommandOutput {
    fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).expect("UTF-8")
    }

    #[track_caller]
    fn json(&self) -> Value {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        serde_json::from_str(self.text()).expect("one JSON document")
    }
}

/// A folder in which commands run, which is also the data directory.
struct Sandbox(TempDir);

impl Sandbox {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder for the test"))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(binary().expect("the binary under test"));
        command.args(words).current_dir(self.path());
        command.env("CREOLE_DATA_DIR", self.path()).env("NO_COLOR", "1");
        command
    }

    /// Runs `creole` with this text on stdin.
    fn run_with(&self, words: &[&str], typed: &str) -> CommandOutput {
        let output = output_of(&mut self.command(words), typed);
        let stderr = String::from_utf8(output.stderr).expect("UTF-8");
        CommandOutput { code: output.status.code(), stdout: output.stdout, stderr }
    }

    fn run(&self, words: &[&str]) -> CommandOutput {
        self.run_with(words, "")
    }

    /// Runs a verb with `creole serve` and a configuration of this text as its program.
    fn run_on_program(&self, words: &[&str], configuration: &str) -> CommandOutput {
        fs::write(self.path().join("behind.toml"), configuration)
            .expect("the folder can be written");
        let data = format!("CREOLE_DATA_DIR={}", self.path().display());
        let program = binary().expect("the binary under test").display().to_string();
        let behind = ["--env", &data, "--", &program, "serve", "behind.toml"];
        self.run(&[words, &behind].concat())
    }
}

/// The fixtures of the conformance suite, in one era or in both.
fn everything(era: &str) -> String {
    format!("[server]\npacks = [\"everything\"]\n[server.dialect]\nextends = \"spec\"\n{era}\n")
}

const ERAS: [&str; 2] = ["handshake = false", "stateless = false"];

#[track_caller]
fn assert_ran(output: &CommandOutput, code: i32, stdout: &str, stderr: &str) {
    assert_eq!(output.stderr, stderr);
    assert_eq!((output.code, output.text()), (Some(code), stdout));
}

#[test]
fn a_list_is_the_same_over_every_transport() {
    let sandbox = Sandbox::new();
    let preset = sandbox.run(&["list", "tools", "--json", "--preset", "everything"]).json();
    assert!(preset["tools"].as_array().is_some_and(|tools| tools.len() > 40));
    let listening =
        ListeningServer::start(&["--preset", "everything"]).expect("the server listens");
    assert_eq!(sandbox.run(&["list", &listening.url(), "tools", "--json"]).json(), preset);
    for era in ERAS {
        let program = sandbox.run_on_program(&["list", "tools", "--json"], &everything(era)).json();
        assert_eq!(
            program["tools"].as_array().map(Vec::len),
            preset["tools"].as_array().map(Vec::len)
        );
    }
}

#[test]
fn a_list_for_people_has_names_descriptions_and_arguments() {
    let expected = "\
tools (3)
  hello      Returns a greeting message
             name string
  echo       Returns the given message
             message string
  calculate  …
             expression string
";
    let output = Sandbox::new().run(&["list", "--preset", "bb-mcp-server"]);
    let (before, after) = expected.split_once('…').expect("an ellipsis");
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    assert!(
        output.text().starts_with(before) && output.text().ends_with(after),
        "{}",
        output.text()
    );
}

#[test]
fn call_prints_only_the_result_on_stdout() {
    let sandbox = Sandbox::new();
    let hello = ["call", "--preset", "default", "hello", "--arg", "name=World"];
    assert_ran(&sandbox.run(&hello), 0, "Hello, World!\n", "");
    let whole = sandbox.run(&[&hello[..], &["--json"]].concat()).json();
    assert_eq!(whole["content"][0]["text"], "Hello, World!");
    let object = ["call", "--preset", "default", "hello", "--args"];
    let given = sandbox.run(&[&object[..], &[r#"{"name":"X"}"#]].concat());
    assert_ran(&given, 0, "Hello, X!\n", "");
    let piped = sandbox.run_with(&[&object[..], &["-"]].concat(), r#"{"name":"Y"}"#);
    assert_ran(&piped, 0, "Hello, Y!\n", "");
}

#[test]
fn a_call_works_over_http_and_in_either_era_of_a_program() {
    let sandbox = Sandbox::new();
    let listening =
        ListeningServer::start(&["--preset", "everything"]).expect("the server listens");
    let output = sandbox.run(&["call", &listening.url(), "test_simple_text"]);
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    for era in ERAS {
        let other = sandbox.run_on_program(&["call", "test_simple_text"], &everything(era));
        assert_eq!(other, output, "{era}");
    }
    let header = ["call", &listening.url(), "test_custom_header", "--arg", "value=v"];
    assert_eq!(sandbox.run(&header).code, Some(0), "the argument is mirrored in a header");
}

#[test]
fn a_tool_that_fails_is_a_failure_with_a_reason() {
    let sandbox = Sandbox::new();
    let call = ["call", "--preset", "everything", "test_error_handling"];
    let reason = "error: the tool `test_error_handling` failed: This tool intentionally returns an \
                  error for testing\n";
    assert_ran(&sandbox.run(&call), 1, "", reason);
    let whole = sandbox.run(&[&call[..], &["--json"]].concat());
    let read: Value = serde_json::from_str(whole.text()).expect("JSON on stdout all the same");
    assert_eq!((whole.code, &read["isError"]), (Some(1), &Value::Bool(true)));
}

#[test]
fn an_invalid_command_line_is_reported_with_a_correct_one() {
    let sandbox = Sandbox::new();
    let cases: [(&[&str], i32, &str); 13] = [
        (
            &["call", "--preset", "default", "helo"],
            1,
            "error: `default` has no tool `helo`: did you mean `hello`?\n",
        ),
        (
            &["call", "--preset", "default", "hello"],
            2,
            "error: the tool `hello` also needs --arg name=STRING\n",
        ),
        (
            &["call", "--preset", "default"],
            2,
            "error: the tool is missing; `creole list` shows what the server offers\n",
        ),
        (
            &["call", "--preset", "default", "hello", "--arg", "name"],
            2,
            "error: invalid argument `name`; write `name=value`\n",
        ),
        (
            &["call", "--preset", "default", "hello", "name=World"],
            2,
            "error: unexpected argument `name=World`; write --arg name=World\n",
        ),
        (
            &["call", "http://127.0.0.1:1/mcp", "hello", "name=World", "loud=yes"],
            2,
            "error: unexpected argument `name=World`; write --arg name=World\n",
        ),
        (
            &["call", "--preset", "default", "hello", "--args", "[]"],
            2,
            "error: `--args` takes a JSON object, such as `{\"a\":1}`\n",
        ),
        (
            &["call", "--preset", "everything", "test_slow", "--arg", "milliseconds=many"],
            2,
            "error: the argument `milliseconds` of `test_slow` must be an integer, not `many`\n",
        ),
        (
            &["list", "--preset", "default", "toools"],
            2,
            "error: unknown kind `toools`; write tools, resources, templates or prompts\n",
        ),
        (
            &["list", "tools"],
            2,
            "error: invalid URL `tools`, and no other server is given: write a URL such as \
            `https://example.com/mcp`, `--config FILE`, `--preset NAME`, or `-- COMMAND ARGS` at the end\n",
        ),
        (
            &["connect", "tools"],
            2,
            "error: invalid URL `tools`, and no other server is given: write a URL such as \
            `https://example.com/mcp`, `--preset NAME` or `-- COMMAND ARGS` at the end\n",
        ),
        (
            &["prompt", "--preset", "default", "plan_task"],
            2,
            "error: the prompt `plan_task` also needs --arg goal=TEXT\n",
        ),
        (
            &["list", "--", "./no-such-program"],
            1,
            "error: the program `no-such-program` does not exist\n",
        ),
    ];
    for (words, code, stderr) in cases {
        assert_ran(&sandbox.run(words), code, "", stderr);
    }
}

#[test]
fn a_server_that_is_not_there_is_a_failure() {
    let output = Sandbox::new().run(&["list", "http://127.0.0.1:1/mcp"]);
    assert_ran(&output, 1, "", "error: `127.0.0.1:1` refuses connections\n");
}

#[test]
fn a_resource_is_read_as_it_is() {
    let sandbox = Sandbox::new();
    let read = |uri: &str| sandbox.run(&["read", "--preset", "everything", uri]);
    let text = read("test://static-text");
    assert_eq!((text.code, text.stderr.as_str()), (Some(0), ""));
    assert!(!text.stdout.is_empty());
    let bytes = read("test://static-binary");
    assert!(bytes.stdout.starts_with(b"\x89PNG"), "{:?}", bytes.stdout);
    let missing = read("test://missing");
    assert_eq!((missing.code, missing.text()), (Some(1), ""));
    assert!(missing.stderr.starts_with("error: `everything`: "), "{}", missing.stderr);
}

#[test]
fn a_prompt_shows_the_role_of_each_message() {
    let sandbox = Sandbox::new();
    let words = ["prompt", "--preset", "default", "plan_task", "--arg", "goal=Ship it"];
    let output = sandbox.run(&words);
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    assert!(
        output.text().starts_with("user:\n") && output.text().contains("Ship it"),
        "{}",
        output.text()
    );
    let whole = sandbox.run(&[&words[..], &["--json"]].concat()).json();
    assert_eq!(whole["messages"][0]["role"], "user");
}

#[test]
fn log_messages_go_to_stderr_and_progress_to_terminals_only() {
    let sandbox = Sandbox::new();
    let logs = "server: info: Tool execution started\nserver: info: Tool processing data\n\
                server: info: Tool execution completed\n";
    let done = "Tool with logging executed successfully\n";
    for era in ERAS {
        let call = ["call", "test_tool_with_logging"];
        assert_ran(&sandbox.run_on_program(&call, &everything(era)), 0, done, logs);
        let quiet = [&call[..], &["--level", "error"]].concat();
        assert_ran(&sandbox.run_on_program(&quiet, &everything(era)), 0, done, "");
        let progress =
            sandbox.run_on_program(&["call", "test_tool_with_progress"], &everything(era));
        assert_eq!((progress.code, progress.stderr.as_str()), (Some(0), ""));
    }
}

#[test]
fn input_requests_are_declined_without_a_terminal() {
    let sandbox = Sandbox::new();
    for era in ERAS {
        let call = ["call", "test_elicitation", "--arg", "message=Who are you?"];
        let output = sandbox.run_on_program(&call, &everything(era));
        let message = "creole: the server requests input: Who are you?\n\
                    creole: declined, because there is no terminal\n";
        assert_ran(&output, 0, "User response: action=decline, content={}\n", message);
        let sampling = ["call", "test_sampling", "--arg", "prompt=x"];
        let output = sandbox.run_on_program(&sampling, &everything(era));
        assert_eq!((output.code, output.text()), (Some(1), ""), "{era}");
        assert!(output.stderr.contains("sampling"), "{}", output.stderr);
    }
}

#[test]
fn the_current_directory_is_offered_only_with_the_option() {
    let sandbox = Sandbox::new();
    let call = ["call", "--preset", "everything", "test_input_required_result_list_roots"];
    assert_eq!(sandbox.run(&call).code, Some(1));
    let output = sandbox.run(&[&call[..], &["--root"]].concat());
    let folder = sandbox.path().file_name().expect("a name").to_string_lossy().into_owned();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(
        output.text().contains("file:///") && output.text().contains(&folder),
        "{}",
        output.text()
    );
}

/// Both ends of a terminal: the user's and the process's.
fn terminal() -> (File, File) {
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&person).expect("it may be used");
    unlockpt(&person).expect("it is unlocked");
    let name = ptsname(&person, Vec::new()).expect("a name").into_string().expect("UTF-8");
    let process = OpenOptions::new().read(true).write(true).open(name).expect("its other end");
    (File::from(person), process)
}

/// Runs a command at a terminal with this typed input. Returns its exit code, its stdout and the text on the terminal.
fn at_terminal(sandbox: &Sandbox, words: &[&str], typed: &str) -> (Option<i32>, String, String) {
    let (mut person, process) = terminal();
    person.write_all(typed.as_bytes()).expect("the terminal takes it");
    let mut child = sandbox
        .command(words)
        .stdin(process.try_clone().expect("a handle"))
        .stderr(process)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut stdout = String::new();
    let mut pipe = child.stdout.take().expect("a pipe");
    pipe.read_to_string(&mut stdout).expect("UTF-8");
    let code = child.wait().expect("the command ends").code();
    let (mut shown, mut chunk) = (Vec::new(), [0; 4096]);
    // After the last process has closed the terminal, a read returns an error.
    while let Ok(count @ 1..) = person.read(&mut chunk) {
        shown.extend_from_slice(&chunk[..count]);
    }
    (code, stdout, String::from_utf8_lossy(&shown).into_owned())
}

#[test]
fn questions_are_asked_at_the_terminal() {
    let sandbox = Sandbox::new();
    let call = ["call", "--preset", "everything", "test_elicitation_sep1034_defaults"];
    // Every field has a default.
    let (code, stdout, shown) = at_terminal(&sandbox, &call, "\n\n\n\n\n\n\n\n");
    assert_eq!(code, Some(0), "{shown}");
    assert!(stdout.contains("action=accept"), "{stdout}\n{shown}");
    assert!(
        shown.contains("The server requests input: ") && shown.contains("Enter for"),
        "{shown}"
    );
    let (code, stdout, _) = at_terminal(&sandbox, &call, "!no\n");
    assert_eq!((code, stdout.contains("action=decline")), (Some(0), true), "{stdout}");
    let url = ["call", "--preset", "everything", "test_elicitation_url"];
    let (_, stdout, shown) = at_terminal(&sandbox, &url, "\n");
    assert!(stdout.contains("action=accept") && shown.contains("http"), "{stdout}\n{shown}");
}

#[test]
fn progress_is_shown_at_a_terminal() {
    let call = ["call", "--preset", "everything", "test_tool_with_progress"];
    let (code, _, shown) = at_terminal(&Sandbox::new(), &call, "");
    assert_eq!(code, Some(0));
    assert!(shown.contains("[############------------] 50/100"), "{shown:?}");
    let call = ["call", "--preset", "everything", "failing_job"];
    let (code, _, shown) = at_terminal(&Sandbox::new(), &call, "");
    assert_eq!(code, Some(1));
    assert!(shown.contains(" 1 the task is running"), "{shown:?}");
}

#[test]
fn check_says_how_a_server_speaks_and_what_each_client_gets() {
    let sandbox = Sandbox::new();
    let listening =
        ListeningServer::start(&["--preset", "everything"]).expect("the server listens");
    let report = sandbox.run(&["check", &listening.url(), "--json"]).json();
    assert_eq!(report["era"], "stateless");
    assert_eq!(report["transport"], "Streamable HTTP");
    assert_eq!(report["versions"].as_array().map(Vec::len), Some(5));
    assert_eq!(report["clients"]["elicitation"]["2024-11-05"]["support"], "refused");
    assert_eq!(report["clients"]["tasks"]["2025-11-25"]["support"], "translated");
    assert_eq!(report["clients"]["roots"]["2024-11-05"]["support"], "translated");
    assert_eq!((&report["dialect"], &report["dialectIsCertain"]), (&"spec".into(), &false.into()));
    let old = sandbox.run_on_program(&["check", "--json"], &everything(ERAS[1])).json();
    assert_eq!((&old["era"], &old["transport"]), (&"handshake".into(), &"stdio".into()));
    assert_eq!(old["revision"], "2025-11-25");
    assert_eq!(old["clients"]["elicitation"]["2026-07-28"]["support"], "translated");
    let output = sandbox.run(&["check", &listening.url()]);
    assert!(output.text().contains("dialect    spec, according to its handshake\n"));
    let text = sandbox.run(&["check", "--preset", "default"]);
    assert!(text.text().contains("dialect    spec\n"), "{}", text.text());
    assert!(text.text().contains("No findings in names and schemas."), "{}", text.text());
}

#[test]
fn check_knows_a_dialect_and_counts_noise() {
    let sandbox = Sandbox::new();
    let program = binary().expect("the binary under test").display().to_string();
    let script = format!("echo welcome; exec {program} serve --preset bb-mcp-server");
    let output = sandbox.run(&["check", "--json", "--", "sh", "-c", &script]);
    let message =
        "creole: `sh` deviates from the specification; using the dialect `bb-mcp-server`\n";
    assert_eq!(output.stderr, message);
    let report = output.json();
    assert_eq!((&report["dialect"], &report["violations"]), (&"bb-mcp-server".into(), &1.into()));
}

/// A shell script that is a server of 2025-06-18 and lists tools with invalid definitions.
const CARELESS: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"careless","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[
      {"name":"get.it","description":"Gets it","inputSchema":{"type":"object"}},
      {"name":"get_it","inputSchema":{"type":"object","properties":{"a":{"type":"string","description":"a","required":true}}}},
      {"name":"far","description":"Refers","inputSchema":{"type":"object","properties":{"a":{"$ref":"https://example.com/a.json"}}}},
      {"name":"head","description":"Heads","inputSchema":{"type":"object","properties":{"a":{"type":"array","description":"a","x-mcp-header":"A"}}}}]}' ;;
    *) continue ;;
  esac
  [ -n "$id" ] && printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$(printf '%s' "$result" | tr '\n' ' ')"
done
"#;

#[test]
fn check_finds_what_is_wrong_with_names_and_schemas() {
    let output = Sandbox::new().run(&["check", "--", "sh", "-c", CARELESS]);
    let expected = "\
findings (6)
  tool `get.it` has `.` in its name; some clients accept only A-Z a-z 0-9 _ -
  tool `get_it` has a name that is confusable with `get.it`
  tool `get_it` has no description; models choose tools by their descriptions
  tool `get_it` has `\"required\": true` in its schema, which is JSON Schema draft 3; write a list of names beside `properties`
  tool `far` has a reference to `https://example.com/a.json` in its `inputSchema`, which clients must not fetch
  tool `head` has an `x-mcp-header` that clients must refuse: `x-mcp-header`: `A` ";
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    assert!(output.text().contains(expected), "{}", output.text());
    assert!(output.text().contains("revision   2025-06-18 (handshake)\n"), "{}", output.text());
}

const DESKTOP: &str = r#"{
  // Comments and trailing commas are usual.
  "mcpServers": {
    "files": {"command": "npx", "args": ["-y", "some-server", "${HOME}/data"], "env": {"API_TOKEN": "hunter2"},},
    "my remote": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${env:REMOTE}"}},
  },
}"#;

#[test]
fn an_imported_configuration_is_valid_and_has_no_secrets() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path().join("desktop.json"), DESKTOP).expect("the folder can be written");
    let import = ["import", "desktop.json", "--output", "creole.toml"];
    let message = "\
creole: `my remote` was renamed to `my-remote`
creole: secrets were not copied; set these variables in the environment of creole: API_TOKEN
creole: creole also needs these environment variables: HOME, REMOTE
creole: wrote creole.toml; `creole config check creole.toml` checks it
";
    assert_ran(&sandbox.run(&import), 0, "", message);
    let text = fs::read_to_string(sandbox.path().join("creole.toml")).expect("the file is there");
    assert!(!text.contains("hunter2"), "{text}");
    let output = sandbox
        .command(&["config", "check", "creole.toml"])
        .env("API_TOKEN", "x")
        .env("REMOTE", "y")
        .env("HOME", repository())
        .output()
        .expect("the binary runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let again = sandbox.run(&import);
    let refused = "error: `creole.toml` already exists and is not overwritten; choose another \
        file, or move it away\n";
    assert_ran(&again, 2, "", refused);
    let shown = sandbox.run(&["import", "desktop.json"]);
    assert_eq!((shown.code, shown.text()), (Some(0), text.as_str()));
}
