//! What the configuration or the command line says about a login.

use crate::crypto::jose::SigningKey;
use crate::scopes::Scopes;
use crate::secret::SecretText;

/// When tokens are bound to a key (RFC 9449).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DpopMode {
    /// When the MCP server asks for it.
    #[default]
    Auto,
    /// Never.
    Off,
    /// Always.
    Require,
}

/// What the configuration or the command line says about a login. The default is right for most servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoginSettings {
    /// The client's id, if it is registered by hand.
    pub client_id: Option<String>,
    /// Its secret.
    pub client_secret: Option<SecretText>,
    /// The key of its assertions, instead of a secret.
    pub private_key: Option<SigningKey>,
    /// Whether assertions name the token endpoint as their audience, as older servers demand, instead of the issuer.
    pub has_endpoint_audience: bool,
    /// The address of the document about this client.
    pub client_metadata_url: Option<String>,
    /// The token that the registration of a client needs (RFC 7591, section 3).
    pub initial_access_token: Option<SecretText>,
    /// The only issuer that is used.
    pub issuer: Option<String>,
    /// Scopes that are requested in addition.
    pub scopes: Scopes,
    /// The only scopes that may be requested.
    pub max_scopes: Option<Scopes>,
    /// Whether the parameter `resource` is left out, for issuers that refuse it.
    pub omits_resource: bool,
    /// When tokens are bound to a key.
    pub dpop: DpopMode,
    /// Whether hosts of private networks may be asked.
    pub allows_private: bool,
    /// Whether a server that publishes no resource metadata is refused, instead of being its own authorization server as
    /// in 2025-03-26.
    pub requires_resource_metadata: bool,
}
