//! What a server offers that was described, not programmed: tools without code, files as
//! resources and prompts.
//!
//! A recipe is plain data that was checked before; [`Recipe::add`] makes what it describes. Whoever reads a
//! configuration writes recipes, and so may a program.

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

/// One thing that a server offers, described.
#[derive(Clone, Debug, PartialEq)]
pub enum Recipe {
    /// A tool.
    Tool(Box<ToolRecipe>),
    /// A folder whose files are resources.
    Folder(Box<FolderRecipe>),
    /// A folder of Markdown files that are prompts.
    Prompts(Box<PromptsRecipe>),
    /// A resource, or a family of them.
    Resource(Box<ResourceRecipe>),
    /// Tables of a database.
    Tables(Box<TablesRecipe>),
    /// The tools of a service that an OpenAPI document describes.
    Api(Box<Api>),
}

impl Recipe {
    /// The name that the configuration knows it by.
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

    /// The tool, if it is one.
    pub fn tool(&self) -> Option<&ToolRecipe> {
        match self {
            Self::Tool(tool) => Some(tool),
            _ => None,
        }
    }

    /// The described service, if it is one.
    pub fn api(&self) -> Option<&Api> {
        match self {
            Self::Api(api) => Some(api),
            _ => None,
        }
    }

    /// The script that it runs, if it runs one.
    pub fn script(&self) -> Option<&Script> {
        match &self.tool()?.action {
            ToolAction::Script(script) => Some(script),
            _ => None,
        }
    }

    /// Whether it runs programs, which somebody has to end if this process cannot.
    pub fn runs_programs(&self) -> bool {
        self.tool().is_some_and(|tool| matches!(tool.action, ToolAction::Command(_)))
    }

    /// Adds what it describes to a server.
    ///
    /// # Errors
    /// When it cannot be made, such as from a file that cannot be read.
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

    /// Tries the database that it needs, if it needs one; tells what is wrong. Queries are prepared and not run.
    pub async fn check_database(&self) -> Vec<String> {
        match self {
            Self::Tool(tool) => tool.check_database().await,
            Self::Tables(tables) => tables.check_database().await,
            _ => Vec::new(),
        }
    }

    /// What is wrong with the files that it is made of. A server would leave out a wrong prompt and serve the
    /// others; whoever checks a configuration wants to know.
    pub fn file_errors(&self) -> Vec<FileError> {
        match self {
            Self::Tool(tool) => tool.file_errors(),
            Self::Folder(_) | Self::Tables(_) | Self::Api(_) => Vec::new(),
            Self::Prompts(prompts) => prompts.file_errors(),
            Self::Resource(resource) => resource.file_errors(),
        }
    }
}

/// Why something described cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecipeError {
    /// The name that the configuration knows it by.
    pub name: String,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl fmt::Display for RecipeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}` cannot be offered: {}", self.name, self.message)
    }
}

impl Error for RecipeError {}
