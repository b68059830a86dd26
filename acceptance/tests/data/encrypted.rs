//! Tests of TLS connections to a PostgreSQL server that accepts no unencrypted connection.

use std::fs;

use creole_acceptance::peers::postgres::{PASSWORD, Postgres};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::json;

use crate::{postgres, start, told};

/// The certificate of an authority, and a certificate that it issued for `localhost` with its key, in PEM form.
fn certificates() -> (String, String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    (authority, certificate.pem(), key.serialize_pem())
}

/// The configuration of a database with this name and address, and a tool that returns whether the connection is
/// encrypted.
fn asked_at(name: &str, address: &str) -> String {
    format!(
        "[databases.{name}]\nurl = \"{address}\"\npassword = \"{PASSWORD}\"\n\
         [tools.{name}]\ndescription = \"Is it encrypted?\"\ndatabase = \"{name}\"\n\
         query = \"SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()\"\n"
    )
}

/// The same with the host `localhost`, and with more text after the address.
fn at(postgres: &Postgres, name: &str, more: &str) -> String {
    asked_at(name, &format!("{}{more}", postgres.url().replace("127.0.0.1", "localhost")))
}

#[test]
fn an_encrypted_server_must_prove_its_name_if_the_address_requires_it() {
    let Some(mut postgres) = postgres() else { return };
    let (authority, certificate, key) = certificates();
    postgres.encrypt(&certificate, &key);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("ca.pem"), authority).unwrap();
    let proven = "?sslmode=verify-full&sslrootcert=ca.pem";
    let tasks =
        format!("{}?sslmode=require", postgres.url().replace('@', &format!(":{PASSWORD}@")));
    let text = [
        format!("[server]\npacks = [\"tasks\"]\n[tasks]\nurl = \"{tasks}\"\n"),
        at(&postgres, "plain", ""),
        at(&postgres, "preferred", "?sslmode=prefer"),
        at(&postgres, "required", "?sslmode=require"),
        at(&postgres, "proven", proven),
        at(&postgres, "unknown_authority", "?sslmode=verify-full"),
        asked_at("other_name", &format!("{}{proven}", postgres.url())),
    ];
    let mut server = start(folder.path(), &text.concat());
    for name in ["preferred", "required", "proven"] {
        let rows = told(&server.call(name, &json!({})));
        assert_eq!(rows.as_deref(), Ok(r#"{"rows":[{"ssl":true}],"more":false}"#), "{name}");
    }
    for name in ["plain", "unknown_authority", "other_name"] {
        let response = server.call(name, &json!({})).to_string();
        assert!(response.contains("is not available"), "{name}: {response}");
    }
    let made = told(&server.call("create_task", &json!({"description": "Whisper"})));
    assert!(made.as_ref().is_ok_and(|made| made.contains("Whisper")), "{made:?}");
    let log = server.finish().log;
    assert!(log.contains("certificate") && !log.contains(PASSWORD), "{log}");
}

#[test]
fn an_unencrypted_server_is_used_only_if_the_address_allows_it() {
    let Some(postgres) = postgres() else { return };
    let folder = tempfile::tempdir().unwrap();
    let text = [
        "[server]\n".to_owned(),
        at(&postgres, "preferred", "?sslmode=prefer"),
        at(&postgres, "required", "?sslmode=require"),
    ];
    let mut server = start(folder.path(), &text.concat());
    let rows = told(&server.call("preferred", &json!({})));
    assert_eq!(rows.as_deref(), Ok(r#"{"rows":[{"ssl":false}],"more":false}"#));
    let response = server.call("required", &json!({})).to_string();
    assert!(response.contains("is not available"), "{response}");
}
