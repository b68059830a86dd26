//! The async functions that can be tools.

use std::future::Future;

use creole_proto::model::ToolResult;
use creole_proto::wire::Raw;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::call::Context;
use crate::item::tool::{IntoToolResult, ToolError};

/// An async function that can be a tool.
///
/// `A` is the type of its arguments. `M` is inferred from the function: its parameters, its return type and how that
/// becomes a result.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the function of a tool",
    label = "not a function of a tool",
    note = "a tool is an async function that takes nothing, `(Arguments)`, `(Context)` or `(Arguments, Context)`; \
            with `Tool::with_state` the state comes first",
    note = "`Arguments` implements `serde::Deserialize` and `schemars::JsonSchema`",
    note = "the function returns a `String`, a value that implements `serde::Serialize` and `schemars::JsonSchema`, \
            a `Json`, a `Vec<Content>` or a `ToolResult`, or a `Result` of one of them whose error becomes a `ToolError`",
    note = "its future is `Send`: it holds no `Rc` and no lock guard over an `.await`"
)]
pub trait Handler<A, M>: Send + Sync + 'static {
    /// The schema of the return value, if its type has one.
    #[doc(hidden)]
    fn output_schema() -> Option<Raw> {
        None
    }

    /// Runs the function.
    #[doc(hidden)]
    fn run(
        &self,
        arguments: A,
        context: Context,
    ) -> impl Future<Output = Result<ToolResult, ToolError>> + Send;
}

/// The arguments of a tool that takes none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct NoArguments {}

impl JsonSchema for NoArguments {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "NoArguments".into()
    }

    /// Only the empty object, as the specification recommends (2025-11-25 server/tools, tool).
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "properties": {}, "additionalProperties": false})
    }
}

/// A function and the state that is its first parameter, from [`Tool::with_state`](crate::item::tool::Tool::with_state).
#[derive(Debug)]
pub struct WithState<S, F> {
    pub(crate) state: S,
    pub(crate) function: F,
}

/// Implements [`Handler`] for functions with these parameters, and for the same functions after a state.
macro_rules! handler {
    ($arguments:ty, [$($generic:ident)?], ($($parameter:ty),*), $given:ident, $context:ident, ($($value:expr),*)) => {
        impl<$($generic,)? F, R, K, Fut> Handler<$arguments, (fn($($parameter),*) -> R, K)> for F
        where
            $($generic: DeserializeOwned + Send + 'static,)?
            F: Fn($($parameter),*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = R> + Send,
            R: IntoToolResult<K>,
        {
            fn output_schema() -> Option<Raw> {
                R::output_schema()
            }

            async fn run(&self, $given: $arguments, $context: Context) -> Result<ToolResult, ToolError> {
                self($($value),*).await.into_tool_result()
            }
        }

        impl<S, $($generic,)? F, R, K, Fut> Handler<$arguments, (fn(S, $($parameter),*) -> R, K)>
            for WithState<S, F>
        where
            S: Clone + Send + Sync + 'static,
            $($generic: DeserializeOwned + Send + 'static,)?
            F: Fn(S, $($parameter),*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = R> + Send,
            R: IntoToolResult<K>,
        {
            fn output_schema() -> Option<Raw> {
                R::output_schema()
            }

            async fn run(&self, $given: $arguments, $context: Context) -> Result<ToolResult, ToolError> {
                (self.function)(self.state.clone(), $($value),*).await.into_tool_result()
            }
        }
    };
}

handler!(NoArguments, [], (), _given, _context, ());
handler!(NoArguments, [], (Context), _given, context, (context));
handler!(A, [A], (A), given, _context, (given));
handler!(A, [A], (A, Context), given, context, (given, context));
