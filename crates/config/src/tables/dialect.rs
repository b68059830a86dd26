//! The dialect of a server or an upstream: a name, or a table of differences from a built-in dialect.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value};

use crate::syntax::suggestions;
use crate::syntax::value::{Entries, Ranged, Spanned};
use crate::tables::enums::{
    BatchChoice, CapabilitiesChoice, ChannelChoice, DefinitionsChoice, IdNumbersChoice,
    IsErrorChoice, LifecycleChoice, MissingIdChoice, NullIdChoice, RefusedIdChoice,
    RepeatedInitializeChoice, SchemasChoice, UnreadableIdChoice,
};
use crate::tables::key_schemas;

/// The dialect of a server or an upstream.
#[derive(Clone, Debug)]
pub enum DialectChoice {
    /// The name of a built-in dialect.
    Named(Spanned<String>),
    /// A dialect that the configuration defines.
    Own(Box<Spanned<DialectTable>>),
}

/// A dialect that you define. Keys that the table does not set are inherited from the dialect that it extends.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DialectTable {
    /// The built-in dialect that this one extends. Default: `spec`.
    #[serde(default)]
    #[schemars(schema_with = "key_schemas::dialect_name")]
    pub extends: Option<Spanned<String>>,
    /// The name of the dialect in messages. Default: the name of the server.
    pub name: Option<Spanned<String>>,
    /// A description in one sentence.
    pub about: Option<String>,
    /// The revision that applies before, or without, a negotiation.
    #[serde(default)]
    #[schemars(schema_with = "key_schemas::base_revision")]
    pub revision: Option<Spanned<String>>,
    /// Whether requests of the stateless era (2026-07-28) are served without a handshake. They carry their version and
    /// capabilities.
    pub stateless: Option<bool>,
    /// Whether sessions that start with `initialize` (all revisions before 2026-07-28) are served.
    pub handshake: Option<bool>,
    /// The version in every response to `initialize`, or `negotiate`.
    pub version: Option<Spanned<String>>,
    /// The members that `initialize` must contain. `clientInfo.name` names a nested member.
    pub initialize_requires: Option<Vec<Spanned<String>>>,
    /// The handshake steps that must be complete before other requests are accepted.
    pub lifecycle: Option<Spanned<LifecycleChoice>>,
    /// Other accepted names of the notification `notifications/initialized`, which ends the handshake.
    pub initialized_aliases: Option<Vec<Spanned<String>>>,
    /// The notification that Creole sends as a client to end the handshake, or `none`.
    pub initialized_notification: Option<Spanned<String>>,
    /// The handling of a second `initialize`.
    pub repeated_initialize: Option<RepeatedInitializeChoice>,
    /// The only methods that a client may use in a session.
    #[serde(default)]
    #[schemars(schema_with = "key_schemas::methods")]
    pub methods: Option<Spanned<Vec<Spanned<String>>>>,
    /// The format of capabilities.
    pub capabilities: Option<CapabilitiesChoice>,
    /// Additional capabilities, each true or false. Only with `capabilities = "flags"`.
    pub capability_flags: Option<Spanned<Entries<bool>>>,
    /// The only capabilities that are announced. They are announced always.
    #[serde(default)]
    #[schemars(schema_with = "key_schemas::capabilities")]
    pub advertise: Option<Vec<Spanned<String>>>,
    /// Capabilities that are never announced. Only without `advertise`.
    #[serde(default)]
    #[schemars(schema_with = "key_schemas::capabilities")]
    pub hidden_capabilities: Option<Spanned<Vec<Spanned<String>>>>,
    /// The detail of announced tool definitions.
    pub definitions: Option<DefinitionsChoice>,
    /// The numbers that are accepted as ids, in addition to strings.
    pub ids: Option<IdNumbersChoice>,
    /// The handling of a message without an id.
    pub missing_id: Option<Spanned<MissingIdChoice>>,
    /// The handling of a message whose id is null.
    pub null_id: Option<NullIdChoice>,
    /// The id in the response to a refused message whose id is readable.
    pub refused_id: Option<RefusedIdChoice>,
    /// The id in the response to a message whose id is not readable.
    pub unreadable_id: Option<UnreadableIdChoice>,
    /// The handling of an array of messages.
    pub batch: Option<BatchChoice>,
    /// Whether a tool call must contain `arguments`.
    pub arguments_required: Option<bool>,
    /// When a tool result contains `isError`.
    pub is_error: Option<IsErrorChoice>,
    /// Whether lists are split into pages.
    pub paging: Option<bool>,
    /// The `additionalProperties` of announced schemas.
    pub schemas: Option<SchemasChoice>,
    /// The maximum size of a message, in bytes. Larger messages are refused.
    pub max_message: Option<Spanned<Ranged<1024, 268_435_456>>>,
    /// Whether HTTP responses may be event streams, for clients that accept them.
    pub event_streams: Option<bool>,
    /// Whether protocol errors have their own HTTP statuses. If false, their status is 200.
    pub error_statuses: Option<bool>,
    /// Whether every request is logged by default.
    pub telemetry: Option<bool>,
    /// The encoding of faults, by kind. It applies in every revision. Keys that a table does not set are inherited from
    /// the base revision of the extended dialect.
    #[serde(default)]
    #[schemars(schema_with = "errors_schema")]
    pub errors: Option<Entries<ErrorTable>>,
}

