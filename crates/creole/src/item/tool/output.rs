//! The conversion of a function's return value to a tool result.

use std::any::{Any, TypeId};
use std::borrow::Cow;

use creole_proto::model::{Content, ToolResult};
use creole_proto::wire::Raw;
use schemars::JsonSchema;
use serde::Serialize;

use crate::item::tool::{ToolError, schema_of};

/// The return values of a tool's function. `K` is the kind of the value, one of those below, and is inferred.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    note = "a tool returns a `String`, a value that implements `serde::Serialize` and `schemars::JsonSchema`, a \
            `Json`, a `Vec<Content>` or a `ToolResult`, or a `Result` of one of them whose error becomes a `ToolError`"
)]
pub trait IntoToolResult<K> {
    /// The schema of the structured result, where the type has one.
    #[doc(hidden)]
    fn output_schema() -> Option<Raw> {
        None
    }

    /// The result of the tool.
    #[doc(hidden)]
    fn into_tool_result(self) -> Result<ToolResult, ToolError>;
}

/// The kind of values that are serialized.
#[derive(Debug)]
pub struct Value;

/// The kind of values that are results already.
#[derive(Debug)]
pub struct Prepared;

/// The kind of `Result`s of values of the kind `K`.
#[derive(Debug)]
pub struct Fallible<K>(K);

/// Text becomes a block of text, and `()` an empty result. Every other value is a structured result whose schema is
/// announced. The same value is included as text, for clients without structured content.
impl<T: Serialize + JsonSchema + 'static> IntoToolResult<Value> for T {
    fn output_schema() -> Option<Raw> {
        let without = [
            TypeId::of::<()>(),
            TypeId::of::<String>(),
            TypeId::of::<&'static str>(),
            TypeId::of::<Cow<'static, str>>(),
        ];
        (!without.contains(&TypeId::of::<T>())).then(schema_of::<T>)
    }

    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        let mut value = Some(self);
        let value: &mut dyn Any = &mut value;
        if let Some(text) = value.downcast_mut::<Option<String>>() {
            return Ok(ToolResult::text(text.take().unwrap_or_default()));
        }
        if let Some(text) = value.downcast_ref::<Option<&'static str>>() {
            return Ok(ToolResult::text(text.unwrap_or_default()));
        }
        if let Some(text) = value.downcast_mut::<Option<Cow<'static, str>>>() {
            return Ok(ToolResult::text(text.take().unwrap_or_default()));
        }
        match value.downcast_ref::<Option<T>>() {
            Some(Some(value)) if TypeId::of::<T>() != TypeId::of::<()>() => {
                let data = serde_json::value::to_raw_value(value)?;
                Ok(ToolResult::structured(Raw::from_value(&data)))
            }
            _ => Ok(ToolResult::default()),
        }
    }
}

impl IntoToolResult<Prepared> for ToolResult {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        Ok(self)
    }
}

impl IntoToolResult<Prepared> for Vec<Content> {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        Ok(ToolResult { content: self, ..ToolResult::default() })
    }
}

/// A structured result whose schema is not announced. The same value is included as text, for clients without
/// structured content.
#[derive(Clone, Copy, Debug)]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoToolResult<Prepared> for Json<T> {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::structured(Raw::from_value(&self.0)))
    }
}

impl<R: IntoToolResult<K>, E: Into<ToolError>, K> IntoToolResult<Fallible<K>> for Result<R, E> {
    fn output_schema() -> Option<Raw> {
        R::output_schema()
    }

    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        self.map_err(Into::into)?.into_tool_result()
    }
}
