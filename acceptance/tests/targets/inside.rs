//! Tests of `--config`: the command that uses a configuration serves it in its own process.

use std::net::TcpListener;

use super::Sandbox;

/// A configuration without a table `[server]`, with a secret from the environment and an upstream of another preset.
const PLAIN: &str = r#"
[upstreams.echo]
preset = "fpf-governance"

[resources.secret]
uri = "acme://secret"
text = "the secret is ${CREOLE_TEST_SECRET}"
"#;

#[test]
fn each_verb_uses_a_configuration_with_the_environment_of_the_shell() {
    let sandbox = Sandbox::with(PLAIN);
    let read = sandbox.run(&["read", "--config", "creole.toml", "acme://secret"]);
    assert_eq!((read.code, read.stdout.as_str()), (Some(0), "the secret is hunter2"), "{read:?}");
    assert_eq!(read.stderr, "");
    let output =
        sandbox.run(&["call", "--config", "creole.toml", "echo__echo", "--arg", "message=hi"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let listed = sandbox.run(&["list", "--config", "creole.toml", "resources"]);
    assert!(listed.stdout.contains("acme://secret"), "{listed:?}");
    let checked = sandbox.run(&["check", "--config", "creole.toml"]);
    assert!(checked.stdout.contains("transport  in this process"), "{checked:?}");
}

#[test]
fn nothing_listens_for_a_command() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let http = format!("[http]\nlisten = \"{}\"\n", taken.local_addr().unwrap());
    let sandbox = Sandbox::with(&format!("{PLAIN}{http}"));
    let read = sandbox.run(&["read", "--config", "creole.toml", "acme://secret"]);
    assert_eq!((read.code, read.stdout.as_str()), (Some(0), "the secret is hunter2"), "{read:?}");
}

#[test]
fn one_of_several_servers_is_named() {
    let sandbox = Sandbox::with(
        "[[servers]]\nname = \"a\"\npacks = [\"hello\"]\n[[servers]]\nname = \"b\"\npacks = [\"echo\"]\n",
    );
    let unnamed = sandbox.run(&["list", "--config", "creole.toml"]);
    assert_eq!(unnamed.code, Some(2));
    assert!(unnamed.stderr.contains("choose one with --server NAME"), "{unnamed:?}");
    let named = sandbox.run(&["list", "--config", "creole.toml", "--server", "b", "tools"]);
    assert!(named.stdout.starts_with("tools (1)\n  echo"), "{named:?}");
}

#[test]
fn configuration_errors_are_printed() {
    let sandbox = Sandbox::with("[upstreams.x]\ncommand = \"x\"\n");
    let output = sandbox.run(&["list", "--config", "creole.toml"]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("--> creole.toml:2:11"), "{output:?}");
    let missing = sandbox.run(&["list", "--config", "none.toml"]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.stderr.contains("the file `none.toml` does not exist"), "{missing:?}");
}
