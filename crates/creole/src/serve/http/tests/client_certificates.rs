//! Access tokens that are bound to the certificate of the client's connection (RFC 8705).

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use creole_oauth::crypto::jose::SigningKey;
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::auth::oauth::{IssuerSettings, KeySource};
use crate::auth::{AuthSettings, Authenticator, ResourceSettings};
use crate::secrets::digest;
use crate::serve::http::tests::support::{Echo, PATIENCE, status, with};
use crate::serve::http::web::tls::Certificates;
use crate::serve::http::{
    Drain, HttpLimits, Listener, Method, OriginGuard, ResourceGate, Route, Router,
};

const ISSUER: &str = "https://id.example.com";
const RESOURCE: &str = "https://localhost/mcp";

fn self_signed(name: &str) -> CertifiedKey<KeyPair> {
    generate_simple_self_signed(vec![name.to_owned()]).unwrap()
}

/// Accepts tokens of an issuer whose key is in a file.
fn authenticator(folder: &Path, key: &SigningKey) -> Authenticator {
    let file = folder.join("keys.json");
    let mut jwk = key.public_key();
    jwk["kid"] = key.id().into();
    fs::write(&file, json!({ "keys": [jwk] }).to_string()).unwrap();
    let mut issuer = IssuerSettings::new("corp", ISSUER).unwrap();
    issuer.keys = KeySource::File(file);
    let resource = ResourceSettings {
        path: "/mcp".to_owned(),
        public_url: Some("https://localhost".to_owned()),
        issuers: vec![("corp".into(), ISSUER.into())],
        max_token: 8_192,
        ..ResourceSettings::default()
    };
    let mut settings = AuthSettings::default();
    settings.oauth.issuers = vec![issuer];
    settings.oauth.resources = vec![resource];
    Authenticator::new(settings).unwrap()
}

fn token(key: &SigningKey, certificate: &CertificateDer<'_>) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let bound = BASE64_URL_SAFE_NO_PAD.encode(digest(certificate));
    let claims = json!({
        "iss": ISSUER, "aud": RESOURCE, "sub": "alice", "client_id": "editor", "exp": now + 600,
        "cnf": { "x5t#S256": bound },
    });
    key.sign(&json!({ "typ": "at+jwt", "kid": key.id() }), &claims).unwrap()
}

/// The status of a request on a connection with this certificate.
async fn send(
    listener: std::net::SocketAddr,
    trusted: &CertificateDer<'static>,
    own: Option<&CertifiedKey<KeyPair>>,
    token: &str,
) -> Option<u16> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let builder = ClientConfig::builder_with_provider(aws_lc_rs::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match own {
        None => builder.with_no_client_auth(),
        Some(own) => {
            let pem = own.signing_key.serialize_pem();
            let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).unwrap();
            builder.with_client_auth_cert(vec![own.cert.der().clone()], key).unwrap()
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let stream = tokio::net::TcpStream::connect(listener).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.ok()?;
    let head = format!("Connection: close\r\nAuthorization: Bearer {token}\r\n");
    stream.write_all(with(&head, "{}").as_bytes()).await.ok()?;
    let mut response = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut response)).await.unwrap().ok()?;
    Some(status(&response))
}

#[tokio::test]
async fn a_bound_token_is_accepted_only_with_its_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let (server, client, other) =
        (self_signed("localhost"), self_signed("client"), self_signed("other"));
    let stranger = self_signed("stranger");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let certificate = write("certificate.pem", &server.cert.pem());
    let key_file = write("key.pem", &server.signing_key.serialize_pem());
    let roots = write("clients.pem", &format!("{}{}", client.cert.pem(), other.cert.pem()));
    let certificates =
        Certificates::load_with_clients(&certificate, &key_file, Some(&roots)).unwrap();
    let signing = SigningKey::generate().unwrap();
    let gate = ResourceGate::new(authenticator(folder.path(), &signing), 0);
    let drain = Drain::new();
    let listener = Listener::bind(([127, 0, 0, 1], 0).into(), HttpLimits::default()).await.unwrap();
    let address = listener.address().unwrap();
    let route = Route::new("/mcp", &[Method::POST], Echo::default()).authenticate(Arc::new(gate));
    let router = Router::new(OriginGuard::loopback(), drain.clone()).route(route);
    tokio::spawn(listener.tls(certificates).serve(router));
    let trusted = server.cert.der().clone();
    let token = token(&signing, client.cert.der());
    assert_eq!(send(address, &trusted, Some(&client), &token).await, Some(200));
    assert_eq!(send(address, &trusted, Some(&other), &token).await, Some(401));
    assert_eq!(send(address, &trusted, None, &token).await, Some(401));
    assert_eq!(send(address, &trusted, Some(&stranger), &token).await, None, "no handshake");
    assert_eq!(send(address, &trusted, Some(&client), &token).await, Some(200), "also if cached");
}

#[test]
fn a_file_without_an_authority_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = self_signed("localhost");
    let path = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let certificate = path("certificate.pem", &server.cert.pem());
    let key = path("key.pem", &server.signing_key.serialize_pem());
    let empty = path("empty.pem", "");
    let error = Certificates::load_with_clients(&certificate, &key, Some(&empty)).unwrap_err();
    assert!(error.to_string().contains("empty.pem: it has no authority"), "{error}");
    let missing = folder.path().join("none.pem");
    let error = Certificates::load_with_clients(&certificate, &key, Some(&missing)).unwrap_err();
    assert!(error.to_string().contains("none.pem"), "{error}");
}
