//! Access tokens of the client credentials grant (RFC 6749, section 4.4), cached until shortly before they expire.

use std::time::Duration;

use bytes::Bytes;
use creole::ToolError;
use creole::internal::fetch::{AllowedAddresses, FetchRequest, Fetcher};
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::recipe::http::request::{JSON_TYPE, USER_AGENT_VALUE, authorize};
use crate::recipe::http::{Auth, encode, send};
use crate::recipe::secret::{Secret, SecretSource};

/// Maximum size of a token response, in bytes.
const MAX_RESPONSE_BYTES: usize = 65_536;
/// The lifetime of a token without a stated one, in seconds.
const DEFAULT_LIFETIME: u64 = 300;
/// The time before its expiry at which a token is not used any more, in seconds.
const EXPIRY_MARGIN: u64 = 30;
/// Maximum time for which a token is cached, in seconds.
const MAX_LIFETIME: u64 = 86_400;

const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

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
    let unusable =
        |description: &str| ToolError::failed(format!("cannot get a token: {description}"));
    let fetcher = Fetcher::new(reach, grant.url.starts_with("https:"));
    let url = grant.url.parse().map_err(|_| unusable("the token URL is invalid"))?;
    let mut headers = HeaderMap::from_iter([
        (USER_AGENT, USER_AGENT_VALUE),
        (ACCEPT, JSON_TYPE),
        (CONTENT_TYPE, FORM),
    ]);
    let mut secrets = Vec::new();
    let (user, password) = (form_encoded(&grant.id), grant.secret.get()?);
    secrets.push(password.clone());
    let password = SecretSource::Inline(Secret(form_encoded(&password.0)));
    authorize(&Auth::Basic { user, password }, &mut headers, &mut secrets)?;
    let mut form = String::from("grant_type=client_credentials");
    if !grant.scopes.is_empty() {
        encode::push_parameter("scope", &grant.scopes.join(" "), &mut form);
    }
    let sent = FetchRequest { method: Method::POST, url, headers, body: Bytes::from(form) };
    let response = send::fetch_success(&fetcher, &sent, &secrets, 0, MAX_RESPONSE_BYTES)
        .await
        .map_err(|error| match error {
            ToolError::Failed(message) => unusable(&message),
            other => other,
        })?;
    let response: Value = serde_json::from_slice(response.body())
        .map_err(|_| unusable("the response is not JSON"))?;
    let token = response["access_token"].as_str().filter(|token| !token.is_empty());
    let token = token.ok_or_else(|| unusable("the response has no token"))?;
    let life = response["expires_in"].as_u64().unwrap_or(DEFAULT_LIFETIME).min(MAX_LIFETIME);
    Ok((Secret(token.to_owned()), Duration::from_secs(life.saturating_sub(EXPIRY_MARGIN))))
}

/// Encodes a client id or secret for the `Authorization` header (RFC 6749, section 2.3.1).
fn form_encoded(text: &str) -> String {
    let mut encoded = String::new();
    encode::percent_encode(text, &mut encoded);
    encoded
}
