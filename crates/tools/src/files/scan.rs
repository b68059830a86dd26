//! What is in a folder: names, sizes and times, within limits. No file is opened.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use super::root::{Entry, Facts, LONGEST_PATH, Root};
use super::rules::Rules;

/// How many names are looked at, shown or not.
const MOST_NAMES: usize = 100_000;
/// How many folders are looked into.
const MOST_FOLDERS: usize = 4_000;

/// What was found in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// The files by their paths.
    pub(crate) files: BTreeMap<String, Facts>,
    /// The folders that were looked into, the root as the empty path first.
    pub(crate) folders: Vec<String>,
    /// What there was too much of, if there was.
    pub(crate) cut: Option<String>,
}

/// Whether an error says that there is no folder any more.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Looks through a folder, the upper levels first, for at most so many files.
///
/// # Errors
/// When the folder itself cannot be read; a folder in it that cannot be is passed over.
pub(crate) fn scan(root: &Root, rules: &Rules, most_files: usize) -> io::Result<Found> {
    let mut found = Found::default();
    let (mut names_left, mut waiting) = (MOST_NAMES, VecDeque::from([String::new()]));
    while let Some(path) = waiting.pop_front() {
        let listed = root.folder(&path).and_then(|folder| Ok((folder.names(names_left)?, folder)));
        let (names, folder) = match listed {
            Ok(listed) => listed,
            Err(error) if path.is_empty() => return Err(error),
            Err(_) => continue,
        };
        names_left -= names.len();
        found.folders.push(path.clone());
        for name in names {
            let inner = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
            if inner.len() > LONGEST_PATH {
                continue;
            }
            match folder.entry(&name) {
                Entry::File(facts) if rules.shows(&inner) => {
                    if found.files.len() == most_files {
                        found.cut = Some(format!("more than {most_files} files"));
                        return Ok(found);
                    }
                    found.files.insert(inner, facts);
                }
                Entry::Folder if rules.enters(&inner) => waiting.push_back(inner),
                _ => {}
            }
        }
        if names_left == 0 {
            found.cut = Some(format!("more than {MOST_NAMES} names"));
            return Ok(found);
        }
        if found.folders.len() == MOST_FOLDERS && !waiting.is_empty() {
            found.cut = Some(format!("more than {MOST_FOLDERS} folders"));
            return Ok(found);
        }
    }
    Ok(found)
}
