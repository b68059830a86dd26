//! The enumerated values of the configuration.
//!
//! They mirror the enums of [`creole_proto::dialect`], which do not depend on the configuration format.

use creole_proto::dialect;
use creole_proto::model::ListKind;
use schemars::JsonSchema;
use serde::Deserialize;

/// The handshake steps that must be complete before other requests are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LifecycleChoice {
    /// No handshake is required.
    None,
    /// The server has received `initialize`.
    Flag,
    /// The server has responded to `initialize`, and the client has confirmed it.
    Strict,
}

impl From<LifecycleChoice> for dialect::Lifecycle {
    fn from(word: LifecycleChoice) -> Self {
        match word {
            LifecycleChoice::None => Self::None,
            LifecycleChoice::Flag => Self::Flag,
            LifecycleChoice::Strict => Self::Strict,
        }
    }
}

/// The handling of a second `initialize`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RepeatedInitializeChoice {
    /// It is accepted and starts a new session.
    Accept,
    /// It is refused, and the session stays as it is.
    Refuse,
}

impl From<RepeatedInitializeChoice> for dialect::RepeatedInitializePolicy {
    fn from(word: RepeatedInitializeChoice) -> Self {
        match word {
            RepeatedInitializeChoice::Accept => Self::Accept,
            RepeatedInitializeChoice::Refuse => Self::Refuse,
        }
    }
}

/// The detail of announced tool definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DefinitionsChoice {
    /// All members.
    Full,
    /// Name, description and input schema.
    Plain,
}

impl From<DefinitionsChoice> for dialect::DefinitionDetail {
    fn from(word: DefinitionsChoice) -> Self {
        match word {
            DefinitionsChoice::Full => Self::Full,
            DefinitionsChoice::Plain => Self::Plain,
        }
    }
}

/// The numbers that are accepted as ids, in addition to strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IdNumbersChoice {
    /// Integers, as MCP requires.
    Integers,
    /// Any number, as JSON-RPC allows.
    Any,
}

impl From<IdNumbersChoice> for dialect::IdNumbers {
    fn from(word: IdNumbersChoice) -> Self {
        match word {
            IdNumbersChoice::Integers => Self::Integers,
            IdNumbersChoice::Any => Self::Any,
        }
    }
}

/// The handling of a message without an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MissingIdChoice {
    /// It is a notification.
    Notification,
    /// It is refused as an invalid request.
    Refuse,
}

impl From<MissingIdChoice> for dialect::MissingIdPolicy {
    fn from(word: MissingIdChoice) -> Self {
        match word {
            MissingIdChoice::Notification => Self::Notification,
            MissingIdChoice::Refuse => Self::Refuse,
        }
    }
}

/// The handling of a message whose id is null.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NullIdChoice {
    /// It is refused as an invalid request, as MCP requires.
    Refuse,
    /// It is a notification.
    Notification,
}

impl From<NullIdChoice> for dialect::NullIdPolicy {
    fn from(word: NullIdChoice) -> Self {
        match word {
            NullIdChoice::Refuse => Self::Refuse,
            NullIdChoice::Notification => Self::Notification,
        }
    }
}

/// The id in the response to a refused message whose id is readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RefusedIdChoice {
    /// The id of the message.
    Echo,
    /// Always null.
    Null,
}

impl From<RefusedIdChoice> for dialect::RejectedIdPolicy {
    fn from(word: RefusedIdChoice) -> Self {
        match word {
            RefusedIdChoice::Echo => Self::Echo,
            RefusedIdChoice::Null => Self::Null,
        }
    }
}

/// The id in the response to a message whose id is not readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnreadableIdChoice {
    /// As the revision requires.
    ByRevision,
    /// `"id": null`.
    Null,
}

impl From<UnreadableIdChoice> for dialect::UnreadableIdPolicy {
    fn from(word: UnreadableIdChoice) -> Self {
        match word {
            UnreadableIdChoice::ByRevision => Self::ByRevision,
            UnreadableIdChoice::Null => Self::Null,
        }
    }
}

/// The handling of an array of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BatchChoice {
    /// As the negotiated revision requires.
    ByRevision,
    /// It is accepted as a batch.
    Accept,
    /// It is refused as an invalid request.
    Refuse,
}

impl From<BatchChoice> for dialect::BatchPolicy {
    fn from(word: BatchChoice) -> Self {
        match word {
            BatchChoice::ByRevision => Self::ByRevision,
            BatchChoice::Accept => Self::Accept,
            BatchChoice::Refuse => Self::Refuse,
        }
    }
}

/// When a tool result contains `isError`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IsErrorChoice {
    /// Always.
    Always,
    /// Only if it is true.
    WhenTrue,
    /// Never. Failures are protocol errors.
    Never,
}

impl From<IsErrorChoice> for dialect::IsErrorPolicy {
    fn from(word: IsErrorChoice) -> Self {
        match word {
            IsErrorChoice::Always => Self::Always,
            IsErrorChoice::WhenTrue => Self::WhenTrue,
            IsErrorChoice::Never => Self::Never,
        }
    }
}

/// The `additionalProperties` of announced schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SchemasChoice {
    /// The schema of the tool is announced unchanged.
    AsWritten,
    /// `additionalProperties: false` is added to each object schema that does not set it.
    Closed,
    /// `additionalProperties: false` is removed. Unknown arguments are ignored.
    Open,
}

