//! A tool that was described: what is announced, and what it does when it is called.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use creole::proto::model::ToolAnnotations;
use creole::proto::wire::Raw;
use creole::schema::Schema;
use creole::{BoxFuture, Context, Tool, ToolError, ToolResult};
use serde_json::Value;

use super::RecipeError;
use super::argument::{self, Argument, Values};
use super::command::{CommandRecipe, Runner};
use super::http::{Caller, HttpRecipe};
use super::query::QueryRecipe;
use super::script;
use crate::Options;
use crate::database::Trouble;
use crate::files::Problem;
use crate::script::Script;

/// A tool without code.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolRecipe {
    /// The name that clients call it by.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it does, for the model.
    pub about: String,
    /// What it takes.
    pub arguments: Vec<Argument>,
    /// What it does to the world.
    pub hints: Hints,
    /// The schema of the data that it returns.
    pub output: Option<Value>,
    /// How long a call may take.
    pub timeout: Duration,
    /// How many bytes a result may have.
    pub longest: usize,
    /// What a call does.
    pub action: Action,
}

/// What a tool says that it does to the world; nothing where nothing is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// It may destroy something.
    pub destructive: Option<bool>,
    /// Calling it twice is the same as once.
    pub idempotent: Option<bool>,
    /// It reaches the outside world.
    pub open_world: Option<bool>,
}

/// What a call does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// It runs a program.
    Command(CommandRecipe),
    /// It asks a service over HTTP.
    Http(HttpRecipe),
    /// It runs a script.
    Script(Script),
    /// It asks a database.
    Query(QueryRecipe),
}

impl Action {
    /// What every answer is like, where the action decides it.
    pub fn output_schema(&self) -> Option<Value> {
        match self {
            Self::Query(_) => Some(QueryRecipe::output_schema()),
            _ => None,
        }
    }
}

/// An action that is ready to be done.
enum Ready {
    Command(Runner),
    Http(Caller),
    Script(Script),
    Query(QueryRecipe),
}

impl ToolRecipe {
    /// What is wrong with it that only a look at what it asks can tell.
    pub(super) fn problems(&self) -> Vec<Problem> {
        let Action::Query(recipe) = &self.action else { return Vec::new() };
        let objection = recipe.database.objection(&recipe.query);
        let file = recipe.database.file().unwrap_or(Path::new(""));
        let wrong =
            |why| Problem::new(file, format!("the query of `{}` is refused: {why}", self.name));
        objection.map(wrong).into_iter().collect()
    }

    /// Has the database prepare the query, if it is one; tells what is wrong.
    pub(super) async fn attempt(&self) -> Vec<String> {
        let Action::Query(recipe) = &self.action else { return Vec::new() };
        let tried = recipe.database.attempt(&recipe.query).await;
        let (tool, database) = (&self.name, recipe.database.name());
        let wrong =
            |trouble: Trouble| format!("tool `{tool}`: database `{database}`: {}", trouble.plain());
        tried.err().map(wrong).into_iter().collect()
    }

    /// The tool itself.
    pub(super) fn make(&self, options: &Options) -> Result<Tool, RecipeError> {
        let failed = |what: String| RecipeError { name: self.name.clone(), what };
        let ready = Arc::new(match &self.action {
            Action::Command(recipe) => {
                let guardian = options.guardian.clone();
                Ready::Command(Runner::new(&self.name, recipe, guardian).map_err(failed)?)
            }
            Action::Http(recipe) => Ready::Http(Caller::new(recipe).map_err(failed)?),
            Action::Script(script) => Ready::Script(script.clone()),
            Action::Query(recipe) => Ready::Query(recipe.clone()),
        });
        let output = self.output.as_ref().map(|schema| Arc::new(Schema::new(schema.to_string())));
        let (recipe, shared) = (Arc::new(self.clone()), output);
        let run = move |arguments: Value, context: Context| -> BoxFuture<'static, _> {
            let (recipe, ready, output) = (Arc::clone(&recipe), Arc::clone(&ready), shared.clone());
            Box::pin(
                async move { recipe.call(&ready, output.as_deref(), arguments, &context).await },
            )
        };
        let schema = argument::schema(&self.arguments);
        let mut tool = Tool::raw(&self.name, &self.about, schema, run);
        if let Some(title) = &self.title {
            tool = tool.title(title);
        }
        if let Some(schema) = &self.output {
            tool = tool.output_schema(Raw::from_value(schema));
        }
        Ok(match self.hints == Hints::default() {
            true => tool,
            false => tool.hints(|hints| self.hints.tell(hints)),
        })
    }

    async fn call(
        &self,
        ready: &Ready,
        output: Option<&Schema>,
        arguments: Value,
        context: &Context,
    ) -> Result<ToolResult, ToolError> {
        let values = Values::new(&self.arguments, arguments);
        let work = async {
            match ready {
                Ready::Command(runner) => runner.run(&values, self.longest, output, context).await,
                Ready::Http(caller) => caller.call(&values, self.longest, output).await,
                Ready::Script(script) => script::call(script, &values, self.longest, output).await,
                Ready::Query(recipe) => recipe.call(&values, self.longest, output).await,
            }
        };
        // Dropping the work ends it, with all the processes that it started.
        tokio::time::timeout(self.timeout, work).await.unwrap_or_else(|_| {
            let seconds = self.timeout.as_secs();
            Err(ToolError::failed(format!("it took longer than {seconds} s and was ended")))
        })
    }
}

impl Hints {
    pub(crate) fn tell(self, hints: &mut ToolAnnotations) {
        hints.read_only_hint = self.read_only;
        hints.destructive_hint = self.destructive;
        hints.idempotent_hint = self.idempotent;
        hints.open_world_hint = self.open_world;
    }
}
