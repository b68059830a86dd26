//! Resolves the arguments of a tool, each with its schema.

use std::ops::Range;

use creole::Schema;
use creole_tools::recipe::argument::{ArgumentType, RecipeArgument};
use creole_tools::recipe::template::is_argument_name;
use serde_json::{Map, Value, json};

use crate::plan::items::tools::check_schema;
use crate::syntax::error::ConfigProblem;
use crate::syntax::value::{Entries, Spanned};
use crate::tables::enums::{ArgumentKind, ItemKind};
use crate::tables::tools::ArgumentTable;

/// The maximum number of arguments of one tool.
const MAX_ARGUMENTS: usize = 100;

/// The arguments, each with the position of its name.
pub(crate) fn resolve(
    tables: Option<Entries<Spanned<ArgumentTable>>>,
) -> Result<Vec<(Range<usize>, RecipeArgument)>, ConfigProblem> {
    let tables = tables.map(|tables| tables.0).unwrap_or_default();
    if let Some((name, _)) = tables.get(MAX_ARGUMENTS) {
        let message = format!("the tool has more than {MAX_ARGUMENTS} arguments");
        return Err(ConfigProblem::new(message).at(name.span.clone()));
    }
    tables.into_iter().map(|(name, table)| argument(name, table.value)).collect()
}

fn argument(
    name: Spanned<String>,
    table: ArgumentTable,
) -> Result<(Range<usize>, RecipeArgument), ConfigProblem> {
    let Spanned { value: name, span } = name;
    if !is_argument_name(&name) {
        let help = "use letters, digits, `_` or `-`, and begin with a letter";
        let message = format!("invalid argument name `{name}`");
        return Err(ConfigProblem::new(message).help(help).at(span));
    }
    if let (Some(required), Some(_)) = (&table.required, &table.default)
        && required.value
    {
        return Err(ConfigProblem::new("a required argument cannot have a `default`")
            .help("remove `required` or `default`")
            .at(required.span.clone()));
    }
    let kind = kind(table.kind.value);
    check_bounds(&table, kind)?;
    let schema = schema(&table);
    check_schema(&schema).map_err(|problem| problem.at(span.clone()))?;
    let required = table.required.map_or(table.default.is_none(), |required| required.value);
    let checks = Schema::new(schema.to_string());
    if let Some(default) = &table.default
        && checks.validate(&default.value).is_err()
    {
        let message = format!("the default of `{name}` is not in its `enum`");
        return Err(ConfigProblem::new(message).at(default.span.clone()));
    }
    let argument = RecipeArgument {
        name,
        kind,
        required,
        is_choice: table.choices.is_some(),
        leading_dash: table.leading_dash.unwrap_or(false),
        default: table.default.map(|default| default.value),
        schema,
    };
    Ok((span, argument))
}

fn kind(word: ArgumentKind) -> ArgumentType {
    match word {
        ArgumentKind::String => ArgumentType::String,
        ArgumentKind::Integer => ArgumentType::Integer,
        ArgumentKind::Number => ArgumentType::Number,
        ArgumentKind::Boolean => ArgumentType::Boolean,
        ArgumentKind::Array => ArgumentType::Array,
        ArgumentKind::Object => ArgumentType::Object,
    }
}

/// Checks that a bound suits the type of the argument.
fn check_bounds(table: &ArgumentTable, kind: ArgumentType) -> Result<(), ConfigProblem> {
    let (text, list) = (kind == ArgumentType::String, kind == ArgumentType::Array);
    let number = matches!(kind, ArgumentType::Integer | ArgumentType::Number);
    let span = |span: &Range<usize>| span.clone();
    let bounds = [
        ("minimum", table.minimum.as_ref().map(|value| span(&value.span)), number, "numbers"),
        ("maximum", table.maximum.as_ref().map(|value| span(&value.span)), number, "numbers"),
        ("min_length", table.min_length.as_ref().map(|value| span(&value.span)), text, "texts"),
        ("max_length", table.max_length.as_ref().map(|value| span(&value.span)), text, "texts"),
        ("pattern", table.pattern.as_ref().map(|value| span(&value.span)), text, "texts"),
        ("items", table.items.as_ref().map(|value| span(&value.span)), list, "lists"),
        ("min_items", table.min_items.as_ref().map(|value| span(&value.span)), list, "lists"),
        ("max_items", table.max_items.as_ref().map(|value| span(&value.span)), list, "lists"),
        ("enum", table.choices.as_ref().map(|value| span(&value.span)), !list, "single values"),
    ];
    match bounds.into_iter().find(|(_, written, fits, _)| written.is_some() && !fits) {
        Some((key, Some(written), _, of)) => {
            Err(ConfigProblem::new(format!("`{key}` is only valid for arguments that are {of}"))
                .at(written))
        }
        _ => Ok(()),
    }
}

fn schema(table: &ArgumentTable) -> Value {
    let mut schema = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        schema.extend(value.map(|value| (key.to_owned(), value)));
    };
    let word = match table.kind.value {
        ArgumentKind::String => "string",
        ArgumentKind::Integer => "integer",
        ArgumentKind::Number => "number",
        ArgumentKind::Boolean => "boolean",
        ArgumentKind::Array => "array",
        ArgumentKind::Object => "object",
    };
    put("type", Some(json!(word)));
    put("description", table.description.as_ref().map(|text| json!(text)));
    put("default", table.default.as_ref().map(|item| item.value.clone()));
    put("enum", table.choices.as_ref().map(|item| json!(item.value)));
    put("minimum", table.minimum.as_ref().map(|item| number(item.value)));
    put("maximum", table.maximum.as_ref().map(|item| number(item.value)));
    put("minLength", table.min_length.as_ref().map(|item| json!(item.value.get())));
    put("maxLength", table.max_length.as_ref().map(|item| json!(item.value.get())));
    put("pattern", table.pattern.as_ref().map(|item| json!(item.value)));
    put("minItems", table.min_items.as_ref().map(|item| json!(item.value.get())));
    put("maxItems", table.max_items.as_ref().map(|item| json!(item.value.get())));
    if table.kind.value == ArgumentKind::Array {
        put("items", Some(items(table.items.as_ref().map_or(ItemKind::String, |item| item.value))));
    }
    Value::Object(schema)
}

fn items(kind: ItemKind) -> Value {
    let word = match kind {
        ItemKind::String => "string",
        ItemKind::Integer => "integer",
        ItemKind::Number => "number",
        ItemKind::Boolean => "boolean",
    };
    json!({ "type": word })
}

/// A number in its usual notation, without a fraction if it is whole.
fn number(number: f64) -> Value {
    let is_whole = number.fract() == 0.0 && number.abs() < 1e15;
    if is_whole { json!(number as i64) } else { json!(number) }
}
