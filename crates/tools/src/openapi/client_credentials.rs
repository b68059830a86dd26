//! Tokens that a service gives for a name and a secret of the program itself (RFC 6749, section 4.4), kept until they
//! are nearly too old.

use std::time::Duration;

use bytes::Bytes;
use creole::ToolError;
use creole::client::transport::http::fetch::{AllowedAddresses, FetchRequest, Fetcher};
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::recipe::http::request::{JSON_TYPE, USER_AGENT_VALUE, authorize};
use crate::recipe::http::{Auth, encode, send};
use crate::recipe::secret::{Secret, SecretSource};

/// The longest answer that holds a token, in bytes.
const MAX_RESPONSE_BYTES: usize = 65_536;
/// How long a token is good for that does not say so.
const DEFAULT_LIFETIME: u64 = 300;
/// How long before its end a token is not used any more.
const EXPIRY_MARGIN: u64 = 30;
/// The longest time that a token is kept.
const MAX_LIFETIME: u64 = 86_400;

const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

/// What a token is given for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCredentials {
    /// The name of the program.
    pub id: String,
    /// Its secret.
    pub secret: SecretSource,
    /// Where tokens are given.
    pub url: String,
    /// What the token is to allow.
    pub scopes: Vec<String>,
}

/// The tokens that were given.
#[derive(Default)]
pub(super) struct TokenCache(Mutex<Vec<(ClientCredentials, Secret, Instant)>>);

impl TokenCache {
    /// A token that is still good. Whoever asks while one is fetched waits for it.
    pub(super) async fn get(
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

    /// Forgets a token that was refused.
    pub(super) async fn forget(&self, grant: &ClientCredentials) {
        self.0.lock().await.retain(|(known, ..)| known != grant);
    }
}

async fn fetch_token(
    grant: &ClientCredentials,
    reach: AllowedAddresses,
) -> Result<(Secret, Duration), ToolError> {
    let unusable = |what: &str| ToolError::failed(format!("no token can be had: {what}"));
    let fetcher = Fetcher::new(reach, grant.url.starts_with("https:"));
    let url = grant.url.parse().map_err(|_| unusable("the address cannot be read"))?;
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
    let answer = send::fetch_success(&fetcher, &sent, &secrets, 0, MAX_RESPONSE_BYTES)
        .await
        .map_err(|error| match error {
            ToolError::Failed(what) => unusable(&what),
            other => other,
        })?;
    let answer: Value =
        serde_json::from_slice(answer.body()).map_err(|_| unusable("the answer is not JSON"))?;
    let token = answer["access_token"].as_str().filter(|token| !token.is_empty());
    let token = token.ok_or_else(|| unusable("the answer holds none"))?;
    let life = answer["expires_in"].as_u64().unwrap_or(DEFAULT_LIFETIME).min(MAX_LIFETIME);
    Ok((Secret(token.to_owned()), Duration::from_secs(life.saturating_sub(EXPIRY_MARGIN))))
}

/// A name or a secret, as it has to be written before it is joined with the other (RFC 6749, section 2.3.1).
fn form_encoded(text: &str) -> String {
    let mut encoded = String::new();
    encode::percent_encode(text, &mut encoded);
    encoded
}
