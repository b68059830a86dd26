//! Rewrites the error messages of the TOML reader.
//!
//! serde provides a sentence, not its parts. The sentences are part of its documented interface (`serde::de::Error`),
//! so the parts can be parsed from them.

use toml::de::Error;

use crate::syntax::error::ConfigProblem;
use crate::syntax::suggestions::{backquoted_list, nearest, suggestion};

/// The required table. Everything else that can be missing is a single key.
const SERVER_TABLE: &str = "server";

/// The problem in a file that is not valid TOML.
pub(crate) fn syntax_error(error: &Error) -> ConfigProblem {
    with_location(ConfigProblem::new(format!("not valid TOML: {}", error.message())), error)
}

/// The problem in a valid TOML file that is not a configuration.
pub(crate) fn schema_error(error: &Error, text: &str) -> ConfigProblem {
    let message = error.message();
    let output = error.span().and_then(|span| text.get(span)).unwrap_or_default();
    if let Some((key, problem)) = missing_key(message) {
        // A missing table has no location: its span would be the whole file.
        return if key == SERVER_TABLE { problem } else { with_location(problem, error) };
    }
    let problem = unknown_key(message)
        .or_else(|| unknown_value(message, output))
        .or_else(|| wrong_type(message, output))
        .unwrap_or_else(|| ConfigProblem::new(message));
    with_location(problem, error)
}

fn with_location(problem: ConfigProblem, error: &Error) -> ConfigProblem {
    match error.span() {
        Some(span) => problem.at(span),
        None => problem,
    }
}

fn unknown_key(message: &str) -> Option<ConfigProblem> {
    let (key, known) = message.strip_prefix("unknown field `")?.split_once('`')?;
    let known = backquoted(known);
    let help = match nearest(key, known.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("known keys: {}", backquoted_list(known)),
    };
    Some(ConfigProblem::new(format!("unknown key `{key}`")).help(help))
}

/// Whether the written text contains variables. Their values may be secrets and are not shown.
fn has_variables(text: &str) -> bool {
    text.starts_with(['"', '\'']) && text.contains("${")
}

fn unknown_value(message: &str, text: &str) -> Option<ConfigProblem> {
    let (word, known) = message.strip_prefix("unknown variant `")?.split_once('`')?;
    if has_variables(text) {
        let help = format!("the allowed values are {}", backquoted_list(backquoted(known)));
        return Some(ConfigProblem::new("this is not one of the allowed values").help(help));
    }
    let help = suggestion(word, "the allowed values", &backquoted(known));
    Some(ConfigProblem::new(format!("unknown value `{word}`")).help(help))
}

fn missing_key(message: &str) -> Option<(&str, ConfigProblem)> {
    let key = message.strip_prefix("missing field `")?.strip_suffix('`')?;
    let help = match key {
        SERVER_TABLE => format!("add a table `[{key}]`"),
        _ => format!("add `{key} = …` to this table"),
    };
    Some((key, ConfigProblem::new(format!("`{key}` is missing")).help(help)))
}

fn wrong_type(message: &str, text: &str) -> Option<ConfigProblem> {
    if message == "wanted string or table" {
        return Some(ConfigProblem::new("expected a string in quotes"));
    }
    let wrong = message.strip_prefix("invalid type: ").or(message.strip_prefix("invalid value: "));
    let (found, expected) = wrong?.rsplit_once(", expected ")?;
    let problem = ConfigProblem::new(format!(
        "expected {}, found {}",
        expected_type(expected),
        if has_variables(text) { "a string".to_owned() } else { found_type(found) }
    ));
    Some(match (expected, found.starts_with("string ")) {
        ("a sequence", true) => problem.help("write a list of strings: `[\"…\", \"…\"]`"),
        _ => problem,
    })
}

fn expected_type(expected: &str) -> &str {
    match expected {
        "a sequence" => "a list",
        "a map" => "a table",
        "a boolean" => "`true` or `false`",
        _ if expected.starts_with("struct ") => "a table",
        other => other,
    }
}

fn found_type(found: &str) -> String {
    match found {
        "map" => "a table".to_owned(),
        "sequence" => "a list".to_owned(),
        other => match other.split_once(' ') {
            Some(("integer", number)) => {
                format!("the number {}", number.trim_end_matches(" as i128"))
            }
            Some(("boolean", value)) => value.to_owned(),
            Some(("string", text)) => format!("the string {text}"),
            _ => other.replacen("floating point", "the number", 1),
        },
    }
}

/// The parts of a sentence in backquotes.
fn backquoted(sentence: &str) -> Vec<&str> {
    sentence.split('`').skip(1).step_by(2).collect()
}
