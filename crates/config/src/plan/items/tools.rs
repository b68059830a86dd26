//! Resolves the tables of configured tools.

mod argument;
mod argument_uses;
mod command;
pub(crate) mod http;
mod interpreter;
mod query;

use std::ops::Range;
use std::path::{Path, PathBuf};

use creole::Schema;
use creole::internal::schema::Violation;
use creole_tools::database::Database;
use creole_tools::recipe::Recipe;
use creole_tools::recipe::http::ResponseFormat;
use creole_tools::recipe::tool::{ToolAction, ToolHints, ToolRecipe};
use creole_tools::recipe::tool_result::ResultFormat;
use creole_tools::script::Function;
use serde_json::Value;

use crate::plan::chain::resolve_script;
use crate::plan::{Plan, count, file, label, seconds};
use crate::syntax::error::ConfigProblem;
use crate::syntax::value::{Entries, Ranged, Spanned};
use crate::tables::tools::ToolTable;
use argument_uses::ArgumentUses;

/// The maximum length of a tool's name, in characters.
const MAX_NAME: usize = 128;
/// The default maximum size of a result, in bytes.
pub(crate) const DEFAULT_OUTPUT_LIMIT: i64 = 1_048_576;

/// The default timeout of a tool, in seconds. It is shorter than the server's, so that the tool is ended first and can
/// report it.
pub(crate) const DEFAULT_TIMEOUT: i64 = 50;

/// The tools, in the order of the file, and the positions of their timeouts. Disabled tools are checked and omitted.
pub(crate) fn resolve(
    tables: Option<Entries<ToolTable>>,
    databases: &[Database],
    folder: &Path,
) -> Result<(Vec<Recipe>, TimeoutSpans), ConfigProblem> {
    let (mut tools, mut times) = (Vec::new(), TimeoutSpans::default());
    for (name, table) in tables.map(|tables| tables.0).unwrap_or_default() {
        let enabled = table.enabled.unwrap_or(true);
        let span = name.span.clone();
        let time = table.timeout_seconds.as_ref().map(|time| time.span.clone());
        times.0.extend(time.map(|span| (name.value.clone(), span)));
        let tool = tool(name, table, databases, folder).map_err(|problem| problem.or_at(span))?;
        tools.extend(enabled.then(|| Recipe::Tool(Box::new(tool))));
    }
    Ok((tools, times))
}

/// The positions of the timeouts of tools, by name.
#[derive(Default)]
pub(crate) struct TimeoutSpans(Vec<(String, Range<usize>)>);

impl TimeoutSpans {
    /// Checks that no tool has a longer timeout than its server.
    pub(crate) fn check(&self, plan: &Plan) -> Result<(), ConfigProblem> {
        for server in plan.split() {
            let max = server.server.limits.call_timeout;
            for tool in server.offered_recipes().filter_map(Recipe::tool) {
                let written = self.0.iter().find(|(name, _)| *name == tool.name);
                if let (true, Some((_, span))) = (tool.timeout > max, written) {
                    let message = format!(
                        "the timeout of `{}` exceeds `call_timeout_seconds`, which is {} s",
                        server.server.name,
                        max.as_secs()
                    );
                    return Err(ConfigProblem::new(message)
                        .help(
                            "raise `call_timeout_seconds` in `limits` of the server, or lower \
                            the timeout here",
                        )
                        .at(span.clone()));
                }
            }
        }
        Ok(())
    }
}

fn tool(
    name: Spanned<String>,
    mut table: ToolTable,
    databases: &[Database],
    folder: &Path,
) -> Result<ToolRecipe, ConfigProblem> {
    let name = own_name(name)?;
    let arguments = argument::resolve(table.arguments.take())?;
    let hints = ToolHints {
        read_only: table.read_only.or(table.query.is_some().then_some(true)),
        destructive: table.destructive,
        idempotent: table.idempotent,
        open_world: table.open_world,
    };
    let output = table.output_schema.take();
    let (timeout, longest) = (table.timeout_seconds.take(), table.output_limit_bytes);
    let (title, about) = (label("title", table.title.take())?, description(&table.description)?);
    let mut uses = ArgumentUses::new(&arguments);
    let action = action(table, &mut uses, databases, folder)?;
    uses.check_used()?;
    Ok(ToolRecipe {
        name,
        title,
        about,
        hints,
        output_schema: match output {
            Some(value) => Some(output_schema(value, &action)?),
            None => action.output_schema(),
        },
        timeout: seconds(timeout.map_or(DEFAULT_TIMEOUT, |time| time.value.get())),
        max_result_bytes: count(longest.map_or(DEFAULT_OUTPUT_LIMIT, Ranged::get)),
        action,
        arguments: arguments.into_iter().map(|(_, argument)| argument).collect(),
    })
}

