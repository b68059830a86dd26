//! Tests of the cost of a start, in processor time, so that the load of the machine does not count.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use creole_acceptance::process_under_test::{ChildGuard, serve};
use creole_acceptance::stage::stdio::binary;

/// The number of starts of each.
const TIMES: usize = 20;

/// A small configuration with several kinds of tables.
const SMALL: &str = r#"
[server]
name = "small"
packs = ["echo"]

[tools.search]
description = "Finds lines"
command = ["grep", "-rnF", "--", "{text}", "."]
arguments.text = { type = "string", min_length = 1 }

[tools.repository]
description = "Tells about a repository"
http.url = "https://api.github.com/repos/{owner}"
arguments.owner = { type = "string" }

[[server.chain]]
kind = "rate-limit"
principal_calls = 600
"#;

/// The median processor time of a command's first thread, from its start to its end.
#[track_caller]
fn median_duration(mut command: impl FnMut() -> Command) -> Duration {
    let mut all: Vec<Duration> = (0..TIMES)
        .map(|_| {
            let mut command = command();
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            ChildGuard::start(&mut command).first_thread_until_end()
        })
        .collect();
    all.sort();
    all[TIMES / 2]
}

/// The target is 10 ms for the release build. This build is not optimized, so the test compares with a multiple, which
/// is the same on every machine. Reading the system's certificates alone would exceed it.
#[test]
fn a_small_configuration_begins_not_much_later_than_the_bare_program() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("creole.toml"), SMALL).unwrap();
    let program = binary().unwrap();
    let bare = median_duration(|| {
        let mut command = Command::new(&program);
        command.arg("--version");
        command
    });
    let small = median_duration(|| serve(folder.path(), &["creole.toml"]));
    println!("a start: {bare:?} for the bare program, {small:?} with a small configuration");
    assert!(bare > Duration::ZERO, "the system does not report processor time");
    assert!(small < bare * 4, "{small:?} instead of {bare:?}");
}
