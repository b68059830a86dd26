//! TLS, with certificates that change while the server runs.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use creole_test_wait::eventually_async;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::serve::http::HttpLimits;
use crate::serve::http::tests::support::{
    Echo, PATIENCE, TestHttpServer, start_with, status, to_end, with,
};
use crate::serve::http::web::tls::Certificates;

/// Creates a certificate and writes it with its key; returns it.
fn write_certificate(folder: &Path) -> CertificateDer<'static> {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    fs::write(folder.join("certificate.pem"), cert.pem()).unwrap();
    fs::write(folder.join("key.pem"), signing_key.serialize_pem()).unwrap();
    cert.der().clone()
}

fn load(
    folder: &Path,
) -> Result<Arc<Certificates>, crate::serve::http::web::tls::CertificateError> {
    Certificates::load(&folder.join("certificate.pem"), &folder.join("key.pem"))
}

async fn connect(
    server: &TestHttpServer,
    trusted: &CertificateDer<'static>,
    versions: &[&'static SupportedProtocolVersion],
    protocols: &[&[u8]],
) -> std::io::Result<TlsStream<tokio::net::TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let mut config = ClientConfig::builder_with_provider(aws_lc_rs::default_provider().into())
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    let name = ServerName::try_from("localhost").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    timeout(PATIENCE, connector.connect(name, server.connect().await)).await.expect("it answers")
}

async fn start(certificates: &Arc<Certificates>, limits: HttpLimits) -> TestHttpServer {
    start_with(limits, Echo::default(), Some(Arc::clone(certificates))).await
}

#[tokio::test]
async fn requests_are_answered_inside_of_both_versions_of_tls() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = write_certificate(folder.path());
    let server = start(&load(folder.path()).unwrap(), HttpLimits::default()).await;
    for version in [&TLS12, &TLS13] {
        let mut stream = connect(&server, &certificate, &[version], &[b"http/1.1"]).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
        let request = with("Connection: close\r\n", "inside");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        timeout(PATIENCE, stream.read_to_string(&mut response)).await.unwrap().unwrap();
        assert_eq!(status(&response), 200, "{response}");
        assert!(response.contains("inside"), "{response}");
    }
    let both: &[&[u8]] = &[b"http/1.1", b"h2"];
    let stream = connect(&server, &certificate, &[&TLS13], both).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    server.stop().await;
}

#[tokio::test]
async fn a_streaming_response_is_written_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = write_certificate(folder.path());
    let server = start(&load(folder.path()).unwrap(), HttpLimits::default()).await;
    let mut stream = connect(&server, &certificate, &[&TLS13], &[b"http/1.1"]).await.unwrap();
    stream.write_all(with("X-Do: last\r\n", "listen").as_bytes()).await.unwrap();
    let sender = server.echo.begun().await;
    sender.send(vec![b'z'; 100_000].into()).await.unwrap();
    sender.send("one".into()).await.unwrap();
    drop(sender);
    let mut response = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut response)).await.unwrap().unwrap();
    assert!(response.contains("connection: close\r\n"), "{}", &response[..300]);
    assert_eq!(response.matches('z').count(), 100_000);
    assert!(response.ends_with("z\r\n3\r\none\r\n0\r\n\r\n"));
    let mut stream = connect(&server, &certificate, &[&TLS13], &[b"http/1.1"]).await.unwrap();
    stream.write_all(with("X-Do: last\r\n", "listen").as_bytes()).await.unwrap();
    let sender = server.echo.begun().await;
    drop(stream);
    timeout(PATIENCE, sender.closed()).await.expect("the disconnect is noticed");
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_does_not_shake_hands_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    write_certificate(folder.path());
    let limits = HttpLimits { header_timeout: Duration::from_millis(200), ..HttpLimits::default() };
    let server = start(&load(folder.path()).unwrap(), limits).await;
    assert_eq!(to_end(&mut server.connect().await).await, "");
    let plain = server.exchange(with("", "not encrypted")).await;
    assert!(!plain.starts_with("HTTP"), "{plain}");
    assert_eq!(server.echo.seen(), [""; 0]);
    server.stop().await;
}

#[tokio::test]
async fn a_new_certificate_is_used_and_a_bad_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let first = write_certificate(folder.path());
    let certificates = load(folder.path()).unwrap();
    let server = start(&certificates, HttpLimits::default()).await;
    assert!(connect(&server, &first, &[&TLS13], &[]).await.is_ok());
    assert!(!certificates.reload().unwrap(), "the certificate is unchanged");

    let second = write_certificate(folder.path());
    assert!(certificates.reload().unwrap());
    assert!(connect(&server, &second, &[&TLS13], &[]).await.is_ok());
    assert!(connect(&server, &first, &[&TLS13], &[]).await.is_err());

    fs::write(folder.path().join("certificate.pem"), "rubbish").unwrap();
    let error = certificates.reload().unwrap_err().to_string();
    assert!(error.contains("certificate.pem") && error.contains("BEGIN CERTIFICATE"), "{error}");
    assert!(
        connect(&server, &second, &[&TLS13], &[]).await.is_ok(),
        "the old certificate stays in use"
    );

    let third = write_certificate(folder.path());
    assert!(certificates.reload().unwrap());
    assert!(connect(&server, &third, &[&TLS13], &[]).await.is_ok());
    server.stop().await;
}

#[tokio::test]
async fn a_changed_file_is_detected_without_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    write_certificate(folder.path());
    let certificates = load(folder.path()).unwrap();
    let server = start(&certificates, HttpLimits::default()).await;
    let second = write_certificate(folder.path());
    let connects = async || connect(&server, &second, &[&TLS13], &[]).await.is_ok();
    eventually_async("the new certificate is used", connects).await;
    server.stop().await;
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let said = |description: &str| {
        let error = load(folder.path()).unwrap_err().to_string();
        assert!(error.contains(description), "{error}");
    };
    said("certificate.pem: No such file");
    write_certificate(folder.path());
    let key = fs::read(folder.path().join("key.pem")).unwrap();
    write_certificate(folder.path());
    fs::write(folder.path().join("key.pem"), "rubbish").unwrap();
    said("key.pem: the file has no private key");
    fs::write(folder.path().join("key.pem"), key).unwrap();
    said("cannot be used with the key");
}
