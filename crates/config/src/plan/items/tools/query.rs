//! Resolves a tool that queries a database.

use creole_tools::database::Database;
use creole_tools::database::query::Query;
use creole_tools::recipe::query::QueryRecipe;

use crate::plan::items::tools::argument_uses::{ArgumentUses, ValueContext};
use crate::syntax::error::ConfigProblem;
use crate::syntax::suggestions::suggestion;
use crate::syntax::value::Spanned;
use crate::tables::tools::ToolTable;

/// The query of a tool.
pub(crate) fn resolve(
    text: Spanned<String>,
    database: Option<Spanned<String>>,
    uses: &mut ArgumentUses<'_>,
    databases: &[Database],
) -> Result<QueryRecipe, ConfigProblem> {
    let names: Vec<&str> = databases.iter().map(Database::name).collect();
    let Some(Spanned { value: name, span }) = database else {
        let help = "add `database = \"NAME\"` and a table `[databases.NAME]` with a `url`";
        return Err(ConfigProblem::new("a query needs a `database`").help(help).at(text.span));
    };
    let Some(database) = databases.iter().find(|it| it.name() == name) else {
        let help = match names.is_empty() {
            true => format!("add a table `[databases.{name}]`"),
            false => suggestion(&name, "the enabled databases", &names),
        };
        return Err(ConfigProblem::new(format!("unknown database `{name}`")).help(help).at(span));
    };
    if text.value.trim().is_empty() {
        return Err(ConfigProblem::new("`query` is empty").at(text.span));
    }
    let template = uses.template_at(&text, ValueContext::Any)?;
    let query =
        Query::new(template).map_err(|message| ConfigProblem::new(message).at(text.span))?;
    Ok(QueryRecipe { database: database.clone(), query })
}

/// Checks that a tool without a query has none of the keys of queries.
pub(crate) fn check_absent(table: &ToolTable) -> Result<(), ConfigProblem> {
    match &table.database {
        None => Ok(()),
        Some(value) => Err(ConfigProblem::new("`database` is only valid for tools with a `query`")
            .help("add a `query`, or remove `database`")
            .at(value.span.clone())),
    }
}
