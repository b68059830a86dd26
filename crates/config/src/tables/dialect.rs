//! A dialect as it is written: a name, or a table of what is different from a dialect that exists.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use crate::describe::schema;
use crate::syntax::value::{Entries, Ranged, Spanned};
use crate::tables::enums::{
    BatchChoice, CapabilitiesChoice, ChannelChoice, DefinitionsChoice, IdNumbersChoice,
    IsErrorChoice, LifecycleChoice, MissingIdChoice, NullIdChoice, RefusedIdChoice,
    RepeatedInitializeChoice, SchemasChoice, UnreadableIdChoice,
};

/// How a server speaks.
#[derive(Clone, Debug)]
pub enum DialectChoice {
    /// A dialect that ships inside, by its name.
    Named(Spanned<String>),
    /// A dialect of one's own.
    Own(Box<Spanned<DialectTable>>),
}

/// A dialect of your own: what it says is laid over the dialect that it extends.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DialectTable {
    /// The dialect that holds where this table says nothing. Default: `spec`.
    #[serde(default)]
    #[schemars(schema_with = "schema::dialect_name")]
    pub extends: Option<Spanned<String>>,
    /// Its name in messages for people. Default: the name of the server.
    pub name: Option<Spanned<String>>,
    /// One sentence about it.
    pub about: Option<String>,
    /// The revision that holds before anything is negotiated, and where nothing is.
    #[serde(default)]
    #[schemars(schema_with = "schema::base_revision")]
    pub revision: Option<Spanned<String>>,
    /// Whether requests that carry version and capabilities themselves (2026-07-28) are served too,
    /// without a handshake.
    pub stateless: Option<bool>,
    /// Whether a conversation may be opened by a handshake (every older revision).
    pub handshake: Option<bool>,
    /// The version that `initialize` always answers with, or `negotiate`.
    pub version: Option<Spanned<String>>,
    /// Members that `initialize` must carry; `clientInfo.name` reaches into an object.
    pub initialize_requires: Option<Vec<Spanned<String>>>,
    /// What must have happened before work is done.
    pub lifecycle: Option<Spanned<LifecycleChoice>>,
    /// Names of the notification that ends the handshake, besides `notifications/initialized`.
    pub initialized_aliases: Option<Vec<Spanned<String>>>,
    /// The notification that we end the handshake with where we are the client, or `none`.
    pub confirmation: Option<Spanned<String>>,
    /// What a second `initialize` does.
    pub repeated_initialize: Option<RepeatedInitializeChoice>,
    /// All that a client may send in a session.
    #[serde(default)]
    #[schemars(schema_with = "schema::methods")]
    pub methods: Option<Spanned<Vec<Spanned<String>>>>,
    /// How capabilities are written.
    pub capabilities: Option<CapabilitiesChoice>,
    /// Further capabilities that are true or false; only where capabilities are flags.
    pub capability_flags: Option<Spanned<Entries<bool>>>,
    /// The capabilities that are always shown, and no others.
    #[serde(default)]
    #[schemars(schema_with = "schema::capabilities")]
    pub advertise: Option<Vec<Spanned<String>>>,
    /// Capabilities that are not shown even if the server has them; only without `advertise`.
    #[serde(default)]
    #[schemars(schema_with = "schema::capabilities")]
    pub conceal: Option<Spanned<Vec<Spanned<String>>>>,
    /// How much of a tool's definition is announced.
    pub definitions: Option<DefinitionsChoice>,
    /// Which numbers may be ids, besides strings.
    pub ids: Option<IdNumbersChoice>,
    /// What a message without an id is.
    pub missing_id: Option<Spanned<MissingIdChoice>>,
    /// What a message with a null id is.
    pub null_id: Option<NullIdChoice>,
    /// The id in the answer to a message that is refused although its id can be read.
    pub refused_id: Option<RefusedIdChoice>,
    /// What stands for an id that could not be read.
    pub unreadable_id: Option<UnreadableIdChoice>,
    /// What an array of messages is.
    pub batch: Option<BatchChoice>,
    /// Whether a tool call must carry `arguments`.
    pub arguments_required: Option<bool>,
    /// When a tool result carries `isError`.
    pub is_error: Option<IsErrorChoice>,
    /// Whether lists are cut into pages.
    pub paging: Option<bool>,
    /// What is done to the `additionalProperties` of announced schemas.
    pub schemas: Option<SchemasChoice>,
    /// The longest message that is read, in bytes.
    pub max_message: Option<Spanned<Ranged<1024, 268_435_456>>>,
    /// Whether answers over HTTP may be streams of events, for clients that take them.
    pub event_streams: Option<bool>,
    /// Whether errors of the protocol have statuses of their own over HTTP; else they are told with 200.
    pub error_statuses: Option<bool>,
    /// Whether every request is logged without being asked for.
    pub telemetry: Option<bool>,
    /// How faults are written, by kind. Such a fault is then written this way in every revision; what
    /// its table leaves out is as in the base revision of the dialect that is extended.
    #[serde(default)]
    #[schemars(schema_with = "schema::errors")]
    pub errors: Option<Entries<ErrorTable>>,
}

/// How one kind of fault is written.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorTable {
    /// The code of the JSON-RPC error. With `channel = "tool-result"`, the code outside of tool calls.
    pub code: Option<Ranged<-2_147_483_648, 2_147_483_647>>,
    /// Where the fault is told. Default: `protocol` where a code is given.
    pub channel: Option<ChannelChoice>,
    /// The message; `{tool}`, `{method}`, `{uri}` and `{prompt}` stand for what the fault is about,
    /// `{detail}` for what happened, `{trace}` for where (only with `--debug`).
    pub message: Option<Spanned<String>>,
    /// What goes into `data`: `false` for nothing, `true` for the facts of the fault as they are, a
    /// string with the same variables, or a table of such strings; one that is only `{trace}` is left
    /// out when there is no trace.
    pub data: Option<ErrorData>,
}

/// What goes into the `data` of an error.
#[derive(Clone, Debug)]
pub enum ErrorData {
    /// Nothing.
    Nothing,
    /// The facts of the fault as they are.
    Facts,
    /// A string.
    Text(Spanned<String>),
    /// An object of strings; one that is only `{trace}` is left out when there is no trace.
    Members(Entries<Spanned<String>>),
}

impl DialectTable {
    /// Where a key's value stands, for the keys that can contradict another.
    pub(crate) fn span_of(&self, key: &str) -> Option<std::ops::Range<usize>> {
        match key {
            "name" => self.name.as_ref().map(|placed| placed.span.clone()),
            "version" => self.version.as_ref().map(|placed| placed.span.clone()),
            "lifecycle" => self.lifecycle.as_ref().map(|placed| placed.span.clone()),
            "methods" => self.methods.as_ref().map(|placed| placed.span.clone()),
            "missing_id" => self.missing_id.as_ref().map(|placed| placed.span.clone()),
            "max_message" => self.max_message.as_ref().map(|placed| placed.span.clone()),
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

/// The two forms, before the place is known.
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
            (schema::dialect_name(generator), generator.subschema_for::<DialectTable>());
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

/// The three forms, before the place is known.
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
