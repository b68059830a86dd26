//! A file that only grows, and begins anew when it is large. Several may write to one file, also from other processes:
//! each holds a lock while it does, and looks whether the file was put aside meanwhile.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;
use std::{fs, io};

use creole_proto::wire::escape_controls_in_json;

use crate::layers::results::audit::AuditSettings;

/// How long another may write before it is waited for no longer, and how often it is looked whether it is done.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// How often the file at the path is opened before one is taken that may be another: some file systems number one file
/// in two ways.
const MAX_OPEN_ATTEMPTS: usize = 8;

/// The file, and those before it.
pub(crate) struct AuditFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    max_bytes: u64,
    keep: u32,
    sync: bool,
}

impl AuditFile {
    /// Opens the file where it ended, or makes it; only its owner may read it.
    pub(crate) fn open(settings: &AuditSettings) -> io::Result<Self> {
        let file = open(&settings.file)?;
        let bytes = file.metadata()?.len();
        let AuditSettings { max_bytes, keep, sync, .. } = *settings;
        Ok(Self { path: settings.file.clone(), file, bytes, max_bytes, keep, sync })
    }

    /// Writes lines. What cannot be written is told in the log: calls go on without it.
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
        // Where there are no locks there is nothing to give back.
        _ = self.file.unlock();
    }

    /// Keeps others from writing, and goes on in the file that they began if they put ours aside.
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
            tracing::error!(%file, %error, "the audit log cannot be written");
        }
    }

    fn append(&mut self, block: &[u8]) -> io::Result<()> {
        self.file.write_all(block)?;
        self.bytes += block.len() as u64;
        if self.sync { self.file.sync_data() } else { Ok(()) }
    }

    /// Begins a new file: `audit.log` becomes `audit.log.1`, that one `audit.log.2`, and the oldest goes.
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

/// Waits until nobody else holds the file. One who never lets it go is not waited for: lines written at the same time
/// stay whole, since each block is appended at once.
fn lock(file: &File) {
    let mut left = LOCK_TIMEOUT;
    while let Err(TryLockError::WouldBlock) = file.try_lock() {
        let Some(less) = left.checked_sub(LOCK_POLL_INTERVAL) else { return };
        left = less;
        sleep(LOCK_POLL_INTERVAL);
    }
}

/// Whether the file is still the one at that path.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;

    let place = |about: io::Result<fs::Metadata>| about.map(|it| (it.dev(), it.ino())).ok();
    place(file.metadata()) == place(fs::metadata(path))
}

/// Files that are open cannot be put aside here.
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
