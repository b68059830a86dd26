//! `creole login`, `logins` and `logout`, and the commands that use a login.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use creole_acceptance::oauth::{RogueResponse, RogueServer};
use serde_json::{Value, json};

use crate::{Home, last, provider};

#[test]
fn a_login_is_made_used_listed_and_ended() {
    let Some(provider) = provider(&[]) else { return };
    let (home, url, issuer) = (Home::new(), provider.server("/opaque"), provider.issuer());
    let login = home.run(&["login", &url]).succeeded();
    let begin = format!("creole: logged in to {url} (issuer {issuer}); expires ");
    assert!(last(&login).starts_with(&begin), "{}", login.stderr);
    assert!(last(&login).ends_with("Z, refreshes automatically; scopes: mcp"), "{}", login.stderr);
    assert_eq!(login.stdout, "");
    let again = home.run(&["login", &url]).succeeded();
    let already = format!("creole: already logged in to {url}; use --scope to request more");
    assert_eq!((last(&again), &*again.stdout), (&*already, ""));

    let listed = home.run(&["list", &url]).succeeded();
    assert!(listed.stdout.contains("whoami"), "{}", listed.stdout);
    let called = home.run(&["call", &url, "whoami"]).succeeded();
    assert!(called.stdout.contains("alice"), "{}", called.stdout);
    assert_eq!(provider.token_requests("authorization_code", 200), 1);

    let logins = home.run(&["logins", "--json"]).succeeded();
    let logins: Value = serde_json::from_str(&logins.stdout).unwrap();
    assert_eq!((&logins[0]["server"], &logins[0]["issuer"]), (&json!(url), &json!(issuer)));
    assert_eq!((&logins[0]["state"], &logins[0]["scopes"]), (&json!("renews"), &json!(["mcp"])));
    let line = home.run(&["logins", &url]).succeeded();
    assert!(line.stdout.starts_with(&format!("{url}  {issuer}  scopes: mcp  ")), "{line:?}");
    let stored: Value = serde_json::from_slice(&fs::read(home.login_file()).unwrap()).unwrap();
    let token = stored["refresh_token"].as_str().unwrap();
    assert!(!line.stdout.contains(token) && !logins.to_string().contains(token));

    let logout = home.run(&["logout", &url]).succeeded();
    let ended = format!("creole: logged out of {url}; {issuer} revoked the login");
    assert_eq!((last(&logout), &*logout.stdout), (&*ended, ""));
    assert_eq!(provider.visits("/token/revocation"), 2);
    let gone = home.run(&["logout", &url]);
    assert_eq!(gone.code, Some(1), "{gone:?}");
    let none = home.run(&["logins", &url]);
    assert_eq!((none.code, &*none.stdout), (Some(1), ""), "{none:?}");
    assert!(last(&none).ends_with(&format!("run: creole login {url}")), "{none:?}");
    assert_eq!(home.run(&["logins", "--json"]).succeeded().stdout.trim(), "[]");
}

#[test]
fn a_login_as_json_is_one_document() {
    let Some(provider) = provider(&[]) else { return };
    let (home, url) = (Home::new(), provider.server("/mcp"));
    let login = home.run(&["login", &url, "--scope", "mcp:write", "--json"]).succeeded();
    let document: Value = serde_json::from_str(&login.stdout).unwrap();
    let names: Vec<&str> = document.as_object().unwrap().keys().map(String::as_str).collect();
    let wanted = ["client_id", "expires_at", "issuer", "renewable", "resource", "scopes", "store"];
    assert!(wanted.iter().all(|name| names.contains(name)), "{document}");
    assert_eq!((&document["resource"], &document["renewable"]), (&json!(url), &json!(true)));
    assert_eq!(document["issuer"], json!(provider.issuer()));
    assert!(document["scopes"].as_array().unwrap().contains(&json!("mcp:write")), "{document}");
    let called = home.run(&["call", &url, "write"]).succeeded();
    assert_eq!(called.stdout.trim(), "written 1");
}

#[test]
fn a_server_without_protection_requires_no_login() {
    let Some(provider) = provider(&[]) else { return };
    let (home, url) = (Home::new(), provider.server("/open"));
    let login = home.run(&["login", &url]).succeeded();
    let expected = format!("creole: {url} requires no login; nothing stored");
    assert_eq!((last(&login), &*login.stdout), (&*expected, ""));
    assert!(!home.logins().exists() && home.browser_log().is_empty());
}

