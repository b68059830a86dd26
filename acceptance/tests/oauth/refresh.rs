//! Logins are refreshed once, however many tasks and processes need them.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use creole::client::oauth::{Login, LoginStore};
use creole_acceptance::load::SeededRandom;
use creole_acceptance::oauth::AutomaticPerson;
use creole_acceptance::process_under_test::ChildGuard;
use creole_acceptance::process_under_test::finished_command::FinishedCommand;
use creole_test_wait::delay;
use tokio::task::JoinSet;

use crate::{call, connect, expire, key, person, provider, reason, store, stored, whoami};

/// How many tasks or processes share a login.
const SHARERS: usize = 8;

/// How often a process is killed while it refreshes.
const KILLS: usize = 50;

/// Logs `alice` in and stores the login.
async fn log_in(url: &str, store: &LoginStore) {
    let client = connect(url, &person(url, &AutomaticPerson::default(), Some(store))).await;
    assert_eq!(whoami(&client.unwrap()).await["sub"], "alice");
}

/// A process that calls `whoami` with the stored login.
fn process(folder: &Path, url: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_login-client"));
    command.arg(folder).args([url, "whoami"]).stdin(Stdio::null());
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_with_an_expired_login_send_one_refresh() {
    let Some(provider) = provider(&[]) else { return };
    let ((_folder, store), url) = (store(), provider.server("/mcp"));
    log_in(&url, &store).await;
    for round in 1..=2 {
        expire(&store, &url).await;
        let mut tasks = JoinSet::new();
        for _ in 0..SHARERS {
            let (url, credentials) = (url.clone(), stored(&url, &store));
            tasks.spawn(async move {
                whoami(&connect(&url, &credentials).await.unwrap()).await["sub"] == "alice"
            });
        }
        assert!(tasks.join_all().await.into_iter().all(|is_alice| is_alice));
        // The server revokes every token of a login whose refresh token is used twice, so the next round shows that it
        // was not.
        assert_eq!(provider.token_requests("refresh_token", 200), round);
        assert_eq!(provider.token_requests("refresh_token", 400), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_with_an_expired_login_send_one_refresh() {
    let Some(provider) = provider(&[]) else { return };
    let ((folder, store), url) = (store(), provider.server("/mcp"));
    log_in(&url, &store).await;
    for round in 1..=2 {
        expire(&store, &url).await;
        let mut command = process(&folder.path().join("logins"), &url);
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

#[tokio::test(flavor = "multi_thread")]
async fn calls_whose_token_is_refused_send_one_refresh() {
    let Some(provider) = provider(&[]) else { return };
    let ((_folder, store), url) = (store(), provider.server("/mcp"));
    let alice = AutomaticPerson::default();
    let client = connect(&url, &person(&url, &alice, Some(&store))).await.unwrap();
    let client = Arc::new(client);
    call(&client, "whoami").await.unwrap();
    provider.refuse(age(&store, &url).await.access_token.expose());
    let mut tasks = JoinSet::new();
    for _ in 0..100 {
        let client = Arc::clone(&client);
        tasks.spawn(async move { call(&client, "whoami").await.unwrap().contains("alice") });
    }
    assert!(tasks.join_all().await.into_iter().all(|is_alice| is_alice));
    assert_eq!(provider.token_requests("refresh_token", 200), 1);
    assert_eq!(alice.logins(), 1);
}

/// Makes a stored login look as if it had been used for a while: a new one is not refreshed when it is refused.
async fn age(store: &LoginStore, url: &str) -> Login {
    let locked = store.lock(&key(url)).await.unwrap();
    let mut login = locked.read().unwrap().unwrap();
    login.created_at -= 3_000;
    locked.write(&login).unwrap();
    login
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_login_leads_to_one_new_login() {
    let Some(provider) = provider(&[]) else { return };
    let ((_folder, store), url) = (store(), provider.server("/opaque"));
    let alice = AutomaticPerson::default();
    let client = connect(&url, &person(&url, &alice, Some(&store))).await.unwrap();
    call(&client, "whoami").await.unwrap();
    let login = age(&store, &url).await;
    let refresh = login.refresh_token.as_ref().unwrap().expose();
    let form = format!("token={refresh}&client_id={}", login.client.id);
    assert_eq!(provider.post("/token/revocation", &form).head.status, 200);
    // Without a person: the message says what to run, and the file stays.
    let fault = connect(&url, &stored(&url, &store)).await.map(drop).unwrap_err();
    assert_eq!(reason(&fault), "login_required");
    assert!(store.read(&key(&url)).unwrap().is_some());
    // With a person: one login, with the registration of the first.
    assert!(call(&client, "whoami").await.unwrap().contains("alice"));
    assert!(call(&client, "whoami").await.unwrap().contains("alice"));
    assert_eq!((alice.logins(), provider.visits("/reg")), (2, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_killed_while_it_refreshes_leaves_a_readable_login() {
    let Some(provider) = provider(&[]) else { return };
    let ((folder, store), url) = (store(), provider.server("/mcp"));
    log_in(&url, &store).await;
    let mut random = SeededRandom::new(86, 0);
    let (mut successes, mut logins) = (0, 0);
    for _ in 0..KILLS {
        expire(&store, &url).await;
        let mut command = process(&folder.path().join("logins"), &url);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let killed = ChildGuard::start(&mut command);
        delay(random.milliseconds(120)).await;
        drop(killed);
        assert!(store.read(&key(&url)).unwrap().is_some());
        let next = FinishedCommand::run(&mut process(&folder.path().join("logins"), &url), "");
        match next.code {
            Some(0) => successes += 1,
            _ => {
                // The answer to the killed process is lost, and the server revokes the login when the old token comes
                // again.
                assert!(next.stderr.contains("requires a login"), "{next:?}");
                logins += 1;
                log_in(&url, &store).await;
            }
        }
    }
    assert_eq!(successes + logins, KILLS);
    assert!(successes > 0, "no process came through");
}
