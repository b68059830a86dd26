//! The revocation of a login at a server whose certificate the system does not trust.

use std::sync::Arc;

use creole::client::oauth::{
    Login, LoginKey, LoginStore, LogoutOutcome, RevocationOptions, log_out,
};
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// An authorization server that revokes everything. Returns its address, and its certificate in PEM form.
async fn serve() -> (String, Arc<[u8]>) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(aws_lc_rs::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // A client that does not trust the certificate ends the handshake.
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut bytes = vec![0; 4_096];
            let _ = stream.read(&mut bytes).await;
            let response = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            let _ = stream.write_all(response).await;
            let _ = stream.shutdown().await;
        }
    });
    (origin, Arc::from(certificate.pem().as_bytes()))
}

fn login(origin: &str) -> Login {
    serde_json::from_value(json!({
        "version": 1, "generation": 1, "server": format!("{origin}/mcp"),
        "resource": format!("{origin}/mcp"), "issuer": origin,
        "token_endpoint": format!("{origin}/token"),
        "revocation_endpoint": format!("{origin}/revoke"),
        "client": {"id": "c", "method": "none", "source": "registered"},
        "requested_scopes": [], "scopes": [], "access_token": "access-canary",
        "token_type": "Bearer", "expires_at": 4_000_000_000_u64, "created_at": 0,
    }))
    .unwrap()
}

#[tokio::test]
async fn a_login_is_revoked_with_the_certificates_of_its_server() {
    let (origin, certificates) = serve().await;
    let folder = tempfile::tempdir().unwrap();
    let store = LoginStore::new(folder.path().join("logins"));
    let login = login(&origin);
    let key = LoginKey::of(&login);
    let mut revocation = RevocationOptions::default();
    for (trusted, is_revoked) in [(None, false), (Some(certificates), true)] {
        store.lock(&key).await.unwrap().write(&login).unwrap();
        revocation.certificates = trusted;
        let outcome = log_out(&store, &key, Some(&revocation)).await.unwrap();
        match is_revoked {
            true => {
                assert!(matches!(outcome, LogoutOutcome::Done { is_revoked: true }), "{outcome:?}")
            }
            false => assert!(matches!(outcome, LogoutOutcome::NotRevoked(_)), "{outcome:?}"),
        }
        assert!(store.read(&key).unwrap().is_none());
    }
}
