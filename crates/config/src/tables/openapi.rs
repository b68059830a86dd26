//! The tables `[openapi.NAME]`: services that OpenAPI documents describe.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::syntax::value::{Entries, Ranged, Spanned};
use crate::tables::enums::HttpMethod;
use crate::tables::tools::HttpAuthTable;

/// A service that an OpenAPI document (3.0 or 3.1) describes. Its operations become tools.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenApiTable {
    /// The file of the document, JSON or YAML, as seen from the folder of this file. Either this or `url`.
    pub file: Option<Spanned<String>>,
    /// The address of the document, which is fetched whenever the configuration is read; if that fails or brings no
    /// OpenAPI document, it is fetched again while the server runs. Either this or `file`.
    pub url: Option<Spanned<String>>,
    /// Where the service is. Default: what the document says, if `trust_servers` is true.
    pub base_url: Option<Spanned<String>>,
    /// Whether the document is believed where the service is. Default: false.
    pub trust_servers: Option<Spanned<bool>>,
    /// What stands before the name of each tool. Default: nothing.
    pub prefix: Option<Spanned<String>>,
    /// The methods whose operations become tools. Default: `GET` alone.
    pub methods: Option<Vec<HttpMethod>>,
    /// The operations that become tools: an `operationId`, `tag:NAME`, `/path` or `METHOD /path`, with `*` for anything.
    /// One that is named by its `operationId` or its method becomes a tool whatever `methods` says. Default: all.
    pub include: Option<Vec<Spanned<String>>>,
    /// The operations that do not become tools, written as in `include`. Default: none.
    pub exclude: Option<Vec<Spanned<String>>>,
    /// Whether operations that the document calls deprecated become tools. Default: false.
    pub deprecated: Option<bool>,
    /// More about single operations, by their `operationId` or as `"METHOD /path"`.
    pub operations: Option<Entries<OperationTable>>,
    /// The secrets for the security schemes of the document, by their names.
    pub security: Option<Entries<Spanned<SecurityTable>>>,
    /// What is shown at every door, whatever the document says.
    pub auth: Option<Spanned<HttpAuthTable>>,
    /// Headers of every request.
    pub headers: Option<Entries<Spanned<String>>>,
    /// How often a request that may be repeated is tried again. Default: 2.
    pub retries: Option<Ranged<0, 5>>,
    /// Whether the name of the host may lead to addresses of this machine or of private networks. Default: false.
    pub allow_private: Option<bool>,
    /// How long a call may take, in seconds; at most `call_timeout_seconds` of the server. Default: 50.
    pub timeout_seconds: Option<Spanned<Ranged<1, 86_400>>>,
    /// How many bytes a result may have. Default: 1048576.
    pub output_limit_bytes: Option<Ranged<1, 16_777_216>>,
    /// Whether it is offered at all. Default: true.
    pub enabled: Option<bool>,
}

/// More about one operation.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OperationTable {
    /// The name of its tool.
    pub name: Option<Spanned<String>>,
    /// A name for people, where clients show one.
    pub title: Option<Spanned<String>>,
    /// What it does, for the model that chooses it. Default: what the document says.
    pub description: Option<Spanned<String>>,
    /// It changes nothing. Told to clients. Default: true for `GET`.
    pub read_only: Option<bool>,
    /// It may destroy something. Told to clients. Default: true for `PUT` and `DELETE`.
    pub destructive: Option<bool>,
    /// Calling it twice is the same as once. Told to clients. Default: true for `PUT` and `DELETE`.
    pub idempotent: Option<bool>,
    /// It reaches the outside world. Told to clients. Default: true.
    pub open_world: Option<bool>,
}

/// The secret for a security scheme: a token, a name and a password, the value of a key, or what tokens are given for.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecurityTable {
    /// A token, for schemes of the types `http` with `bearer`, `oauth2` and `openIdConnect`.
    pub bearer: Option<Spanned<String>>,
    /// The file that holds the token.
    pub bearer_file: Option<Spanned<String>>,
    /// The name, for schemes of the type `http` with `basic`.
    pub user: Option<Spanned<String>>,
    /// The password.
    pub password: Option<Spanned<String>>,
    /// The file that holds the password.
    pub password_file: Option<Spanned<String>>,
    /// The value of the key, for schemes of the type `apiKey`.
    pub value: Option<Spanned<String>>,
    /// The file that holds the value.
    pub value_file: Option<Spanned<String>>,
    /// The name of this program, for which `token_url` gives tokens; for schemes of the type `oauth2` that have client
    /// credentials.
    pub client_id: Option<Spanned<String>>,
    /// The secret of this program.
    pub client_secret: Option<Spanned<String>>,
    /// The file that holds the secret.
    pub client_secret_file: Option<Spanned<String>>,
    /// Where tokens are given. The document is not asked: it would choose who is told the secret.
    pub token_url: Option<Spanned<String>>,
    /// What the tokens are to allow. Default: what the service usually allows.
    pub scopes: Option<Vec<String>>,
}
