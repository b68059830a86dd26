//! Tests of `creole top` at a terminal: its keys, and what it shows when the process does not answer or ends.

use std::process::Command;

use creole_acceptance::http::ListeningServer;
use creole_acceptance::process_under_test::serve;
use creole_acceptance::stage::stdio::binary;

use crate::working_folder::{Sandbox, TerminalSession};

/// A server with two upstreams and an admin listener.
fn start_server(sandbox: &Sandbox) -> ListeningServer {
    let program = binary().expect("the binary under test").display().to_string();
    let config = format!(
        "[server]\nname = \"team\"\n[admin]\nlisten = \"127.0.0.1:0\"\n\
         [upstreams.alpha]\ncommand = [{program:?}, \"serve\", \"--log\", \"off\"]\n\
         [upstreams.beta]\ncommand = [{program:?}, \"serve\", \"--log\", \"off\"]\n"
    );
    let file = sandbox.write("creole.toml", &config).display().to_string();
    let mut command = serve(sandbox.path(), &["--http", "127.0.0.1:0", &file]);
    command.env("XDG_RUNTIME_DIR", sandbox.path());
    let server = ListeningServer::other(command).expect("the server listens");
    server.until_said("the admin API are at");
    server
}

fn start_top(sandbox: &Sandbox) -> TerminalSession {
    let mut command = sandbox.command(&["top"]);
    command.env("XDG_RUNTIME_DIR", sandbox.path()).env("NO_COLOR", "1");
    let mut top = TerminalSession::start(&mut command, 100);
    top.until_shown("> alpha");
    top
}

#[test]
fn keys_sort_choose_and_quit_and_the_table_names_them() {
    let sandbox = Sandbox::new();
    let _server = start_server(&sandbox);
    let mut top = start_top(&sandbox);
    top.until_shown("sorted as configured; n name, s state");
    top.until_shown("Enter shows it, q quits");
    top.press("e");
    top.until_shown("sorted by errors");
    // Keys that are pressed fast come together.
    top.press("\x1b[B\x1b[B");
    top.until_shown("> beta");
    top.press("\r");
    top.until_shown("program");
    top.until_shown("Escape returns, q quits.");
    top.press("\x1b");
    top.until_shown("UPSTREAM");
    top.press("q");
    assert_eq!(top.end(), (Some(0), true));
}

#[test]
fn a_key_works_while_the_process_does_not_answer() {
    let sandbox = Sandbox::new();
    let mut server = start_server(&sandbox);
    let mut top = start_top(&sandbox);
    server.signal("STOP");
    top.until_shown("The process has not answered for");
    top.press("q");
    let ended = top.end();
    server.signal("CONT");
    assert_eq!(ended, (Some(0), true));
}

#[test]
fn the_end_of_the_process_ends_the_table_with_a_reason() {
    let sandbox = Sandbox::new();
    let mut server = start_server(&sandbox);
    let mut top = start_top(&sandbox);
    server.stop().expect("it ends");
    top.until_shown("the process may have ended");
    assert_eq!(top.end(), (Some(1), true));
}

#[test]
fn a_signal_restores_the_terminal() {
    let sandbox = Sandbox::new();
    let _server = start_server(&sandbox);
    let mut top = start_top(&sandbox);
    let script = format!("kill -s TERM {}", top.id());
    let sent = Command::new("sh").args(["-c", &script]).status().expect("a shell");
    assert!(sent.success());
    top.until_shown("\x1b[?1049l");
    assert_eq!(top.end(), (Some(0), true));
}
