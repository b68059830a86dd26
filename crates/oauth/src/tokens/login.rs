//! A login as it is stored: its tokens, and how they are refreshed and revoked.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::crypto::dpop::DpopKey;
use crate::crypto::jose::SigningKey;
use crate::error::OAuthError;
use crate::http::document::Document;
use crate::http::exchange::{Exchange, Form, Reach};
use crate::scopes::Scopes;
use crate::secret::SecretText;
use crate::settings::LoginSettings;
use crate::tokens::client::{AssertionKey, OAuthClient, refusal};
use crate::tokens::endpoint::{DpopUse, Grant, TokenEndpoint, TokenType};
use crate::web_url::WebUrl;

/// The version of the stored form of a login.
pub const LOGIN_VERSION: u32 = 1;

/// The longest time before its end at which a token is refreshed, in seconds.
const REFRESH_MARGIN: u64 = 60;

/// A login as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Login {
    /// The version of this form.
    pub version: u32,
    /// Grows with each change.
    pub generation: u64,
    /// The address of the MCP server.
    pub server: String,
    /// The resource that the tokens are for.
    pub resource: String,
    /// Whether requests leave the parameter `resource` out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub omits_resource: bool,
    /// The issuer of the tokens.
    pub issuer: String,
    /// The address that gives tokens.
    pub token_endpoint: String,
    /// The address that revokes tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revocation_endpoint: Option<String>,
    /// The client.
    pub client: OAuthClient,
    /// The scopes that were requested.
    pub requested_scopes: Scopes,
    /// The scopes that were granted.
    pub scopes: Scopes,
    /// The token for the MCP server.
    pub access_token: SecretText,
    /// How it is shown.
    pub token_type: TokenType,
    /// When it expires, in seconds since 1970.
    pub expires_at: u64,
    /// The token for the next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<SecretText>,
    /// The key that the tokens are bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpop_key: Option<SecretText>,
    /// When the token was given, in seconds since 1970.
    pub created_at: u64,
    /// Members that a later version wrote.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Login {
    /// When the token should be refreshed, in seconds since 1970: a minute before its end, or after nine tenths of a
    /// short life.
    pub fn refresh_at(&self) -> u64 {
        let life = self.expires_at.saturating_sub(self.created_at);
        self.expires_at.saturating_sub((life / 10).min(REFRESH_MARGIN))
    }

    /// Whether the token need not be refreshed yet.
    pub fn is_fresh(&self, now: u64) -> bool {
        now < self.refresh_at()
    }

    /// Whether the token has not expired.
    pub fn is_valid(&self, now: u64) -> bool {
        now < self.expires_at
    }

    /// Gets the next token with the refresh token.
    ///
    /// # Errors
    /// When there is none, or the server refuses it.
    pub async fn refresh(
        &self,
        exchange: &impl Exchange,
        settings: &LoginSettings,
    ) -> Result<Self, OAuthError> {
        let Some(token) = &self.refresh_token else {
            return Err(OAuthError::Unsupported {
                issuer: self.issuer.clone(),
                feature: "refreshing this login",
            });
        };
        let resource = (!self.omits_resource).then_some(self.resource.as_str());
        let grant = Grant::refresh(token, resource, self.scopes.clone());
        let endpoint = self.endpoint(&self.token_endpoint, settings)?;
        let tokens = endpoint.request(exchange, grant).await?;
        Ok(Self {
            generation: self.generation + 1,
            scopes: tokens.scopes,
            access_token: tokens.access_token,
            token_type: tokens.token_type,
            expires_at: tokens.expires_at,
            refresh_token: tokens.refresh_token.or_else(|| self.refresh_token.clone()),
            created_at: exchange.now(),
            ..self.clone()
        })
    }

    /// Revokes the refresh token and the access token (RFC 7009). Returns whether the server can do that.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn revoke(
        &self,
        exchange: &impl Exchange,
        settings: &LoginSettings,
    ) -> Result<bool, OAuthError> {
        let Some(url) = &self.revocation_endpoint else { return Ok(false) };
        let endpoint = self.endpoint(url, settings)?;
        let refresh = self.refresh_token.as_ref().map(|token| (token, "refresh_token"));
        for (token, kind) in refresh.into_iter().chain([(&self.access_token, "access_token")]) {
            let form = Form::default().with("token", token.expose()).with("token_type_hint", kind);
            let response = endpoint.post(exchange, form).await?;
            if !response.is_success() {
                let document = Document::parse(&response.body);
                let code = document.as_ref().and_then(|document| document.text("error"));
                // RFC 7009, section 2.2.1: a server may be unable to revoke an access token, which ends soon.
                if kind == "access_token"
                    && self.refresh_token.is_some()
                    && code == Some("unsupported_token_type")
                {
                    continue;
                }
                let error = refusal(document.as_ref(), response.status);
                let (request, issuer) = ("the revocation", self.issuer.clone());
                return Err(OAuthError::Refused { request, issuer, error });
            }
        }
        Ok(true)
    }

    fn endpoint(&self, url: &str, settings: &LoginSettings) -> Result<TokenEndpoint, OAuthError> {
        let wrong = |_| OAuthError::Key { reason: "the stored login cannot be read".to_owned() };
        let url = WebUrl::parse(url).map_err(wrong)?;
        let server = WebUrl::parse(&self.server).map_err(wrong)?;
        let dpop = match &self.dpop_key {
            Some(key) => {
                let key = Arc::new(DpopKey::new(SigningKey::import(key.expose())?));
                Some(DpopUse { key, is_required: true })
            }
            None => None,
        };
        Ok(TokenEndpoint {
            reach: Reach::of(&url, &server, settings.allows_private),
            url,
            issuer: self.issuer.clone(),
            client: self.client.clone(),
            assertion: AssertionKey::configured(settings, &self.issuer, &self.token_endpoint),
            dpop,
        })
    }
}
