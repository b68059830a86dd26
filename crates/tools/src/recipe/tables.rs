//! Tables of a database as resources.

use std::sync::Arc;

use creole::proto::fault::{Fault, FaultKind};
use creole::proto::wire::Raw;
use creole::{Contents, Resource, Server, Template, ToolError, Variables};
use serde_json::json;

use crate::database::Database;

const MIME_TYPE: &str = "application/json";

/// Readable tables of a database.
#[derive(Clone, Debug, PartialEq)]
pub struct TablesRecipe {
    /// The database.
    pub database: Database,
    /// The names of the tables. No others are accessible.
    pub tables: Vec<String>,
}

impl TablesRecipe {
    /// Adds a resource for each table, and a template for the pages of all of them.
    pub(super) fn add(&self, server: Server) -> Server {
        let shared = Arc::new(self.clone());
        let name = self.database.name();
        let mut server = server;
        for table in &self.tables {
            let (recipe, own) = (Arc::clone(&shared), table.clone());
            let resource = Resource::new(&self.uri(table), table, move |uri, _| {
                let (recipe, table) = (Arc::clone(&recipe), own.clone());
                async move { recipe.read(&uri, &table, 1).await }
            });
            let about = format!("The columns and the first rows of the table {table} of {name}");
            server = server.resource(resource.about(&about).mime_type(MIME_TYPE));
        }
        let (recipe, proposed) = (Arc::clone(&shared), self.tables.clone());
        let family = format!("table://{name}/{{table}}/{{page}}");
        let template =
            Template::new(&family, &format!("{name} tables"), move |uri, values: Variables, _| {
                let recipe = Arc::clone(&recipe);
                async move {
                    let table = values.get("table").map(String::as_str).unwrap_or_default();
                    let page = values.get("page").and_then(|page| page.parse().ok()).unwrap_or(0);
                    recipe.read(&uri, table, page).await
                }
            });
        let about = format!("A page of a table of {name}, from 1 on");
        server.template(template.about(&about).mime_type(MIME_TYPE).complete(
            "table",
            move |typed, _| {
                let fitting = proposed.iter().filter(|table| table.starts_with(&typed)).cloned();
                let fitting: Vec<String> = fitting.collect();
                async move { fitting }
            },
        ))
    }

    /// Checks that each table exists and returns the errors.
    pub(super) async fn check_database(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for table in &self.tables {
            let reason = match self.database.table(table, 1).await {
                Ok(Some(_)) => continue,
                Ok(None) => "the table does not exist".to_owned(),
                Err(error) => error.into_detail(),
            };
            problems
                .push(format!("database `{}`: table `{table}`: {reason}", self.database.name()));
        }
        problems
    }

    fn uri(&self, table: &str) -> String {
        format!("table://{}/{table}", self.database.name())
    }

    async fn read(&self, uri: &str, table: &str, page: u32) -> Result<Vec<Contents>, ToolError> {
        let is_known = page > 0 && self.tables.iter().any(|output| output == table);
        let found = match is_known {
            true => self.database.table(table, page).await,
            false => Ok(None),
        };
        let found = found.map_err(|error| error.into_tool_error(self.database.name()))?;
        let Some(found) = found else {
            let fault = Fault::new(FaultKind::ResourceNotFound, "").with_subject(uri);
            return Err(ToolError::Fault(Box::new(
                fault.with_data(Raw::from_value(&json!({ "uri": uri }))),
            )));
        };
        let next = format!("{}/{}", self.uri(table), page.saturating_add(1));
        Ok(vec![Contents::text(uri, MIME_TYPE, found.to_json(table, page, &next))])
    }
}
