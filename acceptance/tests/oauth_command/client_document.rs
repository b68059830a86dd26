//! Logins of a client whose id is the address of a document about it.

use std::fs;
use std::path::Path;

use creole_acceptance::peers::idp::IdentityProvider;
use creole_acceptance::peers::if_installed;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};

use crate::{Home, expire, provider};

/// Writes the certificate of an authority, and a certificate that it issued for `localhost` with its key.
fn write_certificates(folder: &Path) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // A certificate whose subject is its issuer would pass for one that signed itself.
    params.distinguished_name.push(DnType::CommonName, "authority of the test");
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap().pem();
    fs::write(folder.join("authority.pem"), authority).unwrap();
    fs::write(folder.join("certificate.pem"), certificate).unwrap();
    fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();
}

/// A provider that accepts documents about clients, and trusts the authority of their server.
fn provider_with_document(folder: &Path) -> Option<IdentityProvider> {
    write_certificates(folder);
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let options = ["--certificate", &path("certificate.pem"), "--key", &path("key.pem")];
    let authority = folder.join("authority.pem");
    let variables = [("NODE_EXTRA_CA_CERTS", authority.as_os_str())];
    if_installed("oidc-provider", IdentityProvider::start_with(&options, &variables))
}

#[test]
fn a_client_is_known_by_its_document_and_not_registered() {
    let folder = tempfile::tempdir().unwrap();
    let Some(provider) = provider_with_document(folder.path()) else { return };
    let (home, url, document) = (Home::new(), provider.server("/mcp"), provider.told("/client"));
    let login = home.run(&["login", &url, "--client-metadata", &document, "--json"]).succeeded();
    let told: Value = serde_json::from_str(&login.stdout).unwrap();
    assert_eq!((&told["client_id"], &told["renewable"]), (&json!(document), &json!(true)));
    assert_eq!((provider.visits("/client.json"), provider.visits("/reg")), (1, 0));

    // The other commands and a refresh need no flag.
    let whoami = || {
        let called = home.run(&["call", &url, "whoami"]).succeeded();
        serde_json::from_str::<Value>(&called.stdout).unwrap()
    };
    assert_eq!((&whoami()["client"], &whoami()["sub"]), (&json!(document), &json!("alice")));
    expire(&home.login_file());
    assert_eq!(whoami()["client"], json!(document));
    assert_eq!(provider.token_requests("refresh_token", 200), 1);
    assert_eq!(provider.token_requests("authorization_code", 200), 1);
    home.run(&["logout", &url]).succeeded();
    assert_eq!(provider.visits("/reg"), 0);
}

#[test]
fn a_server_that_reads_no_documents_registers_the_client() {
    let Some(provider) = provider(&[]) else { return };
    let (home, url) = (Home::new(), provider.server("/mcp"));
    let document = "https://client.example/client.json";
    let login = home.run(&["login", &url, "--client-metadata", document, "--json"]).succeeded();
    let told: Value = serde_json::from_str(&login.stdout).unwrap();
    assert_ne!(told["client_id"], json!(document));
    assert_eq!(provider.visits("/reg"), 1);
}
