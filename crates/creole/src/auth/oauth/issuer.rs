//! One issuer: its rules, its keys, and the way to ask it.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use creole_oauth::http::exchange::Exchange as _;
use creole_oauth::resource::access_token::{AcceptedAudience, AccessToken};
use creole_oauth::resource::compact::CompactToken;
use creole_oauth::resource::introspection::IntrospectionAnswer;
use creole_oauth::resource::refusal::TokenRefusal;

use super::exchange::IssuerExchange;
use super::introspector::{Introspector, Question};
use super::key_cache::{KeyCache, MissingKey};
use super::settings::IssuerSettings;
use crate::client::oauth::exchange::HttpExchange;

/// When callers may return if no keys are known, and if the issuer does not answer.
const RETRY_WITHOUT_KEYS: Duration = Duration::from_secs(5);
const RETRY_WITHOUT_ANSWER: Duration = Duration::from_secs(1);

/// How long a valid signed token is not verified again.
const JWT_CACHE: Duration = Duration::from_secs(60);

/// One issuer.
pub(super) struct Issuer {
    pub(super) settings: IssuerSettings,
    pub(super) keys: KeyCache,
    introspector: Option<Introspector>,
    exchange: IssuerExchange,
}

/// Why there is no valid token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The token is refused.
    Refused(TokenRefusal),
    /// It cannot be known whether the token is valid.
    Unavailable(Duration),
}

impl From<TokenRefusal> for Failure {
    fn from(refusal: TokenRefusal) -> Self {
        Self::Refused(refusal)
    }
}

/// A valid token, and how long that may be remembered.
pub(super) struct ValidToken {
    pub(super) token: AccessToken,
    pub(super) cache: Duration,
    pub(super) is_introspected: bool,
}

impl Issuer {
    /// An issuer, with the keys of an earlier one if these are the same document.
    pub(super) fn new(settings: IssuerSettings, earlier: Option<&Self>) -> Self {
        let exchange = HttpExchange::new(settings.certificates.clone());
        Self::with_exchange(settings, earlier, IssuerExchange::Http(exchange))
    }

    pub(super) fn with_exchange(
        settings: IssuerSettings,
        earlier: Option<&Self>,
        exchange: IssuerExchange,
    ) -> Self {
        let keys = match earlier.filter(|it| it.settings.has_same_keys(&settings)) {
            Some(earlier) => {
                earlier.keys.renew_soon();
                earlier.keys.clone()
            }
            None => KeyCache::new(&settings, exchange.clone()),
        };
        Self { introspector: Introspector::new(&settings), keys, exchange, settings }
    }

    /// The time in seconds since 1970.
    pub(super) fn now(&self) -> u64 {
        self.exchange.now()
    }

    /// Whether the issuer is asked about opaque tokens.
    pub(super) fn introspects(&self) -> bool {
        self.introspector.is_some()
    }

    /// Verifies a signed token of this issuer.
    pub(super) async fn verify_jwt(
        &self,
        text: &str,
        token: CompactToken<'_>,
        resource: &str,
    ) -> Result<ValidToken, Failure> {
        let rules = &self.settings.rules;
        let algorithm = rules.check_header(&token)?;
        let id = token.key_id()?;
        let keys = self.keys.find(id, algorithm).await.map_err(|missing| match missing {
            MissingKey::Unknown => Failure::Refused(TokenRefusal::UnknownKey),
            MissingKey::NoKeys => Failure::Unavailable(RETRY_WITHOUT_KEYS),
        })?;
        let mut candidates = keys.candidates(id, algorithm).into_iter();
        if !candidates.any(|key| token.is_signed_by(key, algorithm)) {
            return Err(TokenRefusal::Signature.into());
        }
        let audiences = self.audiences(resource);
        let accepted = AcceptedAudience::OneOf(&audiences);
        let access = rules.check_claims(token.into_payload(), accepted, self.now())?;
        match &self.introspector {
            Some(introspector) if introspector.settings().asks_about_jwts => {
                let asked = self.introspect(text, resource).await?;
                Ok(ValidToken { token: access, cache: asked.cache, is_introspected: false })
            }
            _ => Ok(ValidToken { token: access, cache: JWT_CACHE, is_introspected: false }),
        }
    }

    /// Asks the issuer about a token.
    pub(super) async fn introspect(
        &self,
        text: &str,
        resource: &str,
    ) -> Result<ValidToken, Failure> {
        let introspector = self.introspector.as_ref().ok_or(TokenRefusal::Issuer)?;
        let question = Question {
            token: text,
            audiences: &self.audiences(resource),
            rules: &self.settings.rules,
            keys: &self.keys,
            exchange: &self.exchange,
        };
        let answer = introspector.ask(&self.settings.label, question).await;
        match answer.map_err(|_| Failure::Unavailable(RETRY_WITHOUT_ANSWER))? {
            IntrospectionAnswer::Active(token) => {
                let cache = introspector.settings().cache;
                Ok(ValidToken { token: *token, cache, is_introspected: true })
            }
            IntrospectionAnswer::Refused(refusal) => Err(refusal.into()),
        }
    }

    fn audiences(&self, resource: &str) -> Cow<'_, [String]> {
        match &self.settings.audiences {
            Some(audiences) => Cow::Borrowed(audiences),
            None => Cow::Owned(vec![resource.to_owned()]),
        }
    }

    /// The label.
    pub(super) fn label(&self) -> &Arc<str> {
        &self.settings.label
    }
}
