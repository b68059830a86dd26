//! Tests of files: rotation, several writers and the hash chain.

use std::fs;
use std::path::Path;

use super::{audit, file_settings, settings};
use crate::audit::file::AuditFile;
use crate::audit::{
    Audit, AuditFileSettings, AuditScope, AuditSettings, AuditTarget, BreakReason, rotated_files,
    verify,
};

fn write<T: AsRef<str>>(file: &mut AuditFile, lines: &[T]) {
    let (written, result) = file.write(lines.iter().map(AsRef::as_ref));
    assert_eq!((written, result.is_ok()), (lines.len(), true));
}

#[test]
fn a_large_file_is_rotated_and_the_oldest_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let settings = AuditFileSettings { max_bytes: 10, ..file_settings(folder.path()) };
    let mut file = AuditFile::open(&settings, false).unwrap();
    let words = ["first-line", "second-line", "third-line", "fourth-line", "5"];
    write(&mut file, &words);
    drop(file);
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read("audit.log"), "5\n");
    assert_eq!(read("audit.log.1"), "fourth-line\n");
    assert_eq!(read("audit.log.2"), "third-line\n");
    assert!(!folder.path().join("audit.log.3").exists());
    write(&mut AuditFile::open(&settings, false).unwrap(), &["6"]);
    assert_eq!(read("audit.log"), "5\n6\n");
}

#[test]
fn two_that_write_to_one_file_lose_nothing_and_put_it_aside_once() {
    let folder = tempfile::tempdir().unwrap();
    let settings = AuditFileSettings { max_bytes: 1000, keep: 100, ..file_settings(folder.path()) };
    let writers: Vec<_> = ["a", "b"]
        .map(|name| {
            let settings = settings.clone();
            std::thread::spawn(move || {
                let mut file = AuditFile::open(&settings, false).unwrap();
                for number in 0..200 {
                    let lines = [0, 1, 2].map(|part| format!("{name} {number} {part}"));
                    write(&mut file, &lines);
                }
            })
        })
        .into();
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.len() < 1100, "{} has {} bytes", path.display(), text.len());
        if path != settings.path {
            assert!(text.len() >= 1000, "{} has {} bytes", path.display(), text.len());
        }
        found.extend(text.lines().map(str::to_owned));
    }
    found.sort();
    let all = |name| (0..200).flat_map(move |number| (0..3).map(move |part| (name, number, part)));
    let mut expected: Vec<_> = all("a")
        .chain(all("b"))
        .map(|(name, number, part)| format!("{name} {number} {part}"))
        .collect();
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn a_file_that_was_rotated_by_hand_is_created_again() {
    let folder = tempfile::tempdir().unwrap();
    let settings = file_settings(folder.path());
    let mut file = AuditFile::open(&settings, false).unwrap();
    write(&mut file, &["1"]);
    fs::rename(&settings.path, folder.path().join("aside")).unwrap();
    write(&mut file, &["2"]);
    assert_eq!(fs::read_to_string(&settings.path).unwrap(), "2\n");
    assert_eq!(fs::read_to_string(folder.path().join("aside")).unwrap(), "1\n");
}

#[test]
fn a_file_that_cannot_be_opened_is_an_error_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none/audit.log");
    let to = AuditTarget::File(AuditFileSettings { path, ..file_settings(folder.path()) });
    let settings = AuditSettings { to, ..settings(folder.path()) };
    assert!(Audit::new("acme", settings, AuditScope::Layer, &Default::default()).is_err());
}

/// The files of the log, the oldest first.
fn log_files(folder: &Path) -> Vec<std::path::PathBuf> {
    rotated_files(&folder.join("audit.log"), 1000)
}

