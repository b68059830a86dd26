//! A principal as text for another process that shares the state.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Principal, PrincipalParts, TokenIdentity, TokenMethod};

#[derive(Serialize, Deserialize)]
struct PrincipalRecord {
    id: String,
    identity: String,
    binding: String,
    roles: Vec<String>,
    scopes: Vec<String>,
    token: Option<TokenRecord>,
}

#[derive(Serialize, Deserialize)]
struct TokenRecord {
    issuer: String,
    label: String,
    subject: Option<String>,
    subject_claim: String,
    client: Option<String>,
    is_program: bool,
    scopes: Vec<String>,
    claims: Map<String, Value>,
    /// Seconds since 1970.
    expires_at: u64,
    is_introspected: bool,
    is_dpop: bool,
    fingerprint: [u8; 4],
}

impl Principal {
    /// The principal as text.
    pub(crate) fn to_record(&self) -> Vec<u8> {
        let parts = &*self.shared;
        let record = PrincipalRecord {
            id: (*parts.id).to_owned(),
            identity: (*parts.identity).to_owned(),
            binding: (*parts.binding).to_owned(),
            roles: to_texts(&parts.roles),
            scopes: to_texts(&parts.scopes),
            token: parts.token.as_ref().map(TokenRecord::new),
        };
        serde_json::to_vec(&record).unwrap_or_default()
    }

    /// The principal of such a text.
    pub(crate) fn from_record(record: &[u8]) -> Option<Self> {
        let record: PrincipalRecord = serde_json::from_slice(record).ok()?;
        let parts = PrincipalParts {
            id: record.id.into(),
            identity: record.identity.into(),
            binding: record.binding.into(),
            roles: from_texts(record.roles).into(),
            scopes: from_texts(record.scopes),
            token: record.token.map(TokenRecord::into_identity),
        };
        Some(Self { shared: Arc::new(parts) })
    }
}

impl TokenRecord {
    fn new(token: &TokenIdentity) -> Self {
        let optional = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
        Self {
            issuer: (*token.issuer).to_owned(),
            label: (*token.label).to_owned(),
            subject: optional(&token.subject),
            subject_claim: (*token.subject_claim).to_owned(),
            client: optional(&token.client),
            is_program: token.is_program,
            scopes: to_texts(&token.scopes),
            claims: token.claims.clone(),
            expires_at: seconds_of(token.expires_at),
            is_introspected: token.method == TokenMethod::Introspection,
            is_dpop: token.is_dpop,
            fingerprint: token.fingerprint,
        }
    }

    fn into_identity(self) -> TokenIdentity {
        TokenIdentity {
            issuer: self.issuer.into(),
            label: self.label.into(),
            subject: self.subject.map(Into::into),
            subject_claim: self.subject_claim.into(),
            client: self.client.map(Into::into),
            is_program: self.is_program,
            scopes: from_texts(self.scopes),
            claims: self.claims,
            expires_at: UNIX_EPOCH + Duration::from_secs(self.expires_at),
            method: match self.is_introspected {
                true => TokenMethod::Introspection,
                false => TokenMethod::Jwt,
            },
            is_dpop: self.is_dpop,
            fingerprint: self.fingerprint,
        }
    }
}

fn seconds_of(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn to_texts(texts: &[Arc<str>]) -> Vec<String> {
    texts.iter().map(|text| (**text).to_owned()).collect()
}

fn from_texts(texts: Vec<String>) -> Vec<Arc<str>> {
    texts.into_iter().map(Into::into).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::principal::tests::principal;

    #[test]
    fn another_process_gets_the_same_principal() {
        let roles = ["mcp".into()];
        let all = [Principal::local(), Principal::new("key:ci", &roles), principal("ada", "phone")];
        for principal in all {
            let record = principal.to_record();
            assert_eq!(Principal::from_record(&record), Some(principal));
        }
        assert_eq!(Principal::from_record(b"ada"), None);
    }
}
