//! An append-only file with rotation. Several layers and processes may write to one file: each holds a lock during a
//! write and checks whether the file was rotated meanwhile.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;
use std::{fs, io};

use creole_proto::wire::escape_controls_in_json;

use crate::audit::AuditSettings;

/// How long to wait for another writer's lock, and how often to try it.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// How often the path is opened again before a file is used whose identity does not match: some file systems number one
/// file in two ways.
const MAX_OPEN_ATTEMPTS: usize = 8;

/// The current file and its rotated predecessors.
pub(crate) struct AuditFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    max_bytes: u64,
    keep: u32,
    sync: bool,
}

impl AuditFile {
    /// Opens the file for appending, or creates it. Only its owner may read it.
    pub(crate) fn open(settings: &AuditSettings) -> io::Result<Self> {
        let file = open(&settings.file)?;
        let bytes = file.metadata()?.len();
        let AuditSettings { max_bytes, keep, sync, .. } = *settings;
        Ok(Self { path: settings.file.clone(), file, bytes, max_bytes, keep, sync })
    }

    /// Writes lines. A failed write is logged, and calls continue.
    pub(crate) fn write(&mut self, lines: impl Iterator<Item = String>) {
        let mut block = Vec::new();
        self.write_or_log(Self::lock_current);
        for line in lines {
            block.extend_from_slice(escape_controls_in_json(&line).as_bytes());
            block.push(b'\n');
            if self.bytes + block.len() as u64 >= self.max_bytes {
                self.write_or_log(|journal| journal.append(&block).and_then(|()| journal.rotate()));
                block.clear();
            }
        }
        if !block.is_empty() {
            self.write_or_log(|journal| journal.append(&block));
        }
        // On systems without locks there is nothing to release.
        _ = self.file.unlock();
    }

    /// Locks the file, and opens the current one if another process has rotated ours.
    fn lock_current(&mut self) -> io::Result<()> {
        lock(&self.file);
        for _ in 0..MAX_OPEN_ATTEMPTS {
            if is_at(&self.file, &self.path) {
                break;
            }
            self.file = open(&self.path)?;
            lock(&self.file);
        }
        self.bytes = self.file.metadata()?.len();
        Ok(())
    }

    fn write_or_log(&mut self, write: impl FnOnce(&mut Self) -> io::Result<()>) {
        if let Err(error) = write(self) {
            let file = self.path.display();
            tracing::error!(%file, %error, "cannot write the audit log");
        }
    }

    fn append(&mut self, block: &[u8]) -> io::Result<()> {
        self.file.write_all(block)?;
        self.bytes += block.len() as u64;
        if self.sync { self.file.sync_data() } else { Ok(()) }
    }

    /// Rotates the files: `audit.log` becomes `audit.log.1`, that one `audit.log.2`, and the oldest is deleted.
    fn rotate(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        for number in (1..self.keep).rev() {
            let older = numbered_path(&self.path, number);
            if older.exists() {
                fs::rename(older, numbered_path(&self.path, number + 1))?;
            }
        }
        match self.keep {
            0 => fs::remove_file(&self.path)?,
            _ => fs::rename(&self.path, numbered_path(&self.path, 1))?,
        }
        self.file = open(&self.path)?;
        self.lock_current()
    }
}

/// Waits for the lock, up to a timeout. Lines that are written without it stay whole, since each block is appended at
/// once.
fn lock(file: &File) {
    let mut remaining = LOCK_TIMEOUT;
    while let Err(TryLockError::WouldBlock) = file.try_lock() {
        let Some(less) = remaining.checked_sub(LOCK_POLL_INTERVAL) else { return };
        remaining = less;
        sleep(LOCK_POLL_INTERVAL);
    }
}

/// Whether the path still refers to this file.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;

    let place = |about: io::Result<fs::Metadata>| about.map(|it| (it.dev(), it.ino())).ok();
    place(file.metadata()) == place(fs::metadata(path))
}

/// Open files cannot be renamed on this system.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}

fn numbered_path(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
