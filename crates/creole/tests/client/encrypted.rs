//! Servers behind TLS: whom to trust, and what is said of whom not to.

use std::fs;
use std::net::SocketAddr;

use creole::client::http::{HttpServer, Target};
use creole::proto::fault::FaultKind;
use creole::proto::revision::Era;
use creole::transport::http::tls::Certificates;
use creole::transport::http::{
    Drain, Endpoint, Guard, Limits, Listener, Method, Route, Router, Settings,
};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use serde_json::json;

use crate::support::{Watch, call, open, server, text, tool};

/// Serves with a certificate for `localhost` that ends in this year; gives the certificate back.
async fn serve(last_year: i32) -> (SocketAddr, String) {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    (params.not_before, params.not_after) =
        (date_time_ymd(2020, 1, 1), date_time_ymd(last_year, 1, 1));
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap().pem();
    let folder = tempfile::tempdir().unwrap();
    let (certificate_file, key_file) = (folder.path().join("c.pem"), folder.path().join("k.pem"));
    fs::write(&certificate_file, &certificate).unwrap();
    fs::write(&key_file, key.serialize_pem()).unwrap();
    let certificates = Certificates::load(&certificate_file, &key_file).unwrap();

    let listener = Listener::bind(([127, 0, 0, 1], 0).into(), Limits::default()).await.unwrap();
    let address = listener.address().unwrap();
    let endpoint = Endpoint::new(server(&Watch::default()).start(), Settings::default());
    let methods = [Method::POST, Method::GET, Method::DELETE];
    let router = Router::new(Guard::loopback(), Drain::new());
    let router = router.route(Route::new("/mcp", &methods, endpoint));
    tokio::spawn(listener.tls(certificates).serve(router));
    (address, certificate)
}

fn target(address: SocketAddr, trusted: &str) -> Target {
    let url = format!("https://localhost:{}/mcp", address.port());
    Target::trusting("web", &url, Some(trusted.as_bytes())).unwrap()
}

#[tokio::test]
async fn a_trusted_server_is_called_over_http_2_in_both_eras() {
    let (address, certificate) = serve(3000).await;
    for era in [Era::Handshake, Era::Stateless] {
        let connection = open(HttpServer::new(target(address, &certificate)), era).await.unwrap();
        let calls = (0..20).map(|number| {
            let connection = connection.clone();
            tokio::spawn(async move {
                let message = number.to_string();
                let outcome = call(&connection, tool("echo", json!({"message": message}))).await;
                assert_eq!(text(outcome), message);
            })
        });
        for call in calls.collect::<Vec<_>>() {
            call.await.unwrap();
        }
        connection.close().await;
    }
}

#[tokio::test]
async fn an_expired_or_unknown_certificate_is_refused_by_name() {
    let (expired, certificate) = serve(2021).await;
    let (unknown, _) = serve(3000).await;
    for (address, why) in [(expired, "expired"), (unknown, "invalid peer certificate")] {
        let server = HttpServer::new(target(address, &certificate));
        let fault = open(server, Era::Stateless).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::BackendUnavailable);
        assert!(fault.detail.starts_with("`web` cannot be trusted: "), "{}", fault.detail);
        assert!(fault.detail.contains(why), "{}", fault.detail);
        assert!(!fault.detail.contains("/mcp"), "{}", fault.detail);
    }
}

#[tokio::test]
async fn a_certificate_that_is_none_is_refused() {
    let fault = Target::trusting("web", "https://localhost/", Some(b"-----BEGIN CERTIFICATE-----"));
    assert!(fault.unwrap_err().detail.contains("PEM"));
}
