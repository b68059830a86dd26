//! Tests with folders on disk: found skills, rejected ones, and confinement.

use std::os::unix::fs::symlink;

use tempfile::{TempDir, tempdir};

use super::*;

const MODE: rustix::fs::Mode = rustix::fs::Mode::RWXU;

/// A folder with these files; a path that ends with a slash is a folder.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

fn front(name: &str) -> String {
    format!("---\nname: {name}\ndescription: About {name}\n---\nText.\n")
}

fn uris(loaded: &LoadedSkills) -> Vec<&str> {
    loaded.skills.iter().map(Skill::uri).collect()
}

fn only_problem(loaded: &LoadedSkills) -> String {
    assert_eq!(loaded.errors.len(), 1, "{:?}", loaded.errors);
    loaded.errors[0].to_string()
}

#[test]
fn skills_are_found_at_every_depth_and_inside_of_one_another() {
    let (one, two, three) = (front("one"), front("two"), front("three"));
    let folder = folder(&[
        ("one/SKILL.md", &one),
        ("one/scripts/run.py", "print()"),
        ("acme/README.md", "not of a skill"),
        ("acme/two/SKILL.md", &two),
        ("acme/two/parts/three/SKILL.md", &three),
        (".hidden/four/SKILL.md", "wrong"),
        ("one/.env", "SECRET"),
    ]);
    let loaded = load(folder.path()).unwrap();
    assert!(loaded.errors.is_empty(), "{:?}", loaded.errors);
    let expected = [
        "skill://acme/two/SKILL.md",
        "skill://acme/two/parts/three/SKILL.md",
        "skill://one/SKILL.md",
    ];
    assert_eq!(uris(&loaded), expected);
}

#[test]
fn a_wrong_skill_is_told_and_the_others_are_served() {
    let right = front("right");
    let folder = folder(&[
        ("right/SKILL.md", &right),
        ("wrong/SKILL.md", "---\nname: wrong\ndescription: Use it: now\n---\n"),
        ("other/skill.md", &right),
    ]);
    let loaded = load(folder.path()).unwrap();
    assert_eq!(uris(&loaded), ["skill://right/SKILL.md"]);
    let messages: Vec<String> = loaded.errors.iter().map(ToString::to_string).collect();
    let place = folder.path().display();
    let expected = [
        format!(
            "{place}/wrong/SKILL.md:3: an unquoted value cannot contain a colon before a space \
                or at its end; put the value in quotes, or write it as a block after `>-`"
        ),
        format!("{place}/other/skill.md: the file is not a skill; rename it to `SKILL.md`"),
    ];
    assert_eq!(messages, expected);
}

#[test]
fn an_invalid_skill_inside_of_another_is_still_a_part_of_it() {
    let outer = front("outer");
    let folder = folder(&[("outer/SKILL.md", &outer), ("outer/inner/SKILL.md", "no front matter")]);
    let loaded = load(folder.path()).unwrap();
    assert_eq!(uris(&loaded), ["skill://outer/SKILL.md"]);
    assert!(only_problem(&loaded).contains("inner/SKILL.md:1:"));
}

#[test]
fn a_link_is_followed_inside_of_the_folder_and_refused_outside() {
    let (good, bad, secret) = (front("good"), front("bad"), folder(&[("secret.txt", "secret")]));
    let folder = folder(&[
        ("good/SKILL.md", &good),
        ("bad/SKILL.md", &bad),
        ("common/text.md", "common"),
        (".git/config", "hidden"),
    ]);
    let path_of = |path: &str| folder.path().join(path);
    symlink("../common/text.md", path_of("good/text.md")).unwrap();
    symlink("../common", path_of("good/all")).unwrap();
    symlink(secret.path().join("secret.txt"), path_of("bad/secret.txt")).unwrap();
    let loaded = load(folder.path()).unwrap();
    assert_eq!(uris(&loaded), ["skill://good/SKILL.md"]);
    assert!(
        only_problem(&loaded)
            .contains("bad/secret.txt: the symbolic link leads out of the folder of skills")
    );

    for (target, text) in [
        (secret.path().to_str().unwrap(), "leads out of the folder of skills"),
        ("../../..", "leads out of the folder of skills"),
        ("/dev/zero", "leads out of the folder of skills"),
        ("../.git/config", "leads out of the folder of skills"),
        ("..", "leads to a parent folder"),
        ("secret.txt", "cannot be read"),
        ("nowhere", "cannot be read"),
    ] {
        std::fs::remove_file(path_of("bad/secret.txt")).unwrap();
        symlink(target, path_of("bad/secret.txt")).unwrap();
        let loaded = load(folder.path()).unwrap();
        assert_eq!(uris(&loaded), ["skill://good/SKILL.md"], "{target}");
        assert!(only_problem(&loaded).contains(text), "{target}: {:?}", loaded.errors);
    }
}

#[test]
fn only_regular_files_are_opened() {
    let text = front("pipe");
    let folder = folder(&[("pipe/SKILL.md", &text)]);
    // Opening a pipe for reading waits for a writer: the test would not end.
    let pipe = folder.path().join("pipe/data");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, MODE, 0).unwrap();
    let loaded = load(folder.path()).unwrap();
    assert!(uris(&loaded).is_empty());
    assert!(only_problem(&loaded).contains("pipe/data: it is neither a file nor a folder"));
    symlink("data", folder.path().join("pipe/link")).unwrap();
    assert_eq!(load(folder.path()).unwrap().errors.len(), 2);
}

#[test]
fn sizes_and_depths_have_an_end() {
    let (large, deep) = (front("large"), front("deep"));
    let far = format!("deep/{}end.md", "a/".repeat(20));
    let folder = folder(&[("large/SKILL.md", &large), ("deep/SKILL.md", &deep), (&far, "")]);
    let file = std::fs::File::create(folder.path().join("large/sparse")).unwrap();
    file.set_len(1 << 40).unwrap();
    let loaded = load(folder.path()).unwrap();
    assert!(uris(&loaded).is_empty());
    let messages: Vec<String> = loaded.errors.iter().map(ToString::to_string).collect();
    assert!(messages[0].contains("deeper than 16 levels"), "{messages:?}");
    assert!(messages[1].contains("sparse: the file has more than 16777216 bytes"), "{messages:?}");
}

#[test]
fn a_folder_that_cannot_be_one_is_refused() {
    let text = front("x");
    let folder = folder(&[("SKILL.md", &text), ("empty/README.md", "")]);
    let itself = load(folder.path()).unwrap_err().to_string();
    assert!(itself.contains("SKILL.md: the folder of skills itself has a `SKILL.md`"), "{itself}");
    for path in ["nowhere", "SKILL.md"] {
        let output = load(&folder.path().join(path)).unwrap_err().to_string();
        assert!(output.contains("cannot read the folder of skills"), "{output}");
    }
    let empty = load(&folder.path().join("empty")).unwrap();
    assert!(only_problem(&empty).contains("the folder contains no skill"));
}
