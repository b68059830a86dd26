//! The claims of an access token (RFC 9068, RFC 7662), and the rules of its issuer.

use std::fmt;

use serde_json::{Map, Value};

use super::algorithm::SignatureAlgorithm;
use super::claim_path::ClaimPath;
use super::compact::CompactToken;
use super::confirmation::Confirmation;
use super::refusal::TokenRefusal;
use crate::scopes::Scopes;

/// How much the clocks of issuer and server may differ unless the configuration says otherwise, in seconds.
pub const DEFAULT_SKEW: u64 = 60;

/// The maximum number of audiences of a token.
const MAX_AUDIENCES: usize = 32;

/// The maximum length of a subject and of a client id, in bytes.
const MAX_NAME: usize = 512;

/// The maximum number of roles of a token, and the maximum length of a role, in bytes.
const MAX_ROLES: usize = 256;
const MAX_ROLE: usize = 256;

/// The claims that only other kinds of tokens have: ID tokens and logout tokens (OpenID Connect).
const OTHER_TOKENS_CLAIMS: [&str; 5] = ["nonce", "at_hash", "c_hash", "s_hash", "events"];

/// The types that Keycloak writes into the claims of other kinds of tokens.
const OTHER_TOKENS_TYPES: [&str; 4] = ["ID", "Refresh", "Offline", "Logout"];

/// What is demanded of the access tokens of one issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenRules {
    /// The issuer, compared byte by byte.
    pub issuer: String,
    /// The algorithms of signatures.
    pub algorithms: Vec<SignatureAlgorithm>,
    /// Whether the header may say `JWT` or nothing instead of `at+jwt`.
    pub takes_plain_jwt: bool,
    /// The claim that names the person, if it is not `sub`.
    pub subject_claim: Option<ClaimPath>,
    /// A further claim with scopes.
    pub scopes_claim: Option<ClaimPath>,
    /// The claim with roles.
    pub roles_claim: Option<ClaimPath>,
    /// The only clients whose tokens are taken.
    pub clients: Option<Vec<String>>,
    /// How much the clocks may differ, in seconds.
    pub skew: u64,
    /// How long ago a token may have been issued, in seconds.
    pub max_age: Option<u64>,
}

