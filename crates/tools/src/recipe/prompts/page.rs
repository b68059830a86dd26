//! One Markdown file as a prompt.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use creole::front_matter::Document;
use creole::proto::fault::{Fault, FaultKind};
use creole::{Content, Prompt, PromptMessage, PromptResult, Role, ToolError};

use super::front::{self, Argument, Front};
use super::messages;
use crate::files::Problem;
use crate::template::{Text, Wrong};

/// The longest name of a prompt, in characters.
const LONGEST_NAME: usize = 128;

/// One Markdown file, read.
#[derive(Debug)]
pub(super) struct Page {
    name: String,
    /// The name of its file, which errors tell.
    file: String,
    front: Front,
    messages: Vec<(Role, Text)>,
}

impl Page {
    /// Reads a file, which is told with its whole path when something is wrong.
    pub(super) fn read(name: &str, path: &Path, bytes: &[u8]) -> Result<Self, Problem> {
        Self::parse(name, path, bytes).map_err(|wrong| Problem {
            file: path.to_owned(),
            line: Some(wrong.line),
            column: wrong.column,
            what: wrong.what,
            help: wrong.help,
        })
    }

    fn parse(name: &str, path: &Path, bytes: &[u8]) -> Result<Self, Wrong> {
        let wrong = |line: usize, what: &str, help: &str| Wrong {
            line,
            column: None,
            what: what.to_owned(),
            help: Some(help.to_owned()),
        };
        if name.chars().count() > LONGEST_NAME || name.chars().any(char::is_control) {
            return Err(wrong(1, "the name of the file is too long or odd", "rename it"));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let before = &bytes[..error.valid_up_to()];
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            wrong(line, "the file is not UTF-8 text", "save it as UTF-8")
        })?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let document = Document::read(text).map_err(|it| wrong(it.line, &it.what, &it.help))?;
        let front = front::read(&document.members, text)?;
        let names: Vec<&str> = front.arguments.iter().map(|argument| &*argument.name).collect();
        let mut said = Vec::new();
        for part in messages::split(document.body, document.line)? {
            said.push((part.role, Text::new(part.text, part.line, &names)?));
        }
        if document.body.trim().is_empty() {
            return Err(wrong(
                document.line,
                "the prompt has no text",
                "write it below the front matter",
            ));
        }
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { name: name.to_owned(), file, front, messages: said })
    }

    /// The prompt that it describes.
    pub(super) fn prompt(self: &Arc<Self>, prefix: &str) -> Prompt {
        let (page, front) = (Arc::clone(self), &self.front);
        let about = front.description.as_ref().or(front.title.as_ref()).unwrap_or(&self.name);
        let name = format!("{prefix}{}", self.name);
        let mut prompt = Prompt::new(&name, about, move |given, _| {
            let rendered = page.render(given);
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
        mut given: BTreeMap<String, String>,
    ) -> Result<PromptResult, ToolError> {
        // Others than those announced are nobody's business.
        given.retain(|name, _| self.front.arguments.iter().any(|argument| argument.name == *name));
        for argument in &self.front.arguments {
            let usual = argument.default.clone().unwrap_or_default();
            given.entry(argument.name.clone()).or_insert(usual);
        }
        let mut messages = Vec::with_capacity(self.messages.len());
        for (role, text) in &self.messages {
            let text = text.render(given.clone()).map_err(|wrong| self.failed(&wrong))?;
            // A message that is all one condition may come to nothing.
            if !text.trim().is_empty() {
                messages.push(PromptMessage { role: *role, content: Content::text(text.trim()) });
            }
        }
        Ok(PromptResult { description: self.front.description.clone(), messages })
    }

    fn failed(&self, wrong: &Wrong) -> ToolError {
        let column = wrong.column.map(|column| format!("{column}:")).unwrap_or_default();
        let what = format!("{}:{}:{column} {}", self.file, wrong.line, wrong.what);
        ToolError::Fault(Box::new(Fault::new(FaultKind::Internal, what)))
    }
}

fn with_argument(prompt: Prompt, argument: &Argument) -> Prompt {
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