#[test]
fn several_writers_continue_one_chain_over_rotations_and_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let settings =
        AuditFileSettings { max_bytes: 2000, keep: 1000, ..file_settings(folder.path()) };
    for round in 0..3 {
        let writers = [1, 2, 3].map(|name| {
            let settings = settings.clone();
            std::thread::spawn(move || {
                let mut file = AuditFile::open(&settings, true).unwrap();
                for number in 0..40 {
                    let lines =
                        [0, 1].map(|part| format!("{{\"n\":\"{round} {name} {number} {part}\"}}"));
                    write(&mut file, &lines);
                }
            })
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
    }
    let files = log_files(folder.path());
    assert!(files.len() > 10, "{}", files.len());
    let found = verify(&files, None).unwrap();
    assert_eq!((found.first_break.clone(), found.lines), (None, 3 * 3 * 80), "{found:?}");
    assert!(found.chains.len() == 1 && found.chains[0].is_whole);
}

#[test]
fn the_chain_continues_in_an_empty_file() {
    let folder = tempfile::tempdir().unwrap();
    let settings = AuditFileSettings { max_bytes: 100, ..file_settings(folder.path()) };
    let line = ["{\"n\":\"a line that fills the file\"}"];
    let mut first = AuditFile::open(&settings, true).unwrap();
    let mut second = AuditFile::open(&settings, true).unwrap();
    write(&mut first, &line);
    assert_eq!(fs::metadata(&settings.path).unwrap().len(), 0);
    write(&mut second, &line);
    // A third one starts after the rotation.
    write(&mut AuditFile::open(&settings, true).unwrap(), &line);
    let found = verify(&log_files(folder.path()), None).unwrap();
    assert_eq!((found.first_break, found.lines), (None, 2));
    // A rotation by hand, to any name.
    let settings = file_settings(&folder.path().join(".."));
    let settings = AuditFileSettings { path: folder.path().join("other.log"), ..settings };
    let mut file = AuditFile::open(&settings, true).unwrap();
    write(&mut file, &line);
    fs::rename(&settings.path, folder.path().join("other.log.7")).unwrap();
    write(&mut file, &line);
    let moved = [folder.path().join("other.log.7"), settings.path];
    let found = verify(&moved, None).unwrap();
    assert_eq!((found.first_break, found.lines), (None, 2));
}

#[test]
fn a_line_that_a_crash_cut_off_stays_alone_and_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let settings = file_settings(folder.path());
    write(&mut AuditFile::open(&settings, true).unwrap(), &["{\"n\":1}", "{\"n\":2}"]);
    let text = fs::read_to_string(&settings.path).unwrap();
    fs::write(&settings.path, &text[..text.len() - 20]).unwrap();
    write(&mut AuditFile::open(&settings, true).unwrap(), &["{\"n\":3}"]);
    let text = fs::read_to_string(&settings.path).unwrap();
    assert_eq!(text.lines().count(), 3);
    let found = verify(std::slice::from_ref(&settings.path), None).unwrap().first_break.unwrap();
    assert_eq!((found.line, found.reason), (2, BreakReason::Unsealed));
    // Without the rest of the cut line, the chain is whole: the new line continues the last whole one.
    let whole: Vec<_> = text.lines().filter(|line| !line.contains("\"n\":2")).collect();
    fs::write(&settings.path, whole.join("\n") + "\n").unwrap();
    assert_eq!(verify(&[settings.path], None).unwrap().first_break, None);
}

#[test]
fn a_file_that_is_no_audit_log_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    fs::write(&path, "buy milk\n").unwrap();
    let found = verify(&[path], None).unwrap().first_break.unwrap();
    assert_eq!((found.line, found.reason), (1, BreakReason::NoObject));
}

#[test]
fn a_chain_waits_for_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let settings = file_settings(folder.path());
    let mut file = AuditFile::open(&settings, true).unwrap();
    file.lock_timeout = std::time::Duration::from_millis(50);
    let other = fs::File::open(&settings.path).unwrap();
    other.lock().unwrap();
    let (written, result) = file.write(["{\"n\":1}"].into_iter());
    assert_eq!((written, result.unwrap_err().kind()), (0, std::io::ErrorKind::WouldBlock));
    other.unlock().unwrap();
    write(&mut file, &["{\"n\":1}"]);
}

#[tokio::test]
async fn a_log_is_readable_by_its_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    drop(audit(settings(folder.path())));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(folder.path().join("audit.log")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
