//! The identity that a verified access token asserts, and the keys that are made of it.

use std::fmt;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use creole_proto::wire::hex;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// Longer subjects are shown as their digest.
const MAX_SHOWN_BYTES: usize = 128;

/// What a verified access token says about its caller. It does not contain the token.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenIdentity {
    /// The issuer.
    pub issuer: Arc<str>,
    /// The name of the issuer in the configuration.
    pub label: Arc<str>,
    /// The subject.
    pub subject: Option<Arc<str>>,
    /// The claim that the subject is from: usually `sub`.
    pub subject_claim: Arc<str>,
    /// The client that the token was issued to.
    pub client: Option<Arc<str>>,
    /// Whether the token was issued to a program without a person.
    pub is_program: bool,
    /// The scopes of the token, without those that they imply.
    pub scopes: Vec<Arc<str>>,
    /// The claims that a policy names.
    pub claims: Map<String, Value>,
    /// When the token expires.
    pub expires_at: SystemTime,
    /// How the token was verified.
    pub method: TokenMethod,
    /// Whether the caller proved that it has the key that the token is bound to.
    pub is_dpop: bool,
    /// The first bytes of the token's SHA-256, to find its calls in the audit file.
    pub fingerprint: [u8; 4],
}

/// How an access token was verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenMethod {
    /// By its signature.
    Jwt,
    /// By its authorization server.
    Introspection,
}

impl TokenIdentity {
    /// The readable name of the principal.
    pub(super) fn id(&self) -> String {
        let (kind, name) = match self.is_program {
            true => ("oauth-client", self.program()),
            false => ("oauth", self.subject.as_deref().unwrap_or_default()),
        };
        format!("{kind}:{}:{}", self.label, shown(name))
    }

    /// The digest of the person or program.
    pub(super) fn identity(&self) -> String {
        let (kind, name) = match self.is_program {
            true => ("program", self.program()),
            false => (&*self.subject_claim, self.subject.as_deref().unwrap_or_default()),
        };
        // The label is not a part: an issuer that is renamed in the configuration keeps its callers.
        digest_of(&["creole identity 1", kind, &self.issuer, name])
    }

    /// The digest of the person or program and its client.
    pub(super) fn binding(&self, identity: &str) -> String {
        match &self.client {
            Some(client) => digest_of(&["creole binding 1", identity, client]),
            None => digest_of(&["creole binding 1", identity]),
        }
    }

    fn program(&self) -> &str {
        self.client.as_deref().or(self.subject.as_deref()).unwrap_or_default()
    }
}

/// Shows no claims: they may be personal data.
impl fmt::Debug for TokenIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TokenIdentity")
            .field("label", &self.label)
            .field("subject", &self.subject)
            .field("client", &self.client)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// The SHA-256 of these texts. Each is preceded by its length, so that no two lists have the same digest.
fn digest_of(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    hex(&<[u8; 32]>::from(hasher.finalize()))
}

/// A name with every character escaped that could be mistaken for something else in a log.
fn shown(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-' | b'+' | b'@' => {
                text.push(char::from(byte));
            }
            _ => _ = write!(text, "%{byte:02X}"),
        }
    }
    match text.len() > MAX_SHOWN_BYTES {
        true => format!("~{}", URL_SAFE_NO_PAD.encode(Sha256::digest(name))),
        false => text,
    }
}
