//! Tests of `creole passwd`: exit code, stdout, stderr and the files that it writes.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use creole::auth::{AuthSettings, Authenticator};
use creole::internal::credential_files::NewKey;
use creole::internal::http::AuthDecision;
use creole_acceptance::canaries;
use creole_acceptance::process_under_test::finished_command::FinishedCommand;
use creole_acceptance::stage::stdio::binary;
use tempfile::TempDir;
use tokio::runtime::Builder;

const PASSWORD: &str = "correct horse battery";

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder for the test")
}

/// Runs `creole passwd` in this folder, with this text on stdin. No file may contain a typed password or a new key.
#[track_caller]
fn passwd(folder: &Path, words: &[&str], typed: &str) -> FinishedCommand {
    let mut command = Command::new(binary().expect("the binary under test"));
    command.arg("passwd").args(words).current_dir(folder).env("NO_COLOR", "1");
    typed.lines().for_each(canaries::watch);
    let finished = FinishedCommand::run(&mut command, typed);
    finished
        .stdout
        .split_whitespace()
        .filter(|it| it.starts_with("creole_"))
        .for_each(canaries::watch);
    canaries::assert_absent_in_files(folder, |_| false);
    finished
}

#[track_caller]
fn assert_says(output: &FinishedCommand, code: i32, stderr: &str) {
    assert_eq!(output.stderr, stderr);
    assert_eq!((output.code, output.stdout.as_str()), (Some(code), ""));
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("the file is there").permissions().mode() & 0o777
}

/// The principal that a server with these settings derives from the header.
fn principal_of(settings: AuthSettings, header: &str) -> Option<String> {
    let authenticator = Authenticator::new(settings).expect("the files are right");
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let header = header.parse().expect("a header");
    match runtime.block_on(authenticator.authenticate(Some(&header), None)) {
        AuthDecision::Granted(principal) => {
            Some(format!("{} {:?}", principal.id(), principal.roles()))
        }
        AuthDecision::Refused(_) => None,
    }
}

#[test]
fn a_user_is_added_to_a_new_file_that_only_its_owner_reads() {
    let folder = folder();
    let output =
        passwd(folder.path(), &["users.txt", "alice", "--role", "mcp"], "correct horse battery\n");
    assert_says(&output, 0, "creole: `alice` was added to users.txt, with the role mcp\n");
    let path = folder.path().join("users.txt");
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "# Users: name:password hash:role,role");
    assert!(lines[1].starts_with("alice:$argon2id$v=19$m=19456,t=2,p=1$"), "{text}");
    assert!(lines[1].ends_with(":mcp") && lines.len() == 2, "{text}");
    assert_eq!(mode(&path), 0o600);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
    let settings = || {
        let mut settings = AuthSettings::default();
        settings.users = Some(path.clone());
        settings
    };
    // alice:correct horse battery, and one letter less.
    let right = "Basic YWxpY2U6Y29ycmVjdCBob3JzZSBiYXR0ZXJ5";
    assert_eq!(principal_of(settings(), right).as_deref(), Some("user:alice [\"mcp\"]"));
    assert_eq!(principal_of(settings(), "Basic YWxpY2U6Y29ycmVjdCBob3JzZSBiYXR0ZXI="), None);
}

