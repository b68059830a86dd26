//! Edits a file of users or keys and leaves every other line unchanged.

use std::path::Path;
use std::sync::Arc;

use super::expiry::Expiry;
use super::file;
use super::file::{CredentialEntry, CredentialKind};
use super::keys::NewKey;
use crate::auth::error::AuthError;

/// The text of a file of users or keys, to be edited and written back.
#[derive(Clone, Debug)]
pub struct CredentialText {
    kind: CredentialKind,
    lines: Vec<String>,
    entries: Vec<CredentialEntry>,
}

impl CredentialText {
    /// A new file, with a line that explains it.
    #[must_use]
    pub fn new(kind: CredentialKind) -> Self {
        let opening = match kind {
            CredentialKind::Users => "# Users: name:password hash:role,role",
            CredentialKind::Keys => "# Keys: name:key hash:role,role:expiry",
        };
        Self { kind, lines: vec![opening.to_owned()], entries: Vec::new() }
    }

    /// The text of an existing file; `path` is only for messages.
    ///
    /// # Errors
    /// When a line is invalid: a file with errors is not edited.
    pub fn parse(text: &str, kind: CredentialKind, path: &Path) -> Result<Self, AuthError> {
        let entries =
            file::parse(text, kind).map_err(|error| file::explain_error(error, kind, path))?;
        Ok(Self { kind, lines: text.lines().map(str::to_owned).collect(), entries })
    }

    /// Adds a user, or sets a new password. Without `roles` the roles do not change. Returns whether the user existed.
    ///
    /// # Errors
    /// When the name or a role is not a plain word, or the hash is not accepted.
    pub fn put_user(
        &mut self,
        name: &str,
        hash: &str,
        roles: Option<&[String]>,
    ) -> Result<bool, AuthError> {
        let roles = self.roles(name, roles)?;
        self.put(name, format!("{name}:{hash}{}", roles_and_expiry(&roles, None)))
    }

    /// Adds a key, or replaces the one of that name. Without `roles` the roles do not change. Returns whether the name
    /// existed.
    ///
    /// # Errors
    /// When the name or a role is not a plain word.
    pub fn put_key(
        &mut self,
        name: &str,
        key: &NewKey,
        roles: Option<&[String]>,
        expires: Option<Expiry>,
    ) -> Result<bool, AuthError> {
        let roles = self.roles(name, roles)?;
        let hash = format!("{}{}", file::KEY_HASH_PREFIX, key.sha256);
        self.put(name, format!("{name}:{hash}{}", roles_and_expiry(&roles, expires)))
    }

    /// Checks that a name and roles are valid.
    ///
    /// # Errors
    /// When the name or a role is not a plain word.
    pub fn check(&self, name: &str, roles: Option<&[String]>) -> Result<(), AuthError> {
        self.roles(name, roles).map(drop)
    }

    /// Removes a user or a key. Returns whether it existed.
    pub fn remove(&mut self, name: &str) -> bool {
        let Some(index) = self.index_of(name) else { return false };
        let line = self.entries.remove(index).line;
        self.lines.remove(line - 1);
        for entry in self.entries.iter_mut().filter(|entry| entry.line > line) {
            entry.line -= 1;
        }
        true
    }

    /// The names in the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.name.as_str())
    }

    /// The roles of a user or a key.
    #[must_use]
    pub fn roles_of(&self, name: &str) -> Vec<&str> {
        let entry = self.index_of(name).map(|index| &self.entries[index]);
        entry.map_or_else(Vec::new, |entry| entry.roles.iter().map(|role| &**role).collect())
    }

    /// The text, with a line break at its end.
    #[must_use]
    pub fn text(&self) -> String {
        self.lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
    }

    fn index_of(&self, name: &str) -> Option<usize> {
        self.entries.iter().position(|entry| entry.name == name)
    }

    fn roles(&self, name: &str, roles: Option<&[String]>) -> Result<Arc<[Arc<str>]>, AuthError> {
        file::check_name("name", name)?;
        match (roles, self.index_of(name)) {
            (Some(roles), _) => file::check_roles(roles.iter().map(String::as_str)),
            (None, Some(index)) => Ok(Arc::clone(&self.entries[index].roles)),
            (None, None) => Ok(Arc::default()),
        }
    }

    fn put(&mut self, name: &str, line: String) -> Result<bool, AuthError> {
        let mut parsed = file::parse(&line, self.kind)?;
        let position = self.index_of(name).map(|index| self.entries.remove(index).line);
        let number = position.unwrap_or(self.lines.len() + 1);
        for entry in &mut parsed {
            entry.line = number;
        }
        self.entries.append(&mut parsed);
        match self.lines.get_mut(number - 1) {
            Some(old) => *old = line,
            None => self.lines.push(line),
        }
        Ok(position.is_some())
    }
}

fn roles_and_expiry(roles: &[Arc<str>], expires: Option<Expiry>) -> String {
    let roles: Vec<&str> = roles.iter().map(|role| &**role).collect();
    match expires {
        Some(end) => format!(":{}:{end}", roles.join(",")),
        None if roles.is_empty() => String::new(),
        None => format!(":{}", roles.join(",")),
    }
}
