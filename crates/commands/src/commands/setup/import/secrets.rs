//! Moves secrets to environment variables. Values that look like secrets, and the references of other clients, become
//! references to variables.

use std::collections::{BTreeMap, BTreeSet};

/// Parts of names whose values are secrets.
const SECRET_NAMES: [&str; 9] = [
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "APIKEY",
    "API_KEY",
    "CREDENTIAL",
    "COOKIE",
    "AUTHORIZATION",
];

/// The prefixes of well-known secrets.
const SECRET_PREFIXES: [&str; 10] =
    ["sk-", "sk_", "ghp_", "gho_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "AKIA", "eyJ"];

/// The minimum length of a text that is taken for a secret by its form alone.
const MIN_SECRET_LENGTH: usize = 32;

/// The extracted secrets, and the notes about them.
#[derive(Debug, Default)]
pub(crate) struct ExtractedSecrets {
    /// The secrets by the environment variable that replaces them.
    by_variable: BTreeMap<String, String>,
    /// The variables that other clients would have provided.
    expected_variables: BTreeSet<String>,
    notes: Vec<String>,
}

impl ExtractedSecrets {
    pub(crate) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// The notes for the user.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = self.notes.clone();
        if !self.by_variable.is_empty() {
            let names: Vec<&str> = self.by_variable.keys().map(String::as_str).collect();
            notes.push(format!(
                "secrets were not copied; set these variables in the environment of creole: {}",
                names.join(", ")
            ));
        }
        if !self.expected_variables.is_empty() {
            let names: Vec<&str> = self.expected_variables.iter().map(String::as_str).collect();
            notes.push(format!(
                "creole also needs these environment variables: {}",
                names.join(", ")
            ));
        }
        notes
    }

    /// A text with the references of other clients converted to ours.
    pub(crate) fn text(&mut self, server: &str, text: &str) -> String {
        let mut mapped = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            mapped.push_str(before);
            let Some((reference, tail)) = after.split_once('}') else {
                mapped.push_str("$${");
                rest = after;
                continue;
            };
            mapped.push_str(&self.reference(server, reference));
            rest = tail;
        }
        mapped.push_str(rest);
        mapped
    }

    fn reference(&mut self, server: &str, reference: &str) -> String {
        let name = match reference.split_once(':') {
            None if reference == "userHome" => "HOME".to_owned(),
            None if reference == "workspaceFolder" => "WORKSPACE_FOLDER".to_owned(),
            None if is_name(reference) => reference.to_owned(),
            Some(("env", name)) if is_name(name) => name.to_owned(),
            Some(("input", id)) => entry_name(&[id]),
            Some((name, default)) if is_name(name) && default.starts_with('-') => {
                return format!("${{{reference}}}");
            }
            _ => {
                self.note(format!(
                    "`${{{reference}}}` of `{server}` is not supported; it was copied as text"
                ));
                return format!("$${{{reference}}}");
            }
        };
        self.expected_variables.insert(name.clone());
        format!("${{{name}}}")
    }

    /// An environment variable of a program.
    pub(crate) fn variable(&mut self, server: &str, key: &str, value: &str) -> String {
        match is_plain(value) && (is_secret_name(key) || is_secret(value)) {
            true => self.extract(
                std::iter::once(entry_name(&[key])).chain(candidate_names(server, key)),
                value,
            ),
            false => self.text_or_url(server, value),
        }
    }

    /// A text that may be a URL.
    fn text_or_url(&mut self, server: &str, text: &str) -> String {
        match text.contains("://") {
            true => self.url(server, text),
            false => self.text(server, text),
        }
    }

    /// A header. Its authentication scheme is not a secret.
    pub(crate) fn header(&mut self, server: &str, key: &str, value: &str) -> String {
        let (scheme, rest) = match value.split_once(' ') {
            Some((scheme @ ("Bearer" | "Basic" | "Token" | "bearer"), rest)) => (scheme, rest),
            _ => ("", value),
        };
        if !is_plain(value) || !(is_secret_name(key) || !scheme.is_empty() || is_secret(rest)) {
            return self.text_or_url(server, value);
        }
        let key = if key.eq_ignore_ascii_case("authorization") { "TOKEN" } else { key };
        let stored = self.extract(candidate_names(server, key), rest);
        format!("{scheme} {stored}").trim_start().to_owned()
    }

    /// The arguments of a program. An argument is a secret by its form, by the name before its `=`, or by the option
    /// before it.
    pub(crate) fn arguments(&mut self, server: &str, arguments: &[String]) -> Vec<String> {
        let mut option = "";
        let mut written = Vec::new();
        for argument in arguments {
            written.push(match option {
                "-H" | "--header" if argument.contains(':') => {
                    self.header_argument(server, argument)
                }
                _ if is_secret_name(option) && !argument.starts_with('-') && is_plain(argument) => {
                    self.extract(candidate_names(server, option), argument)
                }
                _ => self.argument(server, argument),
            });
            let is_option = argument.starts_with('-') && !argument.contains('=');
            option = if is_option { argument } else { "" };
        }
        written
    }

    /// A header in a command line.
    fn header_argument(&mut self, server: &str, header: &str) -> String {
        let (key, value) = header.split_once(':').unwrap_or((header, ""));
        let trimmed = value.trim_start();
        let space = &value[..value.len() - trimmed.len()];
        format!("{key}:{space}{}", self.header(server, key.trim(), trimmed))
    }

    /// A single argument. An option or a variable assignment may have a value.
    fn argument(&mut self, server: &str, argument: &str) -> String {
        let (option, value) = match argument.split_once('=') {
            Some((option, value)) if option.starts_with('-') || is_name(option) => (option, value),
            _ => ("", argument),
        };
        let is_named = !option.is_empty() && is_secret_name(option);
        let stored = match is_plain(value) && (is_named || is_secret(value)) {
            true if option.is_empty() => self.extract(candidate_names(server, "SECRET"), value),
            true => self.extract(candidate_names(server, option), value),
            false => self.text_or_url(server, value),
        };
        if option.is_empty() { stored } else { format!("{option}={stored}") }
    }

    /// A URL. Its password is a secret, and so are query values with a secret's name or form.
    pub(crate) fn url(&mut self, server: &str, url: &str) -> String {
        if let Some((before, password, after)) = password(url).filter(|(_, text, _)| is_plain(text))
        {
            let stored = self.extract(candidate_names(server, "PASSWORD"), password);
            return format!(
                "{}{stored}{}",
                self.text(server, before),
                self.url_query(server, after)
            );
        }
        self.url_query(server, url)
    }

    fn url_query(&mut self, server: &str, url: &str) -> String {
        let Some((location, query)) = url.split_once('?') else { return self.text(server, url) };
        let mut parts = Vec::new();
        for part in query.split('&') {
            parts.push(match part.split_once('=') {
                Some((key, value))
                    if is_plain(value) && (is_secret_name(key) || is_secret(value)) =>
                {
                    format!("{key}={}", self.extract(candidate_names(server, key), value))
                }
                _ => self.text(server, part),
            });
        }
        format!("{}?{}", self.text(server, location), parts.join("&"))
    }

    /// Stores a secret under the first of these names that is free. Returns the reference to it.
    fn extract(&mut self, names: impl IntoIterator<Item = String>, secret: &str) -> String {
        let is_free =
            |name: &String| self.by_variable.get(name).is_none_or(|stored| stored == secret);
        let name = names.into_iter().find(is_free).unwrap_or_default();
        self.by_variable.insert(name.clone(), secret.to_owned());
        format!("${{{name}}}")
    }
}

