//! `creole passwd`: adds, changes and removes users and keys.

mod store;
#[cfg(unix)]
mod terminal;

use std::io;
use std::io::{IsTerminal, Read};
use std::path::Path;

use creole::auth::AuthError;
use creole::internal::credential_files::{
    CredentialKind, CredentialText, Expiry, NewKey, Secret, password,
};

use crate::args::PasswdArgs;
use crate::failure::Failure;
use crate::output;
use store::LockedFile;

/// The maximum number of bytes read from stdin for a password.
const MAX_STDIN: u64 = 4096;

/// Runs the verb.
pub(crate) fn run(args: &PasswdArgs) -> Result<(), Failure> {
    let roles = Some(args.roles.as_slice()).filter(|roles| !roles.is_empty());
    match (&args.user, &args.key, &args.remove) {
        (Some(user), ..) => put_user(&args.file, user, roles),
        (_, Some(name), _) => put_key(&args.file, name, roles, args.expires),
        (_, _, Some(name)) => remove(&args.file, name),
        // The command line requires one of the three.
        (None, None, None) => Ok(()),
    }
}

fn put_user(file: &Path, user: &str, roles: Option<&[String]>) -> Result<(), Failure> {
    // Errors are reported before the user types a password.
    read(file, CredentialKind::Users)?.check(user, roles).map_err(usage)?;
    let password = password()?;
    password::check_strength(&password, user).map_err(Failure::Usage)?;
    let hash = password::hash(&password)
        .map_err(|error| Failure::Passwd(format!("cannot hash the password: {error}")))?;
    let store = LockedFile::open(file)?;
    let mut text = read(file, CredentialKind::Users)?;
    let replaced = text.put_user(user, &hash, roles).map_err(usage)?;
    store.write(&text.text())?;
    let done = if replaced { "has a new password in" } else { "was added to" };
    report_change(&text, user, done, file);
    Ok(())
}

fn put_key(
    file: &Path,
    name: &str,
    roles: Option<&[String]>,
    expires: Option<Expiry>,
) -> Result<(), Failure> {
    if expires.is_some_and(|end| end.has_passed(std::time::SystemTime::now())) {
        return Err(Failure::Usage("the expiry of the key is in the past".to_owned()));
    }
    let key = NewKey::random();
    let store = LockedFile::open(file)?;
    let mut text = read(file, CredentialKind::Keys)?;
    let replaced = text.put_key(name, &key, roles, expires).map_err(usage)?;
    store.write(&text.text())?;
    let done = if replaced { "has a new key in" } else { "was added to" };
    report_change(&text, name, done, file);
    output::write_message("creole: this is the key; it is shown only once:");
    output::write_data(&format!("{}\n", String::from_utf8_lossy(key.key.expose())))
}

fn remove(file: &Path, name: &str) -> Result<(), Failure> {
    let store = LockedFile::open(file)?;
    let printed = creole::internal::credential_files::read_credential_file(file)?;
    let kind = CredentialKind::detect(&printed);
    let mut text = CredentialText::parse(&printed, kind, file)?;
    if !text.remove(name) {
        let message = format!("`{name}` is not in {}", file.display());
        return Err(Failure::Passwd(message));
    }
    store.write(&text.text())?;
    output::write_message(&format!("creole: `{name}` was removed from {}", file.display()));
    Ok(())
}

fn report_change(text: &CredentialText, name: &str, done: &str, file: &Path) {
    let roles = match text.roles_of(name).as_slice() {
        [] => "no role".to_owned(),
        [role] => format!("the role {role}"),
        roles => format!("the roles {}", roles.join(", ")),
    };
    output::write_message(&format!("creole: `{name}` {done} {}, with {roles}", file.display()));
}

/// The content of the file. Empty if the file does not exist.
fn read(file: &Path, kind: CredentialKind) -> Result<CredentialText, Failure> {
    match file.try_exists() {
        Ok(false) => Ok(CredentialText::new(kind)),
        _ => Ok(CredentialText::parse(
            &creole::internal::credential_files::read_credential_file(file)?,
            kind,
            file,
        )?),
    }
}

/// The error for an invalid name or role on the command line.
fn usage(error: AuthError) -> Failure {
    Failure::Usage(error.to_string())
}

/// Reads the password: twice at a terminal, hidden; otherwise from the first line of stdin.
fn password() -> Result<Secret, Failure> {
    if !io::stdin().is_terminal() {
        return first_line(io::stdin().lock());
    }
    let password = terminal::ask("New password: ")?;
    let again = terminal::ask("Repeat the password: ")?;
    if password.expose() != again.expose() {
        return Err(Failure::Usage("the two passwords differ".to_owned()));
    }
    Ok(password)
}

/// Other systems have no way to hide the input of a terminal.
#[cfg(not(unix))]
mod terminal {
    use super::{Failure, Secret};

    pub(super) fn ask(_prompt: &str) -> Result<Secret, Failure> {
        let what = "the terminal would show the password; write it to stdin";
        Err(Failure::Usage(what.to_owned()))
    }
}

fn first_line(input: impl Read) -> Result<Secret, Failure> {
    let mut bytes = Vec::new();
    input
        .take(MAX_STDIN)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::Passwd(format!("cannot read stdin: {error}")))?;
    if bytes.is_empty() {
        let description =
            "stdin has no password; write it to stdin, or run the command in a terminal";
        return Err(Failure::Usage(description.to_owned()));
    }
    Ok(line_of(bytes))
}

/// The bytes up to the first line break.
fn line_of(mut bytes: Vec<u8>) -> Secret {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    bytes.truncate(end);
    if bytes.last() == Some(&b'\r') {
        bytes.pop();
    }
    Secret::from(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_the_password() {
        let read = |text: &str| first_line(text.as_bytes()).unwrap().expose().to_vec();
        assert_eq!(read("correct horse\nbattery\n"), b"correct horse");
        assert_eq!(read("correct horse\r\n"), b"correct horse");
        assert_eq!(read("correct horse"), b"correct horse");
        assert_eq!(read(" spaces stay \n"), b" spaces stay ");
        assert!(first_line(&b""[..]).is_err());
    }
}
