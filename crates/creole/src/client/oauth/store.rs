//! The files in which logins are stored: one for each server, readable by their owner only.
//!
//! Several processes share the files. Each file has a lock file beside it. A process that refreshes a login holds the
//! lock from reading the file until the new tokens are written, because many authorization servers revoke a login whose
//! refresh token is used twice.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, fs, io};

use creole_oauth::tokens::client::{ClientSource, OAuthClient};
use creole_oauth::tokens::login::{LOGIN_VERSION, Login};
use creole_oauth::web_url::WebUrl;
use creole_proto::wire::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};

/// The maximum size of a file, in bytes.
const MAX_FILE_BYTES: u64 = 128 * 1024;

/// How long a process waits for the lock of a login.
const LOCK_TIMEOUT: Duration = Duration::from_secs(15);

/// How long a process waits while another one asks the person.
const PROMPT_TIMEOUT: Duration = Duration::from_secs(3_600);

/// The time between two attempts to get the lock.
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(50);

/// A folder with logins.
#[derive(Clone, Debug)]
pub struct LoginStore {
    folder: PathBuf,
}

/// Which login of a server: each configured client has its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginKey {
    /// The address of the MCP server in its canonical form: `https://x` and `https://x/` have the same login.
    server: String,
    client_id: String,
}

impl LoginKey {
    /// The key of the login to the MCP server at this address. The client is the configured one.
    pub fn new(server: &str, client_id: Option<&str>) -> Self {
        let canonical = WebUrl::parse(server).map(|url| url.canonical());
        let server = canonical.unwrap_or_else(|_| server.to_owned());
        Self { server, client_id: client_id.unwrap_or_default().to_owned() }
    }

    /// The key of a stored login.
    pub fn of(login: &Login) -> Self {
        let is_configured = login.client.source == ClientSource::Configured;
        Self::new(&login.server, is_configured.then_some(login.client.id.as_str()))
    }

    /// Whether both logins are to the same server.
    pub fn is_same_server(&self, other: &Self) -> bool {
        self.server == other.server
    }

    /// The id of the configured client, if there is one.
    pub fn client_id(&self) -> Option<&str> {
        Some(self.client_id.as_str()).filter(|id| !id.is_empty())
    }
}

/// The lock of one login. Dropping it releases the lock.
#[derive(Debug)]
pub struct LockedLogin {
    path: PathBuf,
    _lock: File,
}

/// A registration at an issuer, as it is stored.
#[derive(Serialize, Deserialize)]
struct StoredClient {
    issuer: String,
    client: OAuthClient,
}

/// Why a login cannot be read or written.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// The file cannot be read or written.
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// Other users can read the file, or it belongs to another user, or it is a link.
    NotPrivate {
        /// The file.
        path: PathBuf,
    },
    /// The file is not a login, or one of a later version.
    Unreadable {
        /// The file.
        path: PathBuf,
    },
    /// Another process holds the lock.
    Locked {
        /// The file.
        path: PathBuf,
    },
}

impl fmt::Display for StoreError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, error } => {
                write!(formatter, "the login file {} cannot be used: {error}", path.display())
            }
            Self::NotPrivate { path } => {
                let path = path.display();
                write!(formatter, "the login file {path} is not private; run: chmod 600 {path}")
            }
            Self::Unreadable { path } => {
                let path = path.display();
                write!(
                    formatter,
                    "the login file {path} is not a login of this version; delete it or update Creole"
                )
            }
            Self::Locked { .. } => formatter.write_str("another process is refreshing this login"),
        }
    }
}

impl std::error::Error for StoreError {}

impl LoginStore {
    /// The logins in a folder, which is created with the first login.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Reads a login.
    ///
    /// # Errors
    /// When the file is not private or cannot be read.
    pub fn read(&self, key: &LoginKey) -> Result<Option<Login>, StoreError> {
        let login: Option<Login> = read_file(&self.login_path(key))?;
        Ok(login.filter(|login| LoginKey::of(login).is_same_server(key)))
    }

    /// All logins, in the order of their servers.
    ///
    /// # Errors
    /// When the folder or a file cannot be read.
    pub fn all(&self) -> Result<Vec<Login>, StoreError> {
        let mut logins = Vec::new();
        for path in self.files()?.into_iter().filter(|path| !is_client(path)) {
            logins.extend(read_file::<Login>(&path)?);
        }
        logins.sort_by(|left, right| left.server.cmp(&right.server));
        Ok(logins)
    }

    /// Waits for the lock of a login, at most 15 seconds.
    ///
    /// # Errors
    /// When another process holds the lock, or the folder cannot be written.
    pub async fn lock(&self, key: &LoginKey) -> Result<LockedLogin, StoreError> {
        self.lock_file(key, "lock", LOCK_TIMEOUT).await
    }

    /// Waits until no other process asks a person about this login.
    ///
    /// # Errors
    /// When another process asks for an hour, or the folder cannot be written.
    pub(super) async fn lock_prompt(&self, key: &LoginKey) -> Result<LockedLogin, StoreError> {
        self.lock_file(key, "prompt", PROMPT_TIMEOUT).await
    }

    async fn lock_file(
        &self,
        key: &LoginKey,
        extension: &str,
        timeout: Duration,
    ) -> Result<LockedLogin, StoreError> {
        let path = self.login_path(key);
        let failed = |error| StoreError::Io { path: path.clone(), error };
        self.create_folder().map_err(failed)?;
        let lock = path.with_extension(extension);
        let lock = private_options().create(true).truncate(false).open(lock).map_err(failed)?;
        let since = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(LockedLogin { path, _lock: lock }),
                Err(TryLockError::WouldBlock) if since.elapsed() < timeout => {
                    sleep(LOCK_RETRY_DELAY).await;
                }
                Err(TryLockError::WouldBlock) => return Err(StoreError::Locked { path }),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
    }

