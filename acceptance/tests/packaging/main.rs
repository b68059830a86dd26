//! Tests of what runs the program: units of systemd, and the chart and the manifests of Kubernetes.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod chart;
mod manifests;
mod notifications;
mod sockets;
mod units;

use std::fs;
use std::path::{Path, PathBuf};

use creole_acceptance::peers::{if_installed, systemd};
use creole_acceptance::stage::stdio::repository;

/// A folder of `packaging`.
fn packaging(folder: &str) -> PathBuf {
    repository().join("packaging").join(folder)
}

/// Whether the programs of systemd are installed. Missing ones are reported, and are a failure with `CI=true`.
#[track_caller]
fn has_systemd() -> bool {
    if_installed("systemd", systemd::prepared()).is_some()
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
