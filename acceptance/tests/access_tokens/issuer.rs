//! An issuer whose documents a test chooses.

use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use creole::client::oauth::SigningKey;
use creole_acceptance::oauth::{RogueRequest, RogueResponse, RogueServer};
use serde_json::{Value, json};

/// Answers some requests in another way than a well-behaved issuer.
type Misbehaviour = Box<dyn Fn(&RogueRequest, &str) -> Option<RogueResponse> + Send>;

/// An issuer.
pub(crate) struct TestIssuer {
    server: RogueServer,
    state: Arc<Mutex<IssuerState>>,
}

#[derive(Default)]
struct IssuerState {
    keys: Vec<SigningKey>,
    misbehaviour: Option<Misbehaviour>,
    /// The answers to questions about opaque tokens.
    answers: Vec<(String, Value)>,
}

impl TestIssuer {
    pub(crate) fn start() -> Self {
        let state = Arc::new(Mutex::new(IssuerState::default()));
        state.lock().unwrap().keys.push(SigningKey::generate().unwrap());
        let shared = Arc::clone(&state);
        let server = RogueServer::start(move |request, origin| {
            let state = shared.lock().unwrap();
            let wrong = state.misbehaviour.as_ref().and_then(|it| it(request, origin));
            wrong.or_else(|| state.answer(request, origin))
        });
        Self { server, state }
    }

    /// The issuer identifier.
    pub(crate) fn name(&self) -> &str {
        self.server.origin()
    }

    pub(crate) fn misbehave(
        &self,
        misbehaviour: impl Fn(&RogueRequest, &str) -> Option<RogueResponse> + Send + 'static,
    ) {
        self.state.lock().unwrap().misbehaviour = Some(Box::new(misbehaviour));
    }

    pub(crate) fn behave(&self) {
        self.state.lock().unwrap().misbehaviour = None;
    }

    /// Replaces all keys by a new one.
    pub(crate) fn rotate(&self) {
        self.state.lock().unwrap().keys = vec![SigningKey::generate().unwrap()];
    }

    pub(crate) fn add_key(&self, key: SigningKey) {
        self.state.lock().unwrap().keys.push(key);
    }

    pub(crate) fn key(&self) -> SigningKey {
        self.state.lock().unwrap().keys[0].clone()
    }

    /// How often a path was asked for.
    pub(crate) fn visits(&self, path: &str) -> usize {
        self.server.visits(path)
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.server.requests().into_iter().map(|request| request.path).collect()
    }

    /// The claims of a valid token for a resource, with these changed. Null removes a claim.
    pub(crate) fn claims(&self, resource: &str, changes: Value) -> Value {
        let mut claims = json!({
            "iss": self.name(), "aud": resource, "sub": "alice", "client_id": "editor",
            "exp": now() + 600, "scope": "mcp",
        });
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        claims
    }

    /// A valid token for a resource, with these claims changed.
    pub(crate) fn token(&self, resource: &str, changes: Value) -> String {
        self.sign(&self.key(), json!({}), &self.claims(resource, changes))
    }

    /// A token by a key, with these members of the header changed.
    pub(crate) fn sign(&self, key: &SigningKey, header: Value, claims: &Value) -> String {
        let mut whole = json!({ "typ": "at+jwt", "kid": key.id() });
        for (name, value) in header.as_object().unwrap() {
            whole[name] = value.clone();
        }
        whole.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        key.sign(&whole, claims).unwrap()
    }

    /// Makes an opaque token known.
    pub(crate) fn add_opaque(&self, token: &str, answer: Value) {
        self.state.lock().unwrap().answers.push((token.to_owned(), answer));
    }
}

impl IssuerState {
    fn answer(&self, request: &RogueRequest, origin: &str) -> Option<RogueResponse> {
        match request.path.as_str() {
            "/.well-known/oauth-authorization-server" => {
                Some(RogueResponse::Json(200, metadata(origin)))
            }
            "/keys" => Some(RogueResponse::Json(200, self.key_set())),
            "/introspect" => {
                let token = request.parameter("token").unwrap_or_default();
                let known = self.answers.iter().find(|(known, _)| known == token);
                let answer = known.map_or(json!({ "active": false }), |(_, answer)| answer.clone());
                Some(RogueResponse::Json(200, answer))
            }
            _ => Some(RogueResponse::Text(404, String::new(), String::new())),
        }
    }

    fn key_set(&self) -> Value {
        let jwk = |key: &SigningKey| {
            let mut jwk = key.public_key();
            jwk["kid"] = key.id().into();
            jwk
        };
        json!({ "keys": self.keys.iter().map(jwk).collect::<Vec<_>>() })
    }
}

/// The metadata of an issuer.
pub(crate) fn metadata(origin: &str) -> Value {
    json!({
        "issuer": origin,
        "jwks_uri": format!("{origin}/keys"),
        "introspection_endpoint": format!("{origin}/introspect"),
    })
}

/// The time in seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Any header and payload, with any signature.
pub(crate) fn unsigned(header: &Value, claims: &Value, signature: &[u8]) -> String {
    let encode = |text: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(text);
    let (header, claims) = (header.to_string(), claims.to_string());
    format!("{}.{}.{}", encode(header.as_bytes()), encode(claims.as_bytes()), encode(signature))
}

pub(crate) fn base64url(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}
