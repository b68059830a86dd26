//! The plan of authentication over HTTP.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use toml::value::{Datetime, Offset};

use crate::plan::file;
use crate::plan::issuers::{self, IssuerPlan};
use crate::plan::oauth::{self, OAuthPlan};
pub(crate) use crate::plan::plain_names::name;
use crate::syntax::error::ConfigProblem;
use crate::syntax::value::Spanned;
use crate::tables::http::{AuthTable, KeyTable};

/// Authentication over HTTP. At least users, keys or issuers are configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthPlan {
    /// The file of users.
    pub users: Option<PathBuf>,
    /// The keys in the configuration. No two have the same name or SHA-256.
    pub keys: Vec<KeyPlan>,
    /// The file of keys.
    pub keys_file: Option<PathBuf>,
    /// The issuers whose access tokens are accepted.
    pub issuers: Vec<IssuerPlan>,
    /// The requirements for access tokens.
    pub oauth: OAuthPlan,
    /// The role that a caller must have.
    pub role: Option<String>,
}

/// The key of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPlan {
    /// The name of the program.
    pub name: String,
    /// The SHA-256 of the key: 64 hexadecimal digits in lower case.
    pub sha256: String,
    /// The roles of the program, without duplicates.
    pub roles: Vec<String>,
    /// When the key expires: an RFC 3339 date, or a time with its offset.
    pub expires: Option<String>,
}

impl AuthPlan {
    /// Resolves relative paths against this folder.
    pub(crate) fn resolve_paths(mut self, folder: &Path) -> Self {
        for path in [&mut self.users, &mut self.keys_file].into_iter().flatten() {
            *path = folder.join(&*path);
        }
        self
    }
}

/// Resolves the table.
pub(crate) fn resolve(
    spanned: Spanned<AuthTable>,
    folder: &Path,
) -> Result<AuthPlan, ConfigProblem> {
    let Spanned { value: table, span } = spanned;
    let keys = match table.keys {
        Some(value) => keys(value.value)?,
        None => Vec::new(),
    };
    let issuers = issuers::resolve(table.issuers, folder)?;
    let plan = AuthPlan {
        users: table.users.map(|path| file("users", path)).transpose()?,
        keys,
        keys_file: table.keys_file.map(|path| file("keys_file", path)).transpose()?,
        oauth: oauth::resolve(table.oauth, table.scopes, !issuers.is_empty())?,
        issuers,
        role: table.role.map(|role| name("role", role)).transpose()?,
    };
    let has_keys = !plan.keys.is_empty() || plan.keys_file.is_some();
    if plan.users.is_none() && !has_keys && plan.issuers.is_empty() {
        let problem = ConfigProblem::new(
            "`[auth]` has neither users nor keys nor issuers, so every request would be refused",
        );
        return Err(problem
            .help("add `users`, `keys`, `keys_file` or `[auth.issuers.NAME]`, or remove `[auth]`")
            .at(span));
    }
    Ok(plan)
}

fn keys(written: Vec<KeyTable>) -> Result<Vec<KeyPlan>, ConfigProblem> {
    let mut keys: Vec<KeyPlan> = Vec::with_capacity(written.len());
    for table in written {
        let (at_name, at_digest) = (table.name.span.clone(), table.sha256.span.clone());
        let key = key(table)?;
        if keys.iter().any(|other| other.name == key.name) {
            let message = format!("two keys have the name `{}`", key.name);
            return Err(ConfigProblem::new(message).at(at_name));
        }
        if keys.iter().any(|other| other.sha256 == key.sha256) {
            let problem = ConfigProblem::new(format!(
                "the key `{}` has the same SHA-256 as another key",
                key.name
            ));
            let help = "create a separate key for each name, so that each can be revoked";
            return Err(problem.help(help).at(at_digest));
        }
        keys.push(key);
    }
    Ok(keys)
}

fn key(table: KeyTable) -> Result<KeyPlan, ConfigProblem> {
    let mut roles = Vec::new();
    for value in table.roles.unwrap_or_default() {
        let span = value.span.clone();
        let role = name("roles", value)?;
        if roles.contains(&role) {
            return Err(ConfigProblem::new(format!("the role `{role}` is listed twice")).at(span));
        }
        roles.push(role);
    }
    Ok(KeyPlan {
        name: name("name", table.name)?,
        sha256: sha256(&table.sha256)?,
        roles,
        expires: table.expires.map(expiry).transpose()?,
    })
}

/// Checks a SHA-256. Errors hide the value, because it may be the key itself.
fn sha256(value: &Spanned<String>) -> Result<String, ConfigProblem> {
    let text = &value.value;
    if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(text.to_ascii_lowercase());
    }
    let problem = ConfigProblem::new("`sha256` is not 64 hexadecimal digits");
    let help = "`creole passwd FILE --key NAME` creates a key and stores its SHA-256";
    Err(problem.help(help).at(value.span.clone()).hide_value())
}

fn expiry(item: Spanned<String>) -> Result<String, ConfigProblem> {
    let Spanned { value, span } = item;
    let is_moment = match Datetime::from_str(&value) {
        Ok(Datetime { date: Some(date), time: None, offset: None }) => date.year >= 1970,
        Ok(Datetime { date: Some(date), time: Some(time), offset: Some(offset) }) => {
            let minutes = match offset {
                Offset::Z => 0,
                Offset::Custom { minutes } => minutes,
            };
            date.year > 1970 && minutes.abs() < 24 * 60 && time.second.is_some()
        }
        _ => false,
    };
    if is_moment {
        return Ok(value);
    }
    let problem = ConfigProblem::new("`expires` is not a valid date");
    Err(problem.help("write it like \"2027-01-31\" or \"2027-01-31T12:00:00Z\"").at(span))
}

