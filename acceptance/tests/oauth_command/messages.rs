//! What a failed login says: one line, exit code 1, and no secret.

use std::process::Command;
use std::time::{Duration, Instant};

use creole_acceptance::oauth::{RogueRequest, RogueResponse, RogueServer};
use creole_acceptance::process_under_test::finished_command::FinishedCommand;
use serde_json::json;

use crate::{Home, last, provider};

/// The longest time that a failing login may take.
const LIMIT: Duration = Duration::from_secs(40);

const METADATA: &str = "/.well-known/oauth-authorization-server";
const RESOURCE: &str = "/.well-known/oauth-protected-resource/mcp";

/// Logs in at a server that misbehaves at one path, and checks that it fails without a secret.
#[track_caller]
fn fails(
    path: &'static str,
    misbehaviour: impl Fn(&RogueRequest, &str) -> RogueResponse + Send + Sync + 'static,
) -> (RogueServer, Home, FinishedCommand) {
    let server = RogueServer::start(move |request, origin| {
        (request.path == path).then(|| misbehaviour(request, origin))
    });
    let (home, url, since) = (Home::new(), server.url(), Instant::now());
    let failed = home.run(&["login", &url, "--json"]);
    assert!(since.elapsed() < LIMIT, "{:?}", since.elapsed());
    assert_eq!((failed.code, &*failed.stdout), (Some(1), ""), "{failed:?}");
    assert!(last(&failed).starts_with("error: "), "{failed:?}");
    assert!(!failed.stderr.contains("canary"), "{failed:?}");
    (server, home, failed)
}

#[test]
fn a_login_that_cannot_be_trusted_says_why_and_opens_nothing() {
    let (server, home, failed) = fails(METADATA, |_, origin| {
        RogueServer::metadata(origin, &json!({"code_challenge_methods_supported": ["plain"]}))
    });
    let origin = server.origin();
    let expected = format!("error: {origin} does not advertise PKCE S256; refusing to log in");
    assert_eq!((last(&failed), &*home.browser_log()), (&*expected, ""));

    let (server, home, failed) = fails(RESOURCE, |_, origin| {
        RogueServer::resource_metadata(origin, &json!({"resource": "https://evil.example.com/mcp"}))
    });
    let expected = format!(
        "error: resource mismatch: {} publishes https://evil.example.com/mcp",
        server.url()
    );
    assert_eq!((last(&failed), &*home.browser_log()), (&*expected, ""));

    let (server, home, failed) = fails(METADATA, |_, origin| {
        RogueServer::metadata(origin, &json!({"registration_endpoint": null}))
    });
    let expected = format!(
        "error: {} supports neither client metadata documents nor dynamic registration; pass --client-id",
        server.origin()
    );
    assert_eq!((last(&failed), &*home.browser_log()), (&*expected, ""));

    let (_, home, failed) = fails(RESOURCE, |_, origin| {
        let issuers = json!({"authorization_servers": ["https://169.254.169.254"]});
        RogueServer::resource_metadata(origin, &issuers)
    });
    assert!(last(&failed).starts_with("error: cannot reach https://169.254.169.254"), "{failed:?}");
    assert_eq!(home.browser_log(), "");
}

#[test]
fn an_address_that_is_no_web_address_starts_no_browser() {
    for endpoint in ["javascript:alert(1)", "file:///etc/passwd", "https://x\" --y", "-x"] {
        let (_, home, failed) = fails(METADATA, move |_, origin| {
            RogueServer::metadata(origin, &json!({"authorization_endpoint": endpoint}))
        });
        assert!(last(&failed).contains("`authorization_endpoint`"), "{failed:?}");
        assert_eq!(home.browser_log(), "");
    }
}

#[test]
fn a_response_of_another_issuer_requests_no_token() {
    let (server, _, failed) = fails("/authorize", |request, _| {
        let state = request.parameter("state").unwrap_or_default();
        let to = request.parameter("redirect_uri").unwrap_or_default();
        let to = to.replace("%3A", ":").replace("%2F", "/");
        let query = format!("code=canary-code&state={state}&iss=https%3A%2F%2Fevil.example");
        RogueResponse::Redirect(format!("{to}?{query}"))
    });
    let expected = format!(
        "error: issuer mismatch in the authorization response (expected {}); no token was requested",
        server.origin()
    );
    assert_eq!((last(&failed), server.visits("/token")), (&*expected, 0));
}

#[test]
fn a_login_that_is_declined_or_takes_too_long_fails() {
    let Some(provider) = provider(&[]) else { return };
    let (home, url) = (Home::new(), provider.server("/mcp"));
    let declined = home.run(&["login", &url, "--scope", "decline"]);
    assert_eq!((declined.code, &*declined.stdout), (Some(1), ""), "{declined:?}");
    assert_eq!(last(&declined), format!("error: login declined at {}", provider.issuer()));
    let mut command: Command = home.command(&["login", &url, "--timeout", "1"]);
    let late = FinishedCommand::run(command.env("BROWSER", "true"), "");
    assert_eq!((late.code, &*late.stdout), (Some(1), ""), "{late:?}");
    assert_eq!(last(&late), "error: login timed out after 1 s");
}

#[test]
fn wrong_arguments_are_told_apart_from_failed_logins() {
    let home = Home::new();
    for words in [
        &["login"][..],
        &["login", "http://127.0.0.1:1/mcp", "--timeout", "0"],
        &["login", "nobody"],
        &["login", "http://127.0.0.1:1/mcp", "--device", "--no-browser"],
        &["logout"],
    ] {
        let refused = home.run(words);
        assert_eq!((refused.code, &*refused.stdout), (Some(2), ""), "{words:?}: {refused:?}");
    }
    let unreachable = home.run(&["login", "http://127.0.0.1:1/mcp"]);
    assert_eq!((unreachable.code, &*unreachable.stdout), (Some(1), ""), "{unreachable:?}");
}
