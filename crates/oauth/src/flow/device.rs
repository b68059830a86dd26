//! The login of a person at another device (RFC 8628): this one shows a code.

use std::future::Future;

use crate::discovery::Discovered;
use crate::error::OAuthError;
use crate::flow::attempt::{LoginAttempt, LoginTarget};
use crate::http::document::Document;
use crate::http::exchange::{Exchange, Form};
use crate::secret::SecretText;
use crate::settings::LoginSettings;
use crate::tokens::client::{OAuthClient, refusal};
use crate::tokens::endpoint::Grant;
use crate::tokens::login::Login;
use crate::web_url::WebUrl;

/// The time between two token requests if the server names none, in seconds (RFC 8628, section 3.5).
const DEFAULT_INTERVAL: u64 = 5;

/// The longest time between two token requests, in seconds.
const MAX_INTERVAL: u64 = 60;

/// The longest life of a code, in seconds.
const MAX_LIFETIME: u64 = 1_800;

/// The maximum length of the code that the person types, in bytes.
const MAX_USER_CODE: usize = 64;

/// What the person is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceCode {
    /// The address to open at any device.
    pub verification_uri: WebUrl,
    /// The same address with the code in it, if the server has one.
    pub complete_uri: Option<WebUrl>,
    /// The code to type there.
    pub user_code: String,
    /// How long the code is valid, in seconds.
    pub lifetime: u64,
}

/// Shows the code to the person.
pub trait DeviceScreen: Send + Sync {
    /// Shows the code, and returns at once.
    fn show(&self, code: &DeviceCode) -> impl Future<Output = Result<(), OAuthError>> + Send;
}

/// Logs a person in at another device.
///
/// # Errors
/// When the server does not support it, a response cannot be used, or the person declines or takes too long.
pub async fn log_in_device(
    exchange: &impl Exchange,
    screen: &impl DeviceScreen,
    settings: &LoginSettings,
    target: LoginTarget<'_>,
    found: &Discovered,
) -> Result<Login, OAuthError> {
    let attempt = LoginAttempt::new(settings, target, found)?;
    let Some(url) = &found.server.device_endpoint else {
        let issuer = found.server.issuer.clone();
        return Err(OAuthError::Unsupported { issuer, feature: "logins at another device" });
    };
    let client = match attempt.known_client() {
        Some(client) => client,
        None => attempt.register(exchange, None).await?,
    };
    let form = Form::default()
        .with_option("scope", attempt.scopes.to_parameter().as_deref())
        .with_option("resource", attempt.resource());
    let response = attempt.endpoint(url, client.clone()).post(exchange, form).await?;
    let document = Document::parse(&response.body);
    let Some(document) = document.as_ref().filter(|_| response.is_success()) else {
        return Err(OAuthError::Refused {
            request: "the device",
            issuer: found.server.issuer.clone(),
            error: refusal(document.as_ref(), response.status),
        });
    };
    let started = Started::read(document, url, target.server)?;
    screen.show(&started.shown).await?;
    started.poll(&attempt, exchange, client).await
}

/// A login that the person has not finished yet.
struct Started {
    code: SecretText,
    shown: DeviceCode,
    interval: u64,
}

impl Started {
    fn read(document: &Document, url: &WebUrl, server: &WebUrl) -> Result<Self, OAuthError> {
        let wrong =
            |reason: &str| OAuthError::Document { url: url.as_str().into(), reason: reason.into() };
        let code = document.text("device_code").ok_or_else(|| wrong("it has no `device_code`"))?;
        let is_shown = |code: &&str| {
            code.len() <= MAX_USER_CODE && code.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        };
        let user_code = document.text("user_code").filter(is_shown);
        let user_code = user_code.ok_or_else(|| wrong("it has no usable `user_code`"))?;
        let uri = document.endpoint("verification_uri", server)?;
        let uri = uri.ok_or_else(|| wrong("it has no `verification_uri`"))?;
        let lifetime = document.seconds("expires_in").unwrap_or(MAX_LIFETIME);
        Ok(Self {
            code: SecretText::new(code),
            shown: DeviceCode {
                verification_uri: uri,
                complete_uri: document.endpoint("verification_uri_complete", server)?,
                user_code: user_code.to_owned(),
                lifetime: lifetime.min(MAX_LIFETIME),
            },
            interval: document.seconds("interval").unwrap_or(DEFAULT_INTERVAL).max(1),
        })
    }

    /// Requests tokens until the person has finished.
    async fn poll(
        &self,
        attempt: &LoginAttempt<'_>,
        exchange: &impl Exchange,
        client: OAuthClient,
    ) -> Result<Login, OAuthError> {
        let (mut interval, mut waited) = (self.interval, 0);
        loop {
            interval = interval.min(MAX_INTERVAL);
            waited += interval;
            if waited > self.shown.lifetime {
                return Err(OAuthError::TimedOut { seconds: self.shown.lifetime });
            }
            exchange.wait(interval).await;
            let grant = Grant::device(&self.code, attempt.resource(), attempt.scopes.clone());
            match attempt.redeem(exchange, client.clone(), grant).await {
                Err(OAuthError::Refused { error, .. }) if error.is("authorization_pending") => {}
                Err(OAuthError::Refused { error, .. }) if error.is("slow_down") => interval += 5,
                // RFC 8628, section 3.5: a request that got no response is sent again, later.
                Err(OAuthError::Unreachable { .. }) => interval *= 2,
                Err(OAuthError::Refused { error, issuer, .. }) if error.is("access_denied") => {
                    return Err(OAuthError::Declined { issuer });
                }
                Err(OAuthError::Refused { error, .. }) if error.is("expired_token") => {
                    return Err(OAuthError::TimedOut { seconds: waited });
                }
                finished => return finished,
            }
        }
    }
}

#[cfg(test)]
mod tests;
