//! Reads files of users and of keys: one entry per line, comments with `#`, safe to edit by hand.
//!
//! ```text
//! # name:hash of the password:roles
//! alice:$argon2id$v=19$m=19456,t=2,p=1$…$…:mcp,admin
//!
//! # name:SHA-256 of the key:roles:end
//! ci:$sha256$9f86d081…:mcp:2027-01-31T00:00:00Z
//! ```
//!
//! Roles and expiry are optional. A hash has no colon in it, so the parts are unambiguous.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use argon2::password_hash::phc::PasswordHash;

use super::expiry::Expiry;
use crate::auth::error::AuthError;
use crate::auth::{Digest, password};

/// Maximum size of a file in bytes.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// Maximum length of the name of a user, a key or a role.
const MAX_NAME_BYTES: usize = 64;
/// Maximum number of roles of one user or key.
const MAX_ROLES: usize = 32;

/// The prefix of a key's SHA-256 in a file.
pub(in crate::auth) const KEY_HASH_PREFIX: &str = "$sha256$";

/// The kind of entries in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialKind {
    /// Users with passwords.
    Users,
    /// Programs with keys.
    Keys,
}

impl CredentialKind {
    /// The kind of a file's entries, by its first entry; users for an empty file.
    #[must_use]
    pub fn detect(text: &str) -> Self {
        let mut lines = text.lines().map(str::trim);
        let entry = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
        let hash = entry.and_then(|line| line.split(':').nth(1)).unwrap_or_default();
        if hash.trim().starts_with(KEY_HASH_PREFIX) { Self::Keys } else { Self::Users }
    }
}

/// One user or key.
#[derive(Clone, Debug)]
pub(in crate::auth) struct CredentialEntry {
    pub(in crate::auth) line: usize,
    pub(in crate::auth) name: String,
    pub(in crate::auth) credential: StoredCredential,
    pub(in crate::auth) roles: Arc<[Arc<str>]>,
}

/// The stored form of a secret.
#[derive(Clone, Debug)]
pub(in crate::auth) enum StoredCredential {
    Password(Arc<PasswordHash>),
    Key { digest: Digest, expires: Option<Expiry> },
}

/// Reads a file.
pub(in crate::auth) fn read_entries(
    path: &Path,
    kind: CredentialKind,
) -> Result<Vec<CredentialEntry>, AuthError> {
    let text = read_credential_file(path)?;
    parse(&text, kind).map_err(|error| explain_error(error, kind, path))
}

/// The text of a file that is readable, not too large, and writable by its owner only.
///
/// # Errors
/// When it is not.
pub fn read_credential_file(path: &Path) -> Result<String, AuthError> {
    read_text(path).map_err(|error| error.in_file(path))
}

fn read_text(path: &Path) -> Result<String, AuthError> {
    let cannot = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            AuthError::new("the file does not exist; `creole passwd` creates it")
        }
        _ => AuthError::new(format!("cannot read the file: {error}")),
    };
    // Checked before it is opened, because opening a pipe would wait for a writer.
    if !std::fs::metadata(path).map_err(cannot)?.is_file() {
        return Err(AuthError::new("it is not a regular file"));
    }
    let file = File::open(path).map_err(cannot)?;
    check_mode(path, &file)?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(AuthError::new(format!("the file is larger than {MAX_FILE_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
        AuthError::new("the file is not UTF-8 text").help("save the file as UTF-8").at_line(line)
    })
}

