//! Configured items: tools without code, files as resources, and prompts.
//!
//! A recipe is checked, plain data. [`Recipe::add`] creates the items it describes. The configuration reader creates
//! recipes, and a program may do the same.

pub mod argument;
pub mod command;
pub mod folder;
pub mod http;
pub mod prompts;
pub mod query;
pub mod resource;
mod script;
pub mod secret;
pub mod tables;
pub mod template;
pub mod tool;
pub mod tool_result;

use std::error::Error;
use std::fmt;

use creole::Server;

use crate::PackOptions;
use crate::files::FileError;
use crate::openapi::Api;
use crate::script::Script;
pub use folder::FolderRecipe;
pub use prompts::PromptsRecipe;
pub use resource::ResourceRecipe;
pub use secret::Secret;
pub use tables::TablesRecipe;
use tool::ToolAction;
pub use tool::ToolRecipe;

/// The description of one configured item or group of items.
#[derive(Clone, Debug, PartialEq)]
pub enum Recipe {
    /// A tool.
    Tool(Box<ToolRecipe>),
    /// A folder whose files are resources.
    Folder(Box<FolderRecipe>),
    /// A folder of Markdown files that are prompts.
    Prompts(Box<PromptsRecipe>),
    /// A resource or a resource template.
    Resource(Box<ResourceRecipe>),
    /// Tables of a database.
    Tables(Box<TablesRecipe>),
    /// The tools of a service that an OpenAPI document describes.
    Api(Box<Api>),
}

impl Recipe {
    /// Its name in the configuration.
    pub fn name(&self) -> &str {
        match self {
            Self::Tool(tool) => &tool.name,
            Self::Folder(folder) => &folder.name,
            Self::Prompts(prompts) => &prompts.name,
            Self::Resource(resource) => &resource.name,
            Self::Tables(tables) => tables.database.name(),
            Self::Api(api) => &api.name,
        }
    }

    /// The tool recipe, if it is one.
    pub fn tool(&self) -> Option<&ToolRecipe> {
        match self {
            Self::Tool(tool) => Some(tool),
            _ => None,
        }
    }

    /// The OpenAPI service, if it is one.
    pub fn api(&self) -> Option<&Api> {
        match self {
            Self::Api(api) => Some(api),
            _ => None,
        }
    }

    /// Its script, if it has one.
    pub fn script(&self) -> Option<&Script> {
        match &self.tool()?.action {
            ToolAction::Script(script) => Some(script),
            _ => None,
        }
    }

    /// Whether it runs programs, which the reaper has to end if this process cannot.
    pub fn runs_programs(&self) -> bool {
        self.tool().is_some_and(|tool| matches!(tool.action, ToolAction::Command(_)))
    }

    /// Adds the described items to a server.
    ///
    /// # Errors
    /// When they cannot be created, for example from an unreadable file.
    pub fn add(&self, server: Server, options: &PackOptions) -> Result<Server, RecipeError> {
        match self {
            Self::Tool(tool) => Ok(server.tool(tool.make(options)?)),
            Self::Folder(folder) => folder.add(server),
            Self::Prompts(prompts) => prompts.add(server),
            Self::Resource(resource) => resource.add(server),
            Self::Tables(tables) => Ok(tables.add(server)),
            Self::Api(api) => Ok(api.add(server)),
        }
    }

    /// Checks the database that it needs, if any, and returns the errors. Queries are prepared but not run.
    pub async fn check_database(&self) -> Vec<String> {
        match self {
            Self::Tool(tool) => tool.check_database().await,
            Self::Tables(tables) => tables.check_database().await,
            _ => Vec::new(),
        }
    }

    /// The errors in its files. A server omits an invalid prompt and serves the others; a check of the configuration
    /// reports it.
    pub fn file_errors(&self) -> Vec<FileError> {
        match self {
            Self::Tool(tool) => tool.file_errors(),
            Self::Folder(_) | Self::Tables(_) | Self::Api(_) => Vec::new(),
            Self::Prompts(prompts) => prompts.file_errors(),
            Self::Resource(resource) => resource.file_errors(),
        }
    }
}

/// The reason why a configured item cannot be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecipeError {
    /// Its name in the configuration.
    pub name: String,
    /// The error and its correction.
    pub message: String,
}

impl fmt::Display for RecipeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "cannot serve `{}`: {}", self.name, self.message)
    }
}

impl Error for RecipeError {}
