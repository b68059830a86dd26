//! Reads a folder without leaving it.
//!
//! Everything is opened relative to the folder's descriptor, one path segment after the other and never through a link:
//! a link is resolved first, and its target is then opened the same way. So a concurrent change of the folder cannot
//! redirect the reader. An entry is inspected before it is opened, and again afterwards.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use creole::internal::skill::{MANIFEST, MAX_BYTES};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat};

use super::FileError;

/// Maximum number of names that are examined.
const MAX_NAMES: usize = 20_000;
/// Maximum number of bytes that are read in total.
const MAX_READ_BYTES: usize = 256 * 1024 * 1024;
/// Maximum depth of nested folders.
const MAX_DEPTH: usize = 16;

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);
/// A pipe that replaced a file would block the reader.
const FILE: OFlags = OFlags::NONBLOCK.union(OFlags::CLOEXEC);

/// A folder during reading.
pub(super) struct SkillFolder<'a> {
    /// The path as given, for error messages.
    path: &'a Path,
    /// The path without links.
    real: PathBuf,
    top: OwnedFd,
    contents: FolderContents,
    names: usize,
    bytes: usize,
}

/// The contents of the folder. Paths are relative to it and use slashes.
#[derive(Default)]
pub(super) struct FolderContents {
    /// The files of skills.
    pub(super) files: BTreeMap<String, Arc<[u8]>>,
    /// The folders with a `SKILL.md`.
    pub(super) skills: Vec<String>,
    /// The unreadable entries and their errors.
    pub(super) unreadable: Vec<(String, FileError)>,
}

/// A folder on the current path.
struct FolderLevel<'a> {
    descriptor: &'a OwnedFd,
    path: &'a str,
    in_skill: bool,
    /// Device and inode of this folder and those above it.
    above: Vec<(i128, i128)>,
}

impl<'a> SkillFolder<'a> {
    pub(super) fn open(path: &'a Path) -> Result<Self, FileError> {
        let unreadable = |error: io::Error| {
            let message = format!("cannot read the folder of skills: {error}");
            FileError::new(path, message).help("use a folder that contains one folder per skill")
        };
        let real = fs::canonicalize(path).map_err(unreadable)?;
        let top = openat(CWD, &real, FOLDER | OFlags::NOFOLLOW, Mode::empty());
        let top = top.map_err(|error| unreadable(error.into()))?;
        Ok(Self { path, real, top, contents: FolderContents::default(), names: 0, bytes: 0 })
    }

    /// Reads all files of skills.
    pub(super) fn read(mut self) -> Result<FolderContents, FileError> {
        let top = rustix::io::fcntl_dupfd_cloexec(&self.top, 3)
            .map_err(|error| FileError::new(self.path, error.to_string()))?;
        let above = fstat(&top).map(|stat| vec![identity(&stat)]).unwrap_or_default();
        self.visit(&FolderLevel { descriptor: &top, path: "", in_skill: false, above })?;
        Ok(self.contents)
    }

    fn visit(&mut self, level: &FolderLevel<'_>) -> Result<(), FileError> {
        let names = match self.names_in(level)? {
            Ok(names) => names,
            Err(error) => {
                self.report_unreadable(
                    level.path,
                    format!("cannot read the folder: {error}"),
                    None,
                );
                return Ok(());
            }
        };
        let has_manifest = names.iter().any(|name| name == MANIFEST);
        if has_manifest && level.path.is_empty() {
            let help = "put each skill into its own folder inside this one";
            let message = format!("the folder of skills itself has a `{MANIFEST}`");
            return Err(FileError::new(&self.path.join(MANIFEST), message).help(help));
        }
        if has_manifest {
            self.contents.skills.push(level.path.to_owned());
        }
        let odd =
            names.iter().find(|name| name.eq_ignore_ascii_case(MANIFEST) && *name != MANIFEST);
        if let Some(odd) = odd.filter(|_| !has_manifest) {
            let path = join_path(level.path, odd);
            self.report_unreadable(
                &path,
                "the file is not a skill",
                Some(&format!("rename it to `{MANIFEST}`")),
            );
        }
        let in_skill = level.in_skill || has_manifest;
        for name in &names {
            let path = join_path(level.path, name);
            if let Err(error) = self.entry(level, name, &path, in_skill)? {
                self.report_unreadable(&path, format!("it cannot be read: {error}"), None);
            }
        }
        Ok(())
    }

