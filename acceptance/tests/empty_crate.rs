//! Compiles the library example of the README in a crate that depends on `creole` and `tokio` and on nothing else.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use creole_acceptance::stage::stdio::repository;

/// The manifest of the crate. The profile is that of the workspace, so that the dependencies are compiled once for both.
const MANIFEST: &str = r#"
[package]
name = "readme-example"
version = "0.0.0"
edition = "2024"

[dependencies]
creole = { path = "CREOLE" }
tokio = { version = "1", features = ["macros", "rt"] }

[profile.dev]
debug = "line-tables-only"

[workspace]
"#;

#[test]
fn the_example_of_the_readme_needs_only_creole_and_tokio() {
    let repository = repository();
    let folder = tempfile::tempdir().unwrap();
    let readme = fs::read_to_string(repository.join("README.md")).unwrap();
    let creole = repository.join("crates/creole");
    let manifest = MANIFEST.replace("CREOLE", creole.to_str().unwrap());
    fs::create_dir(folder.path().join("src")).unwrap();
    fs::write(folder.path().join("src/main.rs"), rust_block(&readme)).unwrap();
    fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
    // The versions of the workspace are on this machine, so nothing is downloaded.
    fs::copy(repository.join("Cargo.lock"), folder.path().join("Cargo.lock")).unwrap();

    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["check", "--offline", "--quiet"]).current_dir(folder.path());
    let output = command.env("CARGO_TARGET_DIR", target).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The program in the README: its only block of Rust.
fn rust_block(document: &str) -> &str {
    let (_, rest) = document.split_once("```rust\n").unwrap();
    let (block, rest) = rest.split_once("```").unwrap();
    assert!(!rest.contains("```rust"), "which block of the README is the example?");
    block
}
