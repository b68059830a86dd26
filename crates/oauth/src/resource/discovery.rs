//! Finds the keys and the introspection endpoint of a configured issuer.

use super::key_set::KeySet;
use crate::discovery::server_metadata_urls;
use crate::error::OAuthError;
use crate::http::document::Document;
use crate::http::exchange::{Exchange, Reach, Request};
use crate::web_url::WebUrl;

/// What is taken from the metadata of an issuer. Nothing else in it concerns a resource server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuerMetadata {
    /// Where the keys are.
    pub keys: Option<WebUrl>,
    /// Where tokens are asked about.
    pub introspection: Option<WebUrl>,
    /// The whole document, as it came.
    pub document: Vec<u8>,
}

/// The keys of an issuer.
#[derive(Debug)]
pub struct FetchedKeys {
    /// The keys.
    pub keys: KeySet,
    /// How long they may be kept, in seconds, if the issuer says it.
    pub max_age: Option<u64>,
}

/// The reach of a request to an address of the configuration. A name must lead to a public address; an address that is
/// written out, and this machine, are the operator's own choice.
pub fn configured_reach(url: &WebUrl, allows_private: bool) -> Reach {
    match allows_private || url.is_loopback() || url.is_address() {
        true => Reach::Anywhere,
        false => Reach::Public,
    }
}

/// The reach of a request to an address that the metadata of an issuer names.
pub fn named_reach(url: &WebUrl, issuer: &WebUrl, allows_private: bool) -> Reach {
    match url.is_same_host(issuer) {
        true => configured_reach(issuer, allows_private),
        false if allows_private => Reach::Anywhere,
        false => Reach::Public,
    }
}

/// Fetches the metadata of an issuer: RFC 8414, then both forms of OpenID Connect.
///
/// # Errors
/// When no document describes the issuer, or the document is about another.
pub async fn fetch_metadata(
    exchange: &impl Exchange,
    issuer: &str,
    allows_private: bool,
) -> Result<IssuerMetadata, OAuthError> {
    let own = parse("issuer", issuer)?;
    for url in server_metadata_urls(issuer, &own)? {
        let reach = configured_reach(&own, allows_private);
        let request = Request { url: url.clone(), reach, headers: Vec::new(), body: None };
        let response = exchange.send(request).await?;
        match response.status {
            200 => {
                if let Some(document) = Document::parse(&response.body) {
                    let metadata = IssuerMetadata::read(&document, issuer, &own)?;
                    return Ok(IssuerMetadata { document: response.body, ..metadata });
                }
            }
            400..500 => {}
            status => return Err(bad_status(&url, status)),
        }
    }
    Err(OAuthError::NoMetadata { issuer: issuer.to_owned() })
}

impl IssuerMetadata {
    fn read(document: &Document, issuer: &str, own: &WebUrl) -> Result<Self, OAuthError> {
        let found = document.text("issuer").unwrap_or_default();
        if found != issuer {
            let (expected, found) = (issuer.to_owned(), found.to_owned());
            return Err(OAuthError::IssuerMismatch { expected, found });
        }
        Ok(Self {
            keys: document.endpoint("jwks_uri", own)?,
            introspection: document.endpoint("introspection_endpoint", own)?,
            document: Vec::new(),
        })
    }
}

/// Fetches a key set.
///
/// # Errors
/// When there is no key set with a usable key.
pub async fn fetch_keys(
    exchange: &impl Exchange,
    url: &WebUrl,
    reach: Reach,
) -> Result<FetchedKeys, OAuthError> {
    let request = Request { url: url.clone(), reach, headers: Vec::new(), body: None };
    let response = exchange.send(request).await?;
    if response.status != 200 {
        return Err(bad_status(url, response.status));
    }
    let keys = KeySet::parse(&response.body).map_err(|error| OAuthError::Document {
        url: url.without_query().to_owned(),
        reason: error.to_string(),
    })?;
    Ok(FetchedKeys { keys, max_age: response.max_age })
}

fn bad_status(url: &WebUrl, status: u16) -> OAuthError {
    let reason = format!("the server responded with status {status}");
    OAuthError::Unreachable { url: url.without_query().to_owned(), reason }
}

fn parse(member: &'static str, text: &str) -> Result<WebUrl, OAuthError> {
    WebUrl::parse(text).map_err(|error| OAuthError::Address { member, error })
}

#[cfg(test)]
mod tests;
