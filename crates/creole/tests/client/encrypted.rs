//! Tests of servers with TLS: the trusted certificates, and the errors for untrusted ones.

use std::net::SocketAddr;
use std::sync::Arc;
use std::{fs, io};

use creole::client::HttpAddress;
use creole::internal::client::HttpServer;
use creole::proto::fault::FaultKind;
use creole::proto::revision::Era;
use creole::serve::http::{
    Certificates, Drain, EndpointSettings, HttpLimits, Listener, McpEndpoint, Method, OriginGuard,
    Route, Router,
};
use rcgen::{Certificate, CertificateParams, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use serde_json::json;
use tokio::io::{AsyncReadExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::support::{LONG, ToolWatch, call, open, server, text, tool};

/// A certificate for `localhost` that expires in this year, and its key.
fn certify(last_year: i32) -> (Certificate, KeyPair) {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    (params.not_before, params.not_after) =
        (date_time_ymd(2020, 1, 1), date_time_ymd(last_year, 1, 1));
    let key = KeyPair::generate().unwrap();
    (params.self_signed(&key).unwrap(), key)
}

/// Serves with a certificate for `localhost` that expires in this year. Returns the certificate.
pub(crate) async fn serve(last_year: i32) -> (SocketAddr, String) {
    let (certificate, key) = certify(last_year);
    let certificate = certificate.pem();
    let folder = tempfile::tempdir().unwrap();
    let (certificate_file, key_file) = (folder.path().join("c.pem"), folder.path().join("k.pem"));
    fs::write(&certificate_file, &certificate).unwrap();
    fs::write(&key_file, key.serialize_pem()).unwrap();
    let certificates = Certificates::load(&certificate_file, &key_file).unwrap();

    let listener = Listener::bind(([127, 0, 0, 1], 0).into(), HttpLimits::default()).await.unwrap();
    let address = listener.address().unwrap();
    tokio::spawn(listener.tls(certificates).serve(router()));
    (address, certificate)
}

pub(crate) fn router() -> Router<McpEndpoint> {
    let endpoint =
        McpEndpoint::new(server(&ToolWatch::default()).start(), EndpointSettings::default());
    let methods = [Method::POST, Method::GET, Method::DELETE];
    let router = Router::new(OriginGuard::loopback(), Drain::new());
    router.route(Route::new("/mcp", &methods, endpoint))
}

/// Serves behind a TLS terminator that supports only HTTP/1.1. Returns the certificate, and a receiver of how each
/// connection ended.
async fn serve_behind_another() -> (SocketAddr, String, UnboundedReceiver<io::Result<()>>) {
    let plain = Listener::bind(([127, 0, 0, 1], 0).into(), HttpLimits::default()).await.unwrap();
    let behind = plain.address().unwrap();
    tokio::spawn(plain.serve(router()));

    let (acceptor, certificate) = acceptor();
    let front = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = front.local_addr().unwrap();
    let (ended, ends) = unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = front.accept().await {
            let (acceptor, ended) = (acceptor.clone(), ended.clone());
            tokio::spawn(async move {
                let mut stream = acceptor.accept(stream).await.unwrap();
                let mut behind = TcpStream::connect(behind).await.unwrap();
                let end = copy_bidirectional(&mut stream, &mut behind).await;
                // Most tests drop the receiver.
                _ = ended.send(end.map(drop));
            });
        }
    });
    (address, certificate, ends)
}

/// The acceptor of a TLS terminator that supports only HTTP/1.1, and its certificate.
fn acceptor() -> (TlsAcceptor, String) {
    let (certificate, key) = certify(3000);
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(aws_lc_rs::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    (TlsAcceptor::from(Arc::new(config)), certificate.pem())
}

/// Accepts connections and reports the first bytes of each. Returns the certificate.
pub(crate) async fn serve_recording() -> (SocketAddr, String, UnboundedReceiver<String>) {
    let (acceptor, certificate) = acceptor();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, seen) = unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut stream = acceptor.accept(stream).await.unwrap();
            let mut bytes = vec![0; 4096];
            let count = stream.read(&mut bytes).await.unwrap();
            // Most tests receive only the first.
            _ = sender.send(String::from_utf8_lossy(&bytes[..count]).into_owned());
        }
    });
    (address, certificate, seen)
}

fn target(address: SocketAddr, trusted: &str) -> HttpAddress {
    let url = format!("https://localhost:{}/mcp", address.port());
    HttpAddress::with_certificates("web", &url, Some(trusted.as_bytes())).unwrap()
}

#[tokio::test]
async fn a_trusted_server_is_called_over_http_2_in_both_eras() {
    let (address, certificate) = serve(3000).await;
    call_often(address, &certificate, "").await;
}

#[tokio::test]
async fn a_trusted_server_is_called_over_http_1_in_both_eras() {
    let (address, certificate, _) = serve_behind_another().await;
    call_often(address, &certificate, &"x".repeat(300_000)).await;
}

#[tokio::test]
async fn a_connection_of_http_1_is_closed_with_a_word() {
    let (address, certificate, mut ends) = serve_behind_another().await;
    let server = HttpServer::new(target(address, &certificate));
    let connection = open(server, Era::Stateless).await.unwrap();
    let outcome = call(&connection, tool("echo", json!({"message": "hello"}))).await;
    assert_eq!(text(outcome), "hello");
    connection.close().await;
    drop(connection);
    let end = timeout(LONG, ends.recv()).await.unwrap().unwrap();
    assert!(end.is_ok(), "{end:?}");
}

/// Makes many concurrent calls in both eras, each with its number and `more`.
async fn call_often(address: SocketAddr, certificate: &str, more: &str) {
    for era in [Era::Handshake, Era::Stateless] {
        let connection = open(HttpServer::new(target(address, certificate)), era).await.unwrap();
        let calls = (0..20).map(|number| {
            let (connection, message) = (connection.clone(), format!("{number}{more}"));
            tokio::spawn(async move {
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
    for (address, reason) in
        [(expired, "expired"), (unknown, "the issuer of its certificate is unknown")]
    {
        let server = HttpServer::new(target(address, &certificate));
        let fault = open(server, Era::Stateless).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::BackendUnavailable);
        assert!(fault.detail.starts_with("`web` cannot be trusted: "), "{}", fault.detail);
        assert!(fault.detail.contains(reason), "{}", fault.detail);
        assert!(!fault.detail.contains("/mcp"), "{}", fault.detail);
    }
}

#[tokio::test]
async fn a_certificate_that_is_none_is_refused() {
    let fault = HttpAddress::with_certificates(
        "web",
        "https://localhost/",
        Some(b"-----BEGIN CERTIFICATE-----"),
    );
    assert!(fault.unwrap_err().detail.contains("PEM"));
}
