//! Logins at a server that refuses, forgets or fails: how often it is asked, and what stays stored.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use creole::client::oauth::{Login, LoginStore, LogoutOutcome, RevocationOptions, log_out};
use creole_acceptance::oauth::{AutomaticPerson, RogueRequest, RogueResponse, RogueServer};
use serde_json::json;

use crate::{call, connect, expire, key, person, reason, store, stored};

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Logs in, calls a tool and closes the connection, so that no request follows.
async fn log_in(server: &RogueServer, store: &LoginStore) -> Login {
    let url = server.url();
    let credentials = person(&url, &AutomaticPerson::default(), Some(store));
    let client = connect(&url, &credentials).await.unwrap();
    assert_eq!(call(&client, "echo").await.unwrap(), "called");
    client.close().await;
    store.read(&key(&url)).unwrap().unwrap()
}

/// Whether a request is for a refresh.
fn is_refresh(request: &RogueRequest) -> bool {
    request.parameter("grant_type") == Some("refresh_token")
}

/// The file of the only login in a store.
fn login_file(folder: &tempfile::TempDir) -> PathBuf {
    let entries = fs::read_dir(folder.path().join("logins")).unwrap();
    let mut paths = entries.map(|entry| entry.unwrap().path());
    let is_login = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.ends_with(".json") && !name.starts_with("client-")
    };
    paths.find(is_login).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_refuses_every_token_is_given_up() {
    let server = RogueServer::start(|request, origin| {
        let named = format!("{origin}/.well-known/oauth-protected-resource/mcp");
        let challenge = format!("Bearer resource_metadata=\"{named}\"");
        (request.path == "/mcp").then(|| RogueServer::challenge(401, &challenge))
    });
    let (url, alice) = (server.url(), AutomaticPerson::default());
    let credentials = person(&url, &alice, None);
    for _ in 0..10 {
        assert!(connect(&url, &credentials).await.is_err());
    }
    assert!((1..=5).contains(&alice.logins()), "{}", alice.logins());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_always_wants_further_scopes_is_given_up() {
    let server = RogueServer::start(|request, _| {
        let is_authorized = request.path == "/mcp" && request.authorization.is_some();
        let challenge = "Bearer error=\"insufficient_scope\", scope=\"mcp:rare\"";
        is_authorized.then(|| RogueServer::challenge(403, challenge))
    });
    let (url, alice) = (server.url(), AutomaticPerson::default());
    let fault = connect(&url, &person(&url, &alice, None)).await.map(drop).unwrap_err();
    assert_eq!(reason(&fault), "insufficient_scope");
    assert!(fault.detail.contains("mcp:rare"), "{}", fault.detail);
    assert!((2..=3).contains(&alice.logins()), "{}", alice.logins());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_the_server_forgets_is_registered_twice() {
    let server = RogueServer::start(|request, _| {
        let refusal = json!({"error": "invalid_client"});
        (request.path == "/token").then_some(RogueResponse::Json(401, refusal))
    });
    let (url, alice) = (server.url(), AutomaticPerson::default());
    let fault = connect(&url, &person(&url, &alice, None)).await.map(drop).unwrap_err();
    assert!(fault.detail.contains("invalid_client"), "{}", fault.detail);
    assert_eq!((server.visits("/register"), server.visits("/token")), (2, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_redirect_address_is_registered_anew() {
    let server = RogueServer::start(|_, _| None);
    let ((_folder, store), url) = (store(), server.url());
    let mut requests = 0;
    for (port, registrations) in [(40_001, 1), (40_001, 1), (40_002, 2)] {
        let alice = AutomaticPerson::at(&format!("http://127.0.0.1:{port}/callback"));
        let client = connect(&url, &person(&url, &alice, Some(&store))).await.unwrap();
        assert_eq!(call(&client, "echo").await.unwrap(), "called");
        assert_eq!(server.visits("/register"), registrations, "{port}");
        let locked = store.lock(&key(&url)).await.unwrap();
        locked.delete().unwrap();
        requests += 1;
        assert_eq!(server.visits("/authorize"), requests);
    }
    let clients = store.clients().unwrap();
    assert_eq!(clients.len(), 1);
    let kept = clients[0].1.redirect_uri.as_deref();
    assert_eq!(kept, Some("http://127.0.0.1:40002/callback"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_response_without_a_refresh_token_keeps_the_old_one() {
    let server = RogueServer::start(|request, _| {
        let tokens = json!({"access_token": "canary-access-new", "token_type": "Bearer"});
        let is_refresh = request.path == "/token" && is_refresh(request);
        is_refresh.then_some(RogueResponse::Json(200, tokens))
    });
    let ((_folder, store), url) = (store(), server.url());
    let before = log_in(&server, &store).await;
    for generation in 1..=2 {
        expire(&store, &url).await;
        connect(&url, &stored(&url, &store)).await.unwrap();
        let after = store.read(&key(&url)).unwrap().unwrap();
        assert_eq!(after.refresh_token, before.refresh_token);
        assert_eq!(after.access_token.expose(), "canary-access-new");
        assert_eq!(after.generation, before.generation + generation);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_server_does_not_end_a_token_that_is_still_valid() {
    let server = RogueServer::start(|request, _| {
        let is_refresh = request.path == "/token" && is_refresh(request);
        is_refresh.then(|| RogueResponse::Json(500, json!({"error": "server_error"})))
    });
    let ((folder, store), url) = (store(), server.url());
    log_in(&server, &store).await;
    let locked = store.lock(&key(&url)).await.unwrap();
    let mut login = locked.read().unwrap().unwrap();
    (login.created_at, login.expires_at) = (now() - 3_600, now() + 50);
    locked.write(&login).unwrap();
    drop(locked);
    let before = fs::read(login_file(&folder)).unwrap();
    let client = connect(&url, &stored(&url, &store)).await.unwrap();
    assert_eq!(call(&client, "echo").await.unwrap(), "called");
    assert_eq!(fs::read(login_file(&folder)).unwrap(), before);
    let refreshes = server.requests().iter().filter(|request| is_refresh(request)).count();
    assert!((1..=2).contains(&refreshes), "{refreshes}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_another_program_wrote_meanwhile_is_taken_over() {
    let ((folder, store), written) = (store(), Arc::new(AtomicUsize::new(0)));
    let (path, count) = (folder.path().join("logins"), Arc::clone(&written));
    let server = RogueServer::start(move |request, _| {
        if request.path != "/token" || !is_refresh(request) {
            return None;
        }
        // Without the lock, as a program of another author would.
        for entry in fs::read_dir(&path).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            if name.ends_with(".json") && !name.starts_with("client-") {
                let text = fs::read_to_string(entry.path()).unwrap();
                let mut login: Login = serde_json::from_str(&text).unwrap();
                login.access_token = creole::client::oauth::SecretText::new("canary-access-other");
                (login.created_at, login.expires_at) = (now(), now() + 3_600);
                login.generation += 1;
                fs::write(entry.path(), serde_json::to_string(&login).unwrap()).unwrap();
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
        Some(RogueResponse::Json(400, json!({"error": "invalid_grant"})))
    });
    let url = server.url();
    log_in(&server, &store).await;
    expire(&store, &url).await;
    let client = connect(&url, &stored(&url, &store)).await.unwrap();
    assert_eq!(call(&client, "echo").await.unwrap(), "called");
    assert_eq!(written.load(Ordering::Relaxed), 1);
    let mut shown = server.requests().into_iter().filter_map(|request| request.authorization);
    assert_eq!(shown.next_back().as_deref(), Some("Bearer canary-access-other"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_file_that_others_can_read_is_not_used() {
    let server = RogueServer::start(|_, _| None);
    let ((folder, store), url) = (store(), server.url());
    log_in(&server, &store).await;
    let file = login_file(&folder);
    let requests = server.requests().len();
    let refused = async || {
        let fault = connect(&url, &stored(&url, &store)).await.map(drop).unwrap_err();
        let help = format!("is not private; run: chmod 600 {}", file.display());
        assert!(fault.detail.contains(&help), "{}", fault.detail);
        assert!(!format!("{fault:?}").contains("canary"), "{fault:?}");
        assert_eq!(server.requests().len(), requests);
    };
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    refused().await;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let moved = file.with_extension("moved");
    fs::rename(&file, &moved).unwrap();
    symlink(&moved, &file).unwrap();
    refused().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_logout_deletes_the_login_even_if_the_server_fails() {
    let server = RogueServer::start(|request, _| {
        let failure = || RogueResponse::Json(503, json!({"error": "server_error"}));
        (request.path == "/revoke").then(failure)
    });
    let ((_folder, store), url) = (store(), server.url());
    log_in(&server, &store).await;
    let outcome = log_out(&store, &key(&url), Some(&RevocationOptions::default())).await.unwrap();
    assert!(matches!(outcome, LogoutOutcome::NotRevoked(_)), "{outcome:?}");
    assert!(!format!("{outcome:?}").contains("canary"), "{outcome:?}");
    assert!(store.read(&key(&url)).unwrap().is_none());
    log_in(&server, &store).await;
    let revocations = server.visits("/revoke");
    let outcome = log_out(&store, &key(&url), None).await.unwrap();
    assert!(matches!(outcome, LogoutOutcome::Done { is_revoked: false }), "{outcome:?}");
    assert_eq!(server.visits("/revoke"), revocations);
}
