//! What the configuration says about access tokens.

use super::oauth::IssuerSettings;
use super::resource::ResourceSettings;
use crate::scopes::ScopeRules;

/// What access tokens are for, and what they must have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OAuthSettings {
    /// The issuers whose tokens are accepted.
    pub issuers: Vec<IssuerSettings>,
    /// The names of the claims that are kept for policies.
    pub kept_claims: Vec<String>,
    /// The paths. A gate refers to its path by its number.
    pub resources: Vec<ResourceSettings>,
    /// The scopes that operations require.
    pub scopes: ScopeRules,
    /// Whether the metadata of the only issuer is served under the server's own address.
    pub legacy_metadata: bool,
}
