//! Refreshes: once for all processes, and without the loss of a login.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use creole::client::oauth::{LoginStore, SecretText};
use tokio::task::JoinSet;

use super::authorization_server::AuthorizationServer;
use super::support::{Person, asking, change_login, fetch, refusal, stored, token};

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// A server, and a folder with a login at it whose token ends after these seconds.
async fn logged_in(seconds: u64) -> (AuthorizationServer, tempfile::TempDir) {
    let (server, folder) = (AuthorizationServer::start().await, tempfile::tempdir().unwrap());
    let credentials = asking(&server, folder.path(), &Arc::default());
    fetch(&credentials, refusal(None)).await.unwrap();
    change_login(&credentials, folder.path(), |login| {
        login.created_at = now() - 3_600;
        login.expires_at = now() + seconds;
    })
    .await;
    (server, folder)
}

#[tokio::test]
async fn eight_processes_refresh_an_expired_token_once() {
    let (server, folder) = logged_in(0).await;
    let mut fetches = JoinSet::new();
    let all: Vec<_> = (0..8).map(|_| stored(&server, folder.path())).collect();
    for credentials in all.clone() {
        fetches.spawn(async move { fetch(&credentials, None).await });
    }
    assert_eq!(fetches.join_all().await, vec![Ok(token(2)); 8]);
    assert_eq!(server.count("refresh_token"), 1);
    // The server has revoked nothing: the next refresh works.
    change_login(&all[0], folder.path(), |login| login.expires_at = 0).await;
    assert_eq!(fetch(&stored(&server, folder.path()), None).await, Ok(token(3)));
    let forms = server.records.lock().unwrap().forms.clone();
    let resource = server.url().replace(':', "%3A").replace('/', "%2F");
    for form in &forms[1..] {
        assert!(form.contains(&format!("resource={resource}")), "{form}");
    }
}

#[tokio::test]
async fn a_refused_token_is_refreshed_by_one_process_and_found_by_the_other() {
    let (server, folder) = logged_in(3_600).await;
    let (first, second) = (stored(&server, folder.path()), stored(&server, folder.path()));
    assert_eq!(fetch(&first, None).await, Ok(token(1)));
    assert_eq!(fetch(&second, None).await, Ok(token(1)));
    assert_eq!(fetch(&first, refusal(token(1))).await, Ok(token(2)));
    assert_eq!(fetch(&second, refusal(token(1))).await, Ok(token(2)));
    assert_eq!(server.count("refresh_token"), 1);
}

#[tokio::test]
async fn a_revoked_login_leads_to_one_new_login() {
    let (server, folder) = logged_in(0).await;
    let person = Arc::<Person>::default();
    let credentials = asking(&server, folder.path(), &person);
    server.fail(&[(400, "invalid_grant")]);
    // The server decides about the old token.
    assert_eq!(fetch(&credentials, None).await, Ok(token(1)));
    assert_eq!(fetch(&credentials, refusal(token(1))).await, Ok(token(2)));
    assert_eq!((person.asked(), server.count("refresh_token")), (1, 1));
}

#[tokio::test]
async fn a_client_that_the_server_forgot_is_registered_again() {
    let (server, folder) = logged_in(0).await;
    let person = Arc::<Person>::default();
    let credentials = asking(&server, folder.path(), &person);
    server.fail(&[(401, "invalid_client")]);
    assert_eq!(fetch(&credentials, None).await, Ok(token(1)));
    assert!(LoginStore::new(folder.path().join("logins")).clients().unwrap().is_empty());
    assert_eq!(fetch(&credentials, refusal(token(1))).await, Ok(token(2)));
    assert_eq!((person.asked(), server.count("/register")), (1, 2));
}

#[tokio::test]
async fn a_server_that_fails_does_not_end_a_token_that_is_valid() {
    let (server, folder) = logged_in(50).await;
    let credentials = stored(&server, folder.path());
    let before = credentials_file(&folder);
    server.fail(&[(500, "x"), (500, "x")]);
    assert_eq!(fetch(&credentials, None).await, Ok(token(1)));
    assert_eq!((server.count("refresh_token"), credentials_file(&folder)), (2, before));
    // The next attempt succeeds.
    assert_eq!(fetch(&credentials, None).await, Ok(token(2)));

    let (server, folder) = logged_in(0).await;
    server.fail(&[(500, "x"), (503, "x")]);
    let detail = fetch(&stored(&server, folder.path()), None).await.unwrap_err();
    assert!(detail.contains("refused the refresh token: x"), "{detail}");
}

#[tokio::test]
async fn a_refresh_that_fails_once_is_tried_again() {
    let (server, folder) = logged_in(0).await;
    server.fail(&[(502, "x")]);
    assert_eq!(fetch(&stored(&server, folder.path()), None).await, Ok(token(2)));
    assert_eq!(server.count("refresh_token"), 2);
}

#[tokio::test]
async fn a_login_that_another_program_wrote_is_taken_over() {
    let (server, folder) = logged_in(3_600).await;
    let credentials = stored(&server, folder.path());
    assert_eq!(fetch(&credentials, None).await, Ok(token(1)));
    change_login(&credentials, folder.path(), |login| {
        login.access_token = SecretText::new("access-canary-9");
        login.refresh_token = Some(SecretText::new("refresh-canary-9"));
    })
    .await;
    assert_eq!(fetch(&credentials, refusal(token(1))).await, Ok(token(9)));
    assert_eq!(server.count("refresh_token"), 0);
}

#[tokio::test]
async fn a_request_that_is_dropped_does_not_lose_the_new_tokens() {
    let (server, folder) = logged_in(0).await;
    let credentials = stored(&server, folder.path());
    let waiting = credentials.clone();
    let fetching = tokio::spawn(async move { fetch(&waiting, None).await });
    let is_sent = || server.count("/token") == 2;
    creole_test_wait::eventually("the refresh is sent", is_sent).await;
    fetching.abort();
    let store = LoginStore::new(folder.path().join("logins"));
    let is_stored = || {
        let login = store.read(credentials.key()).unwrap().unwrap();
        login.access_token.expose() == "access-canary-2"
    };
    creole_test_wait::eventually("the new token is stored", is_stored).await;
}

/// The text of the login's file.
fn credentials_file(folder: &tempfile::TempDir) -> Vec<u8> {
    let files = std::fs::read_dir(folder.path().join("logins")).unwrap();
    let is_login = |name: &str| name.ends_with(".json") && !name.starts_with("client-");
    let mut files = files.map(|it| it.unwrap().path());
    let file = files.find(|it| is_login(&it.file_name().unwrap().to_string_lossy()));
    std::fs::read(file.unwrap()).unwrap()
}