/// An infinite sequence of names for a secret of a server.
fn candidate_names(server: &str, key: &str) -> impl Iterator<Item = String> {
    let first = entry_name(&[server, key]);
    let others = (2..).map({
        let first = first.clone();
        move |number: u32| format!("{first}_{number}")
    });
    std::iter::once(first).chain(others)
}

/// Splits a URL around its password: the text before, the password, and the text after. Without a user, the whole user
/// information may be a token.
fn password(url: &str) -> Option<(&str, &str, &str)> {
    let start = url.find("://")? + 3;
    let rest = &url[start..];
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let port = authority.rsplit_once(':').map_or("", |(_, port)| port);
    let end = match authority.rfind('@') {
        Some(end) => end,
        // Text that is neither a port nor the end of a bracketed address is a password with a slash in it.
        None if !port.ends_with(']') && port.bytes().any(|byte| !byte.is_ascii_digit()) => {
            rest.rfind('@')?
        }
        None => return None,
    };
    let user = &rest[..end];
    let from = match user.split_once(':') {
        Some((name, _)) => start + name.len() + 1,
        None if is_secret(user) => start,
        None => return None,
    };
    Some((&url[..from], &url[from..start + end], &url[start + end..]))
}

fn is_plain(value: &str) -> bool {
    !value.is_empty() && !value.contains("${")
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_uppercase().replace('-', "_");
    let ends = ["_KEY", "_PAT", "_PASS", "_AUTH"].iter().any(|end| name.ends_with(end));
    ends || name == "KEY" || SECRET_NAMES.iter().any(|part| name.contains(part))
}

