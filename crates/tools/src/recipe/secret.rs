//! Secrets that are never displayed, and their sources.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use creole::ToolError;

/// Maximum size of a secret file, in bytes.
const MAX_SECRET_BYTES: u64 = 65_536;
/// The replacement for a secret.
const REDACTED: &str = "[secret]";
/// Shorter texts are not redacted: they would match everywhere.
const MIN_REDACTED_CHARS: usize = 6;

/// A possibly secret text. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

/// The source of a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    /// The secret itself.
    Inline(Secret),
    /// A file, which is read at each call, so that it may change.
    File(PathBuf),
}

impl SecretSource {
    /// Reads the secret; from a file, without the final line end.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn get(&self) -> Result<Secret, ToolError> {
        match self {
            Self::Inline(secret) => Ok(secret.clone()),
            Self::File(path) => {
                let mut text = String::new();
                // Callers learn neither the file's name nor its error.
                let read = open_regular_file(path).and_then(|file| {
                    file.take(MAX_SECRET_BYTES)
                        .read_to_string(&mut text)
                        .map(|_| text.trim_end().len())
                });
                match read {
                    Ok(length) => {
                        text.truncate(length);
                        Ok(Secret(text))
                    }
                    Err(error) => {
                        tracing::error!("cannot read a secret from {}: {error}", path.display());
                        Err(ToolError::failed("cannot read a secret of this tool"))
                    }
                }
            }
        }
    }
}

/// Opens a regular file. Other kinds could block.
fn open_regular_file(path: &Path) -> io::Result<File> {
    match path.metadata()?.is_file() {
        true => File::open(path),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

/// Replaces the secrets in a text.
pub(super) fn redact(text: &str, secrets: &[Secret]) -> String {
    let mut covered = text.to_owned();
    for Secret(secret) in secrets.iter().filter(|Secret(secret)| secret.len() >= MIN_REDACTED_CHARS)
    {
        if covered.contains(secret.as_str()) {
            covered = covered.replace(secret.as_str(), REDACTED);
        }
    }
    covered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_printed_and_is_found_in_output() {
        let secret = Secret("hunter2000".into());
        assert_eq!(format!("{:?}", SecretSource::Inline(secret.clone())), "Inline(Secret(…))");
        let text = redact("token hunter2000 is wrong", &[secret, Secret("is".into())]);
        assert_eq!(text, "token [secret] is wrong");
    }

    #[test]
    fn a_file_is_read_each_time_without_its_line_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let secret = SecretSource::File(path.clone());
        assert!(secret.get().is_err());
        for text in ["one\n", "two"] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(secret.get().unwrap().0, text.trim_end());
        }
    }
}
