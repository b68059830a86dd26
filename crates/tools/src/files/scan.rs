//! What is in a folder: names, sizes and times, within limits. No file is opened.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use super::file_filter::FileFilter;
use super::root::{DirectoryEntry, FileMetadata, MAX_PATH_BYTES, RootDirectory};

/// How many names are looked at, shown or not.
const MAX_NAMES: usize = 100_000;
/// How many folders are looked into.
const MAX_FOLDERS: usize = 4_000;

/// What was found in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScanResult {
    /// The files by their paths.
    pub(crate) files: BTreeMap<String, FileMetadata>,
    /// The folders that were looked into, the root as the empty path first.
    pub(crate) folders: Vec<String>,
    /// What there was too much of, if there was.
    pub(crate) truncation: Option<String>,
}

/// Whether an error says that there is no folder any more.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Looks through a folder, the upper levels first, for at most so many files.
///
/// # Errors
/// When the folder itself cannot be read; a folder in it that cannot be is passed over.
pub(crate) fn scan(
    root: &RootDirectory,
    rules: &FileFilter,
    most_files: usize,
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
                    if found.files.len() == most_files {
                        found.truncation = Some(format!("more than {most_files} files"));
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
