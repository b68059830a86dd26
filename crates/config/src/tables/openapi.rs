//! The tables `[openapi.NAME]`: services with an OpenAPI document.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::syntax::value::{Entries, Ranged, Spanned};
use crate::tables::enums::HttpMethod;
use crate::tables::tools::HttpAuthTable;

/// A service with an OpenAPI document (3.0 or 3.1). Its operations become tools.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenApiTable {
    /// The file of the document, JSON or YAML. A relative path is resolved against the folder of this file. Use either
    /// this or `url`.
    pub file: Option<Spanned<String>>,
    /// The URL of the document. It is fetched whenever the configuration is read. If the fetch fails or returns no
    /// OpenAPI document, it is repeated while the server runs. Use either this or `file`.
    pub url: Option<Spanned<String>>,
    /// The base URL of the service. Default: the URL in the document, if `trust_servers` is true.
    pub base_url: Option<Spanned<String>>,
    /// Whether the base URL is taken from the document. Default: false.
    pub trust_servers: Option<Spanned<bool>>,
    /// The prefix of the tools' names. Default: none.
    pub prefix: Option<Spanned<String>>,
    /// The HTTP methods whose operations become tools. Default: `GET` only.
    pub methods: Option<Vec<HttpMethod>>,
    /// The operations that become tools: an `operationId`, `tag:NAME`, `/path` or `METHOD /path`. `*` matches any
    /// characters. An operation that is named by its `operationId` or with its method becomes a tool regardless of
    /// `methods`. Default: all.
    pub include: Option<Vec<Spanned<String>>>,
    /// The operations that do not become tools, in the syntax of `include`. Default: none.
    pub exclude: Option<Vec<Spanned<String>>>,
    /// Whether operations that are marked as deprecated become tools. Default: false.
    pub deprecated: Option<bool>,
    /// Overrides for single operations. The key is the `operationId` or `"METHOD /path"`.
    pub operations: Option<Entries<OperationTable>>,
    /// The secrets of the document's security schemes. The key is the name of the scheme.
    pub security: Option<Entries<Spanned<SecurityTable>>>,
    /// Credentials that every request carries, regardless of the document.
    pub auth: Option<Spanned<HttpAuthTable>>,
    /// Headers that every request carries.
    pub headers: Option<Entries<Spanned<String>>>,
    /// The maximum number of retries of a request that is safe to repeat. Default: 2.
    pub retries: Option<Ranged<0, 5>>,
    /// Whether the host name may resolve to addresses of this machine or of private networks. Default: false.
    pub allow_private: Option<bool>,
    /// The maximum time of a call, in seconds. A call that takes longer fails. The value must not exceed the server's
    /// `call_timeout_seconds`. Default: 50.
    pub timeout_seconds: Option<Spanned<Ranged<1, 86_400>>>,
    /// The maximum size of a result, in bytes. A call with a larger result fails. Default: 1048576.
    pub output_limit_bytes: Option<Ranged<1, 16_777_216>>,
    /// Whether the tools are offered. Default: true.
    pub enabled: Option<bool>,
}

/// Overrides for one operation.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OperationTable {
    /// The name of the tool.
    pub name: Option<Spanned<String>>,
    /// The display name, for clients that show one.
    pub title: Option<Spanned<String>>,
    /// The description of the tool, for the model. Default: the description in the document.
    pub description: Option<Spanned<String>>,
    /// The tool hint `readOnlyHint`: the tool changes nothing. Default: true for `GET`.
    pub read_only: Option<bool>,
    /// The tool hint `destructiveHint`: the tool may delete or overwrite data. Default: true for `PUT` and `DELETE`.
    pub destructive: Option<bool>,
    /// The tool hint `idempotentHint`: repeating a call has no further effect. Default: true for `PUT` and `DELETE`.
    pub idempotent: Option<bool>,
    /// The tool hint `openWorldHint`: the tool interacts with external systems. Default: true.
    pub open_world: Option<bool>,
}

/// The secret of a security scheme: a token, a user name and password, an API key, or OAuth client credentials.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecurityTable {
    /// The token, for schemes of the types `http` with `bearer`, `oauth2` and `openIdConnect`.
    pub bearer: Option<Spanned<String>>,
    /// The file that contains the token.
    pub bearer_file: Option<Spanned<String>>,
    /// The user name, for schemes of the type `http` with `basic`.
    pub user: Option<Spanned<String>>,
    /// The password.
    pub password: Option<Spanned<String>>,
    /// The file that contains the password.
    pub password_file: Option<Spanned<String>>,
    /// The API key, for schemes of the type `apiKey`.
    pub value: Option<Spanned<String>>,
    /// The file that contains the API key.
    pub value_file: Option<Spanned<String>>,
    /// The OAuth client ID, for schemes of the type `oauth2` with client credentials.
    pub client_id: Option<Spanned<String>>,
    /// The OAuth client secret.
    pub client_secret: Option<Spanned<String>>,
    /// The file that contains the OAuth client secret.
    pub client_secret_file: Option<Spanned<String>>,
    /// The URL of the OAuth token endpoint. The URL in the document is not used, because the document could then choose
    /// the recipient of the secret.
    pub token_url: Option<Spanned<String>>,
    /// The OAuth scopes that are requested. Default: the default scopes of the service.
    pub scopes: Option<Vec<String>>,
}
