//! A file that only grows, and begins anew when it is large.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::AuditSettings;

/// The file, and those before it.
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    bytes: u64,
    max_bytes: u64,
    keep: u32,
    sync: bool,
}

impl Journal {
    /// Opens the file where it ended, or makes it; only its owner may read it.
    pub(super) fn open(settings: &AuditSettings) -> io::Result<Self> {
        let file = open(&settings.file)?;
        let bytes = file.metadata()?.len();
        let AuditSettings { max_bytes, keep, sync, .. } = *settings;
        Ok(Self { path: settings.file.clone(), file, bytes, max_bytes, keep, sync })
    }

    /// Writes lines. What cannot be written is told in the log: calls go on without it.
    pub(super) fn write(&mut self, lines: impl Iterator<Item = String>) {
        let mut block = Vec::new();
        for line in lines {
            block.extend_from_slice(line.as_bytes());
            block.push(b'\n');
            if self.bytes + block.len() as u64 >= self.max_bytes {
                self.tell(|journal| journal.append(&block).and_then(|()| journal.turn()));
                block.clear();
            }
        }
        if !block.is_empty() {
            self.tell(|journal| journal.append(&block));
        }
    }

    fn tell(&mut self, write: impl FnOnce(&mut Self) -> io::Result<()>) {
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
    fn turn(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        for number in (1..self.keep).rev() {
            let older = numbered(&self.path, number);
            if older.exists() {
                fs::rename(older, numbered(&self.path, number + 1))?;
            }
        }
        match self.keep {
            0 => fs::remove_file(&self.path)?,
            _ => fs::rename(&self.path, numbered(&self.path, 1))?,
        }
        self.file = open(&self.path)?;
        self.bytes = 0;
        Ok(())
    }
}

fn numbered(path: &Path, number: u32) -> PathBuf {
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
