//! Tokens in a file that another program writes, and replaces before they expire.

use std::fs::File;
use std::io;
use std::io::Read;
use std::path::{Path, PathBuf};

use creole_proto::fault::Fault;

use super::token::MAX_TEXT_BYTES;
use super::{Authorization, Credentials, Refusal, token};
use crate::chain::BoxFuture;

/// A file whose first line is a token, which is sent as `Bearer`.
#[derive(Clone, Debug)]
pub struct TokenFile {
    server: String,
    path: PathBuf,
}

impl TokenFile {
    /// The file with the token for the server of this name.
    pub fn new(server: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self { server: server.into(), path: path.into() }
    }

    fn read(&self) -> Result<Authorization, Fault> {
        let missing = |reason: &str| token::missing_token(&self.server, reason);
        match read_limited(&self.path) {
            Ok(text) => token::parse_token(&text)
                .map_err(|invalid| missing(&format!("the token file {invalid}"))),
            Err(error) => {
                // The path goes to the operator only, not to callers.
                let (path, upstream) = (self.path.display(), &*self.server);
                tracing::error!(upstream, "cannot read the token from {path}: {error}");
                Err(missing(match error.kind() {
                    io::ErrorKind::NotFound => "the token file does not exist",
                    io::ErrorKind::PermissionDenied => {
                        "there is no permission to read the token file"
                    }
                    _ => "the token file cannot be read",
                }))
            }
        }
    }
}

fn read_limited(path: &Path) -> io::Result<Vec<u8>> {
    // A read from a pipe would block.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = Vec::new();
    File::open(path)?.take(MAX_TEXT_BYTES as u64 + 1).read_to_end(&mut text)?;
    Ok(text)
}

impl Credentials for TokenFile {
    fn fetch(
        &self,
        _refusal: Option<Refusal>,
    ) -> BoxFuture<'static, Result<Option<Authorization>, Fault>> {
        let (file, server) = (self.clone(), self.server.clone());
        Box::pin(async move {
            let read = tokio::task::spawn_blocking(move || file.read().map(Some)).await;
            read.unwrap_or_else(|_| {
                Err(token::missing_token(&server, "the token file cannot be read"))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_is_read_each_time_and_its_errors_are_reported_without_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("canary");
        let file = TokenFile::new("site", &path);
        let fetched = async || file.fetch(None).await.map_err(|fault| fault.detail);
        let invalid = "cannot get a token for `site`: the token file does not exist";
        assert_eq!(fetched().await.unwrap_err(), invalid);
        for token in ["one", "two"] {
            std::fs::write(&path, format!("{token}\n")).unwrap();
            assert_eq!(fetched().await.unwrap().unwrap().secret(), token);
        }
        let folder = TokenFile::new("site", folder.path());
        assert!(folder.fetch(None).await.unwrap_err().detail.ends_with("cannot be read"));
    }
}
