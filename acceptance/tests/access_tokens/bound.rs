//! Tokens that are bound to a key (DPoP).

use creole::client::oauth::SigningKey;
use creole_acceptance::http::Request;
use serde_json::{Value, json};

use crate::issuer::{TestIssuer, base64url, now};
use crate::{TokenServer, message, sha256, table, with_token};

/// A caller with a key, and a token that is bound to it.
struct Holder {
    key: SigningKey,
    token: String,
}

impl Holder {
    fn new(issuer: &TestIssuer, url: &str) -> Self {
        let key = SigningKey::generate().unwrap();
        let token = issuer.token(url, json!({ "cnf": { "jkt": key.id() } }));
        Self { key, token }
    }

    /// A proof for a POST to this address, with these claims changed.
    fn proof(&self, url: &str, changes: Value) -> String {
        let mut claims = json!({
            "htm": "POST", "htu": url, "iat": now(), "jti": SigningKey::generate().unwrap().id(),
            "ath": base64url(&sha256(self.token.as_bytes())),
        });
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        let header = json!({ "typ": "dpop+jwt", "jwk": self.key.public_key() });
        self.key.sign(&header, &claims).unwrap()
    }

    fn request(&self, proof: &str) -> Request {
        let authorization = format!("DPoP {}", self.token);
        message().with("Authorization", &authorization).with("DPoP", proof)
    }
}

fn error(protected: &TokenServer, request: &Request) -> (u16, String) {
    let response = protected.send(request);
    let challenges: Vec<_> = response.head.all("www-authenticate").map(str::to_owned).collect();
    (response.head.status, challenges.join("\n"))
}

#[test]
fn a_bound_token_needs_a_fresh_proof_of_its_key() {
    let issuer = TestIssuer::start();
    let protected = TokenServer::by(&issuer);
    let url = protected.url();
    let (holder, other) = (Holder::new(&issuer, &url), Holder::new(&issuer, &url));
    let proof = holder.proof(&url, json!({}));
    assert_eq!(protected.send(&holder.request(&proof)).head.status, 200);
    let (status, challenge) = error(&protected, &holder.request(&proof));
    assert_eq!(status, 401);
    assert!(
        challenge.contains("DPoP realm=\"creole\", error=\"invalid_dpop_proof\""),
        "{challenge}"
    );
    protected.logs("replay");
    let wrong = [
        other.proof(&url, json!({})),
        holder.proof(&url, json!({ "ath": base64url(&sha256(b"other")) })),
        holder.proof(&url, json!({ "htm": "GET" })),
        holder.proof(&url, json!({ "htu": format!("{url}2") })),
        holder.proof(&url, json!({ "iat": now() - 310 })),
        holder.proof(&url, json!({ "iat": now() + 310 })),
        "garbage".to_owned(),
    ];
    for proof in wrong {
        let (status, challenge) = error(&protected, &holder.request(&proof));
        assert_eq!(status, 401, "{proof}");
        assert!(challenge.contains("invalid_dpop_proof"), "{challenge}");
    }
    protected.logs("binding");
    for time in [now() - 290, now() + 290] {
        let proof = holder.proof(&url, json!({ "iat": time }));
        assert_eq!(protected.send(&holder.request(&proof)).head.status, 200, "{time}");
    }
}

#[test]
fn tokens_and_schemes_must_fit() {
    let issuer = TestIssuer::start();
    let protected = TokenServer::by(&issuer);
    let url = protected.url();
    let holder = Holder::new(&issuer, &url);
    assert_eq!(protected.status(&holder.token), 401, "as a stolen token is presented");
    let plain = issuer.token(&url, json!({}));
    let unbound = Holder { key: holder.key.clone(), token: plain.clone() };
    let proof = unbound.proof(&url, json!({}));
    assert_eq!(protected.send(&unbound.request(&proof)).head.status, 401);
    assert_eq!(protected.status(&plain), 200);
    let twice = holder.request(&holder.proof(&url, json!({}))).with("DPoP", "x");
    assert_eq!(protected.send(&twice).head.status, 400);
    let certificate = json!({ "cnf": { "x5t#S256": base64url(&[1; 32]) } });
    assert_eq!(protected.send(&with_token(&issuer.token(&url, certificate))).head.status, 401);
}

#[test]
fn processes_that_share_a_state_share_used_proofs() {
    let issuer = TestIssuer::start();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state.db");
    let lines = format!(
        "[state]\nfile = \"{}\"\n{}",
        state.display(),
        table("corp", &issuer, "audiences = [\"https://mcp.example.com/mcp\"]")
    );
    let (one, other) = (TokenServer::start(&lines), TokenServer::start(&lines));
    let holder = Holder::new(&issuer, "https://mcp.example.com/mcp");
    // Both are one server behind a proxy that keeps the name of the host.
    let host = one.server.address().to_string();
    let proof = holder.proof(&one.url(), json!({}));
    let request = holder.request(&proof).with("Host", &host);
    assert_eq!(one.send(&request).head.status, 200);
    let (status, challenge) = error(&other, &request);
    assert_eq!(status, 401);
    assert!(challenge.contains("invalid_dpop_proof"), "{challenge}");
    other.logs("replay");
    let fresh = holder.request(&holder.proof(&one.url(), json!({}))).with("Host", &host);
    assert_eq!(other.send(&fresh).head.status, 200);
}
