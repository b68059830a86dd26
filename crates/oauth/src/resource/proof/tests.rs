//! Proofs that are right, and each way in which one is wrong.

use serde_json::{Map, Value, json};

use super::{CheckedProof, ProvenCall};
use crate::crypto::dpop::{DpopKey, ProvenRequest};
use crate::crypto::jose::SigningKey;
use crate::resource::public_key::PublicKey;
use crate::resource::refusal::TokenRefusal;
use crate::resource::testing::{NOW, RESOURCE, TestKey, encode};
use crate::web_url::WebUrl;

const TOKEN: &str = "access-token";

fn hash() -> String {
    encode(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, TOKEN.as_bytes()))
}

struct ProofMaker {
    key: TestKey,
    urls: [WebUrl; 1],
}

impl ProofMaker {
    fn new() -> Self {
        Self { key: TestKey::new(), urls: [WebUrl::parse(RESOURCE).unwrap()] }
    }

    fn check_text(&self, proof: &str) -> Result<CheckedProof, TokenRefusal> {
        let public = PublicKey::read(&self.key.jwk()).unwrap();
        let key = public.thumbprint();
        CheckedProof::check(
            proof,
            ProvenCall { method: "POST", urls: &self.urls, token: TOKEN, key, now: NOW },
        )
    }

    fn proof(&self, header: Value, claims: Value) -> String {
        let mut whole_header =
            json!({ "typ": "dpop+jwt", "alg": "ES256", "jwk": Value::Object(self.key.jwk()) });
        let mut whole =
            json!({ "htm": "POST", "htu": RESOURCE, "iat": NOW, "jti": "j1", "ath": hash() });
        merge(whole_header.as_object_mut().unwrap(), header);
        merge(whole.as_object_mut().unwrap(), claims);
        self.key.sign(&whole_header, &whole)
    }

    fn check(&self, header: Value, claims: Value) -> Result<CheckedProof, TokenRefusal> {
        self.check_text(&self.proof(header, claims))
    }
}

fn merge(into: &mut Map<String, Value>, changes: Value) {
    for (name, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => into.remove(name),
            value => into.insert(name.clone(), value.clone()),
        };
    }
}

#[test]
fn a_proof_of_this_crates_client_is_right() {
    let signing = SigningKey::generate().unwrap();
    let key = signing.id().to_owned();
    let url = WebUrl::parse("https://MCP.example.com:443/mcp/").unwrap();
    let request = ProvenRequest { method: "POST", url: &url, access_token: Some(TOKEN) };
    let proof = DpopKey::new(signing).proof(request, NOW).unwrap();
    let urls = [WebUrl::parse(RESOURCE).unwrap()];
    let call = ProvenCall { method: "POST", urls: &urls, token: TOKEN, key: &key, now: NOW };
    let checked = CheckedProof::check(&proof, call).unwrap();
    assert_eq!((checked.issued_at, checked.nonce), (NOW, None));
    assert_eq!(
        CheckedProof::check(&proof, ProvenCall { method: "GET", ..call }),
        Err(TokenRefusal::Binding)
    );
    assert_eq!(
        CheckedProof::check(&proof, ProvenCall { token: "other", ..call }),
        Err(TokenRefusal::Binding)
    );
    assert_eq!(
        CheckedProof::check(&proof, ProvenCall { key: "other", ..call }),
        Err(TokenRefusal::Binding)
    );
}

#[test]
fn the_address_is_the_configured_one() {
    let caller = ProofMaker::new();
    for url in [
        "https://mcp.example.com/mcp",
        "https://mcp.example.com/mcp/",
        "HTTPS://MCP.EXAMPLE.COM:443/mcp",
    ] {
        assert!(caller.check(json!({}), json!({ "htu": url })).is_ok(), "{url}");
    }
    for url in [
        "https://mcp.example.com/mcp?x",
        "https://mcp.example.com/mcp#x",
        "https://mcp.example.com/mcp//",
        "https://mcp.example.com/MCP",
        "https://mcp.example.com/",
        "http://mcp.example.com/mcp",
        "https://mcp.example.com:8443/mcp",
        "https://evil.example.com/mcp",
        "https://mcp.example.com@evil.example/mcp",
        "/mcp",
        "",
    ] {
        assert_eq!(
            caller.check(json!({}), json!({ "htu": url })),
            Err(TokenRefusal::Binding),
            "{url}"
        );
    }
}

