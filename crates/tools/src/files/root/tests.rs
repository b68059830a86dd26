//! Tests of attempts to leave a folder.

use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, thread};

use tempfile::{TempDir, tempdir};

use super::*;

const SECRET: &str = "the secret outside";

/// A folder `root` beside the folders `outside` and `root2`, which contain the secret.
fn stage() -> (TempDir, RootDirectory) {
    let directory = tempdir().unwrap();
    let path_of = |path: &str| directory.path().join(path);
    for folder in ["root/inner", "outside", "root2"] {
        fs::create_dir_all(path_of(folder)).unwrap();
    }
    for secret in ["outside/secret.txt", "root2/secret.txt", "secret.txt"] {
        fs::write(path_of(secret), SECRET).unwrap();
    }
    fs::write(path_of("root/open.txt"), "open").unwrap();
    fs::write(path_of("root/inner/deep.txt"), "deep").unwrap();
    symlink(path_of("outside/secret.txt"), path_of("root/link.txt")).unwrap();
    symlink("../outside/secret.txt", path_of("root/relative.txt")).unwrap();
    symlink(path_of("outside"), path_of("root/folder")).unwrap();
    symlink("..", path_of("root/up")).unwrap();
    symlink("inner", path_of("root/inside")).unwrap();
    symlink("open.txt", path_of("root/alias.txt")).unwrap();
    symlink("loop", path_of("root/loop")).unwrap();
    symlink("/proc/self/environ", path_of("root/environ")).unwrap();
    symlink("/dev/zero", path_of("root/zero")).unwrap();
    let root = RootDirectory::new(&path_of("root"));
    (directory, root)
}

#[test]
fn no_path_leads_out_of_the_folder() {
    let (directory, root) = stage();
    let absolute = directory.path().join("outside/secret.txt").display().to_string();
    let long = "a/".repeat(3000);
    let probes = [
        "../outside/secret.txt",
        "../secret.txt",
        "..",
        "inner/../../outside/secret.txt",
        "./open.txt",
        "/etc/passwd",
        "//etc/passwd",
        &absolute,
        "link.txt",
        "relative.txt",
        "folder/secret.txt",
        "up/secret.txt",
        "up/outside/secret.txt",
        "inside/deep.txt",
        "alias.txt",
        "loop",
        "loop/x",
        "environ",
        "zero",
        "open.txt/",
        "open.txt/x",
        "inner",
        "",
        ".",
        "inner//deep.txt",
        "open.txt\0",
        "open.txt\0.md",
        "../root2/secret.txt",
        "2/secret.txt",
        "..\\outside\\secret.txt",
        "%2e%2e/outside/secret.txt",
        "..%2foutside/secret.txt",
        "open.txt.",
        "open.txt ",
        &long,
        "nowhere.txt",
    ];
    for probe in probes {
        let read = root.read(probe, 1000);
        assert!(matches!(read, Err(ReadError::NotFound)), "{probe:?}: {read:?}");
    }
    assert_eq!(root.read("open.txt", 1000).unwrap(), b"open");
    assert_eq!(root.read("inner/deep.txt", 1000).unwrap(), b"deep");
}

