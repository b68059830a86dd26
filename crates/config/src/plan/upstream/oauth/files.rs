//! The secrets and keys of a client, which a table has or names as files.

use std::fs::File;
use std::io;
use std::io::Read;
use std::path::{Path, PathBuf};

use creole::client::oauth::SecretText;

use crate::plan::file;
use crate::syntax::error::ConfigProblem;
use crate::syntax::value::Spanned;

/// The maximum size of a file.
const MAX_FILE: u64 = 64 * 1024;

/// A key of a table and its value.
type Written = (&'static str, Option<Spanned<String>>);

/// The secret in the table, or the first line of the file that the table names.
pub(in crate::plan) fn secret(
    (key, inline): Written,
    (file_key, path): Written,
    folder: &Path,
    files: &mut Vec<PathBuf>,
) -> Result<Option<SecretText>, ConfigProblem> {
    let (key, span, text) = match (inline, path) {
        (None, None) => return Ok(None),
        (Some(_), Some(path)) => {
            return Err(ConfigProblem::new(format!("there are both `{key}` and `{file_key}`"))
                .help("remove one of them")
                .at(path.span));
        }
        (Some(Spanned { value, span }), None) => (key, span, value),
        (None, Some(path)) => {
            let span = path.span.clone();
            let text = read(file_key, path, folder, files)?;
            (file_key, span, text.lines().next().unwrap_or_default().trim().to_owned())
        }
    };
    match !text.is_empty() && !text.chars().any(char::is_control) {
        true => Ok(Some(SecretText::new(text))),
        false => Err(ConfigProblem::new(format!(
            "the secret of `{key}` is empty or has a control character"
        ))
        .help("correct it")
        .at(span)
        .hide_value()),
    }
}

/// The text of a file of a private key. Others must not be able to read it.
pub(in crate::plan) fn private_key(
    written: Spanned<String>,
    folder: &Path,
    files: &mut Vec<PathBuf>,
) -> Result<SecretText, ConfigProblem> {
    let span = written.span.clone();
    let text = read("private_key_file", written, folder, files)?;
    #[cfg(unix)]
    if let Some(path) = files.last() {
        use std::os::unix::fs::PermissionsExt;

        let is_open = path.metadata().is_ok_and(|found| found.permissions().mode() & 0o077 != 0);
        if is_open {
            let path = path.display();
            return Err(ConfigProblem::new(format!(
                "other users can read the private key `{path}`"
            ))
            .help(format!("run: chmod 600 {path}"))
            .at(span));
        }
    }
    #[cfg(not(unix))]
    drop(span);
    Ok(SecretText::new(text))
}

/// The text of a file, whose path is recorded.
pub(in crate::plan) fn read(
    key: &str,
    written: Spanned<String>,
    folder: &Path,
    files: &mut Vec<PathBuf>,
) -> Result<String, ConfigProblem> {
    let span = written.span.clone();
    let path = folder.join(file(key, written)?);
    let text = text(&path).map_err(|error| {
        ConfigProblem::new(format!("cannot read `{}`: {error}", path.display()))
            .help(format!("correct `{key}`"))
            .at(span)
    })?;
    files.push(path);
    Ok(text)
}

fn text(path: &Path) -> io::Result<String> {
    // A read from a pipe would block.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    File::open(path)?.take(MAX_FILE).read_to_string(&mut text)?;
    Ok(text)
}