#[test]
fn each_claim_is_checked() {
    let caller = ProofMaker::new();
    for (claims, expected) in [
        (json!({ "iat": NOW - 299 }), Ok(())),
        (json!({ "iat": NOW + 299 }), Ok(())),
        (json!({ "iat": NOW - 301 }), Err(TokenRefusal::Expired)),
        (json!({ "iat": NOW + 301 }), Err(TokenRefusal::Expired)),
        (json!({ "iat": NOW as f64 + 0.5 }), Err(TokenRefusal::Claims)),
        (json!({ "iat": NOW.to_string() }), Err(TokenRefusal::Claims)),
        (json!({ "iat": null }), Err(TokenRefusal::Claims)),
        (json!({ "jti": null }), Err(TokenRefusal::Claims)),
        (json!({ "jti": "" }), Err(TokenRefusal::Claims)),
        (json!({ "jti": "x".repeat(256) }), Ok(())),
        (json!({ "jti": "x".repeat(257) }), Err(TokenRefusal::Claims)),
        (json!({ "ath": null }), Err(TokenRefusal::Binding)),
        (json!({ "ath": "x" }), Err(TokenRefusal::Binding)),
        (json!({ "htm": "post" }), Err(TokenRefusal::Binding)),
        (json!({ "htm": null }), Err(TokenRefusal::Binding)),
        (json!({ "htu": null }), Err(TokenRefusal::Binding)),
        (json!({ "nonce": 7 }), Err(TokenRefusal::Claims)),
        (json!({ "nonce": "n" }), Ok(())),
    ] {
        assert_eq!(caller.check(json!({}), claims.clone()).map(|_| ()), expected, "{claims}");
    }
}

#[test]
fn each_member_of_the_header_is_checked() {
    let caller = ProofMaker::new();
    let private = Value::Object(caller.key.jwk_with(json!({ "d": "AAAA" })));
    let shared = json!({ "kty": "oct", "k": "AAAA" });
    let other = Value::Object(TestKey::new().jwk());
    for (header, expected) in [
        (json!({ "typ": "DPOP+jwt" }), Ok(())),
        (json!({ "typ": "JWT" }), Err(TokenRefusal::Typ)),
        (json!({ "typ": null }), Err(TokenRefusal::Typ)),
        (json!({ "alg": "none" }), Err(TokenRefusal::Algorithm)),
        (json!({ "alg": "HS256" }), Err(TokenRefusal::Algorithm)),
        (json!({ "alg": "RS256" }), Err(TokenRefusal::Algorithm)),
        (json!({ "crit": ["x"] }), Err(TokenRefusal::Malformed)),
        (json!({ "jwk": null }), Err(TokenRefusal::Malformed)),
        (json!({ "jwk": "x" }), Err(TokenRefusal::Malformed)),
        (json!({ "jwk": private }), Err(TokenRefusal::Malformed)),
        (json!({ "jwk": shared }), Err(TokenRefusal::Malformed)),
        (json!({ "jwk": other }), Err(TokenRefusal::Signature)),
    ] {
        assert_eq!(caller.check(header.clone(), json!({})).map(|_| ()), expected, "{header}");
    }
    let long = caller.proof(json!({}), json!({ "x": "x".repeat(4_000) }));
    assert_eq!(caller.check_text(&long), Err(TokenRefusal::Malformed));
    assert_eq!(caller.check_text(""), Err(TokenRefusal::Malformed));
}

#[test]
fn proofs_have_the_same_fingerprint_only_with_the_same_key_and_id() {
    let (caller, other) = (ProofMaker::new(), ProofMaker::new());
    let of = |caller: &ProofMaker, id: &str| {
        caller.check(json!({}), json!({ "jti": id })).unwrap().fingerprint
    };
    assert_eq!(of(&caller, "a"), of(&caller, "a"));
    assert_ne!(of(&caller, "a"), of(&caller, "b"));
    assert_ne!(of(&caller, "a"), of(&other, "a"));
}
