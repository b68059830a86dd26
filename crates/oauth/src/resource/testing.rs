//! Keys and tokens of tests.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};

/// The issuer of the tests.
pub(super) const ISSUER: &str = "https://id.example.com/realms/corp";

/// The resource of the tests.
pub(super) const RESOURCE: &str = "https://mcp.example.com/mcp";

/// The time of the tests.
pub(super) const NOW: u64 = 1_800_000_000;

pub(super) fn encode(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

pub(super) fn decode(text: &str) -> Vec<u8> {
    BASE64_URL_SAFE_NO_PAD.decode(text).unwrap()
}

pub(super) fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// A key for ES256 that signs any header.
pub(super) struct TestKey(EcdsaKeyPair);

impl TestKey {
    pub(super) fn new() -> Self {
        Self(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap())
    }

    pub(super) fn jwk(&self) -> Map<String, Value> {
        let point = self.0.public_key().as_ref();
        object(json!({
            "kty": "EC", "crv": "P-256", "x": encode(&point[1..33]), "y": encode(&point[33..]),
        }))
    }

    /// The key with these further members.
    pub(super) fn jwk_with(&self, members: Value) -> Map<String, Value> {
        let mut jwk = self.jwk();
        jwk.extend(object(members));
        jwk
    }

    pub(super) fn sign_text(&self, header: &str, payload: &str) -> String {
        let message = format!("{}.{}", encode(header), encode(payload));
        let signature = self.0.sign(&SystemRandom::new(), message.as_bytes()).unwrap();
        format!("{message}.{}", encode(signature))
    }

    pub(super) fn sign(&self, header: &Value, payload: &Value) -> String {
        self.sign_text(&header.to_string(), &payload.to_string())
    }
}

/// The claims of a valid token, with these changed. Null removes a claim.
pub(super) fn claims(changes: Value) -> Map<String, Value> {
    let mut claims = object(json!({
        "iss": ISSUER, "aud": RESOURCE, "sub": "alice", "client_id": "editor", "exp": NOW + 300, "iat": NOW - 10,
    }));
    for (name, value) in object(changes) {
        match value {
            Value::Null => claims.remove(&name),
            value => claims.insert(name, value),
        };
    }
    claims
}
