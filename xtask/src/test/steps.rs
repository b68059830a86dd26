//! The steps of the test command.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Outcome, is_strict};
use crate::repository::Repository;
use crate::{docs, say, tidy};

/// One step.
pub(super) struct Step {
    /// Its name on the command line.
    pub(super) name: &'static str,
    /// What it does, in a few words.
    pub(super) about: &'static str,
    /// The function that runs it.
    pub(super) run: fn(&Repository) -> Outcome,
}

/// Every step, in order.
pub(super) const STEPS: &[Step] = &[
    Step { name: "tidy", about: "check the rules of the source tree", run: |_| done(tidy::run()) },
    Step {
        name: "docs",
        about: "check that generated documents are current",
        run: |_| done(docs::check()),
    },
    Step { name: "format", about: "check the formatting with rustfmt", run: format },
    Step { name: "lint", about: "check the code with clippy", run: lint },
    Step { name: "build", about: "build the binary that the tests start", run: build },
    Step { name: "peers", about: "install third-party clients and servers", run: peers },
    Step { name: "fuzz", about: "run every fuzz target for a short time", run: fuzz },
    Step {
        name: "doctests",
        about: "run the examples in the documentation, and check its links",
        run: doctests,
    },
    Step { name: "tests", about: "run unit, property, transcript and peer tests", run: tests },
];

fn done(result: Result<(), String>) -> Outcome {
    result.map(|()| None)
}

fn format(repository: &Repository) -> Outcome {
    let mended = |problem| format!("{problem}; run `cargo fmt` on the files above");
    cargo(repository, "fmt --all -- --check -l").map_err(mended)?;
    for manifest in apart(repository)? {
        cargo(repository, &format!("fmt --manifest-path {manifest} -- --check -l"))
            .map_err(mended)?;
    }
    Ok(None)
}

/// The manifests of crates outside the workspace.
fn apart(repository: &Repository) -> Result<Vec<String>, String> {
    let mut manifests = Vec::new();
    for folder in ["acceptance/peers", "bench", "fuzz"] {
        if repository.root().join(folder).is_dir() {
            manifests.extend(repository.files(folder)?.into_iter().map(|file| file.path));
        }
    }
    manifests.retain(|path| path.ends_with("/Cargo.toml"));
    Ok(manifests)
}

fn lint(repository: &Repository) -> Outcome {
    cargo(repository, "clippy --workspace --all-targets -- -D warnings")?;
    cargo(
        repository,
        "clippy --package creole --no-default-features --all-targets -- -D warnings",
    )?;
    cargo(
        repository,
        "clippy --package creole-cli --package creole-commands --package creole-config --no-default-features --all-targets -- -D warnings",
    )?;
    done(small_build(repository))
}

/// Crates that a server or client over stdio must not build.
const ONLY_HTTP: &[&str] =
    &["argon2", "aws-lc-rs", "h2", "http", "hyper", "rustls", "tokio-rustls"];

/// Checks that the library without its features builds no HTTP, no TLS and no password hashing.
fn small_build(repository: &Repository) -> Result<(), String> {
    let words = "tree --package creole --no-default-features --edges normal --prefix none";
    say(&format!("$ cargo {words}"));
    let output = cargo_command(repository, words)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!("`cargo {words}`: {}", output.status));
    }
    let found = only_http(&String::from_utf8_lossy(&output.stdout));
    if found.is_empty() {
        return Ok(());
    }
    Err(format!(
        "creole without its feature `http` depends on {}; move the code that needs it into the feature",
        found.join(", "),
    ))
}

/// The crates of this output of `cargo tree` that belong to the feature `http`.
fn only_http(tree: &str) -> Vec<&'static str> {
    let names: Vec<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    ONLY_HTTP.iter().copied().filter(|name| names.contains(name)).collect()
}

fn build(repository: &Repository) -> Outcome {
    done(cargo(repository, "build --package creole-cli"))
}

/// Installs the peers. If a program for that is missing, the other tests still run, except in strict mode, where the
/// note would not be read.
fn peers(repository: &Repository) -> Outcome {
    let missing: Vec<&str> =
        ["python3", "node", "npm"].into_iter().filter(|program| !answers(program)).collect();
    let note =
        format!("not installed: {}; peers that need them are not tested", missing.join(", "));
    if is_strict() && !missing.is_empty() {
        return Err(format!("{note}; with CI=true this is an error"));
    }
    let installed =
        cargo(repository, "run --quiet --package creole-acceptance --bin install-peers");
    if missing.is_empty() { done(installed) } else { Ok(Some(note)) }
}

/// Whether a program can be started.
fn answers(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn fuzz(repository: &Repository) -> Outcome {
    done(cargo(repository, "run --quiet --manifest-path fuzz/Cargo.toml --bin smoke"))
}

/// Runs the examples in the documentation and checks its links.
fn doctests(repository: &Repository) -> Outcome {
    cargo(repository, "test --quiet --doc --workspace")?;
    let words = "doc --quiet --no-deps --workspace";
    let mut command = cargo_command(repository, words);
    command.env("RUSTDOCFLAGS", "-D warnings");
    done(finish(command, words))
}

fn tests(repository: &Repository) -> Outcome {
    let official = official_files()?;
    let words = if has_nextest() {
        "nextest run --workspace"
    } else {
        say("cargo-nextest is not installed: cargo test is slower and stops at the first failure");
        "test --workspace --lib --bins --tests --examples"
    };
    let mut command = cargo_command(repository, words);
    if let Some(folder) = &official {
        command.env(OFFICIAL, folder);
    }
    finish(command, words)?;
    // The messages of a program that is built without its optional features.
    cargo(
        repository,
        "test --quiet --package creole-config --no-default-features --lib wordpress",
    )?;
    Ok(official.is_none().then(|| {
        format!(
            "{OFFICIAL} is not set: messages were not checked against the official schemas and examples"
        )
    }))
}

/// The variable that names a folder with the official schemas and examples of every revision.
const OFFICIAL: &str = "MCP_SPEC_DIR";

/// The absolute path of the folder of official files: tests run in the folders of their crates.
fn official_files() -> Result<Option<PathBuf>, String> {
    let Some(folder) = env::var_os(OFFICIAL).filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let folder = Path::new(&folder).canonicalize().ok().filter(|folder| folder.is_dir());
    folder.map(Some).ok_or_else(|| format!("{OFFICIAL} is not the path of a folder"))
}

fn has_nextest() -> bool {
    let mut command = Command::new(cargo_program());
    command.args(["nextest", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Runs cargo with these arguments, at the root of the repository.
fn cargo(repository: &Repository, words: &str) -> Result<(), String> {
    finish(cargo_command(repository, words), words)
}

fn cargo_command(repository: &Repository, words: &str) -> Command {
    let mut command = Command::new(cargo_program());
    command.args(words.split(' ')).current_dir(repository.root());
    command
}

fn cargo_program() -> std::ffi::OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn finish(mut command: Command, words: &str) -> Result<(), String> {
    say(&format!("$ cargo {words}"));
    let status = command.status().map_err(|error| format!("cannot start cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`cargo {words}`: {status}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_on_http_is_found_by_its_full_name() {
        let tree = "creole v0.1.0 (/creole)\nhttparse v1.10.1\nbytes v1.12.1\n";
        assert_eq!(only_http(tree), [""; 0]);
        let tree = format!("{tree}hyper v1.12.0\nargon2 v0.6.0 (*)\n");
        assert_eq!(only_http(&tree), ["argon2", "hyper"]);
    }
}
