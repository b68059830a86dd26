//! Files of logins: their modes, their versions, and files that break.

use creole_oauth::scopes::Scopes;
use creole_oauth::secret::SecretText;
use creole_oauth::tokens::client::{ClientSource, OAuthClient};
use creole_oauth::tokens::endpoint::TokenType;
use creole_oauth::tokens::login::{LOGIN_VERSION, Login};

use super::{LoginKey, LoginStore, StoreError};

fn key() -> LoginKey {
    LoginKey::new("https://mcp.example.com/mcp", None)
}

fn login() -> Login {
    Login {
        version: LOGIN_VERSION,
        generation: 1,
        server: key().server,
        resource: key().server,
        omits_resource: false,
        issuer: "https://id.example.com".into(),
        token_endpoint: "https://id.example.com/token".into(),
        revocation_endpoint: None,
        client: OAuthClient {
            source: ClientSource::Registered,
            ..OAuthClient::with_metadata_document("c")
        },
        requested_scopes: Scopes::parse("a"),
        scopes: Scopes::parse("a"),
        access_token: SecretText::new("t"),
        token_type: TokenType::Bearer,
        expires_at: 7,
        refresh_token: None,
        dpop_key: None,
        created_at: 1,
        extra: [("later".to_owned(), true.into())].into_iter().collect(),
    }
}

#[tokio::test]
async fn a_login_is_written_read_and_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let store = LoginStore::new(folder.path().join("logins"));
    assert!(store.read(&key()).unwrap().is_none() && store.all().unwrap().is_empty());
    let locked = store.lock(&key()).await.unwrap();
    locked.write(&login()).unwrap();
    assert_eq!(store.read(&key()).unwrap(), Some(login()));
    assert_eq!(store.all().unwrap(), [login()]);
    locked.delete().unwrap();
    locked.delete().unwrap();
    assert!(locked.read().unwrap().is_none());
}

#[test]
fn clients_are_stored_by_their_issuer() {
    let folder = tempfile::tempdir().unwrap();
    let store = LoginStore::new(folder.path());
    let client = login().client;
    store.set_client("https://id.example.com", Some(&client)).unwrap();
    assert_eq!(store.clients().unwrap(), [("https://id.example.com".to_owned(), client)]);
    assert!(store.all().unwrap().is_empty());
    store.set_client("https://id.example.com", None).unwrap();
    assert!(store.clients().unwrap().is_empty());
}

#[cfg(unix)]
#[tokio::test]
async fn files_that_others_can_read_are_refused() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let folder = tempfile::tempdir().unwrap();
    let store = LoginStore::new(folder.path().join("logins"));
    store.lock(&key()).await.unwrap().write(&login()).unwrap();
    let path = store.login_path(&key());
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let error = store.read(&key()).unwrap_err();
    assert!(error.to_string().ends_with(&format!("run: chmod 600 {}", path.display())), "{error}");
    std::fs::rename(&path, path.with_extension("moved")).unwrap();
    symlink(path.with_extension("moved"), &path).unwrap();
    assert!(matches!(store.read(&key()), Err(StoreError::NotPrivate { .. })));
}

#[tokio::test]
async fn broken_and_later_files_are_not_read_as_logins() {
    let folder = tempfile::tempdir().unwrap();
    let store = LoginStore::new(folder.path());
    let locked = store.lock(&key()).await.unwrap();
    locked.write(&Login { version: LOGIN_VERSION + 1, ..login() }).unwrap();
    assert!(matches!(store.read(&key()), Err(StoreError::Unreadable { .. })));
    locked.write(&login()).unwrap();
    let path = store.login_path(&key());
    let text = std::fs::read(&path).unwrap();
    for length in 0..text.len() {
        std::fs::write(&path, &text[..length]).unwrap();
        assert!(matches!(store.read(&key()), Err(StoreError::Unreadable { .. })), "{length}");
    }
}
