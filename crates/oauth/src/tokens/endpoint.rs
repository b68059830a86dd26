//! Token requests and their responses (RFC 6749, sections 4 to 6).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::crypto::dpop::{DpopKey, ProvenRequest};
use crate::error::OAuthError;
use crate::http::document::Document;
use crate::http::exchange::{Body, Exchange, Form, Reach, Request, Response};
use crate::scopes::Scopes;
use crate::secret::SecretText;
use crate::tokens::client::{AssertionKey, DEVICE_GRANT, OAuthClient, refusal};
use crate::web_url::WebUrl;

/// The maximum length of a token, in bytes.
const MAX_TOKEN: usize = 16_384;

/// The life of a token whose response does not state it, in seconds.
const DEFAULT_LIFETIME: u64 = 3_600;

/// How a token is shown to the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TokenType {
    /// Alone (RFC 6750).
    Bearer,
    /// With a proof of its key (RFC 9449).
    #[serde(rename = "DPoP")]
    Dpop,
}

/// Tokens that an authorization server gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tokens {
    /// The token for the resource.
    pub access_token: SecretText,
    /// How it is shown.
    pub token_type: TokenType,
    /// When it expires, in seconds since 1970.
    pub expires_at: u64,
    /// The token for the next one.
    pub refresh_token: Option<SecretText>,
    /// The granted scopes.
    pub scopes: Scopes,
    /// The kind of the issued token, in the response to a token exchange (RFC 8693).
    pub issued_token_type: Option<String>,
}

/// The key that tokens are bound to.
#[derive(Clone, Debug)]
pub struct DpopUse {
    /// The key.
    pub key: Arc<DpopKey>,
    /// Whether a token that is not bound to it is refused.
    pub is_required: bool,
}

/// The endpoint that gives tokens, and how the client authenticates there.
#[derive(Clone, Debug)]
pub struct TokenEndpoint {
    /// The address.
    pub url: WebUrl,
    /// Which addresses its host may have.
    pub reach: Reach,
    /// The issuer, for messages.
    pub issuer: String,
    /// The client.
    pub client: OAuthClient,
    /// The key of its assertions.
    pub assertion: Option<AssertionKey>,
    /// The key that tokens are bound to.
    pub dpop: Option<DpopUse>,
}

/// A grant: the form of a token request without the client's authentication.
#[derive(Clone, Debug)]
pub struct Grant {
    /// What is requested, for messages.
    pub request: &'static str,
    /// The parameters.
    pub form: Form,
    /// The requested scopes. They are the granted ones if the response names none.
    pub scopes: Scopes,
}

/// What the response to a grant must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    AccessToken,
    /// A token for another token request, which has the type `N_A` (RFC 8693, section 2.2.1).
    Assertion,
}

impl TokenEndpoint {
    /// Requests an access token.
    ///
    /// # Errors
    /// When the server refuses, or its response cannot be used.
    pub async fn request(
        &self,
        exchange: &impl Exchange,
        grant: Grant,
    ) -> Result<Tokens, OAuthError> {
        self.request_kind(exchange, grant, Expected::AccessToken).await
    }

    /// Requests a token that is shown to another authorization server.
    ///
    /// # Errors
    /// As [`TokenEndpoint::request`].
    pub async fn request_assertion(
        &self,
        exchange: &impl Exchange,
        grant: Grant,
    ) -> Result<Tokens, OAuthError> {
        self.request_kind(exchange, grant, Expected::Assertion).await
    }

    async fn request_kind(
        &self,
        exchange: &impl Exchange,
        grant: Grant,
        kind: Expected,
    ) -> Result<Tokens, OAuthError> {
        let response = self.post(exchange, grant.form.clone()).await?;
        self.read(&response, &grant, kind, exchange.now())
    }

    /// Sends a form with the client's authentication, and once more with another proof if the server demands a nonce
    /// (RFC 9449, section 8).
    pub(crate) async fn post(
        &self,
        exchange: &impl Exchange,
        form: Form,
    ) -> Result<Response, OAuthError> {
        let response = self.send(exchange, form.clone()).await?;
        let Some(DpopUse { key, .. }) = &self.dpop else { return Ok(response) };
        let is_new = key.store_nonce(&self.url, response.dpop_nonce.as_deref());
        let document = Document::parse(&response.body);
        let is_demanded = refusal(document.as_ref(), response.status).is("use_dpop_nonce");
        if response.is_success() || !is_new || !is_demanded {
            return Ok(response);
        }
        let response = self.send(exchange, form).await?;
        key.store_nonce(&self.url, response.dpop_nonce.as_deref());
        Ok(response)
    }

    async fn send(&self, exchange: &impl Exchange, form: Form) -> Result<Response, OAuthError> {
        let now = exchange.now();
        let mut headers = Vec::new();
        let form = self.client.authenticate(form, &mut headers, self.assertion.as_ref(), now)?;
        if let Some(dpop) = &self.dpop {
            let request = ProvenRequest { method: "POST", url: &self.url, access_token: None };
            headers.push(("dpop", dpop.key.proof(request, now)?));
        }
        let body = Some(Body::Form(form.into_text()));
        exchange.send(Request { url: self.url.clone(), reach: self.reach, headers, body }).await
    }