/// A valid access token. Its `Debug` output hides the claims.
#[derive(Clone, PartialEq)]
pub struct AccessToken {
    /// The person or the program that the token is about.
    pub subject: Option<String>,
    /// The client that the token was given to.
    pub client: Option<String>,
    /// Whether the token is a program's own, and not a person's.
    pub is_program: bool,
    /// The scopes.
    pub scopes: Scopes,
    /// The roles.
    pub roles: Vec<String>,
    /// When the token ends, in seconds since 1970.
    pub expires_at: u64,
    /// What the token is bound to.
    pub confirmation: Confirmation,
    /// All claims.
    pub claims: Map<String, Value>,
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AccessToken")
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

/// What the audience of a token must be.
#[derive(Clone, Copy, Debug)]
pub enum AcceptedAudience<'a> {
    /// One of these, byte by byte.
    OneOf(&'a [String]),
    /// The issuer answers only about tokens for this resource, and may leave the audience out.
    OneOfOrImplied(&'a [String]),
}

impl TokenRules {
    /// The rules for an issuer, with nothing configured.
    pub fn new(issuer: &str) -> Self {
        Self {
            issuer: issuer.to_owned(),
            algorithms: SignatureAlgorithm::DEFAULT.to_vec(),
            takes_plain_jwt: false,
            subject_claim: None,
            scopes_claim: None,
            roles_claim: None,
            clients: None,
            skew: DEFAULT_SKEW,
            max_age: None,
        }
    }

    /// Checks the header of a token and returns its algorithm.
    ///
    /// # Errors
    /// When the algorithm is not allowed, or the token is of another kind.
    pub fn check_header(
        &self,
        token: &CompactToken<'_>,
    ) -> Result<SignatureAlgorithm, TokenRefusal> {
        let algorithm = token.algorithm(&self.algorithms)?;
        let kind = token.kind()?;
        let is = |name: &str| kind.is_some_and(|kind| kind.eq_ignore_ascii_case(name));
        let is_plain = kind.is_none() || is("JWT");
        match is("at+jwt") || is("application/at+jwt") || (is_plain && self.takes_plain_jwt) {
            true => Ok(algorithm),
            false => Err(TokenRefusal::Typ),
        }
    }

    /// Checks the claims of a token whose signature is right.
    ///
    /// # Errors
    /// When a claim is missing, wrong or not allowed.
    pub fn check_claims(
        &self,
        claims: Map<String, Value>,
        audience: AcceptedAudience<'_>,
        now: u64,
    ) -> Result<AccessToken, TokenRefusal> {
        if claims.get("iss").and_then(Value::as_str) != Some(&*self.issuer) {
            return Err(TokenRefusal::Issuer);
        }
        if self.takes_plain_jwt && is_other_token(&claims) {
            return Err(TokenRefusal::Typ);
        }
        self.check_rest(claims, audience, now)
    }

    /// Checks the claims that a signed token and an answer about an opaque one both have.
    pub(super) fn check_rest(
        &self,
        claims: Map<String, Value>,
        audience: AcceptedAudience<'_>,
        now: u64,
    ) -> Result<AccessToken, TokenRefusal> {
        let expires_at = self.check_times(&claims, now)?;
        check_audience(&claims, audience)?;
        let caller = self.caller(&claims)?;
        let confirmation = Confirmation::read(&claims)?;
        Ok(AccessToken {
            subject: caller.subject,
            client: caller.client,
            is_program: caller.is_program,
            scopes: self.scopes(&claims),
            roles: self.roles(&claims),
            expires_at,
            confirmation,
            claims,
        })
    }

    fn check_times(&self, claims: &Map<String, Value>, now: u64) -> Result<u64, TokenRefusal> {
        let time = |name: &str| match claims.get(name) {
            None => Ok(None),
            Some(value) => seconds(value).map(Some).ok_or(TokenRefusal::Claims),
        };
        let expires_at = time("exp")?.ok_or(TokenRefusal::Claims)?;
        if expires_at.saturating_add(self.skew) < now {
            return Err(TokenRefusal::Expired);
        }
        let issued_at = time("iat")?;
        let latest = now.saturating_add(self.skew);
        if [issued_at, time("nbf")?].into_iter().flatten().any(|begin| begin > latest) {
            return Err(TokenRefusal::Claims);
        }
        let Some(max_age) = self.max_age else { return Ok(expires_at) };
        let issued_at = issued_at.ok_or(TokenRefusal::Claims)?;
        match issued_at.saturating_add(max_age).saturating_add(self.skew) < now {
            true => Err(TokenRefusal::Expired),
            false => Ok(expires_at),
        }
    }

    fn caller(&self, claims: &Map<String, Value>) -> Result<NamedCaller, TokenRefusal> {
        let client = match ["client_id", "azp", "cid"].iter().find_map(|name| claims.get(*name)) {
            Some(value) => Some(name_of(value)?),
            None => None,
        };
        let sub = claims.get("sub").map(name_of).transpose()?;
        let is_program =
            sub.is_none() || sub == client || claims.get("idtyp").is_some_and(|it| it == "app");
        let subject = match &self.subject_claim {
            // A program has no claim of persons. A person without it must not become its client.
            Some(path) if !is_program => {
                Some(name_of(path.find(claims).ok_or(TokenRefusal::Claims)?)?)
            }
            _ => sub,
        };
        if subject.is_none() && client.is_none() {
            return Err(TokenRefusal::Claims);
        }
        if let Some(clients) = &self.clients
            && !client.as_ref().is_some_and(|client| clients.contains(client))
        {
            return Err(TokenRefusal::Claims);
        }
        Ok(NamedCaller { subject, client, is_program })
    }

    /// The scopes of `scope`, `scp` and the configured claim. A claim of another type has none.
    fn scopes(&self, claims: &Map<String, Value>) -> Scopes {
        let configured = self.scopes_claim.as_ref().and_then(|path| path.find(claims));
        let values = [claims.get("scope"), claims.get("scp"), configured];
        values.into_iter().flatten().flat_map(words).collect()
    }

    /// The roles of the configured claim. A claim of another type has none.
    fn roles(&self, claims: &Map<String, Value>) -> Vec<String> {
        let value = self.roles_claim.as_ref().and_then(|path| path.find(claims));
        let is_role = |role: &String| {
            !role.is_empty() && role.len() <= MAX_ROLE && !role.chars().any(char::is_control)
        };
        let mut roles: Vec<String> = Vec::new();
        for role in value.into_iter().flat_map(words).filter(is_role).take(MAX_ROLES) {
            if !roles.contains(&role) {
                roles.push(role);
            }
        }
        roles
    }
}

struct NamedCaller {
    subject: Option<String>,
    client: Option<String>,
    is_program: bool,
}

/// Whether the claims are those of an ID token, a refresh token or a logout token.
fn is_other_token(claims: &Map<String, Value>) -> bool {
    let kind = claims.get("typ").and_then(Value::as_str);
    OTHER_TOKENS_CLAIMS.iter().any(|name| claims.contains_key(*name))
        || kind.is_some_and(|kind| OTHER_TOKENS_TYPES.contains(&kind))
}

fn check_audience(
    claims: &Map<String, Value>,
    accepted: AcceptedAudience<'_>,
) -> Result<(), TokenRefusal> {
    let (accepted, is_implied) = match accepted {
        AcceptedAudience::OneOf(accepted) => (accepted, false),
        AcceptedAudience::OneOfOrImplied(accepted) => (accepted, true),
    };
    let is_accepted = |value: &Value| {
        value.as_str().is_some_and(|audience| accepted.iter().any(|it| it == audience))
    };
    let is_right = match claims.get("aud") {
        None => is_implied,
        Some(Value::Array(list)) => {
            list.len() <= MAX_AUDIENCES
                && list.iter().all(Value::is_string)
                && list.iter().any(is_accepted)
        }
        Some(value) => is_accepted(value),
    };
    if is_right { Ok(()) } else { Err(TokenRefusal::Audience) }
}

/// A text of a subject or a client.
fn name_of(value: &Value) -> Result<String, TokenRefusal> {
    let text = value.as_str().ok_or(TokenRefusal::Claims)?;
    let is_right =
        !text.is_empty() && text.len() <= MAX_NAME && !text.chars().any(char::is_control);
    if is_right { Ok(text.to_owned()) } else { Err(TokenRefusal::Claims) }
}

/// A JSON number from 0 to 2^53, without its fraction.
pub(super) fn seconds(value: &Value) -> Option<u64> {
    const MAX: f64 = 9_007_199_254_740_992.0;
    let number = value.as_number()?.as_f64()?;
    (0.0..=MAX).contains(&number).then_some(number as u64)
}

/// The words of a text with spaces, or the texts of a list.
fn words(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => text.split(' ').map(str::to_owned).collect(),
        Value::Array(list) => {
            let texts: Option<Vec<_>> =
                list.iter().map(|it| it.as_str().map(str::to_owned)).collect();
            texts.unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
