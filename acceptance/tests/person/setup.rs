//! Tests of the verbs that set Creole up: a configuration, a client, a shell, a manual.

use std::process::Command;

use creole_acceptance::process_under_test::finished_command::FinishedCommand;
use serde_json::Value;

use crate::working_folder::{Sandbox, at_terminal};

/// The program's path, as `--dry-run` and the other verbs print it.
fn program() -> String {
    let binary = creole_acceptance::stage::stdio::binary().expect("the binary under test");
    let whole = std::fs::canonicalize(binary).expect("it is there");
    whole.display().to_string()
}

#[track_caller]
fn assert_refused(output: &FinishedCommand, with: &str) {
    assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""), "{}", output.stderr);
    assert!(output.stderr.contains(with), "{}", output.stderr);
}

#[test]
fn init_writes_a_valid_configuration_from_its_flags() {
    let sandbox = Sandbox::new();
    sandbox.write("docs/a.md", "# A");
    let words = [
        "init",
        "--name",
        "team",
        "--upstream",
        "files=sh -c 'cat >/dev/null'",
        "--upstream",
        "far=https://example.com/mcp",
        "--folder",
        "docs=docs",
        "--http",
        "127.0.0.1:0",
    ];
    let output = sandbox.run(&words).succeeded();
    assert_eq!(output.stdout, "");
    let text = sandbox.read("creole.toml");
    assert!(text.starts_with("#:schema ./creole.schema.json\n"), "{text}");
    assert!(text.contains("command = [\"sh\", \"-c\", \"cat >/dev/null\"]"), "{text}");
    let schema: Value = serde_json::from_str(&sandbox.read("creole.schema.json")).expect("JSON");
    assert!(schema["properties"]["upstreams"].is_object());
    sandbox.run(&["config", "check", "creole.toml"]).succeeded();
    assert_refused(&sandbox.run(&words), "`creole.toml` already exists and is not overwritten");
}

#[test]
fn init_prompts_only_at_a_terminal() {
    let sandbox = Sandbox::new();
    let typed = "9\n1,4\nfiles\ncat\ndocs\n.\n\n";
    let (code, shown) = at_terminal(&mut sandbox.command(&["init"]), 100, typed);
    assert_eq!(code, Some(0), "{shown}");
    assert!(
        shown.contains("What should it contain?")
            && shown.contains("invalid number `9`; choose from the list"),
        "{shown}"
    );
    let text = sandbox.read("creole.toml");
    assert!(text.contains("[upstreams.files]\ncommand = [\"cat\"]\n"), "{text}");
    assert!(
        text.contains("[folders.docs]\npath = \".\"\n") && text.contains("# [http]\n"),
        "{text}"
    );
    let (code, shown) = at_terminal(&mut sandbox.command(&["init", "b.toml"]), 100, "\x04");
    assert_eq!(code, Some(2), "{shown}");
    assert!(!sandbox.path().join("b.toml").exists());
    let output = sandbox.run(&["init", "-"]).succeeded();
    assert!(
        output.stdout.contains("packs = [\"hello\", \"echo\", \"calculate\"]"),
        "{}",
        output.stdout
    );
    let words = ["init", "c.toml", "--upstream", "a__b=cat"];
    assert_refused(&sandbox.run(&words), "invalid name `a__b`");
}

const MINE: &str = "# Mine.\n[server] # here\nname = \"x\"\n\n[http]\nlisten = \"127.0.0.1:0\"\n";

#[test]
fn add_inserts_a_server_and_keeps_the_rest_of_the_file() {
    let sandbox = Sandbox::new();
    sandbox.write("creole.toml", MINE);
    let program = ["add", "files", "--env", "A=b", "--env", "HOME", "--", "cat", "a b"];
    sandbox.run(&program).succeeded();
    let far = [
        "add",
        "far",
        "https://example.com/mcp",
        "--header",
        "Authorization: Bearer ${NO_SUCH_TOKEN}",
    ];
    sandbox.run(&far).succeeded();
    let expected = format!(
        "{MINE}\n[upstreams.files]\ncommand = [\"cat\", \"a b\"]\nenv = {{ A = \"b\" }}\nenv_pass = [\"HOME\"]\n\
         \n[upstreams.far]\nurl = \"https://example.com/mcp\"\nheaders = {{ Authorization = \"Bearer ${{NO_SUCH_TOKEN}}\" }}\n"
    );
    assert_eq!(sandbox.read("creole.toml"), expected);
    assert_refused(&sandbox.run(&program), "already has an upstream `files`");
    assert_refused(&sandbox.run(&["add", "a__b", "--", "cat"]), "`a__b`");
    assert_refused(&sandbox.run(&["add", "x", "ftp://a"]), "ftp://a");
    assert_eq!(sandbox.read("creole.toml"), expected);
    sandbox.run(&["add", "x", "--config", "new.toml", "--", "cat"]).succeeded();
    sandbox.run(&["config", "check", "new.toml"]).succeeded();
}

