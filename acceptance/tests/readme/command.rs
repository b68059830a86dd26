//! The commands of a document: which are run, and how.

use std::fs;
use std::process::Stdio;

use creole_acceptance::peers::if_installed;
use creole_acceptance::stage::stdio::repository;

use crate::stage::{self, Stage};

/// Programs of others that documents use. A command with one is not run where it is missing.
const PROGRAMS: [&str; 6] =
    ["python3", "openssl", "curl", "prometheus", "promtool", "redis-server"];

/// How a command line is handled.
pub(crate) enum Kind<'a> {
    /// It is run.
    Ours,
    /// It is started in the background.
    Background(&'a str),
    /// It is only checked.
    Checked(Result<(), String>),
    /// It is ignored.
    Foreign,
}

/// How a command is handled.
pub(crate) fn kind<'a>(command: &'a str, stage: &Stage<'_>) -> Kind<'a> {
    let uses = |program: &&&str| command.split_whitespace().any(|word| word == **program);
    if !PROGRAMS.iter().filter(uses).all(|program| is_installed(program, stage)) {
        return Kind::Foreign;
    }
    let is_started =
        ["creole ", "prometheus ", "redis-server "].iter().any(|name| command.starts_with(name));
    if let Some(command) = command.strip_suffix(" &").filter(|_| is_started) {
        return Kind::Background(command);
    }
    let words: Vec<&str> = command.split_whitespace().collect();
    match words.as_slice() {
        ["creole" | "echo" | "printf" | "cp", ..] | ["cargo", "run", ..] => Kind::Ours,
        ["openssl" | "promtool" | "timeout", ..] => Kind::Ours,
        ["curl", ..] if stage::mentions_configured_port(command) => Kind::Ours,
        ["cargo", "install", rest @ ..] => Kind::Checked(check_install(rest)),
        ["cargo", "xtask", rest @ ..] => Kind::Checked(check_chore(rest)),
        _ => Kind::Foreign,
    }
}

/// Whether a program of others is installed, which a document uses. One that is missing is reported.
fn is_installed(program: &str, stage: &Stage<'_>) -> bool {
    let mut search = stage.shell(&format!("command -v {program}"));
    let status = search.stdout(Stdio::null()).status().and_then(|status| match status.success() {
        true => Ok(status),
        false => Err(std::io::ErrorKind::NotFound.into()),
    });
    if_installed(program, status).is_some()
}

fn check_install(words: &[&str]) -> Result<(), String> {
    let path = words.iter().skip_while(|word| **word != "--path").nth(1);
    let manifest = path.map(|path| repository().join(path).join("Cargo.toml"));
    match manifest {
        Some(manifest) if !manifest.is_file() => Err(format!("no {}", manifest.display())),
        _ => Ok(()),
    }
}

/// Checks that a line in the usage of `xtask` begins with this task.
fn check_chore(words: &[&str]) -> Result<(), String> {
    let plain: Vec<&str> =
        words.iter().take_while(|word| !word.starts_with(['-', '#'])).copied().collect();
    let usage = fs::read_to_string(repository().join("xtask/src/main.rs")).unwrap();
    let chore = plain.join(" ");
    let known = usage.lines().any(|line| line.trim_start().starts_with(&format!("{chore} ")));
    if known { Ok(()) } else { Err(format!("`cargo xtask` has no task `{chore}`")) }
}

/// Runs a command in a shell. Returns its output, as `Err` if it failed.
pub(crate) fn run(command: &str, stage: &Stage<'_>) -> Result<String, String> {
    let mut shell = stage.shell(&ended(&stage.with_addresses(&ours(command))));
    shell.env("NO_COLOR", "1").env("BROWSER", env!("CARGO_BIN_EXE_test-browser"));
    let output = shell.output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    let printed = shown_port(&stage.shown(&String::from_utf8_lossy(&printed)));
    if output.status.success() { Ok(printed) } else { Err(printed) }
}

/// The command with `creole` in place of the cargo command that would build and run it.
fn ours(command: &str) -> String {
    let Some(start) = command.find("cargo run ") else { return command.to_owned() };
    let Some(end) = command[start..].find(" -- ") else { return command.to_owned() };
    let cargo = &command[start..start + end];
    if !cargo.contains("creole-cli") {
        return command.to_owned();
    }
    format!("{}creole {}", &command[..start], &command[start + end + 4..])
}

/// The command, with a time limit if it would run forever.
fn ended(command: &str) -> String {
    match command.contains(" --http ") {
        true => format!("timeout --preserve-status 3 {}", command.replace(":8080", ":0")),
        false => command.to_owned(),
    }
}

/// The output, with the port that the documents show.
fn shown_port(printed: &str) -> String {
    const ADDRESS: &str = "http://127.0.0.1:";
    let Some(offset) = printed.find(ADDRESS) else { return printed.to_owned() };
    let (before, after) = printed.split_at(offset + ADDRESS.len());
    format!(
        "{before}8080{}",
        after.trim_start_matches(|character: char| character.is_ascii_digit())
    )
}
