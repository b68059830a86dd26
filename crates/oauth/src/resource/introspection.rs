//! Asks an issuer about a token (RFC 7662).

use serde_json::Value;

use super::access_token::{AcceptedAudience, AccessToken, TokenRules};
use super::json_object;
use super::refusal::TokenRefusal;
use crate::error::{OAuthError, RefusalReason};
use crate::http::document::MAX_DOCUMENT_BYTES;
use crate::http::exchange::{Body, Exchange, Form, Reach, Request, Response};
use crate::tokens::client::{AssertionKey, OAuthClient};
use crate::web_url::WebUrl;

/// How a server asks an issuer.
#[derive(Clone, Debug)]
pub struct IntrospectionEndpoint {
    /// The address.
    pub url: WebUrl,
    /// Which addresses the host may have.
    pub reach: Reach,
    /// The server as a client of the issuer.
    pub client: OAuthClient,
    /// The key of its assertions, instead of a secret.
    pub assertion: Option<AssertionKey>,
}

/// The answer to a question about a token.
#[derive(Clone, Debug, PartialEq)]
pub enum IntrospectionAnswer {
    /// The token is valid.
    Active(Box<AccessToken>),
    /// The token is refused.
    Refused(TokenRefusal),
}

impl IntrospectionEndpoint {
    /// Asks about a token.
    ///
    /// # Errors
    /// When the issuer does not answer the question. The token may be valid.
    pub async fn ask(
        &self,
        exchange: &impl Exchange,
        token: &str,
        rules: &TokenRules,
        audience: AcceptedAudience<'_>,
    ) -> Result<IntrospectionAnswer, OAuthError> {
        let now = exchange.now();
        let form = Form::default().with("token", token).with("token_type_hint", "access_token");
        let mut headers = Vec::new();
        let form = self.client.authenticate(form, &mut headers, self.assertion.as_ref(), now)?;
        let body = Some(Body::Form(form.into_text()));
        let request = Request { url: self.url.clone(), reach: self.reach, headers, body };
        let response = exchange.send(request).await?;
        match read(&response, rules, audience, now) {
            Some(Ok(token)) => Ok(IntrospectionAnswer::Active(Box::new(token))),
            Some(Err(refusal)) => Ok(IntrospectionAnswer::Refused(refusal)),
            None => Err(self.failure(&response, &rules.issuer)),
        }
    }

    fn failure(&self, response: &Response, issuer: &str) -> OAuthError {
        let document = json_object::parse(&response.body, MAX_DOCUMENT_BYTES).unwrap_or_default();
        let text = |name: &str| document.get(name).and_then(Value::as_str);
        match text("error") {
            Some(code) => OAuthError::Refused {
                request: "the introspection of a token",
                issuer: issuer.to_owned(),
                error: RefusalReason::new(code, text("error_description"), response.status),
            },
            None => OAuthError::Unreachable {
                url: self.url.without_query().to_owned(),
                reason: match response.status {
                    200 => "the response is not an introspection response".to_owned(),
                    status => format!("the server responded with status {status}"),
                },
            },
        }
    }
}

/// Reads an answer; `None` if it is none.
fn read(
    response: &Response,
    rules: &TokenRules,
    audience: AcceptedAudience<'_>,
    now: u64,
) -> Option<Result<AccessToken, TokenRefusal>> {
    let claims = json_object::parse(&response.body, MAX_DOCUMENT_BYTES);
    let claims = claims.filter(|it| response.status == 200 && !it.contains_key("error"))?;
    if claims.get("active") != Some(&Value::Bool(true)) {
        return Some(Err(TokenRefusal::Inactive));
    }
    match claims.get("iss") {
        Some(issuer) if issuer.as_str() != Some(&*rules.issuer) => Some(Err(TokenRefusal::Issuer)),
        _ => Some(rules.check_rest(claims, audience, now)),
    }
}

#[cfg(test)]
mod tests;