const SETTINGS: &str =
    "{\n  // Mine.\n  \"servers\": {\n    \"other\": { \"command\": \"x\" }, // keep\n  },\n}\n";

#[test]
fn install_writes_the_clients_own_file_after_showing_the_change() {
    let sandbox = Sandbox::new();
    sandbox.write("creole.toml", MINE);
    let file = ".config/Code/User/mcp.json";
    let mut words = vec!["install", "vscode", "--config", "creole.toml"];
    if cfg!(target_os = "macos") {
        words.extend(["--file", file]);
    }
    sandbox.write(file, SETTINGS);
    let config = std::fs::canonicalize(sandbox.path()).expect("it is there").join("creole.toml");
    let dry = sandbox.run(&[&words[..], &["--dry-run"]].concat()).succeeded();
    assert!(
        dry.stdout.contains(&format!("+       \"command\": \"{}\",", program())),
        "{}",
        dry.stdout
    );
    assert!(!dry.stdout.contains("other"), "{}", dry.stdout);
    let output = sandbox.run(&words);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("--yes writes the change"), "{}", output.stderr);
    let (code, shown) = at_terminal(&mut sandbox.command(&words), 200, "no\n");
    assert!(code == Some(0) && shown.contains("nothing was written"), "{shown}");
    assert_eq!(sandbox.read(file), SETTINGS);
    let (code, shown) = at_terminal(&mut sandbox.command(&words), 200, "yes\n");
    assert_eq!(code, Some(0), "{shown}");
    let text = sandbox.read(file);
    assert!(
        text.contains("// Mine.") && text.contains("{ \"command\": \"x\" }, // keep"),
        "{text}"
    );
    assert!(
        text.contains("\"type\": \"stdio\",")
            && text.contains(&format!("\"{}\"]", config.display())),
        "{text}"
    );
    assert_eq!(sandbox.read(&format!("{file}.backup")), SETTINGS);
    let second = sandbox.run(&[&words[..], &["--yes"]].concat()).succeeded();
    assert!(second.stdout.is_empty() && second.stderr.contains("already"), "{}", second.stderr);
    assert_eq!(sandbox.read(file), text);
}

#[test]
fn an_installed_entry_can_be_started_by_a_client() {
    let sandbox = Sandbox::new();
    sandbox.write("creole.toml", MINE);
    let words = ["install", "claude-code", "--project", "--config", "creole.toml", "--yes"];
    sandbox.run(&words).succeeded();
    let value: Value = serde_json::from_str(&sandbox.read(".mcp.json")).expect("JSON");
    let entry = &value["mcpServers"]["creole"];
    let args = entry["args"].as_array().expect("a list").iter().filter_map(Value::as_str);
    let mut command = Command::new(entry["command"].as_str().expect("a program"));
    command.args(args).current_dir("/");
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let answer = FinishedCommand::run(&mut command, &format!("{hello}\n"));
    assert!(answer.stdout.contains("\"protocolVersion\":\"2025-11-25\""), "{answer:?}");
}

#[test]
fn a_client_file_that_is_not_json_is_not_changed() {
    let sandbox = Sandbox::new();
    sandbox.write("mcp.json", "{ broken");
    assert_refused(
        &sandbox.run(&["install", "cursor", "--file", "mcp.json", "--yes"]),
        "is not JSON and was not changed",
    );
    assert_refused(
        &sandbox.run(&["install", "cursor", "--config", "no.toml", "--yes"]),
        "`no.toml` does not exist",
    );
    assert_refused(
        &sandbox.run(&["install", "claude-desktop", "--project", "--yes"]),
        "has no project configuration",
    );
    assert_eq!(sandbox.read("mcp.json"), "{ broken");
}

#[test]
fn completions_know_the_verbs_and_their_options() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = sandbox.run(&["completions", shell]).succeeded().stdout;
        for word in ["install", "dangerously-without-auth", "cacert"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let script = sandbox.run(&["completions", "bash"]).stdout;
    let file = sandbox.write("creole.bash", &script);
    let line =
        "COMP_WORDS=(creole inst); COMP_CWORD=1; _creole creole inst creole; echo ${COMPREPLY[@]}";
    let typed = format!("source {}; {line}", file.display());
    let output = FinishedCommand::run(Command::new("bash").args(["-c", &typed]), "");
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("install\n", ""));
}

#[test]
fn the_manual_has_a_page_for_each_verb() {
    let sandbox = Sandbox::new();
    let page = sandbox.run(&["man"]).succeeded().stdout;
    assert!(page.contains(".TH creole 1") && page.contains("creole\\-serve(1)"), "{page}");
    sandbox.run(&["man", "pages/man1"]).succeeded();
    for name in ["creole", "creole-serve", "creole-install", "creole-config-check"] {
        let page = sandbox.read(&format!("pages/man1/{name}.1"));
        assert!(page.contains(&format!(".TH {name} 1")), "{name}: {page}");
    }
    assert!(sandbox.read("pages/man1/creole-serve.1").contains("dangerously\\-without\\-auth"));
    assert!(!sandbox.path().join("pages/man1/creole-guard.1").exists());
}
