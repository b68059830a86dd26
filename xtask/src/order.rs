//! Finds the functions that every start and an ordinary call run, for the linker to lay side by side.
//!
//! `crates/cli/build.rs` says what for. The names come from callgrind, which watches the release program
//! start, answer both eras on stdio and over HTTP, and end.

mod profile;
mod scenes;
mod visitor;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::repository::Repository;
use crate::say;

const ORDER: &str = "crates/cli/functions.order";

/// Writes the file of names, from a program that is built for it or from the given one, which has its symbols.
pub(crate) fn write(given: Option<&str>) -> Result<(), String> {
    let repository = Repository::find()?;
    let program = match given {
        Some(path) => PathBuf::from(path)
            .canonicalize()
            .map_err(|error| format!("cannot find the program {path}: {error}"))?,
        None => build(repository.root())?,
    };
    let names = scenes::functions(&program, &repository.root().join("target/order"))?;
    if names.is_empty() {
        return Err(format!("{} has no symbols: build it with `-C strip=none`", program.display()));
    }
    let path = repository.root().join(ORDER);
    let before = fs::read_to_string(&path).unwrap_or_default();
    let kept = names.iter().filter(|name| before.lines().any(|line| line == *name)).count();
    say(&format!("{ORDER}: {} functions, {kept} of them named before", names.len()));
    fs::write(&path, lines(&names)).map_err(|error| format!("cannot write {ORDER}: {error}"))
}

fn lines(names: &[String]) -> String {
    names.iter().flat_map(|name| [name.as_str(), "\n"]).collect()
}

/// The release program with its symbols, in a place of its own: the stripped one stays what it is.
fn build(root: &Path) -> Result<PathBuf, String> {
    let built = root.join("target/release/creole");
    let status = Command::new("cargo")
        .current_dir(root)
        .args(["rustc", "--release", "--locked", "--package", "creole-cli", "--bin", "creole"])
        .args(["--", "-C", "strip=none"])
        .status()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !status.success() {
        return Err("the release build failed".to_owned());
    }
    Ok(built)
}
