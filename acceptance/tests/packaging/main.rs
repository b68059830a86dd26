//! Tests of what runs the program: units of systemd, and the chart and the manifests of Kubernetes.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod chart;
mod manifests;
mod notifications;
mod sockets;
mod units;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use creole_acceptance::peers::if_installed;
use creole_acceptance::stage::stdio::repository;

/// A folder of `packaging`.
fn packaging(folder: &str) -> PathBuf {
    repository().join("packaging").join(folder)
}

/// Whether a program of the Debian package `systemd` is installed. One that is missing is reported, and is a failure with
/// `CI=true`.
#[track_caller]
fn has_systemd(program: &str) -> bool {
    let mut command = Command::new(program);
    let status = command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let status = status.and_then(|status| match status.success() {
        true => Ok(()),
        false => Err(ErrorKind::Unsupported.into()),
    });
    let found = status.map_err(|error| format!("{error}; install the Debian package systemd"));
    if_installed(program, found).is_some()
}

/// Writes a configuration with a listener, and returns its path.
fn configuration(folder: &Path, text: &str) -> String {
    let file = folder.join("creole.toml");
    let text = format!(
        "[server]\nname = \"t\"\npacks = [\"hello\"]\n[http]\nlisten = \"127.0.0.1:0\"\n{text}"
    );
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}
