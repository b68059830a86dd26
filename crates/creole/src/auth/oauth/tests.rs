//! Decisions about access tokens, with an issuer that is played by a function and a clock that is moved by hand.

mod decisions;
mod dpop;
mod introspection;
mod keys;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use creole_oauth::crypto::jose::SigningKey;
use creole_oauth::error::OAuthError;
use creole_oauth::http::exchange::{Body, Request, Response, form_decode};
use creole_oauth::tokens::client::{ClientAuthMethod, ClientSource, OAuthClient};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::call::{TokenCall, TokenDecision, TokenScheme};
use super::exchange::IssuerExchange;
use super::issuer::Issuer;
use super::settings::{IntrospectionSettings, IssuerSettings};
use super::verifier::{TokenVerifier, VerifierParts};
use crate::auth::resource::{DpopMode, ProtectedResource, ResourceSettings};
use crate::scopes::{ScopeRule, ScopeRules};
use crate::sync::Mutex;

const ISSUER: &str = "https://id.example.com";
const RESOURCE: &str = "https://mcp.example.com/mcp";

/// When the tests begin, in seconds since 1970.
const BEGIN: u64 = 1_800_000_000;

/// A clock that moves with the paused time of the runtime.
#[derive(Clone, Copy)]
pub(super) struct TestClock(Instant);

impl TestClock {
    pub(super) fn now(self) -> u64 {
        BEGIN + self.0.elapsed().as_secs()
    }
}

async fn advance(seconds: u64) {
    tokio::time::advance(Duration::from_secs(seconds)).await;
    settle().await;
}

/// Lets the tasks that fetch something run.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

/// What an issuer does with requests.
#[derive(Clone, Debug, Default, PartialEq)]
enum Behaviour {
    #[default]
    Normal,
    Down,
    /// Key sets and answers never come.
    Hanging,
    /// Every document is this one.
    Document(u16, String),
}

/// An issuer.
struct TestIssuer {
    name: &'static str,
    clock: TestClock,
    state: Mutex<IssuerState>,
    released: Notify,
}

#[derive(Default)]
struct IssuerState {
    behaviour: Behaviour,
    keys: Vec<SigningKey>,
    max_age: Option<u64>,
    /// The answers to questions about tokens.
    answers: Vec<(String, Value)>,
    requests: Vec<String>,
    /// The questions that are not answered yet.
    open_questions: usize,
}

impl TestIssuer {
    fn new(name: &'static str) -> Arc<Self> {
        let issuer = Self {
            name,
            clock: TestClock(Instant::now()),
            state: Mutex::default(),
            released: Notify::new(),
        };
        issuer.state.lock().keys.push(SigningKey::generate().unwrap());
        Arc::new(issuer)
    }

    fn behave(&self, behaviour: Behaviour) {
        self.state.lock().behaviour = behaviour;
    }

    /// Replaces all keys by a new one.
    fn rotate(&self) {
        self.state.lock().keys = vec![SigningKey::generate().unwrap()];
    }

    fn key(&self) -> SigningKey {
        self.state.lock().keys[0].clone()
    }

    /// The number of requests whose address ends like this.
    fn count(&self, end: &str) -> usize {
        self.state.lock().requests.iter().filter(|url| url.ends_with(end)).count()
    }

    fn claims(&self, changes: Value) -> Value {
        let mut claims = json!({
            "iss": self.name, "aud": RESOURCE, "sub": "alice", "client_id": "editor",
            "exp": self.clock.now() + 3_600, "scope": "mcp",
        });
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        claims
    }

    fn token(&self, changes: Value) -> String {
        self.token_of(&self.key(), changes)
    }

    fn token_of(&self, key: &SigningKey, changes: Value) -> String {
        let header = json!({ "typ": "at+jwt", "kid": key.id() });
        key.sign(&header, &self.claims(changes)).unwrap()
    }

    fn settings(&self) -> IssuerSettings {
        IssuerSettings::new("corp", self.name).unwrap()
    }

    fn introspecting(&self, asks_about_jwts: bool) -> IssuerSettings {
        let client = OAuthClient {
            id: "creole".to_owned(),
            secret: None,
            method: ClientAuthMethod::None,
            source: ClientSource::Configured,
            redirect_uri: None,
            expires_at: None,
        };
        let introspection = IntrospectionSettings {
            url: None,
            client,
            private_key: None,
            cache: Duration::from_secs(30),
            implies_audience: false,
            asks_about_jwts,
        };
        IssuerSettings { introspection: Some(introspection), ..self.settings() }
    }

