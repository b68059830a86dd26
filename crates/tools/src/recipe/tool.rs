//! Configured tools: their definitions and actions.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use creole::proto::model::ToolAnnotations;
use creole::proto::wire::Raw;
use creole::{BoxFuture, Context, Schema, Tool, ToolError, ToolResult};
use serde_json::Value;

use super::argument::{ArgumentValues, RecipeArgument};
use super::command::{CommandRecipe, CommandRunner};
use super::http::{HttpRecipe, HttpRunner};
use super::query::QueryRecipe;
use super::{RecipeError, argument, script};
use crate::PackOptions;
use crate::database::DatabaseError;
use crate::files::FileError;
use crate::script::Script;

/// A tool without code.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolRecipe {
    /// The name for clients.
    pub name: String,
    /// The display name.
    pub title: Option<String>,
    /// Its description for the model.
    pub about: String,
    /// Its arguments.
    pub arguments: Vec<RecipeArgument>,
    /// The hints about its behaviour.
    pub hints: ToolHints,
    /// The schema of its structured result.
    pub output_schema: Option<Value>,
    /// Maximum duration of a call.
    pub timeout: Duration,
    /// Maximum size of a result, in bytes.
    pub max_result_bytes: usize,
    /// The action of a call.
    pub action: ToolAction,
}

/// Hints about a tool's behaviour; `None` where nothing is configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolHints {
    /// It modifies nothing.
    pub read_only: Option<bool>,
    /// It may perform destructive updates.
    pub destructive: Option<bool>,
    /// Repeated calls have no additional effect.
    pub idempotent: Option<bool>,
    /// It interacts with external systems.
    pub open_world: Option<bool>,
}

/// The action of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolAction {
    /// It runs a program.
    Command(CommandRecipe),
    /// It calls a service over HTTP.
    Http(HttpRecipe),
    /// It runs a script.
    Script(Script),
    /// It runs a database query.
    Query(QueryRecipe),
}

impl ToolAction {
    /// The schema of every result, if the action determines it.
    pub fn output_schema(&self) -> Option<Value> {
        match self {
            Self::Query(_) => Some(QueryRecipe::output_schema()),
            _ => None,
        }
    }
}

/// An action that is ready to run.
enum PreparedAction {
    Command(CommandRunner),
    Http(HttpRunner),
    Script(Script),
    Query(QueryRecipe),
}

impl ToolRecipe {
    /// The errors of its query, checked against its database file.
    pub(super) fn file_errors(&self) -> Vec<FileError> {
        let ToolAction::Query(recipe) = &self.action else { return Vec::new() };
        let problem = recipe.database.check_offline(&recipe.query);
        let file = recipe.database.file().unwrap_or(Path::new(""));
        let error = |reason| {
            FileError::new(file, format!("the query of `{}` was refused: {reason}", self.name))
        };
        problem.map(error).into_iter().collect()
    }

    /// Lets the database prepare the query, if it has one, and returns the errors.
    pub(super) async fn check_database(&self) -> Vec<String> {
        let ToolAction::Query(recipe) = &self.action else { return Vec::new() };
        let tried = recipe.database.check_query(&recipe.query).await;
        let (tool, database) = (&self.name, recipe.database.name());
        let wrong = |error: DatabaseError| {
            format!("tool `{tool}`: database `{database}`: {}", error.into_detail())
        };
        tried.err().map(wrong).into_iter().collect()
    }

    /// Creates the tool.
    pub(super) fn make(&self, options: &PackOptions) -> Result<Tool, RecipeError> {
        let failed = |message: String| RecipeError { name: self.name.clone(), message };
        let ready = Arc::new(match &self.action {
            ToolAction::Command(recipe) => {
                let reaper = options.reaper.clone();
                PreparedAction::Command(
                    CommandRunner::new(&self.name, recipe, reaper).map_err(failed)?,
                )
            }
            ToolAction::Http(recipe) => {
                PreparedAction::Http(HttpRunner::new(recipe).map_err(failed)?)
            }
            ToolAction::Script(script) => PreparedAction::Script(script.clone()),
            ToolAction::Query(recipe) => PreparedAction::Query(recipe.clone()),
        });
        let output =
            self.output_schema.as_ref().map(|schema| Arc::new(Schema::new(schema.to_string())));
        let (recipe, shared) = (Arc::new(self.clone()), output);
        let run = move |arguments: Value, context: Context| -> BoxFuture<'static, _> {
            let (recipe, ready, output) = (Arc::clone(&recipe), Arc::clone(&ready), shared.clone());
            Box::pin(
                async move { recipe.call(&ready, output.as_deref(), arguments, &context).await },
            )
        };
        let schema = argument::arguments_schema(&self.arguments);
        let mut tool = Tool::raw(&self.name, &self.about, schema, run);
        if let Some(title) = &self.title {
            tool = tool.title(title);
        }
        if let Some(schema) = &self.output_schema {
            tool = tool.output_schema(Raw::from_value(schema));
        }
        Ok(match self.hints == ToolHints::default() {
            true => tool,
            false => tool.hints(|hints| self.hints.apply_to(hints)),
        })
    }

    async fn call(
        &self,
        ready: &PreparedAction,
        output: Option<&Schema>,
        arguments: Value,
        context: &Context,
    ) -> Result<ToolResult, ToolError> {
        let values = ArgumentValues::new(&self.arguments, arguments);
        let work = async {
            match ready {
                PreparedAction::Command(runner) => {
                    runner.run(&values, self.max_result_bytes, output, context).await
                }
                PreparedAction::Http(caller) => {
                    caller.call(&values, self.max_result_bytes, output).await
                }
                PreparedAction::Script(script) => {
                    script::call(script, &values, self.max_result_bytes, output).await
                }
                PreparedAction::Query(recipe) => {
                    recipe.call(&values, self.max_result_bytes, output).await
                }
            }
        };
        // Dropping the work ends it, with all processes that it started.
        tokio::time::timeout(self.timeout, work).await.unwrap_or_else(|_| {
            let seconds = self.timeout.as_secs();
            Err(ToolError::failed(format!(
                "the call took longer than {seconds} s and was cancelled"
            )))
        })
    }
}

impl ToolHints {
    pub(crate) fn apply_to(self, hints: &mut ToolAnnotations) {
        hints.read_only_hint = self.read_only;
        hints.destructive_hint = self.destructive;
        hints.idempotent_hint = self.idempotent;
        hints.open_world_hint = self.open_world;
    }
}