    /// The sorted names in a folder, without those that begin with a dot.
    fn names_in(&mut self, level: &FolderLevel<'_>) -> Result<io::Result<Vec<String>>, FileError> {
        let entries = match Dir::read_from(level.descriptor) {
            Ok(entries) => entries,
            Err(error) => return Ok(Err(error.into())),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => return Ok(Err(error.into())),
            };
            if entry.file_name().to_bytes().starts_with(b".") {
                continue;
            }
            self.names += 1;
            if self.names > MAX_NAMES {
                let message = format!("the folder of skills contains more than {MAX_NAMES} names");
                return Err(FileError::new(self.path, message).help("use a smaller folder"));
            }
            match entry.file_name().to_str() {
                Ok(name) => names.push(name.to_owned()),
                Err(_) => {
                    let path = join_path(level.path, &entry.file_name().to_string_lossy());
                    self.report_unreadable(&path, "the name is not UTF-8", Some("rename it"));
                }
            }
        }
        names.sort();
        Ok(Ok(names))
    }

    fn entry(
        &mut self,
        level: &FolderLevel<'_>,
        name: &str,
        path: &str,
        in_skill: bool,
    ) -> Result<io::Result<()>, FileError> {
        let stat = match statat(level.descriptor, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(error) => return Ok(Err(error.into())),
        };
        match file_type(&stat) {
            FileType::Directory => {
                let opened =
                    openat(level.descriptor, name, FOLDER | OFlags::NOFOLLOW, Mode::empty());
                self.descend(level, opened.map_err(Into::into), path, in_skill)
            }
            FileType::Symlink => self.link(level, path, in_skill),
            FileType::RegularFile if in_skill => {
                let opened = openat(level.descriptor, name, FILE | OFlags::NOFOLLOW, Mode::empty());
                self.file(opened.map_err(Into::into), path)
            }
            FileType::RegularFile => Ok(Ok(())),
            _ => {
                self.report_not_a_file(path, in_skill);
                Ok(Ok(()))
            }
        }
    }

    /// Follows a link, if it stays in the folder.
    fn link(
        &mut self,
        level: &FolderLevel<'_>,
        path: &str,
        in_skill: bool,
    ) -> Result<io::Result<()>, FileError> {
        let target = match fs::canonicalize(self.real.join(path)) {
            Ok(target) => target,
            Err(error) => return Ok(Err(error)),
        };
        let inside = target.strip_prefix(&self.real).ok().filter(|inside| is_shown(inside));
        let Some(inside) = inside else {
            let help = "copy its target into the folder";
            self.report_unreadable(
                path,
                "the symbolic link leads out of the folder of skills",
                Some(help),
            );
            return Ok(Ok(()));
        };
        match self.kind_of(inside) {
            Ok(FileType::Directory) => {
                let opened = self.open_below(inside, FOLDER);
                self.descend(level, opened, path, in_skill)
            }
            Ok(FileType::RegularFile) if in_skill => {
                let opened = self.open_below(inside, FILE);
                self.file(opened, path)
            }
            Ok(FileType::RegularFile) => Ok(Ok(())),
            Ok(_) => {
                self.report_not_a_file(path, in_skill);
                Ok(Ok(()))
            }
            Err(error) => Ok(Err(error)),
        }
    }

    fn descend(
        &mut self,
        level: &FolderLevel<'_>,
        opened: io::Result<OwnedFd>,
        path: &str,
        in_skill: bool,
    ) -> Result<io::Result<()>, FileError> {
        let opened = opened.and_then(|folder| Ok((fstat(&folder)?, folder)));
        let (stat, folder) = match opened {
            Ok(opened) => opened,
            Err(error) => return Ok(Err(error)),
        };
        let here = identity(&stat);
        if level.above.contains(&here) {
            self.report_unreadable(
                path,
                "the symbolic link leads to a parent folder",
                Some("remove it"),
            );
            return Ok(Ok(()));
        }
        if level.above.len() > MAX_DEPTH {
            let message = format!("the folder is nested deeper than {MAX_DEPTH} levels");
            self.report_unreadable(path, message, Some("move it up"));
            return Ok(Ok(()));
        }
        let above = level.above.iter().copied().chain([here]).collect();
        self.visit(&FolderLevel { descriptor: &folder, path, in_skill, above }).map(Ok)
    }

    fn file(
        &mut self,
        opened: io::Result<OwnedFd>,
        path: &str,
    ) -> Result<io::Result<()>, FileError> {
        let read = opened.and_then(|file| {
            if file_type(&fstat(&file)?) != FileType::RegularFile {
                return Err(io::Error::other("it is no longer a regular file"));
            }
            let mut bytes = Vec::new();
            File::from(file).take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
            Ok(bytes)
        });
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(error) => return Ok(Err(error)),
        };
        if bytes.len() > MAX_BYTES {
            let message = format!("the file has more than {MAX_BYTES} bytes");
            self.report_unreadable(path, message, Some("clients need not accept a larger skill"));
            return Ok(Ok(()));
        }
        self.bytes += bytes.len();
        if self.bytes > MAX_READ_BYTES {
            let message =
                format!("the skills in this folder have more than {MAX_READ_BYTES} bytes");
            return Err(FileError::new(self.path, message).help("use a smaller folder"));
        }
        self.contents.files.insert(path.to_owned(), bytes.into());
        Ok(Ok(()))
    }

    /// The type of the entry at a path without links.
    fn kind_of(&self, inside: &Path) -> io::Result<FileType> {
        let Some(name) = inside.file_name() else { return Ok(FileType::Directory) };
        let parent = self.open_below(inside.parent().unwrap_or(Path::new("")), FOLDER)?;
        Ok(file_type(&statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// Opens a path without links, one segment after the other.
    fn open_below(&self, inside: &Path, last: OFlags) -> io::Result<OwnedFd> {
        let mut here = rustix::io::fcntl_dupfd_cloexec(&self.top, 3)?;
        let mut parts = inside.components().peekable();
        while let Some(part) = parts.next() {
            let flags = if parts.peek().is_some() { FOLDER } else { last };
            here = open_part(here.as_fd(), part, flags)?;
        }
        Ok(here)
    }

    fn report_not_a_file(&mut self, path: &str, in_skill: bool) {
        // Errors outside of skills are ignored.
        if in_skill {
            let description = "it is neither a file nor a folder";
            self.report_unreadable(
                path,
                description,
                Some("pipes, sockets and devices cannot be part of a skill"),
            );
        }
    }

    fn report_unreadable(&mut self, path: &str, message: impl Into<String>, help: Option<&str>) {
        let mut problem = FileError::new(&self.path.join(path), message);
        problem.help = help.map(str::to_owned);
        self.contents.unreadable.push((path.to_owned(), problem));
    }
}

fn open_part(parent: BorrowedFd<'_>, part: Component<'_>, flags: OFlags) -> io::Result<OwnedFd> {
    match part {
        Component::Normal(name) => {
            Ok(openat(parent, name, flags | OFlags::NOFOLLOW, Mode::empty())?)
        }
        _ => Err(io::Error::other("its path leads out of the folder")),
    }
}

/// Whether no segment of a path begins with a dot. Skipped entries are not reachable through a link either.
fn is_shown(inside: &Path) -> bool {
    inside.components().all(|part| !part.as_os_str().as_encoded_bytes().starts_with(b"."))
}

fn join_path(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

fn identity(stat: &Stat) -> (i128, i128) {
    (i128::from(stat.st_dev), i128::from(stat.st_ino))
}
