//! An append-only file with rotation. Several layers and processes may write to one file: each holds a lock during a
//! write and checks whether the file was rotated meanwhile.
//!
//! With a hash chain, a writer continues the chain at the last line of the file, whichever process wrote it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{fs, io};

use crate::audit::backward_lines::BackwardLines;
use crate::audit::hash_chain::{ChainHash, SealedLine, seal};
use crate::audit::log_files::numbered_path;
use crate::audit::settings::AuditFileSettings;

/// How long to wait for another writer's lock, and how long to pause before the lock is tried again. Writers do not
/// queue, so a busy one may keep another waiting.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
const FIRST_LOCK_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_LOCK_PAUSE: Duration = Duration::from_millis(1);

/// How often the path is opened again before a file is used whose identity does not match: some file systems number one
/// file in two ways. A chain cannot be continued in such a file.
const MAX_OPEN_ATTEMPTS: usize = 100;

/// The current file and its rotated predecessors.
pub(crate) struct AuditFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    max_bytes: u64,
    keep: u32,
    sync: bool,
    /// Whether the file may end within a line, which a failed write left there.
    is_torn: bool,
    /// The newest hash, if lines are chained.
    chain: Option<ChainHead>,
    /// How long to wait for another writer's lock.
    pub(super) lock_timeout: Duration,
}

/// The newest hash of a file, and the length of the file with it.
#[derive(Clone, Copy, Debug)]
struct ChainHead {
    hash: ChainHash,
    /// The length of the current file up to this hash. `None`: it must be read from the file.
    at: Option<u64>,
}

impl AuditFile {
    /// Opens the file for appending, or creates it. Only its owner may read it.
    pub(crate) fn open(settings: &AuditFileSettings, is_chained: bool) -> io::Result<Self> {
        let file = open(&settings.path, is_chained)?;
        let bytes = file.metadata()?.len();
        let AuditFileSettings { max_bytes, keep, sync, .. } = *settings;
        let chain = is_chained.then_some(ChainHead { hash: ChainHash::START, at: None });
        let path = settings.path.clone();
        let lock_timeout = LOCK_TIMEOUT;
        Ok(Self { path, file, bytes, max_bytes, keep, sync, is_torn: false, chain, lock_timeout })
    }

    /// The path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The newest hash that this writer knows.
    pub(crate) fn newest_hash(&self) -> Option<ChainHash> {
        self.chain.map(|head| head.hash)
    }

