//! One-time links: a user that can read a private file of the process signs in without a password.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use creole::internal::seal::digest;
use creole::internal::sync::Mutex;
use creole::internal::task::random_id;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

/// How long a token is accepted.
const LIFETIME: Duration = Duration::from_secs(10 * 60);
/// After what time the file gets another token, so that one that was just read is accepted for a while.
const RENEWAL: Duration = Duration::from_secs(5 * 60);
/// What the names of the files begin and end with.
const PREFIX: &str = "admin-";
const SUFFIX: &str = ".json";
/// Maximum size of a file in bytes.
const MAX_FILE: u64 = 16 * 1024;
/// Maximum number of files that are read.
const MAX_FILES: usize = 64;

/// The content of a file: where a process listens, and a token that signs in once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdminLink {
    /// The address of the listener: `http://127.0.0.1:9464`, or `unix:/run/creole/admin.sock`.
    pub url: String,
    /// The id of the process.
    pub pid: u32,
    /// The token.
    pub token: String,
}

impl AdminLink {
    /// The address of the page that signs in.
    pub fn page(&self) -> String {
        format!("{}/#t={}", self.url, self.token)
    }
}

/// The file of one process.
#[derive(Debug)]
pub(crate) struct LinkFile {
    path: PathBuf,
    url: String,
}

impl LinkFile {
    /// The file for a listener at this address.
    pub(crate) fn new(folder: &Path, url: String) -> Self {
        let name = creole_proto::wire::hex(&digest(url.as_bytes())[..8]);
        Self { path: folder.join(format!("{PREFIX}{name}{SUFFIX}")), url }
    }

    /// Replaces the token in the file.
    fn write(&self, token: &str) -> io::Result<()> {
        let (url, pid) = (self.url.clone(), std::process::id());
        let link = AdminLink { url, pid, token: token.to_owned() };
        if let Some(folder) = self.path.parent() {
            create_private_folder(folder)?;
        }
        let name = random_id().map_err(|fault| io::Error::other(fault.detail))?;
        let new = self.path.with_extension(format!("{}.new", &name[..8]));
        write_private(&new, &serde_json::to_vec(&link)?)?;
        std::fs::rename(&new, &self.path).inspect_err(|_| _ = std::fs::remove_file(&new))
    }
}

impl Drop for LinkFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(unix)]
fn create_private_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn create_private_folder(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)
}

fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    io::Write::write_all(&mut options.open(path)?, bytes)
}

/// The links of all processes that wrote one into this folder. Some of the processes may be gone.
pub fn read_links(folder: &Path) -> Vec<AdminLink> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let is_link = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with(PREFIX) && name.ends_with(SUFFIX)
    };
    let mut files: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(is_link).collect();
    files.sort();
    files.truncate(MAX_FILES);
    let read = |path: &PathBuf| {
        let file = std::fs::File::open(path).ok()?;
        serde_json::from_reader(io::Read::take(file, MAX_FILE)).ok()
    };
    files.iter().filter_map(read).collect()
}

/// The tokens that are accepted once.
pub(super) struct OneTimeLinks {
    file: Option<LinkFile>,
    /// The digests of unused tokens, the newest last.
    tokens: Mutex<Vec<([u8; 32], Instant)>>,
}

impl OneTimeLinks {
    /// Writes the first token. Without a file there are no links.
    pub(super) fn new(file: Option<LinkFile>) -> Self {
        let links = Self { file, tokens: Mutex::default() };
        links.write_new();
        links
    }

    /// Uses up a token; whether it was accepted. The file gets another one before this returns.
    pub(super) fn take(&self, token: &str) -> bool {
        let (now, key) = (Instant::now(), digest(token.as_bytes()));
        let taken = {
            let mut tokens = self.tokens.lock();
            tokens.retain(|(_, made)| now < *made + LIFETIME);
            let found = tokens.iter().position(|(known, _)| *known == key);
            found.map(|index| tokens.remove(index)).is_some()
        };
        if taken {
            self.write_new();
        }
        taken
    }

    /// Writes another token from time to time.
    pub(super) async fn renew(&self) {
        if self.file.is_none() {
            return std::future::pending().await;
        }
        loop {
            sleep(RENEWAL).await;
            self.write_new();
        }
    }

    fn write_new(&self) {
        let Some(file) = &self.file else { return };
        let Ok(token) = random_id() else { return };
        let now = Instant::now();
        {
            let mut tokens = self.tokens.lock();
            tokens.retain(|(_, made)| now < *made + LIFETIME);
            tokens.push((digest(token.as_bytes()), now));
        }
        if let Err(error) = file.write(&token) {
            let path = file.path.display();
            tracing::warn!(target: "creole::admin", %error, %path, "the file of the one-time link cannot be written");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(folder: &Path) -> OneTimeLinks {
        OneTimeLinks::new(Some(LinkFile::new(folder, "http://127.0.0.1:1".to_owned())))
    }

    fn only_token(folder: &Path) -> String {
        let links = read_links(folder);
        assert_eq!(links.len(), 1, "{links:?}");
        assert_eq!(links[0].page(), format!("http://127.0.0.1:1/#t={}", links[0].token));
        links[0].token.clone()
    }

    #[cfg(unix)]
    #[tokio::test(start_paused = true)]
    async fn a_token_is_accepted_once_and_another_one_is_in_a_private_file() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("creole");
        let links = links(&folder);
        let first = only_token(&folder);
        let file = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(links.take(&first) && !links.take(&first) && !links.take(""));
        let second = only_token(&folder);
        assert_ne!(first, second);
        assert!(links.take(&second));
        drop(links);
        assert_eq!(read_links(&folder), []);
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_accepted_for_ten_minutes_and_the_file_has_a_younger_one() {
        let folder = tempfile::tempdir().unwrap();
        let links = links(folder.path());
        let first = only_token(folder.path());
        let minutes = |count: u64| Duration::from_secs(count * 60 + 1);
        assert!(tokio::time::timeout(minutes(5), links.renew()).await.is_err());
        let second = only_token(folder.path());
        assert_ne!(first, second);
        tokio::time::advance(minutes(5)).await;
        assert!(!links.take(&first) && links.take(&second));
    }
}
