//! JSON Schema validation of tool arguments, safe for untrusted schemas and arguments.
//!
//! Simple schemas are checked by a small validator of our own (`flat`), all others by the `jsonschema` crate (`full`),
//! after `bounds` has checked that they can neither exhaust the stack nor run for minutes. `format` is an annotation in
//! both dialects and is never checked.

mod bounds;
mod flat;
mod full;
mod message;
mod references;
mod value_size;

use std::error::Error;
use std::fmt;
use std::sync::{Arc, OnceLock};

use creole_proto::wire::Raw;
use serde_json::Value;

use self::bounds::SchemaMeasures;
use self::flat::FlatSchema;
use self::full::FullSchema;
use self::value_size::ValueSize;

/// The schema of a tool, compiled on first use.
pub struct Schema {
    text: SchemaText,
    /// Compiled lazily: the first compilation in a process costs milliseconds, which would slow down the start.
    compiled: OnceLock<Result<Compiled, SchemaError>>,
}

/// Where the text of a schema is stored.
enum SchemaText {
    Owned(Arc<str>),
    Shared(Raw),
}

struct Compiled {
    shape: SchemaMeasures,
    checker: Checker,
}

enum Checker {
    Flat(FlatSchema),
    Full(Box<FullSchema>),
}

/// One violation of the schema by a value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The JSON Pointer of the invalid part; empty for the whole value.
    pub pointer: String,
    /// What that part must be; the message follows the name of the part.
    pub message: String,
    is_schema_broken: bool,
}

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaError {
    /// The text is longer than `MAX_TEXT`.
    TooLarge,
    /// The text is not JSON, for this reason.
    NotJson(String),
    /// The schema or its chain of references is nested too deeply.
    TooDeep,
    /// It has too many subschemas or patterns, counted with their references followed.
    TooComplex,
    /// Some of its references only lead to themselves.
    Circular,
    /// It is written in this dialect, which is neither 2020-12 nor draft-07.
    Dialect(String),
    /// This reference does not point to a place within the schema.
    Reference(String),
    /// It is not a valid schema, for this reason.
    Invalid(String),
}

/// The supported versions of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SchemaDraft {
    Draft7,
    Draft202012,
}

/// Maximum length of a schema's text.
pub(crate) const MAX_TEXT: usize = 256 * 1024;

/// Maximum number of reported violations.
pub(crate) const MAX_VIOLATIONS: usize = 8;

impl Schema {
    /// A schema from its JSON text. Nothing is checked yet.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self { text: SchemaText::Owned(text.into()), compiled: OnceLock::new() }
    }

    /// The schema in this JSON value, which is not copied.
    pub fn of(schema: &Raw) -> Self {
        Self { text: SchemaText::Shared(schema.clone()), compiled: OnceLock::new() }
    }

    /// The JSON text.
    #[must_use]
    pub fn text(&self) -> &str {
        match &self.text {
            SchemaText::Owned(text) => text,
            SchemaText::Shared(schema) => schema.as_str(),
        }
    }

    /// Checks syntax, bounds, dialect and references, without compiling.
    ///
    /// # Errors
    /// The first error. A schema that passes may still turn out invalid on first use.
    pub fn check(&self) -> Result<(), SchemaError> {
        parse(self.text()).map(|_| ())
    }

    /// Validates `instance`; the first call compiles the schema.
    ///
    /// # Errors
    /// At least one and at most `MAX_VIOLATIONS` violations. If the schema itself is unusable,
    /// [`Violation::is_broken_schema`] holds for the only one.
    pub fn validate(&self, instance: &Value) -> Result<(), Vec<Violation>> {
        match self.compiled.get_or_init(|| Compiled::new(self.text())) {
            Ok(compiled) => compiled.validate(instance),
            Err(error) => Err(vec![Violation::broken_schema(error)]),
        }
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").field(&message::truncate(self.text())).finish()
    }
}