    /// The registrations, with their issuers.
    ///
    /// # Errors
    /// When the folder or a file cannot be read.
    pub fn clients(&self) -> Result<Vec<(String, OAuthClient)>, StoreError> {
        let mut clients = Vec::new();
        for path in self.files()?.into_iter().filter(|path| is_client(path)) {
            let stored: Option<StoredClient> = read_file(&path)?;
            clients.extend(stored.map(|stored| (stored.issuer, stored.client)));
        }
        Ok(clients)
    }

    /// Stores the registration at an issuer, or deletes it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn set_client(&self, issuer: &str, client: Option<&OAuthClient>) -> Result<(), StoreError> {
        let path = self.client_path(issuer);
        let Some(client) = client else { return delete(&path) };
        self.create_folder().map_err(|error| StoreError::Io { path: path.clone(), error })?;
        write_file(&path, &StoredClient { issuer: issuer.to_owned(), client: client.clone() })
    }

    fn files(&self) -> Result<Vec<PathBuf>, StoreError> {
        let failed = |error| StoreError::Io { path: self.folder.clone(), error };
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let paths = entries.map(|entry| entry.map(|entry| entry.path()).map_err(failed));
        let mut paths = paths.collect::<Result<Vec<_>, _>>()?;
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        Ok(paths)
    }

    fn login_path(&self, key: &LoginKey) -> PathBuf {
        let name = digest(["creole login 1", &key.server, &key.client_id]);
        self.folder.join(format!("{name}.json"))
    }

    fn client_path(&self, issuer: &str) -> PathBuf {
        self.folder.join(format!("client-{}.json", digest(["creole client 1", issuer, ""])))
    }

    fn create_folder(&self) -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.folder)
    }
}

impl LockedLogin {
    /// Reads the login as the last holder of the lock left it.
    ///
    /// # Errors
    /// When the file is not private or cannot be read.
    pub fn read(&self) -> Result<Option<Login>, StoreError> {
        read_file(&self.path)
    }

    /// Replaces the login. A reader sees the old tokens or the new ones, also after a crash.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, login: &Login) -> Result<(), StoreError> {
        write_file(&self.path, login)
    }

    /// Deletes the login.
    ///
    /// # Errors
    /// When the file cannot be deleted.
    pub fn delete(&self) -> Result<(), StoreError> {
        delete(&self.path)
    }
}

/// What is stored in a file.
trait Stored: Serialize + for<'de> Deserialize<'de> {
    /// Whether this version of Creole knows its form.
    fn is_known(&self) -> bool;
}

impl Stored for Login {
    fn is_known(&self) -> bool {
        self.version == LOGIN_VERSION
    }
}

impl Stored for StoredClient {
    fn is_known(&self) -> bool {
        true
    }
}

fn read_file<T: Stored>(path: &Path) -> Result<Option<T>, StoreError> {
    let failed = |error| StoreError::Io { path: path.to_owned(), error };
    let file = match open_private(path) {
        Ok(file) => file.ok_or_else(|| StoreError::NotPrivate { path: path.to_owned() })?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut text = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut text).map_err(failed)?;
    let stored = serde_json::from_slice(&text).ok().filter(T::is_known);
    stored.map(Some).ok_or_else(|| StoreError::Unreadable { path: path.to_owned() })
}

/// Opens a file; `None` if it is a link, belongs to another user, or others can read it.
#[cfg(unix)]
fn open_private(path: &Path) -> io::Result<Option<File>> {
    use std::os::unix::fs::MetadataExt;

    if fs::symlink_metadata(path)?.is_symlink() {
        return Ok(None);
    }
    let file = File::open(path)?;
    let found = file.metadata()?;
    let is_own = found.uid() == rustix::process::geteuid().as_raw();
    Ok((found.is_file() && found.mode() & 0o077 == 0 && is_own).then_some(file))
}

#[cfg(not(unix))]
fn open_private(path: &Path) -> io::Result<Option<File>> {
    File::open(path).map(Some)
}

fn write_file<T: Stored>(path: &Path, stored: &T) -> Result<(), StoreError> {
    let text = serde_json::to_vec_pretty(stored).map_err(io::Error::from);
    let written = text.and_then(|text| replace(path, &text));
    written.map_err(|error| StoreError::Io { path: path.to_owned(), error })
}

/// Writes a file beside the old one and renames it.
fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let draft = path.with_extension(format!("{}.new", std::process::id()));
    // Left behind by an earlier process with the same id that was killed.
    let _ = fs::remove_file(&draft);
    let mut file = private_options().create_new(true).open(&draft)?;
    let written = file.write_all(text).and_then(|()| file.sync_all());
    let renamed = written.and_then(|()| fs::rename(&draft, path));
    if renamed.is_err() {
        let _ = fs::remove_file(&draft);
    }
    renamed?;
    // The new name is durable only after the folder is synced.
    match path.parent() {
        Some(folder) if cfg!(unix) => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

fn delete(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(StoreError::Io { path: path.to_owned(), error })
        }
        _ => Ok(()),
    }
}

fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn is_client(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("client-"))
}

/// The first 16 bytes of a hash over texts of any length, as 32 digits.
fn digest(texts: [&str; 3]) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
    }
    hex(&hash.finalize()[..16])
}

#[cfg(test)]
mod tests;