#[test]
fn a_command_without_a_terminal_says_what_to_run() {
    let Some(provider) = provider(&[]) else { return };
    let (home, url) = (Home::new(), provider.server("/mcp"));
    for words in [&["list", &*url][..], &["call", &url, "whoami"]] {
        let refused = home.run(words);
        assert_eq!((refused.code, &*refused.stdout), (Some(1), ""), "{refused:?}");
        assert!(refused.stderr.contains(&format!("run: creole login {url}")), "{refused:?}");
    }
    assert!(home.browser_log().is_empty() && provider.requests().is_empty());
}

#[test]
fn a_check_reports_which_login_the_server_requires() {
    let Some(provider) = provider(&[]) else { return };
    let (home, url, issuer) = (Home::new(), provider.server("/mcp"), provider.issuer());
    let expected = format!("OAuth at {issuer}; PKCE S256; registration: dynamic; scopes: mcp; ");
    let refused = home.run(&["check", &url]);
    assert_eq!((refused.code, &*refused.stdout), (Some(1), ""), "{refused:?}");
    assert!(refused.stderr.contains(&format!("creole: authorization: {expected}")), "{refused:?}");
    home.run(&["login", &url]).succeeded();
    let checked = home.run(&["check", &url, "--json"]).succeeded();
    let document: Value = serde_json::from_str(&checked.stdout).unwrap();
    let authorization = &document["authorization"];
    assert_eq!((&authorization["issuer"], &authorization["pkce"]), (&json!(issuer), &json!(true)));
    assert_eq!(authorization["resource"], json!(url));
    let open = home.run(&["check", &provider.server("/open"), "--json"]).succeeded();
    let document: Value = serde_json::from_str(&open.stdout).unwrap();
    assert_eq!(document["authorization"], Value::Null);
}

#[test]
fn a_check_names_what_makes_a_login_impossible() {
    let cases = [
        (
            "/.well-known/oauth-protected-resource/mcp",
            json!({"resource": "https://evil.example.com/mcp"}),
            "requires a login, but none is possible: resource mismatch: ",
        ),
        (
            "/.well-known/oauth-authorization-server",
            json!({"issuer": "ORIGIN", "token_endpoint": "ORIGIN/token"}),
            "; no PKCE S256; registration: none, so each client needs a configured id; ",
        ),
    ];
    for (path, document, expected) in cases {
        let server = RogueServer::start(move |request, origin| {
            let text = document.to_string().replace("ORIGIN", origin);
            let document = serde_json::from_str(&text).unwrap();
            (request.path == path).then_some(RogueResponse::Json(200, document))
        });
        let refused = Home::new().run(&["check", &server.url()]);
        assert_eq!((refused.code, &*refused.stdout), (Some(1), ""), "{refused:?}");
        assert!(refused.stderr.contains(expected), "{refused:?}");
    }
}

#[test]
fn the_files_of_logins_belong_to_their_user_only() {
    let server = RogueServer::start(|_, _| None);
    let (home, url) = (Home::new(), server.url());
    home.run(&["login", &url]).succeeded();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&home.logins()), 0o700);
    for entry in fs::read_dir(home.logins()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    let file = home.login_file();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let requests = server.requests().len();
    for words in [&["list", &*url][..], &["login", &url], &["logins"], &["logout", &url]] {
        let refused = home.run(words);
        assert_eq!(refused.code, Some(2), "{words:?}: {refused:?}");
        let help = format!("run: chmod 600 {}", file.display());
        assert!(refused.stderr.contains(&help), "{words:?}: {refused:?}");
    }
    assert_eq!(server.requests().len(), requests);
}

#[test]
fn a_logout_deletes_the_login_even_if_the_server_fails() {
    let server = RogueServer::start(|request, _| {
        let failure = || RogueServer::challenge(503, "Bearer");
        (request.path == "/revoke").then(failure)
    });
    let (home, url) = (Home::new(), server.url());
    home.run(&["login", &url]).succeeded();
    let file = home.login_file();
    let logout = home.run(&["logout", &url]).succeeded();
    let told = format!("creole: login deleted; revocation at {} failed: ", server.origin());
    assert!(last(&logout).starts_with(&told), "{logout:?}");
    assert!(!file.exists());
}