    /// Writes lines. Returns how many were written, and why the others were not.
    pub(crate) fn write<'a>(
        &mut self,
        lines: impl Iterator<Item = &'a str>,
    ) -> (usize, io::Result<()>) {
        let mut written = 0;
        let result = self.lock_current().and_then(|()| self.append_all(lines, &mut written));
        // On systems without locks there is nothing to release.
        _ = self.file.unlock();
        (written, result)
    }

    fn append_all<'a>(
        &mut self,
        lines: impl Iterator<Item = &'a str>,
        written: &mut usize,
    ) -> io::Result<()> {
        let mut block = Block::new(self.chain);
        for line in lines {
            block.push(line);
            if self.bytes + block.text.len() as u64 >= self.max_bytes {
                *written += self.append(block)?;
                if let Err(error) = self.rotate() {
                    let file = self.path.display();
                    tracing::error!(%file, %error, "cannot rotate the audit log");
                }
                block = Block::new(self.chain);
            }
        }
        *written += self.append(block)?;
        Ok(())
    }

    /// Locks the file, and opens the current one if another process has rotated ours.
    fn lock_current(&mut self) -> io::Result<()> {
        let mut is_locked = lock(&self.file, self.lock_timeout);
        for _ in 0..MAX_OPEN_ATTEMPTS {
            if is_at(&self.file, &self.path) {
                break;
            }
            let new = open(&self.path, self.chain.is_some())?;
            is_locked = lock(&new, self.lock_timeout);
            let before = std::mem::replace(&mut self.file, new);
            self.is_torn = false;
            self.continue_chain(Some(&before))?;
        }
        self.bytes = self.file.metadata()?.len();
        if let Some(head) = self.chain {
            if !is_locked || !is_at(&self.file, &self.path) {
                let message = "another process holds the lock of the file";
                return Err(io::Error::new(io::ErrorKind::WouldBlock, message));
            }
            if head.at != Some(self.bytes) {
                self.continue_chain(None)?;
            }
        }
        Ok(())
    }

    /// Finds the newest hash of the file. An empty file continues the chain of its predecessor: the newest rotated file,
    /// or the file that was there before.
    fn continue_chain(&mut self, before: Option<&File>) -> io::Result<()> {
        let Some(head) = &mut self.chain else { return Ok(()) };
        let length = self.file.metadata()?.len();
        let tail = Tail::read(&self.file)?;
        self.is_torn = tail.is_torn;
        head.at = Some(length);
        if length > 0 {
            head.hash = tail.hash.unwrap_or(ChainHash::START);
            return Ok(());
        }
        let rotated = File::open(numbered_path(&self.path, 1)).ok();
        let changed = |file: &&File| file.metadata().and_then(|about| about.modified()).ok();
        let predecessors =
            before.into_iter().chain(&rotated).filter(|file| changed(file).is_some());
        if let Some(newest) = predecessors.max_by_key(changed)
            && let Some(hash) = Tail::read(newest)?.hash
        {
            head.hash = hash;
        }
        Ok(())
    }

    /// Appends a block; returns the number of its lines. A block that is not written as a whole is removed again.
    fn append(&mut self, block: Block) -> io::Result<usize> {
        if block.lines == 0 {
            return Ok(0);
        }
        let text = match self.is_torn {
            true => [b"\n", &block.text[..]].concat(),
            false => block.text,
        };
        let written = self.file.write_all(&text);
        let written = match (written, self.sync) {
            (Ok(()), true) => self.file.sync_data(),
            (written, _) => written,
        };
        if let Err(error) = written {
            self.is_torn = self.file.set_len(self.bytes).is_err();
            if let Some(head) = &mut self.chain {
                head.at = None;
            }
            return Err(error);
        }
        self.is_torn = false;
        self.bytes += text.len() as u64;
        self.chain = block.chain.map(|hash| ChainHead { hash, at: Some(self.bytes) });
        Ok(block.lines)
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
        self.lock_current()
    }
}

/// Lines that are written at once.
struct Block {
    text: Vec<u8>,
    lines: usize,
    chain: Option<ChainHash>,
}

impl Block {
    fn new(chain: Option<ChainHead>) -> Self {
        Self { text: Vec::new(), lines: 0, chain: chain.map(|head| head.hash) }
    }

    fn push(&mut self, line: &str) {
        match &mut self.chain {
            Some(head) => {
                let (sealed, hash) = seal(line, None, *head);
                *head = hash;
                self.text.extend_from_slice(sealed.as_bytes());
            }
            None => self.text.extend_from_slice(line.as_bytes()),
        }
        self.text.push(b'\n');
        self.lines += 1;
    }
}

/// The end of a file.
struct Tail {
    /// Whether the file ends within a line.
    is_torn: bool,
    /// The hash of the last whole line.
    hash: Option<ChainHash>,
}

impl Tail {
    fn read(file: &File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        if length == 0 {
            return Ok(Self { is_torn: false, hash: None });
        }
        let mut reader = file.try_clone()?;
        let mut last = [0];
        reader.seek(SeekFrom::Start(length - 1))?;
        reader.read_exact(&mut last)?;
        let is_torn = last != *b"\n";
        let mut lines = BackwardLines::new(reader, length);
        if is_torn {
            lines.next_line()?;
        }
        let line = lines.next_line()?;
        let line = line.and_then(|(_, line)| str::from_utf8(line).ok());
        Ok(Self { is_torn, hash: line.and_then(SealedLine::parse).map(|sealed| sealed.hash) })
    }
}

/// Waits for the lock, up to a timeout. Returns false after that; a system without locks has each one. Lines that are
/// written without it stay whole, since each block is appended at once.
fn lock(file: &File, timeout: Duration) -> bool {
    let end = Instant::now() + timeout;
    let mut pause = FIRST_LOCK_PAUSE;
    while let Err(TryLockError::WouldBlock) = file.try_lock() {
        if Instant::now() >= end {
            return false;
        }
        sleep(pause);
        pause = LONGEST_LOCK_PAUSE.min(pause * 2);
    }
    true
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

fn open(path: &Path, is_chained: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true).read(is_chained);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