#[test]
fn a_new_password_keeps_roles_comments_mode_and_links() {
    let folder = folder();
    passwd(folder.path(), &["users.txt", "alice", "--role", "mcp", "--role", "admin"], PASSWORD);
    let path = folder.path().join("users.txt");
    let before = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("# Ours\n{before}# The end\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("users.txt", folder.path().join("link.txt")).unwrap();
    let output = passwd(folder.path(), &["link.txt", "alice"], "another fine password\n");
    assert_says(
        &output,
        0,
        "creole: `alice` has a new password in link.txt, with the roles mcp, admin\n",
    );
    let after = fs::read_to_string(&path).unwrap();
    assert!(after.starts_with("# Ours\n") && after.ends_with(":mcp,admin\n# The end\n"), "{after}");
    assert_ne!(after, format!("# Ours\n{before}# The end\n"));
    assert_eq!(mode(&path), 0o640);
    assert!(fs::symlink_metadata(folder.path().join("link.txt")).unwrap().is_symlink());
}

#[test]
fn a_key_is_printed_once_and_stored_as_its_hash() {
    let folder = folder();
    let words =
        ["keys.txt", "--key", "ci", "--role", "mcp", "--expires", "2999-01-31T12:00:00+02:00"];
    let output = passwd(folder.path(), &words, "");
    let printed = "creole: `ci` was added to keys.txt, with the role mcp\n\
                creole: this is the key; it is shown only once:\n";
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), printed));
    let key = output.stdout.strip_suffix('\n').unwrap();
    assert_eq!((key.len(), key.starts_with("creole_")), (50, true));
    let path = folder.path().join("keys.txt");
    let text = fs::read_to_string(&path).unwrap();
    assert!(!text.contains(key) && text.ends_with(":mcp:2999-01-31T10:00:00Z\n"), "{text}");
    assert_eq!(mode(&path), 0o600);
    let settings = || {
        let mut settings = AuthSettings::default();
        settings.keys_file = Some(path.clone());
        settings
    };
    let header = format!("Bearer {key}");
    assert_eq!(principal_of(settings(), &header).as_deref(), Some("key:ci [\"mcp\"]"));
    let second = passwd(folder.path(), &["keys.txt", "--key", "ci"], "");
    assert!(
        second.stderr.starts_with("creole: `ci` has a new key in keys.txt, with the role mcp\n")
    );
    assert_eq!(principal_of(settings(), &header), None, "the old key is rejected");
    let removed = passwd(folder.path(), &["keys.txt", "--remove", "ci"], "");
    assert_says(&removed, 0, "creole: `ci` was removed from keys.txt\n");
}

#[test]
fn a_user_is_removed() {
    let folder = folder();
    passwd(folder.path(), &["users.txt", "alice"], PASSWORD);
    passwd(folder.path(), &["users.txt", "bob"], PASSWORD);
    let output = passwd(folder.path(), &["users.txt", "--remove", "alice"], "");
    assert_says(&output, 0, "creole: `alice` was removed from users.txt\n");
    let text = fs::read_to_string(folder.path().join("users.txt")).unwrap();
    assert!(!text.contains("alice") && text.contains("\nbob:$argon2id$"), "{text}");
    let second = passwd(folder.path(), &["users.txt", "--remove", "alice"], "");
    assert_says(&second, 1, "error: `alice` is not in users.txt\n");
    let missing = passwd(folder.path(), &["none.txt", "--remove", "alice"], "");
    let expected = "error: none.txt: the file does not exist; `creole passwd` creates it\n";
    assert_says(&missing, 2, expected);
}

