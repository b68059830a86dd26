//! A folder that confines all paths.
//!
//! Everything is opened relative to the folder's descriptor, one path segment after the other and never through a
//! link. So a concurrent change of the folder cannot redirect the reader between a check and a use of the same name.
//! Only regular files are opened, so that neither a pipe nor a device can block a reader. A name is inspected before it
//! is opened, and the opened file is inspected again.

use std::fs::File;
use std::io;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;

/// Maximum length of a path below the folder, in bytes.
pub(crate) const MAX_PATH_BYTES: usize = 2048;

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);
/// A pipe that replaced a file would block the reader, and a terminal would become the controlling terminal.
const FILE: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// A folder that is looked up for each access, because it may be replaced while a server runs.
#[derive(Clone, Debug)]
pub(crate) struct RootDirectory {
    path: PathBuf,
    hard_links: bool,
}

/// The reason why a file cannot be read.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// The path has no regular file that is reachable without links.
    NotFound,
    /// It exceeds the maximum size.
    TooLarge,
    /// The operating system refused.
    Failed(io::Error),
}

/// The metadata of a file, read without opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileMetadata {
    /// Its size in bytes.
    pub(crate) size: u64,
    /// The time of its last change, in nanoseconds since 1970.
    pub(crate) modified: i128,
    /// Distinguishes it from a file that replaced it.
    pub(crate) inode: u64,
}

/// The entry with a certain name.
pub(crate) enum DirectoryEntry {
    /// A regular file.
    File(FileMetadata),
    /// A folder.
    Folder,
    /// A link, a pipe, a device, a file with several hard links, or a missing entry.
    Other,
}

/// An open folder: the root or one below it.
pub(crate) struct OpenDirectory {
    folder: OwnedFd,
    hard_links: bool,
}

impl RootDirectory {
    pub(crate) fn new(path: &Path) -> Self {
        // The file watcher reports absolute paths.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Self { path, hard_links: true }
    }

    /// Sets whether files with several hard links are visible. The other name may be outside of the folder.
    pub(crate) fn with_hard_links(self, hard_links: bool) -> Self {
        Self { hard_links, ..self }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a folder below the root, or the root itself at the empty path.
    pub(crate) fn open_directory(&self, path: &str) -> io::Result<OpenDirectory> {
        let mut folder = openat(CWD, &self.path, FOLDER, Mode::empty())?;
        for part in path_parts(path).ok_or(Errno::NOENT)? {
            folder = openat(&folder, part, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
        }
        Ok(OpenDirectory { folder, hard_links: self.hard_links })
    }

    /// Reads a file of at most `most` bytes.
    pub(crate) fn read(&self, path: &str, max: u64) -> Result<Vec<u8>, ReadError> {
        if path.is_empty() || path_parts(path).is_none() {
            return Err(ReadError::NotFound);
        }
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let OpenDirectory { folder, .. } = self.open_directory(folder).map_err(to_read_error)?;
        let check = |stat: &Stat| match stat.st_nlink > 1 && !self.hard_links {
            true => Err(ReadError::NotFound),
            false => check(stat, max),
        };
        let stat = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).map_err(to_read_error)?;
        check(&stat)?;
        let file =
            openat(&folder, name, FILE | OFlags::NOFOLLOW, Mode::empty()).map_err(to_read_error)?;
        check(&fstat(&file).map_err(to_read_error)?)?;
        let mut bytes = Vec::new();
        // The file may grow while it is read.
        File::from(file)
            .take(max.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(to_read_error)?;
        if bytes.len() as u64 > max { Err(ReadError::TooLarge) } else { Ok(bytes) }
    }
}

impl OpenDirectory {
    /// The sorted names in the folder, at most `most`. Names that are not UTF-8 are omitted.
    pub(crate) fn names(&self, max: usize) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name().to_str().ok().filter(|name| !matches!(*name, "." | ".."));
            names.extend(name.map(str::to_owned));
            if names.len() >= max {
                break;
            }
        }
        names.sort();
        Ok(names)
    }

    /// The entry with this name in the folder.
    pub(crate) fn entry(&self, name: &str) -> DirectoryEntry {
        let Ok(stat) = statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW) else {
            return DirectoryEntry::Other;
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if stat.st_nlink > 1 && !self.hard_links => DirectoryEntry::Other,
            FileType::RegularFile => DirectoryEntry::File(FileMetadata {
                size: u64::try_from(stat.st_size).unwrap_or_default(),
                modified: i128::from(stat.st_mtime) * 1_000_000_000
                    + i128::from(stat.st_mtime_nsec),
                inode: stat.st_ino,
            }),
            FileType::Directory => DirectoryEntry::Folder,
            _ => DirectoryEntry::Other,
        }
    }
}

/// The segments of a path without `.` and `..`; the empty path has none.
pub(crate) fn path_parts(path: &str) -> Option<impl Iterator<Item = &str>> {
    let is_plain = |part: &str| !matches!(part, "" | "." | "..");
    let is_path = path.is_empty()
        || (path.len() <= MAX_PATH_BYTES && !path.contains('\0') && path.split('/').all(is_plain));
    is_path.then(|| path.split('/').filter(|part| !part.is_empty()))
}

fn check(stat: &Stat, max: u64) -> Result<(), ReadError> {
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(ReadError::NotFound);
    }
    match u64::try_from(stat.st_size).unwrap_or_default() > max {
        true => Err(ReadError::TooLarge),
        false => Ok(()),
    }
}

/// A link in the path, a file in place of a folder and a name that is too long all count as not found.
fn to_read_error(error: impl Into<io::Error>) -> ReadError {
    let error = error.into();
    let code = error.raw_os_error().map(Errno::from_raw_os_error);
    match code {
        Some(
            Errno::NOENT
            | Errno::NOTDIR
            | Errno::LOOP
            | Errno::NAMETOOLONG
            | Errno::NXIO
            | Errno::MLINK,
        ) => ReadError::NotFound,
        _ => ReadError::Failed(error),
    }
}

#[cfg(test)]
mod tests;