impl From<SchemasChoice> for dialect::SchemaPolicy {
    fn from(word: SchemasChoice) -> Self {
        match word {
            SchemasChoice::AsWritten => Self::AsWritten,
            SchemasChoice::Closed => Self::Closed,
            SchemasChoice::Open => Self::Open,
        }
    }
}

/// The format of capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CapabilitiesChoice {
    /// Objects with `listChanged` and `subscribe`.
    Detailed,
    /// Empty objects. Changes are not announced.
    Plain,
    /// Booleans, including those of `capability_flags`.
    Flags,
}

/// How a fault is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChannelChoice {
    /// As a JSON-RPC error.
    Protocol,
    /// As a tool result with `isError`, so that the model can react. Outside of tool calls, as a JSON-RPC error.
    ToolResult,
}

/// The format of a log event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// One line of text per event.
    Text,
    /// One line of JSON per event.
    Json,
    /// No log.
    Off,
}

/// The severity of a log event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LogLevel {
    /// Failures.
    Error,
    /// Unexpected conditions.
    Warn,
    /// One event per request.
    Info,
    /// The reasons of decisions.
    Debug,
    /// Every step, including those of libraries. Only in debug builds.
    Trace,
}

/// A kind of items that a layer applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ListKindChoice {
    /// Tools, by name.
    Tools,
    /// Resources, by URI.
    Resources,
    /// Resource templates, by URI template. A hidden template is neither listed nor completed. Use `resources` to hide
    /// the resources that it matches.
    Templates,
    /// Prompts, by name.
    Prompts,
    /// Skills, by URI.
    Skills,
}

impl From<ListKindChoice> for ListKind {
    fn from(word: ListKindChoice) -> Self {
        match word {
            ListKindChoice::Tools => Self::Tools,
            ListKindChoice::Resources => Self::Resources,
            ListKindChoice::Templates => Self::Templates,
            ListKindChoice::Prompts => Self::Prompts,
            ListKindChoice::Skills => Self::Skills,
        }
    }
}

/// The data that a layer redacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RedactScopeChoice {
    /// Results, error messages, and progress and log messages.
    Results,
    /// The arguments of tools and prompts.
    Arguments,
    /// Results and arguments.
    Both,
}

/// The era that Creole uses with an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UpstreamEra {
    /// The caller's era, or the other one if the upstream does not support it.
    Auto,
    /// The era that starts with `initialize`.
    Handshake,
    /// The era without a handshake, in which each request is independent.
    Stateless,
}

/// Which calls share a connection to an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AffinityChoice {
    /// The calls of one principal share a connection.
    Principal,
    /// All calls share a connection. Use it only for upstreams that store nothing of one caller that another must not
    /// see.
    Shared,
    /// The calls of one client session share a connection. The session is that of the handshake era, or the one that a
    /// call names in `_meta` as `creole/session`. A call without a session gets its own connection.
    Session,
    /// No reuse. Each call gets its own connection, for upstreams that must store nothing between calls.
    Request,
}

/// The type of a tool's argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ArgumentKind {
    /// A string.
    String,
    /// An integer.
    Integer,
    /// A number.
    Number,
    /// A boolean.
    Boolean,
    /// An array.
    Array,
    /// An object.
    Object,
}

/// The type of the items of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ItemKind {
    /// Strings.
    String,
    /// Integers.
    Integer,
    /// Numbers.
    Number,
    /// Booleans.
    Boolean,
}

/// The format of a program's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ResultKind {
    /// Text.
    Text,
    /// JSON, which becomes a structured result.
    Json,
    /// An image of the media type `mime_type`.
    Image,
}

/// The format of a result that is made from an HTTP response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ResponseForm {
    /// Text.
    Text,
    /// JSON, which becomes a structured result.
    Json,
}

/// An HTTP method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum HttpMethod {
    /// Reads a resource.
    Get,
    /// Performs an action.
    Post,
    /// Replaces a resource.
    Put,
    /// Changes a part of a resource.
    Patch,
    /// Deletes a resource.
    Delete,
}

/// How the tokens for an upstream are got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OAuthGrant {
    /// A person runs `creole login` once, and Creole refreshes the tokens.
    Login,
    /// Creole logs in as the client, with its secret or its private key.
    ClientCredentials,
    /// Creole shows an assertion of another issuer, such as the identity of a workload.
    JwtBearer,
    /// Creole exchanges the ID token of a company's identity provider (enterprise-managed authorization).
    Enterprise,
}

impl OAuthGrant {
    /// Its name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Login => "login",
            Self::ClientCredentials => "client-credentials",
            Self::JwtBearer => "jwt-bearer",
            Self::Enterprise => "enterprise",
        }
    }
}

/// The audience of a client's assertions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AssertionAudience {
    /// The issuer identifier of the authorization server.
    Issuer,
    /// The URL of its token endpoint, which older servers demand.
    TokenEndpoint,
}

/// Whether requests have the parameter `resource`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ResourceParameter {
    /// They have it, as MCP demands.
    On,
    /// They do not, for authorization servers that refuse it.
    Off,
}

/// When tokens are bound to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DpopChoice {
    /// When the upstream asks for it.
    Auto,
    /// Never.
    Off,
    /// Always. A login fails if the authorization server does not support it.
    Require,
}
