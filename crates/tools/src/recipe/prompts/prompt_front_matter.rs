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
        let what = format!("`title` is longer than {MAX_TITLE_CHARS} characters");
        return Err(reader.error_at("title", what, "say the rest in `description`"));
    }
    let description = reader.text(members, "description")?;
    let written = match members.get("arguments") {
        None | Some(Value::Null) => &[],
        Some(Value::Array(items)) => items.as_slice(),
        Some(_) => return Err(reader.error_at("arguments", "`arguments` is no list", LIST_HELP)),
    };
    let mut arguments: Vec<PromptArgumentSpec> = Vec::with_capacity(written.len());
    for item in written {
        let argument = reader.argument(item)?;
        if arguments.iter().any(|other| other.name == argument.name) {
            let what = format!("the argument `{}` comes twice", argument.name);
            return Err(reader.error_at(&argument.name, what, "keep one of them"));
        }
        arguments.push(argument);
    }
    if arguments.len() > MAX_ARGUMENTS {
        let what = format!("there are more than {MAX_ARGUMENTS} arguments");
        return Err(reader.error_at("arguments", what, "ask for less"));
    }
    Ok(PromptFrontMatter { title, description, arguments })
}

const LIST_HELP: &str = "write `- name: …` for each, indented below";

struct FrontMatterReader<'a> {
    text: &'a str,
}

impl FrontMatterReader<'_> {
    fn argument(&self, item: &Value) -> Result<PromptArgumentSpec, TemplateError> {
        let Value::Object(members) = item else {
            return Err(self.error_at("arguments", "an argument is no mapping", LIST_HELP));
        };
        self.check_known_keys(members, &["name", "description", "required", "default", "values"])?;
        let Some(name) = self.text(members, "name")? else {
            return Err(self.error_at("arguments", "an argument has no `name`", LIST_HELP));
        };
        let is_name = |name: &str| {
            name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        };
        if !is_name(&name) || name.len() > 64 {
            let help = "a name has up to 64 letters, digits and `_`, and begins with no digit";
            return Err(self.error_at(&name, format!("`{name}` cannot be a name"), help));
        }
        let required = match members.get("required") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(required)) => *required,
            Some(_) => {
                return Err(self.error_at("required", "`required` is true or false", "write one"));
            }
        };
        let default = self.text(members, "default")?;
        if required && default.is_some() {
            let what = format!("`{name}` is required and has a default");
            return Err(self.error_at("default", what, "take one of them out"));
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
        let wrong =
            || self.error_at("values", "`values` is no list of texts", "write `[one, two]`");
        let items = match members.get("values") {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Array(items)) => items,
            Some(_) => return Err(wrong()),
        };
        if items.len() > MAX_ARGUMENTS {
            let what = format!("`values` has more than {MAX_ARGUMENTS} values");
            return Err(self.error_at("values", what, "a client is shown no more"));
        }
        items.iter().map(|item| scalar(item).ok_or_else(wrong)).collect()
    }

    fn text(
        &self,
        members: &Map<String, Value>,
        key: &str,
    ) -> Result<Option<String>, TemplateError> {
        match members.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => scalar(value).map(Some).ok_or_else(|| {
                self.error_at(key, format!("`{key}` is no text"), "put the value in quotes")
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
                let help = format!("known here: `{}`", known.join("`, `"));
                Err(self.error_at(key, format!("unknown key `{key}`"), &help))
            }
            None => Ok(()),
        }
    }

    /// An error about a key or a name, positioned at the first line that contains it.
    fn error_at(&self, word: &str, what: impl Into<String>, help: &str) -> TemplateError {
        let found = self.text.lines().enumerate().find_map(|(line, text)| {
            let at = text.find(word)?;
            Some((line + 1, Some(text[..at].chars().count() + 1)))
        });
        let (line, column) = found.unwrap_or((1, None));
        TemplateError { line, column, message: what.into(), help: Some(help.to_owned()) }
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
