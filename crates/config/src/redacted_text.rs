//! The text of a configuration for operators, with secrets replaced.
//!
//! A secret is replaced where it stands, so that lines and comments stay. A value that names a variable is no secret:
//! it is shown as it is written.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

/// What is shown instead of a secret.
const HIDDEN: &str = "\"•••\"";

/// Tables whose values are secrets, whatever their keys are: they go to other programs.
const SECRET_TABLES: [&str; 4] = ["headers", "env", "environment", "query"];

/// Keys whose values are secrets. A key that ends in `_file` names a file and is shown.
const SECRET_KEYS: [&str; 9] = [
    "bearer",
    "password",
    "value",
    "client_secret",
    "secret",
    "token",
    "authorization",
    "cookie",
    "api_key",
];

/// Keys whose values are command lines: only the program is shown.
const COMMANDS: [&str; 4] = ["command", "args", "run", "token_command"];

/// The text with secrets replaced.
pub(crate) fn redacted(text: &str) -> String {
    let mut hidden = match DeTable::parse(text) {
        Ok(document) => {
            let mut hidden = Vec::new();
            table(document.get_ref(), false, text, &mut hidden);
            hidden
        }
        // What cannot be read may be anything.
        Err(_) => quoted(text, 0..text.len()),
    };
    hidden.extend(comments(text));
    hidden.sort_by_key(|(range, _)| range.start);
    hidden.dedup_by(|next, before| next.0.start < before.0.end);
    let mut shown = text.to_owned();
    for (range, instead) in hidden.into_iter().rev() {
        shown.replace_range(range, &instead);
    }
    shown
}

type Replacement = (Range<usize>, String);

fn table(table: &DeTable<'_>, is_secret: bool, text: &str, hidden: &mut Vec<Replacement>) {
    for (key, item) in table {
        let name = key.get_ref().to_ascii_lowercase();
        let is_file = name.ends_with("_file") || name.ends_with("_env");
        let inner = !is_file
            && (is_secret
                || SECRET_TABLES.contains(&name.as_str())
                || SECRET_KEYS.contains(&name.as_str()));
        match item.get_ref() {
            DeValue::Array(values) if COMMANDS.contains(&name.as_str()) => {
                let first = usize::from(name != "args");
                for argument in values.iter().skip(first) {
                    value(argument.get_ref(), argument.span(), true, text, hidden);
                }
            }
            found => value(found, item.span(), inner, text, hidden),
        }
    }
}

fn value(
    found: &DeValue<'_>,
    span: Range<usize>,
    is_secret: bool,
    text: &str,
    hidden: &mut Vec<Replacement>,
) {
    match found {
        DeValue::Table(inner) => table(inner, is_secret, text, hidden),
        DeValue::Array(values) => {
            for each in values.iter() {
                value(each.get_ref(), each.span(), is_secret, text, hidden);
            }
        }
        DeValue::String(written) => {
            let names_variable = written.contains("${");
            if is_secret && !names_variable {
                hidden.push((span, HIDDEN.to_owned()));
            } else if !is_secret && has_url_secret(written) {
                hidden.push((span, format!("{:?}", plain_url(written))));
            }
        }
        _ if is_secret => hidden.push((span, HIDDEN.to_owned())),
        _ => {}
    }
}

/// Whether an address has a user, a password or a query.
fn has_url_secret(text: &str) -> bool {
    let Some((_, rest)) = text.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.contains('@') || rest.contains('?')
}

/// An address without its user, password and query.
fn plain_url(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let (target, query) = rest.split_once('?').map_or((rest, false), |(target, _)| (target, true));
    let end = target.find('/').unwrap_or(target.len());
    let (authority, path) = target.split_at(end);
    let host =
        authority.rsplit_once('@').map_or(authority.to_owned(), |(_, it)| format!("•••@{it}"));
    format!("{scheme}://{host}{path}{}", if query { "?•••" } else { "" })
}

/// The quoted texts in comments: a secret may be commented out.
fn comments(text: &str) -> Vec<Replacement> {
    let mut start = 0;
    let mut found = Vec::new();
    for line in text.split_inclusive('\n') {
        let range = start..start + line.len();
        start = range.end;
        if line.trim_start().starts_with('#') && line.contains('=') {
            found.extend(quoted(text, range));
        }
    }
    found
}

/// The quoted texts in a range.
fn quoted(text: &str, range: Range<usize>) -> Vec<Replacement> {
    let mut found = Vec::new();
    let mut open: Option<(usize, char)> = None;
    for (offset, character) in text[range.clone()].char_indices() {
        let at = range.start + offset;
        match open {
            None if matches!(character, '"' | '\'') => open = Some((at, character)),
            Some((start, quote)) if character == quote || character == '\n' => {
                open = None;
                let end = if character == '\n' { at } else { at + 1 };
                if !text[start..end].contains("${") {
                    found.push((start..end, HIDDEN.to_owned()));
                }
            }
            _ => {}
        }
    }
    if let Some((start, _)) = open {
        found.push((start..range.end, HIDDEN.to_owned()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_replaced_and_the_rest_stays() {
        let text = r#"# the team's gateway
[server]
name = "team" # not a secret
[upstreams.wiki]
url = "https://user:hunter2@wiki.example.com/mcp?key=hunter2"
headers = { Authorization = "Bearer hunter2", X-Key = "${WIKI_KEY}" }
token_file = "wiki.token"
[upstreams.files]
command = ["npx", "files", "--token", "hunter2"]
env = { API_TOKEN = "hunter2", HOME = "/srv" }
# password = "hunter2"
[openapi.pets.security]
basic = { user = "anna", password = "hunter2" }
"#;
        let shown = redacted(text);
        assert!(!shown.contains("hunter2"), "{shown}");
        assert_eq!(shown.lines().count(), text.lines().count());
        for kept in [
            "name = \"team\" # not a secret",
            "url = \"https://•••@wiki.example.com/mcp?•••\"",
            "X-Key = \"${WIKI_KEY}\"",
            "token_file = \"wiki.token\"",
            "command = [\"npx\", \"•••\", \"•••\", \"•••\"]",
            "user = \"anna\"",
        ] {
            assert!(shown.contains(kept), "{kept}: {shown}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_shows_no_values() {
        let shown = redacted("[server\nname = \"team\"\npassword = 'hunter2'\nopen = \"hunter2\n");
        assert!(!shown.contains("hunter2") && !shown.contains("team"), "{shown}");
        assert!(shown.contains("password = \"•••\""), "{shown}");
    }
}
