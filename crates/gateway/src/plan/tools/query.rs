//! A tool that asks a database.

use creole_tools::database::Database;
use creole_tools::database::query::Query;
use creole_tools::recipe::query::QueryRecipe;

use super::terms::{Place, Terms};
use crate::config::error::Problem;
use crate::config::nearest::suggestion;
use crate::config::tools::ToolTable;
use crate::config::value::Placed;

/// The query of a tool.
pub(super) fn resolve(
    text: Placed<String>,
    database: Option<Placed<String>>,
    terms: &mut Terms<'_>,
    databases: &[Database],
) -> Result<QueryRecipe, Problem> {
    let names: Vec<&str> = databases.iter().map(Database::name).collect();
    let Some(Placed { value: name, span }) = database else {
        let help = "add `database = \"NAME\"`, and a table `[databases.NAME]` with its `url`";
        return Err(Problem::new("a query needs a `database`").help(help).at(text.span));
    };
    let Some(database) = databases.iter().find(|it| it.name() == name) else {
        let help = match names.is_empty() {
            true => format!("describe it in a table `[databases.{name}]`"),
            false => suggestion(&name, "the databases that are enabled", &names),
        };
        return Err(Problem::new(format!("unknown database `{name}`")).help(help).at(span));
    };
    if text.value.trim().is_empty() {
        return Err(Problem::new("`query` is empty").at(text.span));
    }
    let template = terms.placed(&text, Place::Any)?;
    let query = Query::new(template).map_err(|what| Problem::new(what).at(text.span))?;
    Ok(QueryRecipe { database: database.clone(), query })
}

/// That nothing is said of a database where there is no query.
pub(super) fn check_absent(table: &ToolTable) -> Result<(), Problem> {
    match &table.database {
        None => Ok(()),
        Some(written) => Err(Problem::new("`database` is for tools that have a `query`")
            .help("add a `query`, or leave it out")
            .at(written.span.clone())),
    }
}
