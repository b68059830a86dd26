//! The files of audit logs on a command line: each log with its rotated files, in the order of their age.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The files of one log, the oldest first: `audit.log.2`, `audit.log.1`, `audit.log`.
pub(crate) type LogFiles = Vec<PathBuf>;

/// Sorts files into logs. `audit.log.1` belongs to `audit.log`, whether that is named or not.
pub(crate) fn group(files: &[PathBuf]) -> Vec<LogFiles> {
    let mut logs: BTreeMap<PathBuf, BTreeMap<std::cmp::Reverse<u32>, PathBuf>> = BTreeMap::new();
    for file in files {
        let (log, age) = split_number(file);
        logs.entry(log).or_default().insert(std::cmp::Reverse(age), file.clone());
    }
    logs.into_values().map(|files| files.into_values().collect()).collect()
}

/// All files of a log that exist, the oldest first.
pub fn rotated_files(log: &Path, keep: u32) -> Vec<PathBuf> {
    let files = (0..=keep).rev().map(|number| match number {
        0 => log.to_owned(),
        _ => numbered_path(log, number),
    });
    files.filter(|file| file.exists()).collect()
}

/// The path of a rotated file.
pub(crate) fn numbered_path(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

/// The path of the log, and the number of a rotated file. The current file has the number 0.
fn split_number(file: &Path) -> (PathBuf, u32) {
    let number = file.extension().and_then(|number| number.to_str());
    let number = number.filter(|it| it.bytes().all(|byte| byte.is_ascii_digit()));
    match number.and_then(|number| number.parse().ok()).filter(|number| *number > 0) {
        Some(number) => (file.with_extension(""), number),
        None => (file.to_owned(), 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotated_files_are_sorted_by_their_numbers() {
        let files = ["a.log", "a.log.1", "a.log.10", "a.log.2", "b/c", "b/c.0", "d.4294967296"];
        let logs = group(&files.map(PathBuf::from));
        let names: Vec<Vec<_>> = logs
            .iter()
            .map(|files| files.iter().map(|it| it.to_str().unwrap()).collect())
            .collect();
        let expected: [&[&str]; 4] =
            [&["a.log.10", "a.log.2", "a.log.1", "a.log"], &["b/c"], &["b/c.0"], &["d.4294967296"]];
        assert_eq!(names, expected);
    }

    #[test]
    fn a_log_has_the_files_that_exist() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("audit.log");
        for name in ["audit.log", "audit.log.1", "audit.log.3", "audit.log.9"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let expected = ["audit.log.3", "audit.log.1", "audit.log"].map(|it| folder.path().join(it));
        assert_eq!(rotated_files(&log, 5), expected);
    }
}
