//! Scans a folder for names, sizes and times, within limits. No file is opened.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use super::file_filter::FileFilter;
use super::root::{DirectoryEntry, FileMetadata, MAX_PATH_BYTES, RootDirectory};

/// Maximum number of names that are examined, visible or not.
const MAX_NAMES: usize = 100_000;
/// Maximum number of folders that are scanned.
const MAX_FOLDERS: usize = 4_000;

/// The result of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScanResult {
    /// The files by path.
    pub(crate) files: BTreeMap<String, FileMetadata>,
    /// The scanned folders, starting with the root as the empty path.
    pub(crate) folders: Vec<String>,
    /// The exceeded limit, if any.
    pub(crate) truncation: Option<String>,
}

/// Whether an error means that the folder does not exist any more.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Scans a folder breadth-first, for a limited number of files.
///
/// # Errors
/// When the folder itself is unreadable. Unreadable folders in it are skipped.
pub(crate) fn scan(
    root: &RootDirectory,
    rules: &FileFilter,
    max_files: usize,
) -> io::Result<ScanResult> {
    let mut found = ScanResult::default();
    let (mut names_left, mut waiting) = (MAX_NAMES, VecDeque::from([String::new()]));
    while let Some(path) = waiting.pop_front() {
        let listed =
            root.open_directory(&path).and_then(|folder| Ok((folder.names(names_left)?, folder)));
        let (names, folder) = match listed {
            Ok(listed) => listed,
            Err(error) if path.is_empty() => return Err(error),
            Err(_) => continue,
        };
        names_left -= names.len();
        found.folders.push(path.clone());
        for name in names {
            let inner = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
            if inner.len() > MAX_PATH_BYTES {
                continue;
            }
            match folder.entry(&name) {
                DirectoryEntry::File(facts) if rules.includes_file(&inner) => {
                    if found.files.len() == max_files {
                        found.truncation = Some(format!("more than {max_files} files"));
                        return Ok(found);
                    }
                    found.files.insert(inner, facts);
                }
                DirectoryEntry::Folder if rules.descends_into(&inner) => waiting.push_back(inner),
                _ => {}
            }
        }
        if names_left == 0 {
            found.truncation = Some(format!("more than {MAX_NAMES} names"));
            return Ok(found);
        }
        if found.folders.len() == MAX_FOLDERS && !waiting.is_empty() {
            found.truncation = Some(format!("more than {MAX_FOLDERS} folders"));
            return Ok(found);
        }
    }
    Ok(found)
}
