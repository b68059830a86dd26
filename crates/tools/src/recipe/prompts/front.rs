//! What the front matter of a prompt says.

use serde_json::{Map, Value};

use crate::template::Wrong;

/// How many arguments a prompt may have, and how many values one may propose.
const MOST: usize = 100;
/// The longest title, in characters.
const LONGEST_TITLE: usize = 200;

/// What the front matter of a prompt says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Front {
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) arguments: Vec<Argument>,
}

/// What a prompt takes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Argument {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) required: bool,
    /// What it is if it is not given.
    pub(super) default: Option<String>,
    /// What is proposed for it.
    pub(super) values: Vec<String>,
}

/// Reads the members of a front matter; the text tells where they stand.
pub(super) fn read(members: &Map<String, Value>, text: &str) -> Result<Front, Wrong> {
    let reader = Reader { text };
    reader.known(members, &["title", "description", "arguments"])?;
    let title = reader.text(members, "title")?;
    if title.as_ref().is_some_and(|title| title.chars().count() > LONGEST_TITLE) {
        let what = format!("`title` is longer than {LONGEST_TITLE} characters");
        return Err(reader.wrong("title", what, "say the rest in `description`"));
    }
    let description = reader.text(members, "description")?;
    let written = match members.get("arguments") {
        None | Some(Value::Null) => &[],
        Some(Value::Array(items)) => items.as_slice(),
        Some(_) => return Err(reader.wrong("arguments", "`arguments` is no list", LIST)),
    };
    let mut arguments: Vec<Argument> = Vec::with_capacity(written.len());
    for item in written {
        let argument = reader.argument(item)?;
        if arguments.iter().any(|other| other.name == argument.name) {
            let what = format!("the argument `{}` comes twice", argument.name);
            return Err(reader.wrong(&argument.name, what, "keep one of them"));
        }
        arguments.push(argument);
    }
    if arguments.len() > MOST {
        let what = format!("there are more than {MOST} arguments");
        return Err(reader.wrong("arguments", what, "ask for less"));
    }
    Ok(Front { title, description, arguments })
}

const LIST: &str = "write `- name: …` for each, indented below";

struct Reader<'a> {
    text: &'a str,
}

impl Reader<'_> {
    fn argument(&self, item: &Value) -> Result<Argument, Wrong> {
        let Value::Object(members) = item else {
            return Err(self.wrong("arguments", "an argument is no mapping", LIST));
        };
        self.known(members, &["name", "description", "required", "default", "values"])?;
        let Some(name) = self.text(members, "name")? else {
            return Err(self.wrong("arguments", "an argument has no `name`", LIST));
        };
        let is_name = |name: &str| {
            name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        };
        if !is_name(&name) || name.len() > 64 {
            let help = "a name has up to 64 letters, digits and `_`, and begins with no digit";
            return Err(self.wrong(&name, format!("`{name}` cannot be a name"), help));
        }
        let required = match members.get("required") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(required)) => *required,
            Some(_) => {
                return Err(self.wrong("required", "`required` is true or false", "write one"));
            }
        };
        let default = self.text(members, "default")?;
        if required && default.is_some() {
            let what = format!("`{name}` is required and has a default");
            return Err(self.wrong("default", what, "take one of them out"));
        }
        let description = self.text(members, "description")?;
        Ok(Argument { name, description, required, default, values: self.values(members)? })
    }

    fn values(&self, members: &Map<String, Value>) -> Result<Vec<String>, Wrong> {
        let wrong = || self.wrong("values", "`values` is no list of texts", "write `[one, two]`");
        let items = match members.get("values") {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Array(items)) => items,
            Some(_) => return Err(wrong()),
        };
        if items.len() > MOST {
            let what = format!("`values` has more than {MOST} values");
            return Err(self.wrong("values", what, "a client is shown no more"));
        }
        items.iter().map(|item| scalar(item).ok_or_else(wrong)).collect()
    }

    fn text(&self, members: &Map<String, Value>, key: &str) -> Result<Option<String>, Wrong> {
        match members.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => scalar(value).map(Some).ok_or_else(|| {
                self.wrong(key, format!("`{key}` is no text"), "put the value in quotes")
            }),
        }
    }

    fn known(&self, members: &Map<String, Value>, known: &[&str]) -> Result<(), Wrong> {
        match members.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => {
                let help = format!("known here: `{}`", known.join("`, `"));
                Err(self.wrong(key, format!("unknown key `{key}`"), &help))
            }
            None => Ok(()),
        }
    }

    /// What is wrong with a key or a name, in the first line that has it.
    fn wrong(&self, word: &str, what: impl Into<String>, help: &str) -> Wrong {
        let found = self.text.lines().enumerate().find_map(|(line, text)| {
            let at = text.find(word)?;
            Some((line + 1, Some(text[..at].chars().count() + 1)))
        });
        let (line, column) = found.unwrap_or((1, None));
        Wrong { line, column, what: what.into(), help: Some(help.to_owned()) }
    }
}

/// A text, or what reads the same as one.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
