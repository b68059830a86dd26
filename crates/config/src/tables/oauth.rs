//! The tables `[upstreams.NAME.oauth]`: how Creole logs in to an upstream.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::syntax::value::Spanned;
use crate::tables::enums::{AssertionAudience, DpopChoice, OAuthGrant, ResourceParameter};

/// How Creole logs in to an upstream that requires OAuth. Without this table, Creole uses the login of
/// `creole login NAME --config FILE`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OAuthTable {
    /// How the tokens are got. Default: `login`.
    pub grant: Option<Spanned<OAuthGrant>>,
    /// The id of the client that is registered at the authorization server. Default: with the grant `login`, Creole
    /// registers itself.
    pub client_id: Option<Spanned<String>>,
    /// The secret of the client.
    pub client_secret: Option<Spanned<String>>,
    /// A file whose first line is the secret of the client. A relative path is resolved against the folder of this file.
    pub client_secret_file: Option<Spanned<String>>,
    /// A file with the private key of the client (PKCS #8 in PEM form: P-256, Ed25519 or RSA), instead of a secret
    /// (`private_key_jwt`). A relative path is resolved against the folder of this file.
    pub private_key_file: Option<Spanned<String>>,
    /// The key id in the client's assertions. Default: the thumbprint of the key.
    pub private_key_id: Option<Spanned<String>>,
    /// The algorithm of the client's assertions: `ES256`, `EdDSA`, `RS256` or `PS256`. Default: the algorithm of the key,
    /// `RS256` for an RSA key.
    pub private_key_algorithm: Option<Spanned<String>>,
    /// The audience of the client's assertions. Default: `issuer`.
    pub assertion_audience: Option<AssertionAudience>,
    /// The URL of the metadata document of the client, for authorization servers that read one. Only with the grant
    /// `login`.
    pub client_metadata_url: Option<Spanned<String>>,
    /// The token that the registration of a client requires. Only with the grant `login`.
    pub initial_access_token: Option<Spanned<String>>,
    /// A file whose first line is the token that the registration of a client requires. Only with the grant `login`.
    pub initial_access_token_file: Option<Spanned<String>>,
    /// The only authorization server that is used, by its issuer identifier. Default: the one that the upstream names.
    pub issuer: Option<Spanned<String>>,
    /// Scopes that are requested in addition to those that the upstream names. Default: none.
    pub scopes: Option<Vec<Spanned<String>>>,
    /// The only scopes that may be requested. A login fails if the upstream demands another one. Default: all.
    pub max_scopes: Option<Vec<Spanned<String>>>,
    /// Whether requests have the parameter `resource`. Default: `on`.
    pub resource_parameter: Option<ResourceParameter>,
    /// When tokens are bound to a key of Creole (DPoP). Default: `auto`.
    pub dpop: Option<DpopChoice>,
    /// Whether the authorization server may be in a private network although the upstream is not. Default: false.
    pub allow_private: Option<bool>,
    /// Whether an upstream that publishes no protected resource metadata may be its own authorization server, as in
    /// 2025-03-26. Default: true.
    pub legacy_oauth: Option<bool>,
    /// A file whose first line is the assertion. It is read for each login. Only with the grant `jwt-bearer`.
    pub assertion_file: Option<Spanned<String>>,
    /// A program and its arguments. The first line of its output is the assertion. It runs for each login, as a
    /// `token_command` does. Only with the grant `jwt-bearer`.
    pub assertion_command: Option<Spanned<Vec<Spanned<String>>>>,
    /// A file whose first line is the ID token of the identity provider. It is read for each login. Only with the grant
    /// `enterprise`.
    pub id_token_file: Option<Spanned<String>>,
    /// A program and its arguments. The first line of its output is the ID token. It runs for each login, as a
    /// `token_command` does. Only with the grant `enterprise`.
    pub id_token_command: Option<Spanned<Vec<Spanned<String>>>>,
    /// The URL of the identity provider's token endpoint. Only with the grant `enterprise`, which requires it.
    pub idp_token_url: Option<Spanned<String>>,
    /// The id of the client at the identity provider. Only with the grant `enterprise`, which requires it.
    pub idp_client_id: Option<Spanned<String>>,
    /// The secret of the client at the identity provider. Only with the grant `enterprise`.
    pub idp_client_secret: Option<Spanned<String>>,
    /// A file whose first line is the secret of the client at the identity provider. Only with the grant `enterprise`.
    pub idp_client_secret_file: Option<Spanned<String>>,
}