#[cfg(test)]
mod tests {
    use std::env::VarError;

    use crate::Plan;
    use crate::syntax::error::ConfigError;

    use super::*;

    const DIGEST: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn read(table: &str) -> Result<Option<AuthPlan>, ConfigError> {
        let text = format!("[server]\n[auth]\n{}", table.replace("DIGEST", DIGEST));
        let lookup = |_: &str| Err(VarError::NotPresent);
        let plan = Plan::read(&text, Path::new(""), &[], &lookup);
        plan.map(|plan| plan.auth).map_err(|problem| problem.into_error("creole.toml", &text))
    }

    fn error_text(table: &str) -> String {
        let error = read(table).unwrap_err();
        let location = error
            .location
            .as_ref()
            .map(|location| format!("{}:{} ", location.line, location.column));
        format!("{}{}", location.unwrap_or_default(), error.message)
    }

    #[test]
    fn everything_that_is_written_is_in_the_plan() {
        let table = "users = \"users.txt\"\nkeys_file = \"/k\"\nrole = \"mcp\"\nkeys = [{ name = \"ci\", \
                     sha256 = \"DIGEST\", roles = [\"mcp\", \"ci\"], expires = \"2027-01-31\" }]";
        let key = KeyPlan {
            name: "ci".to_owned(),
            sha256: DIGEST.to_owned(),
            roles: vec!["mcp".to_owned(), "ci".to_owned()],
            expires: Some("2027-01-31".to_owned()),
        };
        let expected = AuthPlan {
            users: Some("users.txt".into()),
            keys: vec![key],
            keys_file: Some("/k".into()),
            issuers: Vec::new(),
            oauth: OAuthPlan::default(),
            role: Some("mcp".to_owned()),
        };
        assert_eq!(read(table).unwrap(), Some(expected));
        let upper = read(&table.replace("DIGEST", &DIGEST.to_uppercase())).unwrap().unwrap();
        assert_eq!(upper.keys[0].sha256, DIGEST);
    }

    #[test]
    fn each_error_names_its_position_and_problem() {
        let key = |rest: &str| format!("keys = [{{ name = \"ci\", sha256 = \"DIGEST\"{rest} }}]");
        let cases = [
            (
                String::new(),
                "2:1 `[auth]` has neither users nor keys nor issuers, so every request would be refused",
            ),
            (
                "keys = []".to_owned(),
                "2:1 `[auth]` has neither users nor keys nor issuers, so every request would be refused",
            ),
            ("user = \"x\"".to_owned(), "3:1 unknown key `user`"),
            ("users = \" \"".to_owned(), "3:9 `users` is empty"),
            ("users = 3".to_owned(), "3:9 expected a string, found the number `3`"),
            (
                "keys_file = \"a\\nb\"".to_owned(),
                "3:13 `keys_file` has a control character or a line break",
            ),
            (
                "users = \"u\"\nrole = \"m c p\"".to_owned(),
                "4:8 `role` contains a character that is not allowed",
            ),
            ("users = \"u\"\nrole = \"\"".to_owned(), "4:8 `role` is empty"),
            ("keys = \"ci\"".to_owned(), "3:8 expected a list, found the string \"ci\""),
            ("keys = [{ name = \"ci\" }]".to_owned(), "3:9 `sha256` is missing"),
            (
                "keys = [{ name = \"ci\", sha256 = \"x\" }]".to_owned(),
                "3:33 `sha256` is not 64 hexadecimal digits",
            ),
            (key(", role = \"x\""), "3:101 unknown key `role`"),
            (key(", roles = [\"a\", \"a\"]"), "3:115 the role `a` is listed twice"),
            (key(", expires = \"soon\""), "3:111 `expires` is not a valid date"),
            (key(", expires = \"2027-02-30\""), "3:111 `expires` is not a valid date"),
            (key(", expires = \"2027-01-31T12:00:00\""), "3:111 `expires` is not a valid date"),
            (key(", expires = \"12:00:00\""), "3:111 `expires` is not a valid date"),
            (key(", expires = \"1969-12-31\""), "3:111 `expires` is not a valid date"),
            (
                format!(
                    "{0}\nname = \"ci\"\nsha256 = \"DIGEST\"\n{0}\nname = \"ci\"\nsha256 = \"{1}\"",
                    "[[auth.keys]]",
                    "0".repeat(64)
                ),
                "7:8 two keys have the name `ci`",
            ),
            (
                format!(
                    "{0}\nname = \"ci\"\nsha256 = \"DIGEST\"\n{0}\nname = \"cd\"\nsha256 = \"DIGEST\"",
                    "[[auth.keys]]"
                ),
                "8:10 the key `cd` has the same SHA-256 as another key",
            ),
        ];
        for (table, expected) in cases {
            assert_eq!(error_text(&table), expected, "{table}");
        }
    }

    #[test]
    fn a_key_in_place_of_its_hash_is_not_shown() {
        let error = read("keys = [{ name = \"ci\", sha256 = \"creole_sécret\" }]").unwrap_err();
        let expected = "\
error: `sha256` is not 64 hexadecimal digits
 --> creole.toml:3:33
  |
3 | keys = [{ name = \"ci\", sha256 = **************** }]
  |                                 ^^^^^^^^^^^^^^^^
  = help: `creole passwd FILE --key NAME` creates a key and stores its SHA-256";
        assert_eq!(error.to_string(), expected);
        assert!(!format!("{error:?}").contains("cret"));
    }
}
