//! Access tokens of the client credentials grant (RFC 6749, section 4.4), cached until shortly before they expire.

use std::time::Duration;

use creole::ToolError;
use creole::client::oauth::{OAuthError, SecretText};
use creole::internal::fetch::AllowedAddresses;
use creole::internal::oauth::ServiceClient;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::recipe::secret::{Secret, SecretSource};

/// The time before its expiry at which a token is not used any more.
const EXPIRY_MARGIN: Duration = Duration::from_secs(30);
/// Maximum time for which a token is cached.
const MAX_LIFETIME: Duration = Duration::from_secs(86_400);

/// The parameters of a token request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCredentials {
    /// The client id.
    pub id: String,
    /// The client secret.
    pub secret: SecretSource,
    /// The token endpoint.
    pub url: String,
    /// The requested scopes.
    pub scopes: Vec<String>,
}

/// The cached tokens.
#[derive(Default)]
pub(crate) struct TokenCache(Mutex<Vec<(ClientCredentials, Secret, Instant)>>);

impl TokenCache {
    /// Returns a valid token. Concurrent calls wait while one is fetched.
    pub(crate) async fn get(
        &self,
        grant: &ClientCredentials,
        reach: AllowedAddresses,
    ) -> Result<Secret, ToolError> {
        let mut kept = self.0.lock().await;
        kept.retain(|(_, _, until)| *until > Instant::now());
        if let Some((_, token, _)) = kept.iter().find(|(known, ..)| known == grant) {
            return Ok(token.clone());
        }
        let (token, life) = fetch_token(grant, reach).await?;
        kept.push((grant.clone(), token.clone(), Instant::now() + life));
        Ok(token)
    }

    /// Removes a token that the service rejected.
    pub(crate) async fn forget(&self, grant: &ClientCredentials) {
        self.0.lock().await.retain(|(known, ..)| known != grant);
    }
}

async fn fetch_token(
    grant: &ClientCredentials,
    reach: AllowedAddresses,
) -> Result<(Secret, Duration), ToolError> {
    let client = ServiceClient {
        token_endpoint: grant.url.clone(),
        id: grant.id.clone(),
        secret: SecretText::new(grant.secret.get()?.0),
        scopes: grant.scopes.clone(),
        allows_private: reach == AllowedAddresses::Anywhere,
    };
    let (token, life) = client.fetch_token().await.map_err(|error| {
        // The address of the endpoint is not for callers.
        let description = match &error {
            OAuthError::Unreachable { reason, .. } => reason.clone(),
            OAuthError::Document { reason, .. } => format!("the response cannot be used: {reason}"),
            other => other.to_string(),
        };
        ToolError::failed(format!("cannot get a token: {description}"))
    })?;
    let life = life.min(MAX_LIFETIME).saturating_sub(EXPIRY_MARGIN);
    Ok((Secret(token.expose().to_owned()), life))
}
