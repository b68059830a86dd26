//! What happens at the start: settings without a meaning, servers that are refused, and servers that are not there.

use std::time::Duration;

use super::super::{Result, State, StateError, StateLimits};
use super::ValkeySettings;
use super::test_server::TestServer;

async fn open(settings: ValkeySettings) -> Result<State> {
    State::valkey(settings, StateLimits::default()).await
}

fn refusal(result: Result<State>) -> String {
    match result {
        Err(error @ StateError::Misconfigured { .. }) => error.to_string(),
        other => panic!("it is not refused: {other:?}"),
    }
}

#[tokio::test]
async fn settings_without_a_meaning_are_refused() {
    let local = || ValkeySettings::new("valkey://localhost:1");
    for (settings, reason) in [
        (ValkeySettings::new("nonsense"), "no scheme"),
        (ValkeySettings::new("valkey://kv.internal"), "not be encrypted"),
        (ValkeySettings::new("valkeys://kv").ca_certificates("none"), "needs PEM certificates"),
        (local().name("a}b"), "not a namespace"),
        (local().sentinel(vec![], "main"), "no sentinel is named"),
        (local().sentinel(vec!["kv.internal:1".to_owned()], "main"), "not be encrypted"),
        (ValkeySettings::new("valkey://localhost/3").cluster(true), "only the database 0"),
    ] {
        let error = refusal(open(settings).await);
        assert!(error.contains(reason), "{error}");
    }
}

#[tokio::test]
async fn an_unreachable_server_does_not_prevent_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("unix://{}/none", folder.path().display());
    let state = open(ValkeySettings::new(address)).await.unwrap();
    let error = state.get("a").await.unwrap_err();
    assert!(matches!(error, StateError::Unavailable { is_unknown: false, .. }), "{error}");
}

#[tokio::test]
async fn a_server_that_evicts_data_is_refused() {
    if !TestServer::is_installed() {
        return;
    }
    let server = TestServer::start(&["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]);
    let error = refusal(open(server.settings()).await);
    assert!(error.contains("allkeys-lru") && error.contains("noeviction"), "{error}");
}

#[tokio::test]
async fn a_wrong_password_is_refused_and_the_right_one_is_used() {
    if !TestServer::is_installed() {
        return;
    }
    let server = TestServer::start(&["--requirepass", "right"]);
    for settings in [server.settings(), server.settings().password("wrong")] {
        let error = refusal(open(settings).await);
        assert!(error.contains("password"), "{error}");
        assert!(!error.contains("wrong"), "{error}");
    }
    let state = open(server.settings().password("right")).await.unwrap();
    assert_eq!(state.get("a").await.unwrap(), None);
    assert!(!format!("{state:?}").contains("right"), "{state:?}");
}

#[tokio::test]
async fn a_user_without_info_can_work() {
    if !TestServer::is_installed() {
        return;
    }
    let server = TestServer::start(&[]);
    server.run(&["ACL", "SETUSER", "default", "-info", "-config"]);
    let state = open(server.settings()).await.unwrap();
    state.put("a", "1".into(), Some(Duration::from_secs(9))).await.unwrap();
}
