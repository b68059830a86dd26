//! Writes user files safely: never over an existing file by accident, and never partially.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::failure::Failure;

/// The maximum size of a file to change.
const MAX_FILE: u64 = 16 * 1024 * 1024;

/// The maximum number of copies of a file.
const MAX_COPIES: u32 = 1000;

/// Writes a new file. Fails if it exists.
pub(crate) fn create(file: &Path, text: &str) -> Result<(), Failure> {
    let shown = file.display();
    let opened = OpenOptions::new().write(true).create_new(true).open(file);
    let result = opened.and_then(|mut opened| opened.write_all(text.as_bytes()));
    result.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::Usage(format!(
            "`{shown}` already exists and is not overwritten; choose another file, or move it away"
        )),
        _ => write_failure(file, &error),
    })
}

/// The text of a file. `None` if it does not exist.
pub(crate) fn read(file: &Path) -> Result<Option<String>, Failure> {
    let refused = |reason: &str| Failure::Usage(format!("`{}` {reason}", file.display()));
    let opened = match File::open(file) {
        Ok(opened) => opened,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(refused(&format!("cannot be read: {error}"))),
    };
    let mut bytes = Vec::new();
    let read = opened.take(MAX_FILE + 1).read_to_end(&mut bytes);
    read.map_err(|error| refused(&format!("cannot be read: {error}")))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(refused("is larger than 16 MB, the limit for configuration files"));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| refused("is not UTF-8 text"))
}

/// Replaces the text of a file atomically: a reader sees the old one or the new one. A link stays a link.
pub(crate) fn replace(file: &Path, text: &str) -> Result<(), Failure> {
    let target = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    let replaced = (|| {
        if let Some(folder) = folder {
            fs::create_dir_all(folder)?;
        }
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.new", std::process::id()));
        let beside = target.with_file_name(name);
        let result =
            write_beside(&beside, &target, text).and_then(|()| fs::rename(&beside, &target));
        if result.is_err() {
            // Removes the partial file.
            let _ = fs::remove_file(&beside);
        }
        result
    })();
    replaced.map_err(|error| write_failure(file, &error))
}

fn write_beside(beside: &Path, target: &Path, text: &str) -> io::Result<()> {
    let mut written = OpenOptions::new().write(true).create_new(true).open(beside)?;
    if let Ok(known) = fs::metadata(target) {
        written.set_permissions(known.permissions())?;
    }
    written.write_all(text.as_bytes())?;
    written.sync_all()
}

/// Copies a file to an unused name beside it. Returns that name.
pub(crate) fn keep_copy(file: &Path) -> Result<PathBuf, Failure> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let names = std::iter::once(format!("{name}.backup"))
        .chain((2..MAX_COPIES).map(|number| format!("{name}.backup-{number}")));
    let free = names.map(|name| file.with_file_name(name)).find(|path| !path.exists());
    let Some(copy) = free else {
        let message = format!("`{}` has too many backups beside it; remove some", file.display());
        return Err(Failure::Call(message));
    };
    fs::copy(file, &copy).map_err(|error| write_failure(&copy, &error))?;
    Ok(copy)
}

fn write_failure(file: &Path, error: &io::Error) -> Failure {
    Failure::Call(format!("cannot write `{}`: {error}", file.display()))
}
