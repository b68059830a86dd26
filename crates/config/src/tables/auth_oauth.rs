//! The tables `[auth.oauth]`, `[auth.scopes.NAME]` and `auth` of a server: what access tokens must have.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::syntax::value::{Ranged, Spanned};

/// The requirements for access tokens of the issuers in `[auth.issuers]`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuthOAuthTable {
    /// The scopes that every request requires. A token without one of them is refused with HTTP 403. Default: none.
    pub required_scopes: Option<Vec<Spanned<String>>>,
    /// The scopes that the metadata names, which clients request at a login. Default: `required_scopes` and all names in
    /// `[auth.scopes]`.
    pub scopes_supported: Option<Vec<Spanned<String>>>,
    /// Whether tokens may use a tool, resource or prompt that no table in `[auth.scopes]` names. Default: `allow`.
    pub unlisted: Option<UnlistedChoice>,
    /// Whether tokens are bound to a key of the client (DPoP). Default: `accept`.
    pub dpop: Option<ServerDpopChoice>,
    /// Whether DPoP proofs must have a nonce of this server. Default: false.
    pub dpop_nonce: Option<bool>,
    /// The maximum length of a token, in bytes. Default: 8192.
    pub max_token: Option<Ranged<1024, 24_576>>,
    /// Whether the metadata of the issuer is also served under this server's address, if there is exactly one issuer.
    /// Clients of 2025-03-26 need it. Default: true.
    pub legacy_metadata: Option<bool>,
    /// The URL of a page for developers, which the metadata names. Default: none.
    pub documentation: Option<Spanned<String>>,
}

/// One scope: what tokens with it may use. In a pattern, `*` matches any characters and `?` one character. An operation
/// requires one of the scopes that have a pattern for it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScopeTable {
    /// Patterns for names of tools. Default: none.
    pub tools: Option<Vec<Spanned<String>>>,
    /// Patterns for URIs of resources. Default: none.
    pub resources: Option<Vec<Spanned<String>>>,
    /// Patterns for names of prompts. Default: none.
    pub prompts: Option<Vec<Spanned<String>>>,
    /// Patterns for names of tools whose tasks may be followed and cancelled. A pattern in `tools` includes the tasks.
    /// Default: none.
    pub tasks: Option<Vec<Spanned<String>>>,
    /// Patterns for methods of the protocol, such as `tools/list`. Default: none.
    pub methods: Option<Vec<Spanned<String>>>,
    /// Scopes that this scope includes. Default: none.
    pub implies: Option<Vec<Spanned<String>>>,
    /// Roles of callers whose token has this scope. Default: none.
    pub roles: Option<Vec<Spanned<String>>>,
}

/// The requirements for access tokens at one path. A key that is absent has the value of `[auth]`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerAuthTable {
    /// The names of the issuers in `[auth.issuers]` whose tokens are accepted. Default: all.
    pub issuers: Option<Vec<Spanned<String>>>,
    /// The scopes that every request requires. Default: those of `[auth.oauth]`.
    pub required_scopes: Option<Vec<Spanned<String>>>,
    /// Whether tokens are bound to a key of the client (DPoP). Default: that of `[auth.oauth]`.
    pub dpop: Option<ServerDpopChoice>,
    /// The role that a caller must have. Default: the `role` of `[auth]`.
    pub role: Option<Spanned<String>>,
}

/// Whether tokens may use items that no scope names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnlistedChoice {
    /// Every token may use them.
    Allow,
    /// No token may use them.
    Deny,
}

/// Whether tokens are bound to a key of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ServerDpopChoice {
    /// Bound tokens are refused.
    Off,
    /// Bound tokens need a proof of the key, and other tokens are accepted.
    Accept,
    /// Only bound tokens are accepted.
    Require,
}