fn action(
    mut table: ToolTable,
    uses: &mut ArgumentUses<'_>,
    databases: &[Database],
    folder: &Path,
) -> Result<ToolAction, ConfigProblem> {
    check_one(&table)?;
    if let Some(command) = table.command.take() {
        query::check_absent(&table)?;
        return command::resolve(command, table, uses, folder).map(ToolAction::Command);
    }
    command::check_absent(&table)?;
    if let Some(text) = table.query.take() {
        return query::resolve(text, table.database, uses, databases).map(ToolAction::Query);
    }
    query::check_absent(&table)?;
    if let Some(http) = table.http.take() {
        let is_idempotent = table.idempotent == Some(true);
        return http::resolve(http.value, is_idempotent, uses, folder).map(ToolAction::Http);
    }
    let Some(value) = table.script.take() else {
        let description = "the tool has no `command`, `query`, `http` or `script`";
        return Err(ConfigProblem::new(description).help(
            "add `command = [\"program\", \"argument\"]`, `query = \"SELECT …\"`, `http = { url = \"https://…\" }` or \
             `script = { file = \"….js\" }`",
        ));
    };
    uses.mark_all_used();
    resolve_script(value.value, &[Function::Tool], folder).map(ToolAction::Script)
}

/// Checks that a tool has exactly one action.
fn check_one(table: &ToolTable) -> Result<(), ConfigProblem> {
    let ways = [
        table.command.as_ref().map(|value| &value.span),
        table.http.as_ref().map(|value| &value.span),
        table.query.as_ref().map(|value| &value.span),
        table.script.as_ref().map(|value| &value.span),
    ];
    match ways.into_iter().flatten().nth(1) {
        None => Ok(()),
        Some(second) => {
            let description =
                "the tool has more than one of `command`, `query`, `http` and `script`";
            Err(ConfigProblem::new(description).help("remove all but one").at(second.clone()))
        }
    }
}

/// The name of a tool, valid in every revision.
pub(crate) fn own_name(value: Spanned<String>) -> Result<String, ConfigProblem> {
    let Spanned { value: name, span } = value;
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(is_allowed) {
        let help = format!("use at most {MAX_NAME} letters, digits, `_`, `-` or `.`");
        return Err(ConfigProblem::new(format!("invalid tool name `{name}`")).help(help).at(span));
    }
    Ok(name)
}

pub(crate) fn description(value: &Spanned<String>) -> Result<String, ConfigProblem> {
    if value.value.trim().is_empty() {
        return Err(ConfigProblem::new("`description` is empty")
            .help(
                "describe in one sentence what the tool does; models choose tools by their \
                descriptions",
            )
            .at(value.span.clone()));
    }
    Ok(value.value.clone())
}

/// The schema of a result. It is only allowed where the result is structured data.
fn output_schema(item: Spanned<Value>, action: &ToolAction) -> Result<Value, ConfigProblem> {
    let Spanned { value, span } = item;
    let is_data = match action {
        ToolAction::Command(command) => command.result == ResultFormat::Json,
        ToolAction::Http(http) => {
            http.response.template.is_none() && http.response.format != ResponseFormat::Text
        }
        ToolAction::Script(_) | ToolAction::Query(_) => true,
    };
    if !is_data {
        return Err(ConfigProblem::new("`output_schema` needs a tool with a JSON result")
            .help("add `result = \"json\"`, or remove `output_schema`")
            .at(span));
    }
    check_schema(&value).map_err(|problem| problem.at(span))?;
    Ok(value)
}

/// Checks that a schema is valid.
fn check_schema(value: &Value) -> Result<(), ConfigProblem> {
    let problem = match value.is_object() {
        // Some errors of a schema are only found when it is used.
        true => {
            Schema::new(value.to_string()).validate(&Value::Null).err().and_then(|violations| {
                violations.into_iter().find(Violation::is_broken_schema).map(|found| found.message)
            })
        }
        false => Some("it is not a table".to_owned()),
    };
    match problem {
        Some(problem) => Err(ConfigProblem::new(format!("invalid JSON Schema: {problem}"))),
        None => Ok(()),
    }
}

/// A file, relative to the folder of the configuration.
pub(crate) fn resolve_file(
    folder: &Path,
    key: &str,
    value: Spanned<String>,
) -> Result<PathBuf, ConfigProblem> {
    Ok(folder.join(file(key, value)?))
}
