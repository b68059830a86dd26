//! Signatures, checked with the public keys and with examples of the RFCs.

use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256,
    RsaPublicKeyComponents, UnparsedPublicKey,
};
use aws_lc_rs::signature::{Ed25519KeyPair, RsaKeyPair};
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::{Algorithm, SigningKey, thumbprint};

fn pem(der: &[u8]) -> String {
    format!(
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
        BASE64_STANDARD.encode(der)
    )
}

fn decode(text: &str) -> Vec<u8> {
    BASE64_URL_SAFE_NO_PAD.decode(text).unwrap()
}

/// Signs, and verifies with the public key of the header's JSON Web Key.
fn verify(key: &SigningKey) {
    let text = key.sign(&json!({ "typ": "JWT" }), &json!({ "a": 1 })).unwrap();
    let (message, signature) = text.rsplit_once('.').unwrap();
    let header: Value =
        serde_json::from_slice(&decode(message.split('.').next().unwrap())).unwrap();
    assert_eq!(header, json!({ "typ": "JWT", "alg": key.algorithm().name() }));
    let (public, signature) = (key.public_key(), decode(signature));
    let member = |name: &str| decode(public[name].as_str().unwrap());
    let verified = match key.algorithm() {
        Algorithm::Es256 => {
            let point = [&[4][..], &member("x"), &member("y")].concat();
            UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
                .verify(message.as_bytes(), &signature)
        }
        Algorithm::EdDsa => {
            UnparsedPublicKey::new(&ED25519, member("x")).verify(message.as_bytes(), &signature)
        }
        algorithm => {
            let verification = match algorithm {
                Algorithm::Ps256 => &RSA_PSS_2048_8192_SHA256,
                _ => &RSA_PKCS1_2048_8192_SHA256,
            };
            let components = RsaPublicKeyComponents { n: member("n"), e: member("e") };
            components.verify(verification, message.as_bytes(), &signature)
        }
    };
    verified.unwrap();
}

#[test]
fn every_algorithm_signs_what_its_public_key_verifies() {
    verify(&SigningKey::generate().unwrap());
    let ed25519 = Ed25519KeyPair::generate().unwrap().to_pkcs8().unwrap();
    verify(&SigningKey::from_pem(&pem(ed25519.as_ref()), None).unwrap());
    let rsa = AsDer::<aws_lc_rs::encoding::Pkcs8V1Der<'_>>::as_der(
        &RsaKeyPair::generate(KeySize::Rsa2048).unwrap(),
    )
    .unwrap();
    verify(&SigningKey::from_pem(&pem(rsa.as_ref()), None).unwrap());
    verify(&SigningKey::from_pem(&pem(rsa.as_ref()), Some(Algorithm::Ps256)).unwrap());
    assert!(SigningKey::from_pem(&pem(rsa.as_ref()), Some(Algorithm::Es256)).is_err());
    assert!(SigningKey::from_pem(&pem(ed25519.as_ref()), Some(Algorithm::Rs256)).is_err());
}

#[test]
fn a_key_is_stored_and_read() {
    let key = SigningKey::generate().unwrap();
    let read = SigningKey::import(&key.export().unwrap()).unwrap();
    assert_eq!((read.id(), read.public_key()), (key.id(), key.public_key()));
    assert!(!format!("{key:?}").contains(&key.export().unwrap()));
    for text in ["", "AAAA", "%"] {
        assert!(SigningKey::import(text).is_err());
    }
}

#[test]
fn the_thumbprint_is_that_of_the_rfc() {
    // RFC 7638, section 3.1.
    let key = json!({
        "kty": "RSA",
        "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw",
        "e": "AQAB",
        "alg": "RS256",
        "kid": "2011-04-29",
    });
    assert_eq!(thumbprint(&key), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
}

#[test]
fn other_texts_are_no_keys() {
    for text in [
        "",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN RSA PRIVATE KEY-----\nAA==\n-----END RSA PRIVATE KEY-----",
        &pem(b"x"),
    ] {
        assert!(SigningKey::from_pem(text, None).is_err(), "{text}");
    }
}
