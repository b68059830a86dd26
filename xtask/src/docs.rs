//! `cargo xtask docs`: generates documents from data, so that they are always correct.

mod conformance;
mod dialect;
mod dialects;
mod errors;
mod settings;

use std::process::{Command, Stdio};
use std::{env, fs};

use crate::repository::{File, Repository};
use crate::say;

/// The first line of every generated file.
const NOTICE: &str = "<!-- Made by `cargo xtask docs`; change the data, not this file. -->";

/// The folder whose files are all generated.
const DIALECTS: &str = "docs/dialects";
/// The reference of the configuration.
const CONFIGURATION: &str = "docs/configuration.md";

/// Writes every generated document, and removes those of removed dialects.
pub(crate) fn write() -> Result<(), String> {
    let repository = Repository::find()?;
    let mut documents = documents(&repository)?;
    documents.push(configuration(&repository)?);
    fs::create_dir_all(repository.root().join(DIALECTS)).map_err(|error| error.to_string())?;
    for orphan in orphans(&repository, &documents)? {
        fs::remove_file(repository.root().join(&orphan))
            .map_err(|error| format!("cannot remove {orphan}: {error}"))?;
        say(&format!("removed {orphan}"));
    }
    for File { path, text } in &documents {
        let place = repository.root().join(path);
        if fs::read_to_string(&place).is_ok_and(|written| written == *text) {
            continue;
        }
        fs::write(&place, text).map_err(|error| format!("cannot write {path}: {error}"))?;
        say(&format!("wrote {path}"));
    }
    Ok(())
}

/// Reports the documents that differ from what `write` would generate.
pub(crate) fn check() -> Result<(), String> {
    let repository = Repository::find()?;
    let documents = documents(&repository)?;
    let mut findings: Vec<String> = documents
        .iter()
        .filter_map(|document| {
            let written = fs::read_to_string(repository.root().join(&document.path)).ok();
            difference(document, written.as_deref())
        })
        .collect();
    let gone = orphans(&repository, &documents)?;
    findings.extend(gone.iter().map(|path| format!("{path}: nothing generates it")));
    if findings.is_empty() {
        say(&format!("{} generated documents are current", documents.len()));
        return Ok(());
    }
    Err(format!("{}\nwrite them again: cargo xtask docs", findings.join("\n")))
}

/// Every generated document.
fn documents(repository: &Repository) -> Result<Vec<File>, String> {
    let transcripts = repository.files("acceptance/transcripts")?;
    let mut documents = dialects::documents();
    documents.push(conformance::document(&transcripts));
    Ok(documents)
}

/// The reference of the configuration, as the binary prints it, since this crate does not depend on it. A test of
/// `creole-config` fails when it is outdated.
fn configuration(repository: &Repository) -> Result<File, String> {
    let words = ["run", "--quiet", "--package", "creole-cli", "--", "config", "reference"];
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let output =
        command.args(words).current_dir(repository.root()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("cannot start cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!("`cargo {}`: {}", words.join(" "), output.status));
    }
    let printed = String::from_utf8(output.stdout).map_err(|error| error.to_string())?;
    Ok(File { path: CONFIGURATION.to_owned(), text: format!("{NOTICE}\n\n{printed}") })
}

/// Files in the folder of dialects that are not generated.
fn orphans(repository: &Repository, documents: &[File]) -> Result<Vec<String>, String> {
    if !repository.root().join(DIALECTS).is_dir() {
        return Ok(Vec::new());
    }
    let written = repository.files(DIALECTS)?.into_iter().map(|file| file.path);
    let is_made = |path: &String| documents.iter().any(|document| document.path == *path);
    Ok(written.filter(|path| !is_made(path)).collect())
}

/// The first line in which a document differs from its file.
fn difference(document: &File, written: Option<&str>) -> Option<String> {
    let File { path, text } = document;
    let Some(written) = written else {
        return Some(format!("{path}: is missing"));
    };
    if written == text {
        return None;
    }
    let mut pairs = text.lines().zip(written.lines());
    let same = pairs.position(|(right, wrong)| right != wrong);
    let index = same.unwrap_or_else(|| text.lines().count().min(written.lines().count()));
    let line = |text: &str| text.lines().nth(index).unwrap_or("(the end)").to_owned();
    Some(format!(
        "{path}:{}: is not current\n  written: {}\n  current: {}",
        index + 1,
        line(written),
        line(text),
    ))
}

/// A table in Markdown.
fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head: Vec<String> = head.iter().map(ToString::to_string).collect();
    let mut table = line(&head) + &"|---".repeat(head.len()) + "|\n";
    for row in rows {
        let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
        table += &line(&cells);
    }
    table
}

/// Text that is bold if `noticed`.
fn bold(noticed: bool, text: &str) -> String {
    if noticed { format!("**{text}**") } else { text.to_owned() }
}

/// Words as code, separated by commas.
fn code_list<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_shown_by_its_first_line() {
        let document = File { path: "a.md".into(), text: "one\ntwo\n".into() };
        assert_eq!(difference(&document, Some("one\ntwo\n")), None);
        assert_eq!(difference(&document, None).unwrap(), "a.md: is missing");
        let told = difference(&document, Some("one\n2\n")).unwrap();
        assert_eq!(told, "a.md:2: is not current\n  written: 2\n  current: two");
        let told = difference(&document, Some("one\n")).unwrap();
        assert!(told.contains("written: (the end)"));
    }
}
