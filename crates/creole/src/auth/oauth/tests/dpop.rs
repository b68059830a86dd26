//! Tokens that are bound to a key.

use creole_oauth::crypto::dpop::{DpopKey, ProvenRequest};
use creole_oauth::crypto::jose::SigningKey;
use creole_oauth::web_url::WebUrl;
use serde_json::json;

use super::{
    DpopMode, ISSUER, RESOURCE, ResourceSettings, TestIssuer, TokenCall, TokenDecision,
    TokenScheme, advance, call, resource, resource_of, resource_settings, shown, verifier,
};

struct Bound {
    key: DpopKey,
    token: String,
}

impl Bound {
    fn new(issuer: &TestIssuer) -> Self {
        let key = SigningKey::generate().unwrap();
        let token = issuer.token(json!({ "cnf": { "jkt": key.id() } }));
        Self { key: DpopKey::new(key), token }
    }

    fn proof_for(&self, token: &str, now: u64) -> String {
        let url = WebUrl::parse(RESOURCE).unwrap();
        let request = ProvenRequest { method: "POST", url: &url, access_token: Some(token) };
        self.key.proof(request, now).unwrap()
    }

    fn call<'a>(&'a self, proof: &'a str) -> TokenCall<'a> {
        TokenCall { scheme: TokenScheme::Dpop, proof: Some(proof), ..call(&self.token) }
    }
}

#[tokio::test(start_paused = true)]
async fn a_fresh_proof_is_needed_for_every_request() {
    let issuer = TestIssuer::new(ISSUER);
    let (verifier, bound) = (verifier(&issuer), Bound::new(&issuer));
    let proof = bound.proof_for(&bound.token, issuer.clock.now());
    assert_eq!(shown(&verifier.verify(bound.call(&proof)).await), "granted oauth:corp:alice");
    assert_eq!(shown(&verifier.verify(bound.call(&proof)).await), "proof replay");
    let other = bound.proof_for(&bound.token, issuer.clock.now());
    assert!(verifier.try_verify(bound.call(&other)).is_none(), "a proof is never cached");
    let decision = verifier.verify(bound.call(&other)).await;
    let TokenDecision::Granted(principal) = decision else { panic!("{decision:?}") };
    assert!(principal.token().unwrap().is_dpop);
}

#[tokio::test(start_paused = true)]
async fn tokens_and_schemes_must_fit() {
    let issuer = TestIssuer::new(ISSUER);
    let (verifier, bound) = (verifier(&issuer), Bound::new(&issuer));
    let stolen = verifier.verify(call(&bound.token)).await;
    assert_eq!(shown(&stolen), "invalid binding");
    assert_eq!(shown(&verifier.try_verify(call(&bound.token)).unwrap()), "invalid binding");
    let plain = issuer.token(json!({}));
    let proof = bound.proof_for(&plain, issuer.clock.now());
    let unbound = TokenCall { token: &plain, ..bound.call(&proof) };
    assert_eq!(shown(&verifier.verify(unbound).await), "invalid binding");
    let require = resource(DpopMode::Require);
    let required = TokenCall { resource: &require, ..call(&plain) };
    assert_eq!(shown(&verifier.verify(required).await), "invalid binding");
    let proof = bound.proof_for(&bound.token, issuer.clock.now());
    let off = resource(DpopMode::Off);
    let off = TokenCall { resource: &off, ..bound.call(&proof) };
    assert_eq!(shown(&verifier.verify(off).await), "invalid binding");
}

#[tokio::test(start_paused = true)]
async fn a_proof_is_for_this_key_token_and_time() {
    let issuer = TestIssuer::new(ISSUER);
    let (verifier, bound, other) = (verifier(&issuer), Bound::new(&issuer), Bound::new(&issuer));
    let now = issuer.clock.now();
    let proofs = [
        (other.proof_for(&bound.token, now), "proof binding"),
        (bound.proof_for(&other.token, now), "proof binding"),
        (bound.proof_for(&bound.token, now - 301), "proof expired"),
        (bound.proof_for(&bound.token, now + 301), "proof expired"),
        (bound.proof_for(&bound.token, now - 299), "granted oauth:corp:alice"),
        (bound.proof_for(&bound.token, now + 299), "granted oauth:corp:alice"),
        ("x".to_owned(), "proof malformed"),
    ];
    for (proof, expected) in proofs {
        assert_eq!(shown(&verifier.verify(bound.call(&proof)).await), expected);
    }
    let none = TokenCall { proof: None, ..bound.call("") };
    assert_eq!(shown(&verifier.verify(none).await), "proof malformed");
}

#[tokio::test(start_paused = true)]
async fn a_demanded_nonce_holds_for_two_windows() {
    let issuer = TestIssuer::new(ISSUER);
    let (verifier, bound) = (verifier(&issuer), Bound::new(&issuer));
    let url = WebUrl::parse(RESOURCE).unwrap();
    let demanding = resource_of(ResourceSettings { dpop_nonce: true, ..resource_settings() });
    let ask = async || {
        let proof = bound.proof_for(&bound.token, issuer.clock.now());
        verifier.verify(TokenCall { resource: &demanding, ..bound.call(&proof) }).await
    };
    let TokenDecision::UseNonce(nonce) = ask().await else { panic!("no nonce") };
    bound.key.store_nonce(&url, Some(&nonce));
    assert_eq!(shown(&ask().await), "granted oauth:corp:alice");
    advance(119).await;
    assert_eq!(shown(&ask().await), "granted oauth:corp:alice");
    advance(121).await;
    let TokenDecision::UseNonce(next) = ask().await else { panic!("an old nonce") };
    assert_ne!(nonce, next);
    bound.key.store_nonce(&url, Some(&next));
    assert_eq!(shown(&ask().await), "granted oauth:corp:alice");
}

#[tokio::test(start_paused = true)]
async fn a_certificate_is_needed_where_the_token_names_one() {
    let issuer = TestIssuer::new(ISSUER);
    let verifier = verifier(&issuer);
    let digest = "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs";
    let token = issuer.token(json!({ "cnf": { "x5t#S256": digest } }));
    assert_eq!(shown(&verifier.verify(call(&token)).await), "invalid binding");
    use base64::Engine as _;
    let bytes = base64::prelude::BASE64_URL_SAFE_NO_PAD.decode(digest).unwrap();
    let certificate = <[u8; 32]>::try_from(bytes).ok();
    let right = TokenCall { certificate, ..call(&token) };
    assert_eq!(shown(&verifier.verify(right).await), "granted oauth:corp:alice");
    assert!(verifier.try_verify(right).is_some(), "the certificate is checked without waiting");
    let wrong = TokenCall { certificate: Some([0; 32]), ..right };
    assert_eq!(shown(&verifier.verify(wrong).await), "invalid binding");
}