#[test]
fn an_unusable_value_is_refused_and_changes_nothing() {
    let folder = folder();
    let cases: [(&[&str], &str, &str); 9] = [
        (&["users.txt", "alice"], "hunter2\n", "the password has fewer than 12 characters"),
        (&["users.txt", "alice"], "\n", "the password has fewer than 12 characters"),
        (&["users.txt", "alice"], "aaaaaaaaaaaaaaaa\n", "the password repeats a single character"),
        (
            &["users.txt", "alice"],
            "",
            "stdin has no password; write it to stdin, or run the command in a terminal",
        ),
        (
            &["users.txt", "alice"],
            "correct\thorse\n",
            "the password contains a control character, which clients cannot send",
        ),
        (
            &["users.txt", "al:ice"],
            PASSWORD,
            "the name contains a character that is not allowed; use letters A to Z, digits and . _ - + @",
        ),
        (&["users.txt", "alice", "--role", ""], PASSWORD, "the role is empty"),
        (
            &["users.txt", "alice", "--role", "a", "--role", "a"],
            PASSWORD,
            "the role `a` is listed twice",
        ),
        (
            &["keys.txt", "--key", "ci", "--expires", "2001-01-01"],
            "",
            "the expiry of the key is in the past",
        ),
    ];
    for (words, typed, description) in cases {
        assert_says(&passwd(folder.path(), words, typed), 2, &format!("error: {description}\n"));
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn the_command_line_accepts_one_action_at_a_time() {
    let folder = folder();
    let wrong: [&[&str]; 6] = [
        &["users.txt"],
        &["users.txt", "alice", "--remove", "bob"],
        &["users.txt", "alice", "--key", "ci"],
        &["users.txt", "--remove", "bob", "--role", "mcp"],
        &["users.txt", "alice", "--expires", "2999-01-01"],
        &["keys.txt", "--key", "ci", "--expires", "soon"],
    ];
    for words in wrong {
        let output = passwd(folder.path(), words, PASSWORD);
        assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""), "{words:?}");
        assert!(output.stderr.starts_with("error: "), "{}", output.stderr);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn an_invalid_file_is_reported_with_its_line_and_not_changed() {
    let folder = folder();
    let path = folder.path().join("users.txt");
    let write = |text: &str, mode| {
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    };
    write("# Ours\nbob:hunter2\n", 0o600);
    let expected = "error: users.txt:2: of `bob`: the value is not a hash; it may be the password itself; `creole passwd users.txt NAME` stores the hash of a password\n";
    for words in [&["users.txt", "alice"][..], &["users.txt", "--remove", "bob"]] {
        assert_says(&passwd(folder.path(), words, PASSWORD), 2, expected);
    }
    let key = format!("ci:$sha256${}\n", NewKey::random().sha256);
    write(&key, 0o600);
    let expected = "error: users.txt:1: of `ci`: a key hash in a file of users; put keys into the file of `keys_file`\n";
    assert_says(&passwd(folder.path(), &["users.txt", "alice"], PASSWORD), 2, expected);
    write(&key, 0o666);
    let expected = "error: users.txt: users other than the owner may write the file (mode 666); chmod 600 \
                    users.txt\n";
    assert_says(&passwd(folder.path(), &["users.txt", "--key", "cd"], ""), 2, expected);
    assert_eq!(fs::read_to_string(&path).unwrap(), key);
    let nowhere = passwd(folder.path(), &["none/users.txt", "alice"], PASSWORD);
    let expected =
        "error: cannot write the file `none/users.txt`: No such file or directory (os error 2)\n";
    assert_says(&nowhere, 1, expected);
}

#[test]
fn runs_at_the_same_time_lose_nothing() {
    let folder = folder();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let path = folder.path();
            scope.spawn(move || {
                let output = passwd(path, &["keys.txt", "--key", &format!("k{number}")], "");
                assert_eq!(output.code, Some(0), "{}", output.stderr);
            });
        }
    });
    let text = fs::read_to_string(folder.path().join("keys.txt")).unwrap();
    assert_eq!(text.lines().filter(|line| line.starts_with('k')).count(), 8, "{text}");
}

#[test]
fn check_reads_the_files_and_lists_the_principals() {
    let folder = folder();
    passwd(folder.path(), &["users.txt", "alice"], PASSWORD);
    passwd(folder.path(), &["keys.txt", "--key", "ci"], "");
    let config =
        "[server]\n[auth]\nusers = \"users.txt\"\nkeys_file = \"keys.txt\"\nrole = \"mcp\"\n";
    fs::write(folder.path().join("creole.toml"), config).unwrap();
    let check = || {
        let output = Command::new(binary().unwrap())
            .args(["config", "check"])
            .arg(folder.path().join("creole.toml"))
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, stdout, stderr) = check();
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(stdout.ends_with("\n  auth     1 user, 1 key, with the role mcp\n"), "{stdout}");
    let file = folder.path().join("users.txt");
    fs::remove_file(&file).unwrap();
    let expected =
        format!("error: {}: the file does not exist; `creole passwd` creates it\n", file.display());
    assert_eq!(check(), (Some(2), String::new(), expected));
}