/// Whether a text looks like a secret: by its prefix, or because it is long, without spaces, and of letters and digits.
fn is_secret(value: &str) -> bool {
    if SECRET_PREFIXES.iter().any(|begin| value.starts_with(begin))
        && value.len() >= MIN_SECRET_LENGTH / 2
    {
        return true;
    }
    let of_one_piece = |byte: u8| byte.is_ascii_alphanumeric() || b"_-+=".contains(&byte);
    value.len() >= MIN_SECRET_LENGTH
        && value.bytes().all(of_one_piece)
        && value.bytes().any(|byte| byte.is_ascii_digit())
        && value.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// A name for an environment variable.
fn entry_name(parts: &[&str]) -> String {
    let joined = parts.join("_");
    let letter = |character: char| if character.is_ascii_alphanumeric() { character } else { '_' };
    let name: String = joined.trim_start_matches('-').chars().map(letter).collect();
    let name = name.to_ascii_uppercase();
    let mut name = name.trim_matches('_').to_owned();
    while name.contains("__") {
        name = name.replace("__", "_");
    }
    if is_name(&name) { name } else { format!("_{name}") }
}

fn is_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
    name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit()) && name.bytes().all(is_letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_of_other_clients_become_variables() {
        let mut secrets = ExtractedSecrets::default();
        let mut text = |text: &str| secrets.text("srv", text);
        assert_eq!(text("${env:HOME}/x"), "${HOME}/x");
        assert_eq!(text("${input:api-key}"), "${API_KEY}");
        assert_eq!(text("${TEAM}"), "${TEAM}");
        assert_eq!(text("${TEAM:-blue}"), "${TEAM:-blue}");
        assert_eq!(text("${workspaceFolder}/a"), "${WORKSPACE_FOLDER}/a");
        assert_eq!(text("${command:pick}"), "$${command:pick}");
        assert_eq!(text("a ${ b"), "a $${ b");
        let notes = secrets.notes();
        assert!(notes[0].contains("`${command:pick}` of `srv`"), "{notes:?}");
        assert!(notes[1].ends_with("API_KEY, HOME, TEAM, WORKSPACE_FOLDER"), "{notes:?}");
    }

    #[test]
    fn secrets_are_detected_by_name_or_format() {
        let mut secrets = ExtractedSecrets::default();
        assert_eq!(secrets.variable("a", "GITHUB_TOKEN", "x1"), "${GITHUB_TOKEN}");
        assert_eq!(secrets.variable("b", "GITHUB_TOKEN", "x1"), "${GITHUB_TOKEN}");
        assert_eq!(secrets.variable("c", "GITHUB_TOKEN", "x2"), "${C_GITHUB_TOKEN}");
        assert_eq!(secrets.variable("a", "MODE", "fast"), "fast");
        assert_eq!(secrets.variable("a", "ID", "ghp_0123456789abcdef"), "${ID}");
        assert_eq!(secrets.variable("a", "TOKEN_OF", "${env:T}"), "${T}");
        assert_eq!(secrets.header("gh", "Authorization", "Bearer abc"), "Bearer ${GH_TOKEN}");
        assert_eq!(secrets.header("gh", "X-Api-Key", "abc"), "${GH_X_API_KEY}");
        assert_eq!(secrets.header("gh", "X-Team", "blue"), "blue");
        let long = "0123456789abcdef0123456789abcdef";
        let given = ["--api-key=abc", "--mode=abc", long].map(str::to_owned);
        let expected = ["--api-key=${GH_API_KEY}", "--mode=abc", "${GH_SECRET}"];
        assert_eq!(secrets.arguments("gh", &given), expected);
        assert_eq!(
            secrets.url("gh", "https://a/b?x=1&api_key=k"),
            "https://a/b?x=1&api_key=${GH_API_KEY_2}"
        );
        assert!(secrets.notes()[0].contains("C_GITHUB_TOKEN, GH_API_KEY"));
    }

    #[test]
    fn a_secret_is_detected_by_the_word_before_it() {
        let mut secrets = ExtractedSecrets::default();
        let mut arguments = |given: &[&str]| {
            let given: Vec<String> = given.iter().map(|word| (*word).to_owned()).collect();
            secrets.arguments("gh", &given).join(" ")
        };
        assert_eq!(arguments(&["--api-key", "hunter2", "x"]), "--api-key ${GH_API_KEY} x");
        assert_eq!(
            arguments(&["-e", "DB_PASSWORD=pw", "-e", "A=b"]),
            "-e DB_PASSWORD=${GH_DB_PASSWORD} -e A=b"
        );
        assert_eq!(
            arguments(&["-H", "Authorization: Bearer t"]),
            "-H Authorization: Bearer ${GH_TOKEN}"
        );
        assert_eq!(arguments(&["--token", "--verbose", "x"]), "--token --verbose x");
        assert_eq!(arguments(&["--token", "${env:T}"]), "--token ${T}");
    }

    #[test]
    fn a_password_in_a_url_is_a_secret_everywhere() {
        let written = |url: &str| ExtractedSecrets::default().variable("db", "DATABASE_URL", url);
        assert_eq!(
            written("postgresql://ann:pw@host/db"),
            "postgresql://ann:${DB_PASSWORD}@host/db"
        );
        assert_eq!(
            written("redis://:p@ss@host:1?token=t"),
            "redis://:${DB_PASSWORD}@host:1?token=${DB_TOKEN}"
        );
        assert_eq!(written("mysql://a:p/w@host"), "mysql://a:${DB_PASSWORD}@host");
        assert_eq!(written("mysql://a:p?w@${HOST}/x"), "mysql://a:${DB_PASSWORD}@${HOST}/x");
        assert_eq!(written("mysql://a:${PW}@host"), "mysql://a:${PW}@host");
        assert_eq!(written("https://ghp_0123456789abcdef@host/x"), "https://${DB_PASSWORD}@host/x");
        for plain in [
            "https://host:80/@a/b",
            "https://ann@host/",
            "http://[::1]:80/@x",
            "http://[::a]/@x",
            "https://host/x?y",
        ] {
            assert_eq!(written(plain), plain);
        }
        let mut secrets = ExtractedSecrets::default();
        assert_eq!(secrets.url("a", "https://u:pw@host/mcp"), "https://u:${A_PASSWORD}@host/mcp");
        let given = ["postgresql://u:pw@host/db", "--db=postgresql://u:pw@host/db"];
        let expected =
            ["postgresql://u:${A_PASSWORD}@host/db", "--db=postgresql://u:${A_PASSWORD}@host/db"];
        assert_eq!(secrets.arguments("a", &given.map(str::to_owned)), expected);
    }

    #[test]
    fn no_secret_is_printed() {
        let mut secrets = ExtractedSecrets::default();
        secrets.variable("a", "PASSWORD", "hunter2");
        assert!(!secrets.notes().concat().contains("hunter2"));
    }
}
