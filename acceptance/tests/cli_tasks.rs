//! Tests of `creole call` with tools that run as tasks, on servers of both eras.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::fs;
use std::process::Command;

use creole_acceptance::stage::stdio::binary;

/// The exit code, stdout and stderr of `creole call` with a tool of the preset `everything`.
fn call(era: &str, words: &[&str]) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("behind.toml");
    let text = format!(
        "[server]\npacks = [\"everything\"]\n[server.dialect]\nextends = \"spec\"\n{era}\n"
    );
    fs::write(&file, text).unwrap();
    let creole = binary().unwrap();
    let data = format!("CREOLE_DATA_DIR={}", folder.path().display());
    let output = Command::new(&creole)
        .args(["call"])
        .args(words)
        .args(["--env", &data, "--"])
        .args([creole.as_os_str(), "serve".as_ref(), file.as_os_str()])
        .env("CREOLE_DATA_DIR", folder.path())
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_tool_that_only_runs_as_a_task_is_followed_to_its_end() {
    for era in ["stateless = false", "handshake = false"] {
        let (code, stdout, stderr) = call(era, &["failing_job"]);
        assert_eq!((code, &*stdout), (Some(1), ""), "{era}: {stderr}");
        assert!(stderr.contains("The job failed, as it always does"), "{era}: {stderr}");
    }
}

#[test]
fn a_tool_with_optional_task_support_returns_the_same_result() {
    for era in ["stateless = false", "handshake = false"] {
        let (code, stdout, stderr) = call(era, &["slow_compute", "--arg", "seconds=0"]);
        assert_eq!(code, Some(0), "{era}: {stderr}");
        assert_eq!(stdout.trim_end(), "Computed result in 0 seconds", "{era}");
    }
}
