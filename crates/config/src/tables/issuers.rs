//! The tables `[auth.issuers.LABEL]`: the issuers whose access tokens are accepted.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::syntax::value::{Ranged, Spanned};

/// An issuer (authorization server) whose access tokens are accepted.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IssuerTable {
    /// The issuer identifier. It is compared byte by byte with the claim `iss` of a token: a slash at the end belongs to
    /// it.
    pub issuer: Spanned<String>,
    /// The accepted values of the claim `aud`. A token without any of them is refused. Default: the URL of the MCP
    /// endpoint that the token is sent to.
    pub audiences: Option<Spanned<Vec<Spanned<String>>>>,
    /// The accepted signature algorithms: `ES256`, `EdDSA`, `Ed25519`, `RS256`, `PS256`, `ES384`, `ES512`, `RS384`, `RS512`,
    /// `PS384`, `PS512`. Default: the first five.
    pub algorithms: Option<Spanned<Vec<Spanned<String>>>>,
    /// The type that the header of a token must have. Default: `at+jwt`.
    pub token_type: Option<TokenTypeChoice>,
    /// The URL of the issuer's key set. Default: the one that the issuer's metadata names.
    pub jwks_url: Option<Spanned<String>>,
    /// A file with the issuer's key set, instead of a URL. It is read again when it changes. A relative path is resolved
    /// against the folder of this file.
    pub jwks_file: Option<Spanned<String>>,
    /// How the issuer is asked about tokens (RFC 7662). Only one issuer can be asked about opaque tokens.
    pub introspection: Option<Spanned<IntrospectionTable>>,
    /// Which tokens the issuer is asked about. Default: `opaque` with the table `introspection`, else `never`.
    pub introspect: Option<Spanned<IntrospectChoice>>,
    /// The claim that identifies a person: a name, or names separated by dots. Default: `sub`.
    pub subject_claim: Option<Spanned<String>>,
    /// A claim with scopes, in addition to `scope` and `scp`: a name, or names separated by dots. Default: none.
    pub scopes_claim: Option<Spanned<String>>,
    /// The claim with the roles of the caller: a name, or names separated by dots. Default: none.
    pub roles_claim: Option<Spanned<String>>,
    /// The only clients whose tokens are accepted, by their ids. Default: all.
    pub clients: Option<Vec<Spanned<String>>>,
    /// The accepted difference between the clocks of the issuer and this server, in seconds. Default: 60.
    pub skew_seconds: Option<Ranged<0, 300>>,
    /// The maximum age of a token since its issue, in seconds. Default: no limit but the token's own.
    pub max_age_seconds: Option<Ranged<1, 604_800>>,
    /// A file with the certificates of the authorities that the issuer's certificate is checked against, in PEM format.
    /// A relative path is resolved against the folder of this file. Default: those of the system.
    pub ca_file: Option<Spanned<String>>,
    /// Whether the names of the issuer may resolve to private addresses. Default: false. `localhost` and a URL with an IP
    /// address need no permission.
    pub allow_private: Option<bool>,
}

/// The type in the header of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum TokenTypeChoice {
    /// Only `at+jwt` (RFC 9068).
    #[serde(rename = "at+jwt")]
    AccessToken,
    /// `at+jwt`, `JWT` or none, for issuers that do not mark access tokens, such as Keycloak, Entra ID and Okta. ID tokens,
    /// refresh tokens and logout tokens are refused by their claims.
    #[serde(rename = "jwt")]
    Jwt,
}

/// Which tokens an issuer is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IntrospectChoice {
    /// Tokens that are not signed.
    Opaque,
    /// All tokens. A revoked token is then refused before it expires.
    Always,
    /// None.
    Never,
}

/// How an issuer is asked about tokens (RFC 7662).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IntrospectionTable {
    /// The URL of the introspection endpoint. Default: the one that the issuer's metadata names.
    pub url: Option<Spanned<String>>,
    /// The id of this server as a client of the issuer.
    pub client_id: Spanned<String>,
    /// The secret of the client.
    pub client_secret: Option<Spanned<String>>,
    /// A file whose first line is the secret of the client. A relative path is resolved against the folder of this file.
    pub client_secret_file: Option<Spanned<String>>,
    /// A file with the private key of the client (PKCS #8 in PEM form: P-256, Ed25519 or RSA), instead of a secret. A
    /// relative path is resolved against the folder of this file.
    pub private_key_file: Option<Spanned<String>>,
    /// How the client authenticates. Default: `basic` with a secret, `private_key_jwt` with a private key.
    pub method: Option<Spanned<ClientMethodChoice>>,
    /// How long an answer is used, in seconds. Default: 30.
    pub cache_seconds: Option<Ranged<0, 300>>,
    /// Whether an answer must name an audience. Default: `required`.
    pub audience: Option<IntrospectionAudience>,
}

/// How the client of an introspection authenticates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClientMethodChoice {
    /// By its secret in the header `Authorization`.
    Basic,
    /// By its secret in the form.
    Post,
    /// By an assertion that its private key signs.
    PrivateKeyJwt,
}

/// Whether the answer of an introspection must name an audience.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IntrospectionAudience {
    /// It must.
    Required,
    /// It may be missing: the issuer answers only about tokens for this server.
    Implied,
}
