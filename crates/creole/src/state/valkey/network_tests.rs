//! Encrypted connections, sentinels and replicas.

use std::fs;
use std::time::Duration;

use creole_test_wait::{eventually, eventually_async};

use super::super::{State, StateLimits};
use super::ValkeySettings;
use super::test_server::{TestServer, free_port};

#[tokio::test]
async fn an_encrypted_server_is_used_if_its_authority_is_trusted() {
    if !TestServer::is_installed() {
        return;
    }
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    fs::write(&certificate, made.cert.pem()).unwrap();
    fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let port = free_port().to_string();
    let (certificate, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());
    let server = TestServer::start(&[
        "--tls-port",
        &port,
        "--tls-cert-file",
        certificate,
        "--tls-key-file",
        key,
        "--tls-ca-cert-file",
        certificate,
        "--tls-auth-clients",
        "no",
    ]);
    let address = format!("valkeys://localhost:{port}");
    let settings = ValkeySettings::new(&address).timeout(Duration::from_secs(30));
    let trusting = settings.clone().ca_certificates(made.cert.pem());
    let state = State::valkey(trusting, StateLimits::default()).await.unwrap();
    state.put("a", "1".into(), None).await.unwrap();
    assert_eq!(server.run(&["EXISTS", "creole:{creole}:ve:a"]).trim(), "1");
    let state = State::valkey(settings, StateLimits::default()).await.unwrap();
    let error = state.get("a").await.unwrap_err().to_string();
    assert!(error.contains("certificate"), "{error}");
}

#[tokio::test]
async fn the_master_is_found_again_after_a_failover() {
    if !TestServer::is_installed() {
        return;
    }
    let (port, replica_port, sentinel_port) = (free_port(), free_port(), free_port());
    let main = TestServer::start(&["--port", &port.to_string()]);
    let replica_options =
        ["--port", &replica_port.to_string(), "--replicaof", "127.0.0.1", &port.to_string()];
    let replica = TestServer::start(&replica_options);
    eventually("the replica is connected", || {
        main.run(&["INFO", "replication"]).contains("state=online")
    })
    .await;
    let sentinel = TestServer::start_sentinel(sentinel_port, port);
    eventually("the sentinel knows the replica", || {
        sentinel.run(&["SENTINEL", "REPLICAS", "main"]).contains(&replica_port.to_string())
    })
    .await;

    let settings = ValkeySettings::new("valkey://localhost")
        .sentinel(vec![format!("127.0.0.1:{sentinel_port}")], "main")
        .timeout(Duration::from_secs(5))
        .wait_replicas(1);
    let state = State::valkey(settings, StateLimits::default()).await.unwrap();
    let version = eventually_async("the replica acknowledges a change", async || {
        state.swap("a", None, "1".into(), None).await.ok()?
    })
    .await;
    assert_eq!(main.run(&["EXISTS", "creole:{creole}:ve:a"]).trim(), "1");

    eventually("the failover starts", || {
        sentinel.run(&["SENTINEL", "FAILOVER", "main"]).trim() == "OK"
    })
    .await;
    eventually("the replica is the master", || replica.run(&["ROLE"]).starts_with("master")).await;
    let later = eventually_async("a change reaches the new master", async || {
        let version = state.put("a", "2".into(), None).await.ok()?;
        let stored = replica.run(&["HGET", "creole:{creole}:ve:a", "v"]);
        stored.trim().ends_with('2').then_some(version)
    })
    .await;
    assert!(later > version);
}
