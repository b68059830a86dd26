//! Resolves the tables of databases.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use creole_tools::database::{Database, DatabaseAddress, DatabaseLimits};
use creole_tools::recipe::{Recipe, TablesRecipe};

use crate::plan::items::files::checked_name;
use crate::plan::{count, file, seconds};
use crate::syntax::error::ConfigProblem;
use crate::syntax::value::{Entries, Spanned};
use crate::tables::database::{DatabaseTable, TasksTable};

/// The maximum length of a password in a file, in bytes.
const MAX_PASSWORD: u64 = 4096;
/// The maximum number of tables of one database.
const MAX_TABLES: usize = 1000;

/// The databases, and their tables that are resources. Disabled ones are checked and omitted.
pub(crate) fn resolve(
    tables: Option<Entries<DatabaseTable>>,
    folder: &Path,
) -> Result<(Vec<Database>, Vec<Recipe>), ConfigProblem> {
    let (mut databases, mut recipes) = (Vec::new(), Vec::new());
    for (name, table) in tables.map(|tables| tables.0).unwrap_or_default() {
        let span = name.span.clone();
        let enabled = table.enabled.unwrap_or(true);
        let resolved = database(&name, table, folder).map_err(|problem| problem.or_at(span))?;
        let (database, tables) = resolved;
        if enabled && !tables.is_empty() {
            let database = database.clone();
            recipes.push(Recipe::Tables(Box::new(TablesRecipe { database, tables })));
        }
        databases.extend(enabled.then_some(database));
    }
    Ok((databases, recipes))
}

fn database(
    name: &Spanned<String>,
    table: DatabaseTable,
    folder: &Path,
) -> Result<(Database, Vec<String>), ConfigProblem> {
    let defaults = DatabaseLimits::default();
    let limits = DatabaseLimits {
        max_connections: table.connections.map_or(defaults.max_connections, |it| count(it.get())),
        max_rows: table.max_rows.map_or(defaults.max_rows, |it| count(it.get())),
        query_timeout: table.timeout_seconds.map_or(defaults.query_timeout, |it| seconds(it.get())),
    };
    let address = address(table.url, table.password, table.password_file, folder)?;
    let tables = table.tables.unwrap_or_default();
    if let Some(beyond) = tables.get(MAX_TABLES) {
        let message = format!("`tables` has more than {MAX_TABLES} names");
        return Err(ConfigProblem::new(message).at(beyond.span.clone()));
    }
    let tables = tables.into_iter().map(table_name).collect::<Result<_, _>>()?;
    Ok((Database::new(&checked_name(name)?, address, limits), tables))
}

/// The name of a table, which is used unescaped in uris.
fn table_name(item: Spanned<String>) -> Result<String, ConfigProblem> {
    let Spanned { value, span } = item;
    let is_allowed =
        |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '.' | '-');
    if value.is_empty() || value.len() > 128 || !value.chars().all(is_allowed) {
        return Err(ConfigProblem::new(format!("invalid table name `{value}`"))
            .help(
                "use letters, digits, `_` and `-`, and `.` after a schema; create a view for a \
                table with another name",
            )
            .at(span));
    }
    Ok(value)
}

/// The database of the pack `tasks`.
pub(crate) fn tasks(
    table: Option<Spanned<TasksTable>>,
    packs: &[String],
    folder: &Path,
) -> Result<Option<DatabaseAddress>, ConfigProblem> {
    let Some(Spanned { value: table, span }) = table else { return Ok(None) };
    if !packs.iter().any(|pack| pack == "tasks") {
        let description = "`[tasks]` has no effect: the pack `tasks` is not enabled";
        return Err(ConfigProblem::new(description).help("add \"tasks\" to `packs`").at(span));
    }
    address(table.url, table.password, table.password_file, folder).map(Some)
}

fn address(
    url: Spanned<String>,
    password: Option<Spanned<String>>,
    password_file: Option<Spanned<String>>,
    folder: &Path,
) -> Result<DatabaseAddress, ConfigProblem> {
    let password = self::password(password, password_file, folder)?;
    DatabaseAddress::parse(&url.value, password.as_deref(), folder)
        .map_err(|message| ConfigProblem::new(message).at(url.span).hide_value())
}

/// The password of a database, which is written in the configuration or in a file.
pub(crate) fn password(
    password: Option<Spanned<String>>,
    password_file: Option<Spanned<String>>,
    folder: &Path,
) -> Result<Option<String>, ConfigProblem> {
    match (password, password_file) {
        (Some(here), None) => Ok(Some(here.value)),
        (None, Some(value)) => read_password(value, folder).map(Some),
        (None, None) => Ok(None),
        (Some(_), Some(value)) => {
            let message = "`password` and `password_file` exclude each other; remove one of them";
            Err(ConfigProblem::new(message).at(value.span))
        }
    }
}

fn read_password(value: Spanned<String>, folder: &Path) -> Result<String, ConfigProblem> {
    let span = value.span.clone();
    let path = folder.join(file("password_file", value)?);
    let mut text = String::new();
    let read = match path.is_file() {
        true => File::open(&path)
            .and_then(|file| file.take(MAX_PASSWORD).read_to_string(&mut text))
            .map_err(|error| error.to_string()),
        false => Err("the file does not exist".to_owned()),
    };
    match read {
        Ok(_) => Ok(text.trim_end().to_owned()),
        Err(error) => {
            let message = format!("cannot read the password from `{}`: {error}", path.display());
            Err(ConfigProblem::new(message).at(span))
        }
    }
}
