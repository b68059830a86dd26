//! A person who takes longer than the client of `creole connect` waits.

use creole_acceptance::oauth::browser::Browser;
use creole_acceptance::process_under_test::Server;
use creole_test_wait::blocking::eventually;

use crate::connect::{Client, ERAS, names_the_command};
use crate::{Home, provider};

/// The address that the browser was asked to open.
#[track_caller]
fn opened(home: &Home) -> String {
    let log = || home.browser_log();
    eventually("the browser is opened", || {
        log().contains("http://").then(|| log().trim().to_owned())
    })
}

/// A client of this user whose browser waits for a person.
fn connect(home: &Home, url: &str, seconds: &str) -> std::process::Command {
    let mut command = home.command(&["connect", url, "--login-wait", seconds]);
    command.env("TEST_BROWSER_WAITS", "1");
    command
}

#[test]
fn a_login_that_outlasts_its_client_is_there_for_the_next_one() {
    let Some(provider) = provider(&[]) else { return };
    let url = provider.server("/mcp");
    for era in ERAS {
        let home = Home::new();
        let mut client = Client::start(connect(&home, &url, "1"), era, serde_json::json!({}));
        names_the_command(&client.open(), &url);
        let address = opened(&home);
        let mut server: Server = client.into_server();
        server.end_input();
        // The client has left. The person logs in now.
        Browser::default().follow(&address).unwrap();
        let ended = server.until_ended();
        assert_eq!(ended.code, Some(0), "{era:?}: {ended:?}");
        assert!(!ended.log.contains(&address), "{ended:?}");
        assert!(home.login_file().exists());

        let mut next = Client::without_browser(&home, &url, era, serde_json::json!({}));
        let begun = next.open();
        assert!(begun["error"].is_null(), "{era:?}: {begun}");
        next.calls_whoami();
        assert_eq!(home.browser_log().lines().count(), 1, "{}", home.browser_log());
    }
    assert_eq!(provider.token_requests("authorization_code", 200), ERAS.len());
}

#[test]
fn a_login_within_the_wait_answers_the_first_request() {
    let Some(provider) = provider(&[]) else { return };
    let url = provider.server("/mcp");
    for era in ERAS {
        let home = Home::new();
        let mut client = Client::start(connect(&home, &url, "50"), era, serde_json::json!({}));
        client.send_first();
        Browser::default().follow(&opened(&home)).unwrap();
        let begun = client.first_response();
        assert!(begun["error"].is_null(), "{era:?}: {begun}");
        client.calls_whoami();
    }
}
