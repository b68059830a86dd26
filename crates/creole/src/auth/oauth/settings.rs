//! What the configuration says about issuers.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use creole_oauth::crypto::jose::SigningKey;
use creole_oauth::resource::access_token::TokenRules;
use creole_oauth::tokens::client::OAuthClient;
use creole_oauth::web_url::WebUrl;

/// An issuer whose access tokens are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IssuerSettings {
    /// The name in logs and in the ids of principals.
    pub label: Arc<str>,
    /// What is demanded of its tokens.
    pub rules: TokenRules,
    /// The accepted audiences, instead of the address of the resource.
    pub audiences: Option<Vec<String>>,
    /// Where its keys are.
    pub keys: KeySource,
    /// How it is asked about tokens.
    pub introspection: Option<IntrospectionSettings>,
    /// The trusted root certificates in PEM form, if they are not the system's.
    pub certificates: Option<Arc<[u8]>>,
    /// Whether its names may lead into private networks.
    pub allows_private: bool,
}

impl IssuerSettings {
    /// An issuer with nothing else configured: its keys are found by its metadata.
    ///
    /// # Errors
    /// When the issuer is not an address of the web, or neither encrypted nor on this machine.
    pub fn new(label: &str, issuer: &str) -> Result<Self, &'static str> {
        let url = WebUrl::parse(issuer).map_err(|_| "it is not a URL")?;
        if !url.is_https() && !url.is_loopback() {
            return Err("it does not begin with https://");
        }
        Ok(Self {
            label: label.into(),
            rules: TokenRules::new(issuer),
            audiences: None,
            keys: KeySource::Discovery,
            introspection: None,
            certificates: None,
            allows_private: false,
        })
    }

    /// Whether the keys of both are the same document.
    pub(super) fn has_same_keys(&self, other: &Self) -> bool {
        self.label == other.label
            && self.rules.issuer == other.rules.issuer
            && self.keys == other.keys
            && self.certificates == other.certificates
            && self.allows_private == other.allows_private
    }
}

/// Where the keys of an issuer are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// The metadata of the issuer names the address.
    Discovery,
    /// At this address.
    Url(WebUrl),
    /// In this file.
    File(PathBuf),
}

/// How an issuer is asked about tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntrospectionSettings {
    /// The address; without it, the metadata of the issuer names it.
    pub url: Option<WebUrl>,
    /// The server as a client of the issuer.
    pub client: OAuthClient,
    /// The key of its assertions, instead of a secret.
    pub private_key: Option<SigningKey>,
    /// How long an answer is used.
    pub cache: Duration,
    /// Whether the issuer answers only about tokens for this server, so that the audience may be missing.
    pub implies_audience: bool,
    /// Whether the issuer is asked about signed tokens too.
    pub asks_about_jwts: bool,
}
