//! Asks one issuer about tokens, a bounded number at a time.

use std::time::Duration;

use creole_oauth::error::OAuthError;
use creole_oauth::resource::access_token::{AcceptedAudience, TokenRules};
use creole_oauth::resource::discovery::{configured_reach, named_reach};
use creole_oauth::resource::introspection::{IntrospectionAnswer, IntrospectionEndpoint};
use creole_oauth::tokens::client::AssertionKey;
use creole_oauth::web_url::WebUrl;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use super::exchange::IssuerExchange;
use super::key_cache::KeyCache;
use super::settings::{IntrospectionSettings, IssuerSettings};
use crate::sync::Mutex;

/// The maximum number of questions at once.
const MAX_RUNNING: usize = 64;

/// The maximum number of questions that run or wait.
const MAX_WAITING: usize = 1_024;

/// How long a question may take, with the time that it waits.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(5);

/// How often a failure is logged.
const WARNING_PERIOD: Duration = Duration::from_secs(60);

/// The issuer did not answer a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoAnswer;

/// Asks one issuer about tokens.
pub(super) struct Introspector {
    settings: IntrospectionSettings,
    allows_private: bool,
    running: Semaphore,
    waiting: Semaphore,
    warned_at: Mutex<Option<Instant>>,
}

/// A question about a token.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) token: &'a str,
    pub(super) audiences: &'a [String],
    pub(super) rules: &'a TokenRules,
    pub(super) keys: &'a KeyCache,
    pub(super) exchange: &'a IssuerExchange,
}

impl Introspector {
    pub(super) fn new(settings: &IssuerSettings) -> Option<Self> {
        Some(Self {
            settings: settings.introspection.clone()?,
            allows_private: settings.allows_private,
            running: Semaphore::new(MAX_RUNNING),
            waiting: Semaphore::new(MAX_WAITING),
            warned_at: Mutex::default(),
        })
    }

    pub(super) fn settings(&self) -> &IntrospectionSettings {
        &self.settings
    }

    /// Asks the issuer.
    pub(super) async fn ask(
        &self,
        label: &str,
        question: Question<'_>,
    ) -> Result<IntrospectionAnswer, NoAnswer> {
        let Ok(_place) = self.waiting.try_acquire() else { return Err(NoAnswer) };
        let answer = timeout(QUESTION_TIMEOUT, self.send(question)).await;
        let reason = match answer {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("there was no response within {} s", QUESTION_TIMEOUT.as_secs()),
        };
        self.warn(label, &reason);
        Err(NoAnswer)
    }

    async fn send(&self, question: Question<'_>) -> Result<IntrospectionAnswer, OAuthError> {
        let endpoint = self.endpoint(question).await?;
        let busy = |_| OAuthError::Unreachable {
            url: endpoint.url.without_query().to_owned(),
            reason: "the server stops".to_owned(),
        };
        let _permit = self.running.acquire().await.map_err(busy)?;
        let audience = match self.settings.implies_audience {
            true => AcceptedAudience::OneOfOrImplied(question.audiences),
            false => AcceptedAudience::OneOf(question.audiences),
        };
        endpoint.ask(question.exchange, question.token, question.rules, audience).await
    }

    async fn endpoint(&self, question: Question<'_>) -> Result<IntrospectionEndpoint, OAuthError> {
        let issuer = &question.rules.issuer;
        let (url, reach) = match &self.settings.url {
            Some(url) => (url.clone(), configured_reach(url, self.allows_private)),
            None => {
                let metadata = question.keys.metadata().await;
                let lacks = || OAuthError::Unsupported {
                    issuer: issuer.clone(),
                    feature: "introspection, or its metadata cannot be fetched",
                };
                let url = metadata.and_then(|it| it.introspection.clone()).ok_or_else(lacks)?;
                let own = WebUrl::parse(issuer)
                    .map_err(|error| OAuthError::Address { member: "issuer", error })?;
                let reach = named_reach(&url, &own, self.allows_private);
                (url, reach)
            }
        };
        let key = self.settings.private_key.clone();
        let assertion = key.map(|key| AssertionKey { key, audience: issuer.clone() });
        Ok(IntrospectionEndpoint { url, reach, client: self.settings.client.clone(), assertion })
    }

    fn warn(&self, issuer: &str, reason: &str) {
        let now = Instant::now();
        let mut warned_at = self.warned_at.lock();
        if warned_at.is_none_or(|at| now.duration_since(at) >= WARNING_PERIOD) {
            *warned_at = Some(now);
            tracing::warn!(issuer, reason, "an issuer cannot be asked about access tokens");
        }
    }
}