    fn read(
        &self,
        response: &Response,
        grant: &Grant,
        kind: Expected,
        now: u64,
    ) -> Result<Tokens, OAuthError> {
        let document = Document::parse(&response.body);
        if !response.is_success() {
            let error = refusal(document.as_ref(), response.status);
            return Err(OAuthError::Refused {
                request: grant.request,
                issuer: self.issuer.clone(),
                error,
            });
        }
        let wrong = |reason: &str| OAuthError::Document {
            url: self.url.as_str().into(),
            reason: reason.into(),
        };
        let document = document.ok_or_else(|| wrong("it is not a JSON document"))?;
        let token = document.text("access_token").filter(|token| is_token(token));
        let token = token.ok_or_else(|| wrong("it has no usable access token"))?;
        let named = document.text("token_type").unwrap_or_default();
        let token_type = match kind {
            Expected::Assertion => Some(TokenType::Bearer),
            Expected::AccessToken => self.token_type(named),
        };
        let token_type =
            token_type.ok_or_else(|| wrong("its type of token is not the requested one"))?;
        let lifetime = document.seconds("expires_in").unwrap_or(DEFAULT_LIFETIME);
        Ok(Tokens {
            access_token: SecretText::new(token),
            token_type,
            expires_at: now.saturating_add(lifetime),
            refresh_token: document
                .text("refresh_token")
                .filter(|token| is_token(token))
                .map(SecretText::new),
            scopes: document.text("scope").map_or_else(|| grant.scopes.clone(), Scopes::parse),
            issued_token_type: document.text("issued_token_type").map(str::to_owned),
        })
    }
}

impl TokenEndpoint {
    /// The type of a token that may be used.
    fn token_type(&self, name: &str) -> Option<TokenType> {
        let dpop = self.dpop.as_ref();
        if name.eq_ignore_ascii_case("dpop") {
            return dpop.map(|_| TokenType::Dpop);
        }
        let takes_bearer = dpop.is_none_or(|dpop| !dpop.is_required);
        (takes_bearer && name.eq_ignore_ascii_case("bearer")).then_some(TokenType::Bearer)
    }
}

/// Whether a text can be a token: visible ASCII within the limit.
fn is_token(text: &str) -> bool {
    text.len() <= MAX_TOKEN && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The grants that a login or a program uses.
impl Grant {
    /// The code of a browser's login (RFC 6749, section 4.1.3).
    pub fn code(
        code: &SecretText,
        verifier: &SecretText,
        redirect_uri: &str,
        resource: Option<&str>,
        scopes: Scopes,
    ) -> Self {
        let form = Form::default()
            .with("grant_type", "authorization_code")
            .with("code", code.expose())
            .with("redirect_uri", redirect_uri)
            .with("code_verifier", verifier.expose())
            .with_option("resource", resource);
        Self { request: "the code", form, scopes }
    }

    /// A refresh token (RFC 6749, section 6). The scopes stay those of the login.
    pub fn refresh(token: &SecretText, resource: Option<&str>, scopes: Scopes) -> Self {
        let form = Form::default()
            .with("grant_type", "refresh_token")
            .with("refresh_token", token.expose())
            .with_option("resource", resource);
        Self { request: "the refresh token", form, scopes }
    }

    /// The client's own credentials (RFC 6749, section 4.4).
    pub fn client_credentials(resource: Option<&str>, scopes: Scopes) -> Self {
        let form = Form::default()
            .with("grant_type", "client_credentials")
            .with_option("resource", resource);
        Self::with_scopes("the client credentials", form, scopes)
    }

    /// An assertion of another issuer (RFC 7523, section 2.1).
    pub fn jwt_bearer(assertion: &SecretText, resource: Option<&str>, scopes: Scopes) -> Self {
        let form = Form::default()
            .with("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer")
            .with("assertion", assertion.expose())
            .with_option("resource", resource);
        Self::with_scopes("the assertion", form, scopes)
    }

    /// The exchange of an ID token for an assertion to another authorization server (enterprise-managed authorization).
    pub fn id_assertion(
        id_token: &SecretText,
        audience: &str,
        resource: &str,
        scopes: Scopes,
    ) -> Self {
        let form = Form::default()
            .with("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange")
            .with("requested_token_type", ID_JAG)
            .with("audience", audience)
            .with("resource", resource)
            .with("subject_token", id_token.expose())
            .with("subject_token_type", "urn:ietf:params:oauth:token-type:id_token");
        Self::with_scopes("the ID token", form, scopes)
    }

    /// A device's code (RFC 8628, section 3.4).
    pub fn device(code: &SecretText, resource: Option<&str>, scopes: Scopes) -> Self {
        let form = Form::default()
            .with("grant_type", DEVICE_GRANT)
            .with("device_code", code.expose())
            .with_option("resource", resource);
        Self { request: "the device code", form, scopes }
    }

    fn with_scopes(request: &'static str, form: Form, scopes: Scopes) -> Self {
        let form = form.with_option("scope", scopes.to_parameter().as_deref());
        Self { request, form, scopes }
    }
}

/// The type of an identity assertion for another authorization server.
pub const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

#[cfg(test)]
mod tests;
