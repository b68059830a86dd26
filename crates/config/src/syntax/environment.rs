//! Expands `${NAME}` in strings to environment variables, after the file is parsed.
//!
//! A value can therefore never change the structure of the file. `${NAME:-text}` expands to `text` if the variable is
//! unset or empty, and `$${` to `${` itself.

use std::borrow::Cow;
use std::env::VarError;
use std::ops::Range;

use toml::de::{DeArray, DeTable, DeValue};

use crate::syntax::error::ConfigProblem;

/// How a variable is looked up.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Result<String, VarError>;

/// Expands the variables of every string value below `table`.
pub(crate) fn expand(table: &mut DeTable<'_>, lookup: Lookup<'_>) -> Result<(), ConfigProblem> {
    for (_, value) in table.iter_mut() {
        let span = value.span();
        expand_value(value.get_mut(), span, lookup)?;
    }
    Ok(())
}

fn expand_value(
    value: &mut DeValue<'_>,
    span: Range<usize>,
    lookup: Lookup<'_>,
) -> Result<(), ConfigProblem> {
    match value {
        DeValue::String(text) => {
            if let Some(expanded) = expand_text(text, lookup).map_err(|problem| problem.at(span))? {
                *text = Cow::Owned(expanded);
            }
            Ok(())
        }
        DeValue::Array(array) => expand_array(array, lookup),
        DeValue::Table(table) => expand(table, lookup),
        _ => Ok(()),
    }
}

fn expand_array(array: &mut DeArray<'_>, lookup: Lookup<'_>) -> Result<(), ConfigProblem> {
    for value in array.iter_mut() {
        let span = value.span();
        expand_value(value.get_mut(), span, lookup)?;
    }
    Ok(())
}

/// The text with its variables expanded. `None` if it has no variables.
fn expand_text(text: &str, lookup: Lookup<'_>) -> Result<Option<String>, ConfigProblem> {
    if !text.contains("${") {
        return Ok(None);
    }
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, reference) = rest.split_at(start);
        if let Some(literal) = before.strip_suffix('$') {
            expanded.push_str(literal);
            expanded.push_str("${");
            rest = &reference[2..];
            continue;
        }
        expanded.push_str(before);
        let Some(end) = reference.find('}') else {
            return Err(ConfigProblem::new("`${` without a closing `}`")
                .help("write `$${` for a literal `${`")
                .about_part("${"));
        };
        let (reference, tail) = reference.split_at(end + 1);
        expanded.push_str(&resolve_variable(reference, lookup)?);
        rest = tail;
    }
    expanded.push_str(rest);
    Ok(Some(expanded))
}

/// The value of `${NAME}` or `${NAME:-text}`.
fn resolve_variable(reference: &str, lookup: Lookup<'_>) -> Result<String, ConfigProblem> {
    let inner = &reference[2..reference.len() - 1];
    let (name, otherwise) = match inner.split_once(":-") {
        Some((name, otherwise)) => (name, Some(otherwise)),
        None => (inner, None),
    };
    if !is_variable_name(name) {
        return Err(ConfigProblem::new(format!("invalid environment variable name `{name}`"))
            .help("write `${NAME}` or `${NAME:-text}`, or `$${` for a literal `${`")
            .about_part(reference));
    }
    match (lookup(name), otherwise) {
        (Ok(value), None) => Ok(value),
        (Ok(value), Some(_)) if !value.is_empty() => Ok(value),
        (Err(VarError::NotUnicode(_)), _) => {
            let message = format!("the environment variable `{name}` is not UTF-8");
            Err(ConfigProblem::new(message).about_part(reference))
        }
        (_, Some(otherwise)) => Ok(otherwise.to_owned()),
        (Err(VarError::NotPresent), None) => {
            Err(ConfigProblem::new(format!("the environment variable `{name}` is not set"))
                .help(format!("set it, or write `${{{name}:-text}}` with a default value"))
                .about_part(reference))
        }
    }
}

/// Whether this is a valid name of a variable.
pub(crate) fn is_variable_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte == b'_' || byte.is_ascii_alphabetic();
    let rest = |byte: u8| is_allowed(byte) || byte.is_ascii_digit();
    name.bytes().next().is_some_and(is_allowed) && name.bytes().all(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(name: &str) -> Result<String, VarError> {
        match name {
            "HOST" => Ok("example.org".to_owned()),
            "EMPTY" => Ok(String::new()),
            "NESTED" => Ok("${HOST}".to_owned()),
            _ => Err(VarError::NotPresent),
        }
    }

    fn expanded(text: &str) -> String {
        expand_text(text, &lookup).unwrap().unwrap_or_else(|| text.to_owned())
    }

    #[test]
    fn a_variable_is_put_in_once() {
        assert_eq!(expanded("https://${HOST}/${EMPTY}x"), "https://example.org/x");
        assert_eq!(expanded("${NESTED}"), "${HOST}");
    }

    #[test]
    fn a_text_in_reserve_stands_for_what_is_unset_or_empty() {
        assert_eq!(expanded("${NO:-a:-b}${EMPTY:-c}${HOST:-d}${NO:-}"), "a:-bcexample.org");
    }

    #[test]
    fn two_dollars_are_one_and_no_variable() {
        assert_eq!(expanded("$${HOST} $ $5 $$ {x}"), "${HOST} $ $5 $$ {x}");
        assert_eq!(expanded("$$${HOST}"), "$${HOST}");
    }

    #[test]
    fn what_cannot_be_put_in_is_refused() {
        for text in ["${NO}", "${HOST", "${}", "${1A}", "${A B}", "${HOST:-x"] {
            assert!(expand_text(text, &lookup).is_err(), "{text}");
        }
    }
}
