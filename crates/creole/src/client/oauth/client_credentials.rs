//! Tokens of the client credentials grant at an endpoint that the configuration names, for services that are no MCP
//! servers.

use std::net::IpAddr;
use std::time::Duration;

use creole_oauth::error::OAuthError;
use creole_oauth::http::exchange::{Exchange as _, Reach};
use creole_oauth::scopes::Scopes;
use creole_oauth::secret::SecretText;
use creole_oauth::tokens::client::{ClientAuthMethod, ClientSource, OAuthClient};
use creole_oauth::tokens::endpoint::{Grant, TokenEndpoint};
use creole_oauth::web_url::WebUrl;

use super::exchange::HttpExchange;

/// A client of a service.
#[derive(Clone, Debug)]
pub struct ServiceClient {
    /// The token endpoint.
    pub token_endpoint: String,
    /// The client id.
    pub id: String,
    /// The client secret.
    pub secret: SecretText,
    /// The requested scopes.
    pub scopes: Vec<String>,
    /// Whether the endpoint may be in a private network. An address that is written out needs no permission.
    pub allows_private: bool,
}

impl ServiceClient {
    /// Requests a token, and returns it with its life.
    ///
    /// # Errors
    /// When the endpoint refuses, or its response has no token.
    pub async fn fetch_token(&self) -> Result<(SecretText, Duration), OAuthError> {
        let member = "token_url";
        let url = WebUrl::parse(&self.token_endpoint)
            .map_err(|error| OAuthError::Address { member, error })?;
        let is_written_out = url.is_loopback() || url.host().parse::<IpAddr>().is_ok();
        let reach = match self.allows_private || is_written_out {
            true => Reach::Anywhere,
            false => Reach::Public,
        };
        let client = OAuthClient {
            id: self.id.clone(),
            secret: Some(self.secret.clone()),
            method: ClientAuthMethod::Basic,
            source: ClientSource::Configured,
            redirect_uri: None,
            expires_at: None,
        };
        let issuer = "the token endpoint".to_owned();
        let endpoint = TokenEndpoint { url, reach, issuer, client, assertion: None, dpop: None };
        let exchange = HttpExchange::default();
        let grant =
            Grant::client_credentials(None, self.scopes.iter().cloned().collect::<Scopes>());
        // Many of these services do not name the type of their tokens.
        let tokens = endpoint.request_assertion(&exchange, grant).await?;
        let seconds = tokens.expires_at.saturating_sub(exchange.now());
        Ok((tokens.access_token, Duration::from_secs(seconds)))
    }
}
