//! Logins that several processes share, and what those processes show of them.

use std::fs;
use std::process::Stdio;

use creole_acceptance::process_under_test::finished_command::FinishedCommand;
use creole_acceptance::process_under_test::{call, handshake};
use serde_json::{Value, json};

use crate::{Home, expire, provider};

/// How many processes share a login.
const SHARERS: usize = 8;

#[test]
fn commands_with_an_expired_login_send_one_refresh() {
    let Some(provider) = provider(&[]) else { return };
    let (home, url) = (Home::new(), provider.server("/mcp"));
    home.run(&["login", &url]).succeeded();
    for round in 1..=2 {
        expire(&home.login_file());
        let mut command = home.command(&["call", &url, "whoami"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let started: Vec<_> = (0..SHARERS).map(|_| command.spawn().unwrap()).collect();
        for child in started {
            let finished = FinishedCommand::from(child.wait_with_output().unwrap()).succeeded();
            assert!(finished.stdout.contains("alice"), "{finished:?}");
        }
        assert_eq!(provider.token_requests("refresh_token", 200), round);
        assert_eq!(provider.token_requests("refresh_token", 400), 0);
    }
}

#[test]
fn no_secret_is_in_an_argument_or_in_a_log() {
    let Some(provider) = provider(&[]) else { return };
    let (home, url) = (Home::new(), provider.server("/mcp"));
    let login = home.run(&["login", &url]).succeeded();
    let stored: Value = serde_json::from_slice(&fs::read(home.login_file()).unwrap()).unwrap();
    let messages = format!("{}{}", handshake(), call(1, "whoami", &json!({})));
    let used = || {
        let mut command = home.command(&["connect", &url, "--debug"]);
        let finished = FinishedCommand::run(&mut command, &messages).succeeded();
        assert!(finished.stdout.contains("alice"), "{finished:?}");
        finished
    };
    let call = used();
    expire(&home.login_file());
    let refresh = used();
    let renewed: Value = serde_json::from_slice(&fs::read(home.login_file()).unwrap()).unwrap();
    let opened = home.browser_log();
    assert!(opened.contains("code_challenge=") && opened.lines().count() == 1, "{opened}");
    assert!(!opened.contains("code_verifier"), "{opened}");
    for login_file in [&stored, &renewed] {
        for name in ["access_token", "refresh_token"] {
            let secret = login_file[name].as_str().unwrap();
            for text in [&login.stderr, &call.stderr, &call.stdout, &refresh.stderr, &opened] {
                assert!(!text.contains(secret), "{name} is in {text}");
            }
        }
    }
    assert_ne!(stored["refresh_token"], renewed["refresh_token"]);
}