/// The encoding of one kind of fault.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorTable {
    /// The code of the JSON-RPC error. With `channel = "tool-result"`, the code outside of tool calls.
    pub code: Option<Ranged<-2_147_483_648, 2_147_483_647>>,
    /// How the fault is reported. Default: `protocol` if `code` is set.
    pub channel: Option<ChannelChoice>,
    /// The message. `{tool}`, `{method}`, `{uri}` and `{prompt}` insert the subject of the fault, `{detail}` inserts
    /// its description, and `{trace}` inserts its location (only with `--debug`).
    pub message: Option<Spanned<String>>,
    /// The `data` of the error. `false` means no data, and `true` means the details of the fault. A string may contain
    /// the same variables as `message`. A table has such strings as members. A member that consists of `{trace}` is
    /// omitted if there is no trace.
    pub data: Option<ErrorData>,
}

/// The `data` of an error.
#[derive(Clone, Debug)]
pub enum ErrorData {
    /// No data.
    Nothing,
    /// The details of the fault.
    Facts,
    /// A string.
    Text(Spanned<String>),
    /// An object of strings. A string that consists of `{trace}` is omitted if there is no trace.
    Members(Entries<Spanned<String>>),
}

impl DialectTable {
    /// The position of a key's value, for the keys that can contradict another key.
    pub(crate) fn span_of(&self, key: &str) -> Option<std::ops::Range<usize>> {
        match key {
            "name" => self.name.as_ref().map(|spanned| spanned.span.clone()),
            "version" => self.version.as_ref().map(|spanned| spanned.span.clone()),
            "lifecycle" => self.lifecycle.as_ref().map(|spanned| spanned.span.clone()),
            "methods" => self.methods.as_ref().map(|spanned| spanned.span.clone()),
            "missing_id" => self.missing_id.as_ref().map(|spanned| spanned.span.clone()),
            "max_message" => self.max_message.as_ref().map(|spanned| spanned.span.clone()),
            _ => None,
        }
    }
}

// === impl DialectChoice ===

impl<'de> Deserialize<'de> for DialectChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = Spanned::<NameOrTable>::deserialize(deserializer)?;
        let span = read.span;
        Ok(match read.value {
            NameOrTable::Name(value) => Self::Named(Spanned { value, span }),
            NameOrTable::Table(table) => Self::Own(Box::new(Spanned { value: *table, span })),
        })
    }
}

/// The two forms of a dialect, without the position.
enum NameOrTable {
    Name(String),
    Table(Box<DialectTable>),
}

impl<'de> Deserialize<'de> for NameOrTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameOrTableVisitor)
    }
}

struct NameOrTableVisitor;

impl<'de> Visitor<'de> for NameOrTableVisitor {
    type Value = NameOrTable;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the name of a dialect or a table")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(NameOrTable::Name(name.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let table = DialectTable::deserialize(MapAccessDeserializer::new(map))?;
        Ok(NameOrTable::Table(Box::new(table)))
    }
}

impl JsonSchema for DialectChoice {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "DialectChoice".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (name, table) =
            (key_schemas::dialect_name(generator), generator.subschema_for::<DialectTable>());
        json_schema!({ "anyOf": [name, table] })
    }
}

// === impl ErrorData ===

impl<'de> Deserialize<'de> for ErrorData {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = Spanned::<DataForm>::deserialize(deserializer)?;
        Ok(match read.value {
            DataForm::Flag(false) => Self::Nothing,
            DataForm::Flag(true) => Self::Facts,
            DataForm::Text(value) => Self::Text(Spanned { value, span: read.span }),
            DataForm::Members(members) => Self::Members(members),
        })
    }
}

/// The three forms of `data`, without the position.
enum DataForm {
    Flag(bool),
    Text(String),
    Members(Entries<Spanned<String>>),
}

impl<'de> Deserialize<'de> for DataForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DataFormVisitor)
    }
}

struct DataFormVisitor;

impl<'de> Visitor<'de> for DataFormVisitor {
    type Value = DataForm;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("`true`, `false`, a string or a table of strings")
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Self::Value, E> {
        Ok(DataForm::Flag(flag))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(DataForm::Text(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        Ok(DataForm::Members(Entries::deserialize(MapAccessDeserializer::new(map))?))
    }
}

impl JsonSchema for ErrorData {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ErrorData".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["boolean", "string", "object"],
            "additionalProperties": { "type": "string" },
        })
    }
}

/// The schema of the errors: a table for each kind of fault.
fn errors_schema(generator: &mut SchemaGenerator) -> Schema {
    let table = generator.subschema_for::<ErrorTable>();
    let kind = |name: &str| (name.to_owned(), table.clone().to_value());
    let kinds: Map<String, Value> = suggestions::fault_kinds().into_iter().map(kind).collect();
    json_schema!({ "type": "object", "properties": kinds, "additionalProperties": false })
}
