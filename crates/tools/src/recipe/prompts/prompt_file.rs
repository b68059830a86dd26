//! One Markdown file as a prompt.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use creole::internal::front_matter::FrontMatterDocument;
use creole::proto::fault::{Fault, FaultKind};
use creole::{Content, Prompt, PromptMessage, PromptResult, Role, ToolError};

use super::prompt_front_matter::{PromptArgumentSpec, PromptFrontMatter};
use super::{messages, prompt_front_matter};
use crate::files::FileError;
use crate::text_template::{TemplateError, TextTemplate};

/// Maximum length of a prompt's name, in characters.
const MAX_NAME_CHARS: usize = 128;

/// A parsed Markdown file.
#[derive(Debug)]
pub(super) struct PromptFile {
    name: String,
    /// The file name for error messages.
    file: String,
    front_matter: PromptFrontMatter,
    messages: Vec<(Role, TextTemplate)>,
}

impl PromptFile {
    /// Parses a file. Errors contain its full path.
    pub(super) fn read(name: &str, path: &Path, bytes: &[u8]) -> Result<Self, FileError> {
        Self::parse(name, path, bytes).map_err(|error| FileError {
            file: path.to_owned(),
            line: Some(error.line),
            column: error.column,
            message: error.message,
            help: error.help,
        })
    }

    fn parse(name: &str, path: &Path, bytes: &[u8]) -> Result<Self, TemplateError> {
        let failure = |line: usize, description: &str, help: &str| TemplateError {
            line,
            column: None,
            message: description.to_owned(),
            help: Some(help.to_owned()),
        };
        if name.chars().count() > MAX_NAME_CHARS || name.chars().any(char::is_control) {
            return Err(failure(
                1,
                "the file name is too long or has unsupported characters",
                "rename it",
            ));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let before = &bytes[..error.valid_up_to()];
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            failure(line, "the file is not UTF-8 text", "save it as UTF-8")
        })?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let document = FrontMatterDocument::read(text).map_err(|front_matter_error| {
            failure(front_matter_error.line, &front_matter_error.message, &front_matter_error.help)
        })?;
        let front = prompt_front_matter::read_front_matter(&document.members, text)?;
        let names: Vec<&str> = front.arguments.iter().map(|argument| &*argument.name).collect();
        let mut said = Vec::new();
        for part in messages::split_sections(document.body, document.line)? {
            said.push((part.role, TextTemplate::new(part.text, part.line, &names)?));
        }
        if document.body.trim().is_empty() {
            return Err(failure(
                document.line,
                "the prompt has no text",
                "write it below the front matter",
            ));
        }
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { name: name.to_owned(), file, front_matter: front, messages: said })
    }

    /// The prompt that it describes.
    pub(super) fn to_prompt(self: &Arc<Self>, prefix: &str) -> Prompt {
        let (page, front) = (Arc::clone(self), &self.front_matter);
        let about = front.description.as_ref().or(front.title.as_ref()).unwrap_or(&self.name);
        let name = format!("{prefix}{}", self.name);
        let mut prompt = Prompt::new(&name, about, move |arguments, _| {
            let rendered = page.render(arguments);
            async move { rendered }
        });
        if let Some(title) = &front.title {
            prompt = prompt.title(title);
        }
        for argument in &front.arguments {
            prompt = with_argument(prompt, argument);
        }
        prompt
    }

    pub(super) fn render(
        &self,
        mut arguments: BTreeMap<String, String>,
    ) -> Result<PromptResult, ToolError> {
        // Unannounced arguments are ignored.
        arguments.retain(|name, _| {
            self.front_matter.arguments.iter().any(|argument| argument.name == *name)
        });
        for argument in &self.front_matter.arguments {
            let default_value = argument.default.clone().unwrap_or_default();
            arguments.entry(argument.name.clone()).or_insert(default_value);
        }
        let mut messages = Vec::with_capacity(self.messages.len());
        for (role, text) in &self.messages {
            let text =
                text.render(arguments.clone()).map_err(|error| self.to_tool_error(&error))?;
            // A message inside a condition may be empty.
            if !text.trim().is_empty() {
                messages.push(PromptMessage { role: *role, content: Content::text(text.trim()) });
            }
        }
        Ok(PromptResult { description: self.front_matter.description.clone(), messages })
    }

    fn to_tool_error(&self, error: &TemplateError) -> ToolError {
        let column = error.column.map(|column| format!("{column}:")).unwrap_or_default();
        let message = format!("{}:{}:{column} {}", self.file, error.line, error.message);
        ToolError::Fault(Box::new(Fault::new(FaultKind::Internal, message)))
    }
}

fn with_argument(prompt: Prompt, argument: &PromptArgumentSpec) -> Prompt {
    let about = argument.description.as_deref().unwrap_or_default();
    let prompt = match argument.required {
        true => prompt.required(&argument.name, about),
        false => prompt.optional(&argument.name, about),
    };
    if argument.values.is_empty() {
        return prompt;
    }
    let values = argument.values.clone();
    prompt.complete(&argument.name, move |typed, _| {
        let typed = typed.to_lowercase();
        let fitting = values.iter().filter(|value| value.to_lowercase().starts_with(&typed));
        let fitting: Vec<String> = fitting.cloned().collect();
        async move { fitting }
    })
}