impl Compiled {
    fn new(text: &str) -> Result<Self, SchemaError> {
        let (value, dialect, shape) = parse(text)?;
        let checker = match FlatSchema::compile(&value) {
            Some(flat) => Checker::Flat(flat),
            None => Checker::Full(Box::new(FullSchema::compile(&value, dialect, shape)?)),
        };
        Ok(Self { shape, checker })
    }

    fn validate(&self, instance: &Value) -> Result<(), Vec<Violation>> {
        let extent = ValueSize::of(instance);
        extent.fits(self.shape).map_err(|message| vec![Violation::new("", message)])?;
        match &self.checker {
            Checker::Flat(flat) => flat.validate(instance),
            Checker::Full(full) => full.validate(instance, extent),
        }
    }
}

fn parse(text: &str) -> Result<(Value, SchemaDraft, SchemaMeasures), SchemaError> {
    if text.len() > MAX_TEXT {
        return Err(SchemaError::TooLarge);
    }
    let value = serde_json::from_str(text).map_err(|e| SchemaError::NotJson(e.to_string()))?;
    let dialect = SchemaDraft::of(&value)?;
    let shape = SchemaMeasures::of(&value, dialect)?;
    Ok((value, dialect, shape))
}

impl SchemaDraft {
    /// The dialect that `$schema` names; without it, 2020-12, the default of MCP.
    fn of(schema: &Value) -> Result<Self, SchemaError> {
        match schema.get("$schema") {
            None => Ok(Self::Draft202012),
            Some(Value::String(uri)) => Self::from_uri(uri),
            Some(other) => Err(SchemaError::Dialect(message::truncate(&other.to_string()))),
        }
    }

    fn from_uri(uri: &str) -> Result<Self, SchemaError> {
        let name = uri.strip_prefix("https://").or_else(|| uri.strip_prefix("http://"));
        match name.map(|name| name.strip_suffix('#').unwrap_or(name)) {
            Some("json-schema.org/draft/2020-12/schema") => Ok(Self::Draft202012),
            Some("json-schema.org/draft-07/schema") => Ok(Self::Draft7),
            _ => Err(SchemaError::Dialect(message::truncate(uri))),
        }
    }
}

impl Violation {
    fn new(pointer: &str, message: impl Into<String>) -> Self {
        Self {
            pointer: message::truncate_to(MAX_POINTER, pointer),
            message: message.into(),
            is_schema_broken: false,
        }
    }

    fn broken_schema(error: &SchemaError) -> Self {
        let message = format!("cannot be checked, because the tool's schema is broken: it {error}");
        Self { pointer: String::new(), message, is_schema_broken: true }
    }

    /// Whether the schema is invalid, which is an error of the tool's author and not of the caller.
    #[must_use]
    pub fn is_broken_schema(&self) -> bool {
        self.is_schema_broken
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            write!(f, "the value {}", self.message)
        } else {
            write!(f, "`{}` {}", self.pointer, self.message)
        }
    }
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge => write!(f, "is longer than {MAX_TEXT} bytes"),
            Self::NotJson(reason) => write!(f, "is not JSON: {reason}"),
            Self::TooDeep => f.write_str("is nested too deeply"),
            Self::TooComplex => f.write_str("has too many subschemas or patterns"),
            Self::Circular => f.write_str("has circular references"),
            Self::Dialect(dialect) => {
                write!(f, "is written in the dialect {dialect}, not in 2020-12 or draft-07")
            }
            Self::Reference(reference) => {
                write!(
                    f,
                    "has a reference to `{reference}`, but only references within the \
                    schema (`#/…`) are allowed"
                )
            }
            Self::Invalid(reason) => write!(f, "is not a valid schema: {reason}"),
        }
    }
}

impl Error for SchemaError {}

/// Property names come from the caller too and may be long.
const MAX_POINTER: usize = 256;

#[cfg(test)]
mod tests;