#[test]
fn only_regular_files_are_opened() {
    let (directory, root) = stage();
    let path_of = |name: &str| directory.path().join("root").join(name);
    // Opening a pipe for reading waits for a writer: the test would not end.
    let mode = Mode::RWXU;
    rustix::fs::mknodat(CWD, path_of("pipe"), FileType::Fifo, mode, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(path_of("socket")).unwrap();
    for name in ["pipe", "socket"] {
        assert!(matches!(root.read(name, 1000), Err(ReadError::NotFound)), "{name}");
        assert!(
            matches!(root.open_directory("").unwrap().entry(name), DirectoryEntry::Other),
            "{name}"
        );
    }
}

#[test]
fn a_file_that_has_another_name_is_there_only_where_that_is_allowed() {
    let (directory, root) = stage();
    let inner = directory.path().join("root/inner");
    fs::hard_link(directory.path().join("outside/secret.txt"), inner.join("hard.txt")).unwrap();
    let strict = root.clone().with_hard_links(false);
    assert!(matches!(strict.read("inner/hard.txt", 1000), Err(ReadError::NotFound)));
    assert!(matches!(
        strict.open_directory("inner").unwrap().entry("hard.txt"),
        DirectoryEntry::Other
    ));
    assert_eq!(strict.read("inner/deep.txt", 1000).unwrap(), b"deep");
    assert_eq!(root.read("inner/hard.txt", 1000).unwrap(), SECRET.as_bytes());
    fs::remove_file(directory.path().join("outside/secret.txt")).unwrap();
    assert!(strict.read("inner/hard.txt", 1000).is_ok(), "the file has one name again");
}

/// A file that another thread extends as fast as it can while it is read.
#[test]
fn a_file_that_grows_while_it_is_read_is_cut_off() {
    let (directory, root) = stage();
    let path = directory.path().join("root/grows");
    fs::write(&path, "").unwrap();
    let ended = Arc::new(AtomicBool::new(false));
    let writer = {
        let ended = Arc::clone(&ended);
        thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                let file = File::options().write(true).open(&path).unwrap();
                file.set_len(0).unwrap();
                file.set_len(10 << 30).unwrap();
            }
        })
    };
    for _ in 0..2000 {
        match root.read("grows", 1000) {
            Ok(bytes) => assert!(bytes.len() <= 1000),
            Err(ReadError::TooLarge) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
    ended.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    fs::create_dir(directory.path().join("root/folder.txt")).unwrap();
    assert!(matches!(root.read("folder.txt", 1000), Err(ReadError::NotFound)));
}

#[test]
fn a_file_has_a_largest_size_also_if_it_has_holes() {
    let (directory, root) = stage();
    let sparse = File::create(directory.path().join("root/sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    assert!(matches!(root.read("sparse", 1 << 20), Err(ReadError::TooLarge)));
    assert!(matches!(root.read("open.txt", 3), Err(ReadError::TooLarge)));
    assert_eq!(root.read("open.txt", 4).unwrap().len(), 4);
}

/// Replaces an entry over and over while it is read: by a file, a link to the secret, a folder, and a link to a folder
/// with the secret.
#[test]
fn a_link_that_is_swapped_in_during_a_read_is_not_followed() {
    let (directory, root) = stage();
    let path_of = |path: &str| directory.path().join(path);
    fs::create_dir(path_of("root/swap")).unwrap();
    fs::write(path_of("root/swap/secret.txt"), "harmless").unwrap();
    fs::write(path_of("root/target.txt"), "harmless").unwrap();
    let ended = Arc::new(AtomicBool::new(false));
    let swapper = {
        let (ended, at) = (Arc::clone(&ended), directory.path().to_owned());
        let path_of = move |path: &str| at.join(path);
        thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                _ = symlink(path_of("outside/secret.txt"), path_of("root/new"));
                _ = fs::rename(path_of("root/new"), path_of("root/target.txt"));
                _ = fs::rename(path_of("root/swap"), path_of("root/kept"));
                _ = symlink(path_of("outside"), path_of("root/swap"));
                // Long enough to be observed, even on one core.
                thread::yield_now();
                _ = fs::remove_file(path_of("root/swap"));
                _ = fs::rename(path_of("root/kept"), path_of("root/swap"));
                thread::yield_now();
                _ = fs::write(path_of("root/new"), "harmless");
                _ = fs::rename(path_of("root/new"), path_of("root/target.txt"));
            }
        })
    };
    let (mut read, mut refused) = (0_u32, 0_u32);
    for round in 0_u32..200_000 {
        for path in ["target.txt", "swap/secret.txt"] {
            match root.read(path, 1000) {
                Ok(bytes) => {
                    assert_ne!(bytes, SECRET.as_bytes(), "{path}");
                    read += 1;
                }
                Err(_) => refused += 1,
            }
        }
        // Enough once both outcomes have occurred often.
        if round > 2000 && read > 1000 && refused > 1000 {
            break;
        }
    }
    ended.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    assert!(read > 0, "the regular file is readable");
}
