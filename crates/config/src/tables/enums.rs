//! The words of the configuration, each an enum of its own.
//!
//! They mirror the enums of [`creole_proto::dialect`], which know nothing of configuration files.

use creole_proto::dialect;
use creole_proto::model::ListKind;
use schemars::JsonSchema;
use serde::Deserialize;

/// What must have happened before work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LifecycleChoice {
    /// Nothing: every request stands alone.
    None,
    /// `initialize` was received.
    Flag,
    /// `initialize` was answered and the client confirmed it.
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

/// What a second `initialize` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RepeatedInitializeChoice {
    /// It opens the conversation anew.
    Accept,
    /// It is refused, and the first one stands.
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

/// How much of a tool's definition is announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DefinitionsChoice {
    /// All that there is.
    Full,
    /// Name, description and the schema of the arguments.
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

/// Which numbers may be ids, besides strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IdNumbersChoice {
    /// Integers, as MCP says.
    Integers,
    /// Any number, as JSON-RPC says.
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

/// What a message without an id is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MissingIdChoice {
    /// A notification.
    Notification,
    /// An invalid request.
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

/// What a message with a null id is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NullIdChoice {
    /// An invalid request, as MCP says.
    Refuse,
    /// A notification.
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

/// The id in the answer to a refused message whose id can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RefusedIdChoice {
    /// The message's own.
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

/// What stands for an id that could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnreadableIdChoice {
    /// What the revision says.
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

/// What an array of messages is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BatchChoice {
    /// What the negotiated revision says.
    ByRevision,
    /// A batch.
    Accept,
    /// An invalid request.
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

/// When a tool result carries `isError`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IsErrorChoice {
    /// Always.
    Always,
    /// Only when it is true.
    WhenTrue,
    /// Never: failures are protocol errors.
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

/// What is done to the `additionalProperties` of announced schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SchemasChoice {
    /// Schemas are announced as the tool wrote them.
    AsWritten,
    /// `additionalProperties: false` is added to each object schema that does not say.
    Closed,
    /// `additionalProperties: false` is taken out: unknown arguments are ignored.
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

/// How capabilities are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CapabilitiesChoice {
    /// Objects with `listChanged` and `subscribe`.
    Detailed,
    /// Empty objects: changes are not announced.
    Plain,
    /// Booleans, with those of `capability_flags` besides.
    Flags,
}

/// Where a fault is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChannelChoice {
    /// As a JSON-RPC error.
    Protocol,
    /// As a tool result with `isError`, so that the model can react; outside of tool calls as an
    /// error.
    ToolResult,
}

/// How an event is written to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// One line for people.
    Text,
    /// One line of JSON for machines.
    Json,
    /// Not at all.
    Off,
}

/// How important an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LogLevel {
    /// Something failed that should not have.
    Error,
    /// Something is odd.
    Warn,
    /// What happens, one event per request.
    Info,
    /// Why it happens.
    Debug,
    /// Every step of the libraries underneath too, in a program that was built for debugging.
    Trace,
}

/// What a layer of a chain looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ListKindChoice {
    /// Tools, by their names.
    Tools,
    /// Resources, by their uris.
    Resources,
    /// Templates of resources, by their uri templates. To hide one keeps it from being listed and completed; what it
    /// leads to is hidden as `resources`.
    Templates,
    /// Prompts, by their names.
    Prompts,
    /// Skills, by their uris.
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

/// What an audit log tells of the arguments of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AuditArgumentsChoice {
    /// Nothing.
    None,
    /// Their SHA-256, by which equal ones are known to be equal.
    Digest,
    /// The arguments, without what is redacted.
    Redacted,
}

/// What secrets are taken out of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RedactScopeChoice {
    /// What comes back: results, the words of faults, and progress and log messages.
    Results,
    /// What tools and prompts are given.
    Arguments,
    /// All of that.
    Both,
}

/// Which generation of the protocol an upstream is spoken to in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UpstreamEra {
    /// That of the caller, if the server has it; else the other one.
    Auto,
    /// The one that opens with `initialize`.
    Handshake,
    /// The one in which every request stands alone.
    Stateless,
}

/// Who shares a connection to an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AffinityChoice {
    /// The calls of one caller.
    Principal,
    /// All callers: only for upstreams that keep nothing of one that another must not see.
    Shared,
    /// The calls of one session of a client: that of the handshake era, or the one that a call names in `_meta` as
    /// `creole/session`. Calls in no session have one of their own each.
    Session,
    /// Nobody: each call has one of its own, for upstreams that must keep nothing from one call to the next.
    Request,
}

/// What an argument of a tool is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ArgumentKind {
    /// A text.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// Yes or no.
    Boolean,
    /// A list.
    Array,
    /// Anything with members.
    Object,
}

/// What the items of a list are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ItemKind {
    /// Texts.
    String,
    /// Whole numbers.
    Integer,
    /// Numbers.
    Number,
    /// Answers, yes or no.
    Boolean,
}

/// What a program writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ResultKind {
    /// Text.
    Text,
    /// JSON: a structured result.
    Json,
    /// A picture, whose media type is `mime_type`.
    Image,
}

/// What the answer of a service becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ResponseForm {
    /// Text.
    Text,
    /// JSON: a structured result.
    Json,
}

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum HttpMethod {
    /// Reads.
    Get,
    /// Does anything.
    Post,
    /// Replaces.
    Put,
    /// Changes a part.
    Patch,
    /// Takes away.
    Delete,
}
