//! Tests of programs and presets on the command line: their environment and their dialect.

use creole_acceptance::process_under_test::told;
use serde_json::json;
use tempfile::TempDir;

use crate::{command, creole, initialized, write};

/// A server that takes its name from two environment variables, and does not start without them.
const TELLING: &str = "\
[server]
name = \"${HANDED_ON}-${GIVEN}\"
packs = [\"hello\"]
";

/// A folder with a configuration of that server.
fn server_folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "telling.toml", TELLING);
    folder
}

#[test]
fn a_program_gets_the_environment_variables_that_the_command_line_names() {
    let (folder, creole) = (server_folder(), creole());
    for verb in ["serve", "connect"] {
        let entries = [verb, "--env", "HANDED_ON", "--env", "GIVEN=two"];
        let program = ["--", &creole, "serve", "telling.toml"];
        let mut command = command(folder.path(), &[&entries[..], &program[..]].concat());
        command.env("HANDED_ON", "one");
        let (server, initialize_result) = initialized(command);
        assert_eq!(
            initialize_result["serverInfo"]["name"], "one-two",
            "{verb}: {initialize_result}"
        );
        let _ = server.finish();
    }
}

#[test]
fn an_entry_that_is_not_there_is_missed_at_once() {
    let folder = server_folder();
    for verb in ["serve", "connect"] {
        let words = [verb, "--env", "HANDED_ON", "--", "true"];
        let output = command(folder.path(), &words).env_remove("HANDED_ON").output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{verb}");
        let expected = "error: the environment variable `HANDED_ON` is not set; set it, or write `HANDED_ON=VALUE`\n";
        assert_eq!(String::from_utf8_lossy(&output.stderr), expected, "{verb}");
    }
}

#[test]
fn an_upstream_dialect_is_used_whether_configured_or_detected() {
    let (folder, creole) = (tempfile::tempdir().unwrap(), creole());
    let program = ["--", &creole, "serve", "--preset", "bb-mcp-server"];
    let said: [&[&str]; 4] = [
        &["connect"],
        &["serve"],
        &["connect", "--dialect", "bb-mcp-server"],
        &["connect", "--preset", "bb-mcp-server"],
    ];
    for words in said {
        let is_named = words.contains(&"--preset");
        let behind = if is_named { &[][..] } else { &program[..] };
        let (mut server, initialize_result) =
            initialized(command(folder.path(), &[words, behind].concat()));
        assert_eq!(initialize_result["serverInfo"]["name"], "bb-mcp-server", "{words:?}");
        let response = server.call("hello", &json!({"name": "Ann"}));
        assert_eq!(told(&response).as_deref(), Ok("Hello, Ann!"), "{words:?}");
        let ended = server.finish();
        let is_guessed = words.len() == 1;
        assert_eq!(
            ended.log.contains("deviates from the specification"),
            is_guessed,
            "{}",
            ended.log
        );
    }
}

#[test]
fn connect_logs_each_step_at_debug_level() {
    let folder = tempfile::tempdir().unwrap();
    for (debug, is_logged) in [(&["--debug"][..], true), (&[][..], false)] {
        let words = [&["connect", "--preset", "fpf-governance"], debug].concat();
        let (mut server, _) = initialized(command(folder.path(), &words));
        server.ping();
        let ended = server.finish();
        assert_eq!(ended.log.contains("request completed"), is_logged, "{}", ended.log);
    }
}
