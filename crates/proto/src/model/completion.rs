//! Completion of prompt and template arguments (2025-11-25 server/utilities/completion).

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use serde::Serialize;

use crate::wire::{FieldError, FieldErrorKind, Object, unquote};

/// The target of a completion (2025-11-25 schema, `PromptReference` and `ResourceTemplateReference`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// An argument of a prompt.
    Prompt(String),
    /// A variable of a resource template.
    Resource(String),
}

/// A request for completions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletionRequest {
    /// The target.
    pub reference: Reference,
    /// The argument's name.
    pub argument: String,
    /// The text typed so far.
    pub value: String,
    /// Arguments with known values (2025-11-25 schema, `CompleteRequestParams`).
    pub context: BTreeMap<String, String>,
}

impl CompletionRequest {
    /// Reads the params of `completion/complete`.
    pub fn read(params: Object<'_>) -> Result<Self, FieldError> {
        let reference = params.object("ref")?.ok_or_else(|| missing("ref"))?;
        let argument = params.object("argument")?.ok_or_else(|| missing("argument"))?;
        let settled = match params.object("context")? {
            Some(context) => context.object("arguments")?,
            None => None,
        };
        let context =
            settled.map(Object::members).into_iter().flatten().filter_map(|(key, value)| {
                unquote(value).map(|value| (key.into_owned(), value.into_owned()))
            });
        Ok(Self {
            reference: read_reference(reference)?,
            argument: argument.required_string("name")?.into_owned(),
            value: argument.required_string("value")?.into_owned(),
            context: context.collect(),
        })
    }
}

fn read_reference(reference: Object<'_>) -> Result<Reference, FieldError> {
    match reference.required_string("type")?.as_ref() {
        "ref/prompt" => Ok(Reference::Prompt(reference.required_string("name")?.into_owned())),
        "ref/resource" => Ok(Reference::Resource(reference.required_string("uri")?.into_owned())),
        _ => Err(FieldError {
            key: "ref.type".to_owned(),
            kind: FieldErrorKind::MustBe("\"ref/prompt\" or \"ref/resource\""),
        }),
    }
}

fn missing(key: &str) -> FieldError {
    FieldError { key: key.to_owned(), kind: FieldErrorKind::Missing }
}

/// Completion values, limited to [`Completion::MAX_VALUES`] (2025-11-25 schema, `CompleteResult`).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Completion {
    /// The values.
    pub values: Vec<String>,
    /// The total number of values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<usize>,
    /// Whether there are more values than these.
    pub has_more: bool,
}

impl Completion {
    /// Maximum number of values in a response (2025-11-25 schema, `CompleteResult`).
    pub const MAX_VALUES: usize = 100;

    /// Keeps the first values up to the maximum and sets the total.
    pub fn from_values(mut values: Vec<String>) -> Self {
        let total = values.len();
        values.truncate(Self::MAX_VALUES);
        Self { has_more: total > values.len(), total: Some(total), values }
    }
}