/// A user that can write the file can grant itself access, so that is an error. A user that can only read it can at
/// most try passwords against the hashes, and secrets are often mounted world-readable: that is a warning.
#[cfg(unix)]
fn check_mode(path: &Path, file: &File) -> Result<(), AuthError> {
    use std::os::unix::fs::PermissionsExt;

    let metadata = file.metadata();
    let mode = metadata.map_or(0, |metadata| metadata.permissions().mode());
    if mode & 0o022 != 0 {
        let message =
            format!("users other than the owner may write the file (mode {:03o})", mode & 0o777);
        return Err(AuthError::new(message).help(format!("chmod 600 {}", path.display())));
    }
    if mode & 0o004 != 0 {
        tracing::warn!(
            file = %path.display(),
            "every user of this machine can read the file; make it private with chmod 600"
        );
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_mode(_path: &Path, _file: &File) -> Result<(), AuthError> {
    Ok(())
}

/// The entries of a text.
pub(in crate::auth) fn parse(
    text: &str,
    kind: CredentialKind,
) -> Result<Vec<CredentialEntry>, AuthError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut entries = Vec::new();
    let mut seen: HashMap<String, usize> = HashMap::new();
    for (index, line) in text.lines().enumerate() {
        let (number, line) = (index + 1, line.trim());
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let entry = parse_line(number, line, kind).map_err(|error| error.at_line(number))?;
        if let Some(first) = seen.insert(entry.name.clone(), number) {
            let message = format!("`{}` is already defined in line {first}", entry.name);
            return Err(AuthError::new(message).at_line(number));
        }
        entries.push(entry);
    }
    Ok(entries)
}

fn parse_line(
    number: usize,
    line: &str,
    kind: CredentialKind,
) -> Result<CredentialEntry, AuthError> {
    let mut parts = line.splitn(3, ':').map(str::trim);
    let name = parts.next().unwrap_or_default();
    let Some(hash) = parts.next() else {
        let right = match kind {
            CredentialKind::Users => "a line is `name:hash` or `name:hash:role,role`",
            CredentialKind::Keys => {
                "a line is `name:hash`, `name:hash:role,role` or `name:hash:roles:expiry`"
            }
        };
        return Err(AuthError::new("the line has no colon").help(right));
    };
    check_name("name", name)?;
    let rest = parts.next().unwrap_or_default();
    let (roles, expires) = match kind {
        CredentialKind::Users => (rest, None),
        CredentialKind::Keys => split_expiry(rest),
    };
    let roles = parse_roles(roles)?;
    let proof = match kind {
        CredentialKind::Users => parse_user_credential(hash),
        CredentialKind::Keys => parse_key_credential(hash, expires),
    };
    let proof = proof.map_err(|mut error| {
        error.message = format!("of `{name}`: {}", error.message);
        error
    })?;
    Ok(CredentialEntry { line: number, name: name.to_owned(), credential: proof, roles })
}

/// The roles of the admin listener, the only ones with a colon.
const ADMIN_ROLES: [&str; 3] = ["admin:read", "admin:operate", "admin:approve"];

/// Divides `roles:expiry`. The colon of an admin role does not end the roles.
fn split_expiry(text: &str) -> (&str, Option<&str>) {
    let mut start = 0;
    while let Some(found) = text[start..].find(':') {
        let colon = start + found;
        let role = text[..colon].rfind(',').map_or(0, |comma| comma + 1);
        let role = text[role..].trim_start();
        match ADMIN_ROLES.iter().find(|known| role.starts_with(**known)) {
            Some(_) if colon + 1 == text.len() - role.len() + "admin:".len() => start = colon + 1,
            _ => return (text[..colon].trim(), Some(text[colon + 1..].trim())),
        }
    }
    (text, None)
}

fn parse_user_credential(hash: &str) -> Result<StoredCredential, AuthError> {
    if hash.starts_with(KEY_HASH_PREFIX) {
        let description = "a key hash in a file of users";
        return Err(AuthError::new(description).help("put keys into the file of `keys_file`"));
    }
    password::parse_hash(hash)
        .map(|hash| StoredCredential::Password(Arc::new(hash)))
        .map_err(AuthError::new)
}

fn parse_key_credential(hash: &str, expires: Option<&str>) -> Result<StoredCredential, AuthError> {
    if hash.starts_with("$argon2") {
        let description = "a password hash in a file of keys";
        return Err(AuthError::new(description).help("put users into the file of `users`"));
    }
    let digest = hash
        .strip_prefix(KEY_HASH_PREFIX)
        .and_then(digest_of_hex)
        .ok_or_else(|| AuthError::new("the value is not a hash; it may be the key itself"))?;
    Ok(StoredCredential::Key { digest, expires: expires.map(parse_expiry).transpose()? })
}

/// Parses a digest from 64 hexadecimal digits.
pub(in crate::auth) fn digest_of_hex(text: &str) -> Option<Digest> {
    let nibble =
        |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let bytes = text.as_bytes();
    let mut digest = Digest::default();
    if bytes.len() != digest.len() * 2 {
        return None;
    }
    for (slot, pair) in digest.iter_mut().zip(bytes.chunks_exact(2)) {
        *slot = nibble(pair[0])? << 4 | nibble(pair[1])?;
    }
    Some(digest)
}

pub(in crate::auth) fn parse_expiry(text: &str) -> Result<Expiry, AuthError> {
    let right = "write it like 2027-01-31 or 2027-01-31T12:00:00Z";
    text.parse().map_err(|_| AuthError::new("the expiry is not a valid date").help(right))
}

/// Names and roles are simple words, so that they mean the same in a header, a log and a list.
pub(in crate::auth) fn check_name(description: &str, name: &str) -> Result<(), AuthError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+@".contains(&byte);
    if name.is_empty() {
        Err(AuthError::new(format!("the {description} is empty")))
    } else if name.len() > MAX_NAME_BYTES {
        Err(AuthError::new(format!("the {description} is longer than {MAX_NAME_BYTES} characters")))
    } else if !(name.bytes().all(is_plain) || description == "role" && ADMIN_ROLES.contains(&name))
    {
        let message = format!("the {description} contains a character that is not allowed");
        Err(AuthError::new(message).help("use letters A to Z, digits and . _ - + @"))
    } else {
        Ok(())
    }
}

fn parse_roles(text: &str) -> Result<Arc<[Arc<str>]>, AuthError> {
    if text.is_empty() {
        return Ok(Arc::default());
    }
    check_roles(text.split(',').map(str::trim))
}

pub(in crate::auth) fn check_roles<'a>(
    roles: impl Iterator<Item = &'a str>,
) -> Result<Arc<[Arc<str>]>, AuthError> {
    let mut checked: Vec<Arc<str>> = Vec::new();
    for role in roles {
        check_name("role", role)?;
        if checked.iter().any(|each| &**each == role) {
            return Err(AuthError::new(format!("the role `{role}` is listed twice")));
        }
        checked.push(role.into());
    }
    if checked.len() > MAX_ROLES {
        return Err(AuthError::new(format!("there are more than {MAX_ROLES} roles")));
    }
    Ok(checked.into())
}

/// The error with its file, and the command that would write a correct entry.
pub(in crate::auth) fn explain_error(
    error: AuthError,
    kind: CredentialKind,
    path: &Path,
) -> AuthError {
    let shown = path.display();
    let command = match kind {
        CredentialKind::Users => {
            format!("`creole passwd {shown} NAME` stores the hash of a password")
        }
        CredentialKind::Keys => {
            format!("`creole passwd {shown} --key NAME` creates a key and stores its hash")
        }
    };
    let error = if error.help.is_none() && error.message.contains("hash") {
        error.help(command)
    } else {
        error
    };
    error.in_file(path)
}

#[cfg(test)]
#[path = "file/tests.rs"]
mod tests;
