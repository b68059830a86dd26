//! The front matter of a prompt.

use serde_json::{Map, Value};

use crate::text_template::TemplateError;

/// Maximum number of arguments of a prompt, and of completion values of an argument.
const MAX_ARGUMENTS: usize = 100;
/// Maximum length of a title, in characters.
const MAX_TITLE_CHARS: usize = 200;

/// The front matter of a prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PromptFrontMatter {
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) arguments: Vec<PromptArgumentSpec>,
}

/// An argument of a prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PromptArgumentSpec {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) required: bool,
    /// Its default.
    pub(super) default: Option<String>,
    /// Its completion values.
    pub(super) values: Vec<String>,
}

/// Reads the members of a front matter. The text provides their positions.
pub(super) fn read_front_matter(
    members: &Map<String, Value>,
    text: &str,
) -> Result<PromptFrontMatter, TemplateError> {
    let reader = FrontMatterReader { text };
    reader.check_known_keys(members, &["title", "description", "arguments"])?;
    let title = reader.text(members, "title")?;
    if title.as_ref().is_some_and(|title| title.chars().count() > MAX_TITLE_CHARS) {
        let message = format!("`title` is longer than {MAX_TITLE_CHARS} characters");
        return Err(reader.error_at("title", message, "move the rest to `description`"));
    }
    let description = reader.text(members, "description")?;
    let written = match members.get("arguments") {
        None | Some(Value::Null) => &[],
        Some(Value::Array(items)) => items.as_slice(),
        Some(_) => {
            return Err(reader.error_at("arguments", "`arguments` is not a list", LIST_HELP));
        }
    };
    let mut arguments: Vec<PromptArgumentSpec> = Vec::with_capacity(written.len());
    for item in written {
        let argument = reader.argument(item)?;
        if arguments.iter().any(|other| other.name == argument.name) {
            let message = format!("the argument `{}` is repeated", argument.name);
            return Err(reader.error_at(&argument.name, message, "remove one of them"));
        }
        arguments.push(argument);
    }
    if arguments.len() > MAX_ARGUMENTS {
        let message = format!("the prompt has more than {MAX_ARGUMENTS} arguments");
        return Err(reader.error_at("arguments", message, "remove some"));
    }
    Ok(PromptFrontMatter { title, description, arguments })
}

const LIST_HELP: &str = "write `- name: …` for each argument, indented below `arguments`";

struct FrontMatterReader<'a> {
    text: &'a str,
}

impl FrontMatterReader<'_> {
    fn argument(&self, item: &Value) -> Result<PromptArgumentSpec, TemplateError> {
        let Value::Object(members) = item else {
            return Err(self.error_at("arguments", "an argument is not a mapping", LIST_HELP));
        };
        self.check_known_keys(members, &["name", "description", "required", "default", "values"])?;
        let Some(name) = self.text(members, "name")? else {
            return Err(self.error_at("arguments", "an argument has no `name`", LIST_HELP));
        };
        let is_name = |name: &str| {
            name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                && name
                    .chars()
                    .all(|character| character.is_ascii_alphanumeric() || character == '_')
        };
        if !is_name(&name) || name.len() > 64 {
            let help = "use at most 64 letters, digits and `_`; do not begin with a digit";
            return Err(self.error_at(&name, format!("invalid name `{name}`"), help));
        }
        let required = match members.get("required") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(required)) => *required,
            Some(_) => {
                return Err(self.error_at(
                    "required",
                    "`required` must be true or false",
                    "write one",
                ));
            }
        };
        let default = self.text(members, "default")?;
        if required && default.is_some() {
            let message = format!("the argument `{name}` is required and has a default");
            return Err(self.error_at("default", message, "remove one of them"));
        }
        let description = self.text(members, "description")?;
        Ok(PromptArgumentSpec {
            name,
            description,
            required,
            default,
            values: self.values(members)?,
        })
    }

    fn values(&self, members: &Map<String, Value>) -> Result<Vec<String>, TemplateError> {
        let error =
            || self.error_at("values", "`values` is not a list of strings", "write `[one, two]`");
        let items = match members.get("values") {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Array(items)) => items,
            Some(_) => return Err(error()),
        };
        if items.len() > MAX_ARGUMENTS {
            let message = format!("`values` has more than {MAX_ARGUMENTS} values");
            return Err(self.error_at("values", message, "a client shows no more"));
        }
        items.iter().map(|item| scalar(item).ok_or_else(error)).collect()
    }

    fn text(
        &self,
        members: &Map<String, Value>,
        key: &str,
    ) -> Result<Option<String>, TemplateError> {
        match members.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => scalar(value).map(Some).ok_or_else(|| {
                self.error_at(key, format!("`{key}` is not a string"), "put the value in quotes")
            }),
        }
    }

    fn check_known_keys(
        &self,
        members: &Map<String, Value>,
        known: &[&str],
    ) -> Result<(), TemplateError> {
        match members.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => {
                let help = format!("known keys: `{}`", known.join("`, `"));
                Err(self.error_at(key, format!("unknown key `{key}`"), &help))
            }
            None => Ok(()),
        }
    }

    /// An error about a key or a name, positioned at the first line that contains it.
    fn error_at(&self, word: &str, message: impl Into<String>, help: &str) -> TemplateError {
        let found = self.text.lines().enumerate().find_map(|(line, text)| {
            let offset = text.find(word)?;
            Some((line + 1, Some(text[..offset].chars().count() + 1)))
        });
        let (line, column) = found.unwrap_or((1, None));
        TemplateError { line, column, message: message.into(), help: Some(help.to_owned()) }
    }
}

/// A string, or another scalar as text.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
