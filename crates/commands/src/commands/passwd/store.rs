//! Replaces a file atomically.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use crate::failure::Failure;

/// The number of attempts to lock the folder, and the time between them: five seconds in total.
const LOCK_ATTEMPTS: u32 = 50;
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(100);

/// A file that is locked against other runs of this command until this is dropped.
#[derive(Debug)]
pub(super) struct LockedFile {
    /// The file itself, with links resolved.
    path: PathBuf,
    folder: PathBuf,
    /// Holds the lock.
    _lock: Option<File>,
}

impl LockedFile {
    /// Waits until no other run of this command changes a file in the same folder.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let cannot = |error: io::Error| cannot_write(path, &error);
        let path = match fs::canonicalize(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(cannot(error)),
            found => found.unwrap_or_else(|_| path.to_owned()),
        };
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        let lock = lock(&folder).map_err(cannot)?;
        Ok(Self { path, folder, _lock: lock })
    }

    /// Replaces the file: a reader sees the old text or the new one, also after a power failure.
    pub(super) fn write(&self, text: &str) -> Result<(), Failure> {
        self.replace(text).map_err(|error| cannot_write(&self.path, &error))
    }

    fn replace(&self, text: &str) -> io::Result<()> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let draft = self.folder.join(format!(".{name}.{}.new", std::process::id()));
        let result = self.write_draft(&draft, text).and_then(|()| fs::rename(&draft, &self.path));
        if result.is_err() {
            // A draft that stays is harmless; the original error is reported.
            let _ = fs::remove_file(&draft);
        }
        result?;
        sync_folder(&self.folder)
    }

    fn write_draft(&self, draft: &Path, text: &str) -> io::Result<()> {
        // Left behind by an earlier run with the same process id that was killed.
        let _ = fs::remove_file(draft);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        private(&mut options);
        let mut file = options.open(draft)?;
        if let Ok(before) = fs::metadata(&self.path) {
            keep_owner(&file, &before)?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::Passwd(format!("cannot write the file `{}`: {error}", path.display()))
}

#[cfg(unix)]
fn lock(folder: &Path) -> io::Result<Option<File>> {
    use std::fs::TryLockError;

    let handle = File::open(folder)?;
    for _ in 0..LOCK_ATTEMPTS {
        match handle.try_lock() {
            Ok(()) => return Ok(Some(handle)),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_RETRY_DELAY),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "another `creole passwd` is running in its folder"))
}

#[cfg(not(unix))]
fn lock(_folder: &Path) -> io::Result<Option<File>> {
    Ok(None)
}

/// Only the owner may read and write a new file.
#[cfg(unix)]
fn private(options: &mut OpenOptions) {
    use std::os::unix::fs::OpenOptionsExt;

    options.mode(0o600);
}

#[cfg(not(unix))]
fn private(_options: &mut OpenOptions) {}

/// Keeps the owner and the permissions: a server may run as another user.
#[cfg(unix)]
fn keep_owner(file: &File, before: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};

    let now = file.metadata()?;
    if (now.uid(), now.gid()) != (before.uid(), before.gid()) {
        fchown(file, Some(before.uid()), Some(before.gid()))?;
    }
    file.set_permissions(fs::Permissions::from_mode(before.mode() & 0o755))
}

#[cfg(not(unix))]
fn keep_owner(_file: &File, _before: &fs::Metadata) -> io::Result<()> {
    Ok(())
}

/// The new name is durable only after the folder is synced.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}