    fn exchange(self: &Arc<Self>) -> IssuerExchange {
        let issuer = Arc::clone(self);
        let script = move |request: Request| -> crate::BoxFuture<'static, _> {
            let issuer = Arc::clone(&issuer);
            Box::pin(async move { issuer.respond(request).await })
        };
        IssuerExchange::Script(Arc::new(script), self.clock)
    }

    async fn respond(&self, request: Request) -> Result<Response, OAuthError> {
        let url = request.url.as_str().to_owned();
        let (behaviour, max_age) = {
            let mut state = self.state.lock();
            state.requests.push(url.clone());
            (state.behaviour.clone(), state.max_age)
        };
        let (status, body) = match behaviour {
            Behaviour::Normal => self.document(&request),
            Behaviour::Down => {
                return Err(OAuthError::Unreachable { url, reason: "it is down".to_owned() });
            }
            Behaviour::Hanging => {
                self.state.lock().open_questions += 1;
                self.released.notified().await;
                self.document(&request)
            }
            Behaviour::Document(status, text) => (status, text),
        };
        Ok(Response { status, dpop_nonce: None, max_age, body: body.into_bytes() })
    }

    fn document(&self, request: &Request) -> (u16, String) {
        let state = self.state.lock();
        let answer = match request.url.path() {
            "/.well-known/oauth-authorization-server" => json!({
                "issuer": self.name,
                "jwks_uri": format!("{}/keys", self.name),
                "introspection_endpoint": format!("{}/introspect", self.name),
            }),
            "/keys" => {
                let key = |key: &SigningKey| {
                    let mut jwk = key.public_key();
                    jwk["kid"] = key.id().into();
                    jwk
                };
                json!({ "keys": state.keys.iter().map(key).collect::<Vec<_>>() })
            }
            "/introspect" => {
                let Some(Body::Form(form)) = &request.body else { return (400, String::new()) };
                let form = form_decode(form).unwrap();
                let known = state.answers.iter().find(|(token, _)| *token == form[0].1);
                known.map_or(json!({ "active": false }), |(_, answer)| answer.clone())
            }
            _ => return (404, String::new()),
        };
        (200, answer.to_string())
    }

    /// Makes an opaque token valid.
    fn add_opaque(&self, token: &str, changes: Value) {
        let mut answer = self.claims(changes);
        if answer.get("active").is_none() {
            answer["active"] = true.into();
        }
        self.state.lock().answers.push((token.to_owned(), answer));
    }
}

fn verifier_of(issuers: &[(&Arc<TestIssuer>, IssuerSettings)]) -> TokenVerifier {
    let made = issuers.iter().map(|(issuer, settings)| {
        Arc::new(Issuer::with_exchange(settings.clone(), None, issuer.exchange()))
    });
    TokenVerifier::with_issuers(made.collect(), Arc::new(VerifierParts::default()))
}

fn verifier(issuer: &Arc<TestIssuer>) -> TokenVerifier {
    verifier_of(&[(issuer, issuer.settings())])
}

/// A path that takes the tokens of all issuers of the tests.
pub(super) fn resource(dpop: DpopMode) -> ProtectedResource {
    resource_of(ResourceSettings { dpop, ..resource_settings() })
}

fn resource_settings() -> ResourceSettings {
    ResourceSettings {
        path: "/mcp".to_owned(),
        issuers: vec![("corp".into(), ISSUER.into()), ("other".into(), "x".into())],
        max_token: 8_192,
        ..ResourceSettings::default()
    }
}

fn resource_of(settings: ResourceSettings) -> ProtectedResource {
    let write = ScopeRule {
        name: "files:write".into(),
        implies: vec!["files:read".into()],
        roles: vec!["writer".into()],
        ..ScopeRule::default()
    };
    ProtectedResource::new(settings, Arc::new(ScopeRules::new(vec![write], false)))
}

pub(super) fn call(token: &str) -> TokenCall<'_> {
    static ACCEPT: LazyLock<ProtectedResource> = LazyLock::new(|| resource(DpopMode::Accept));
    TokenCall {
        token,
        scheme: TokenScheme::Bearer,
        proof: None,
        method: "POST",
        url: RESOURCE,
        peer: Some([192, 0, 2, 1].into()),
        certificate: None,
        resource: &ACCEPT,
    }
}

/// `granted ID`, `invalid REASON` and so on.
fn shown(decision: &TokenDecision) -> String {
    match decision {
        TokenDecision::Granted(principal) => format!("granted {}", principal.id()),
        TokenDecision::Invalid(refusal) => format!("invalid {refusal}"),
        TokenDecision::InvalidProof(refusal) => format!("proof {refusal}"),
        TokenDecision::UseNonce(_) => "nonce".to_owned(),
        TokenDecision::Throttled(wait) => format!("throttled {}", wait.as_secs()),
        TokenDecision::Unavailable(wait) => format!("unavailable {}", wait.as_secs()),
    }
}

async fn verify(verifier: &TokenVerifier, token: &str) -> String {
    shown(&verifier.verify(call(token)).await)
}
