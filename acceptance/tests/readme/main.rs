//! Checks the documents: runs their commands and loads their configurations.
//!
//! The rules apply to every Markdown file at the root and under `docs/`. The blocks of a file are taken in order, in
//! one empty folder per file:
//!
//! - A block marked `sh` holds one command per line. Commands that begin with `creole`, `echo` or `printf` are run by a
//!   shell that finds the binary under test as `creole`. `cargo run … -p creole-cli … --` in them is the same binary,
//!   which is not rebuilt. Each must exit with 0.
//! - A command that listens (`--http`) gets the shutdown signal after three seconds, and must then exit with 0. Port
//!   8080 in it and in its output stands for any port, because 8080 may be in use.
//! - A command that ends with ` &` runs in the background until the document ends, and must listen. Port 8080 in the
//!   document then stands for its port. Ports 8443, 8081, 9464, 9090 and 6379 stand for ports of this run everywhere.
//! - In a document with `creole login`, `https://mcp.example.com` stands for a server that `oidc-provider` protects, and
//!   `https://id.example.com` for its issuer, whose tokens a server of the document may accept. The browser is a program
//!   that approves. Without Node.js such a document is skipped, which is reported on stderr, and is a failure with
//!   `CI=true`.
//! - Commands that begin with `openssl`, `promtool`, `timeout` or `cp` are run too, and `curl` if it has the address of a server of
//!   the document. A command with one of them, `prometheus`, `redis-server` or `python3` is skipped where that program is missing. The
//!   skip is reported on stderr, and is a failure with `CI=true`.
//! - `packaging/` in a command is the folder of the repository.
//! - `cargo install --path P` needs a crate at P, and `cargo xtask T` a task T. Other lines are not run, which is
//!   reported on stderr. Comments and empty lines are ignored.
//! - A block marked `text` or `json` directly after it is the output of these commands, stdout and then stderr. `…`
//!   stands for any text, and in `json` white space does not count. If the block begins with `error`, the last command
//!   must fail instead.
//! - A block marked `toml` is a configuration that `creole config check` must accept. It stays in the folder as
//!   `creole.toml`, or as `NAME.toml` if its first line is `# NAME.toml`. A block with `[dependencies]` is for Cargo
//!   and ignored.
//! - A block marked `js`, `python` or `yaml` whose first line is a comment with a file name stays in the folder as that
//!   file.
//! - A block marked `json` that follows no commands is JSON, unless it contains `…`.
//! - The doctests cover Rust in a document. A block with any other mark is an illustration.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]
#![allow(clippy::print_stderr, reason = "a line that is not run is reported on stderr")]

mod block;
mod command;
mod stage;

use std::fs;
use std::path::{Path, PathBuf};

use creole_acceptance::stage::stdio::repository;
use serde_json::Value;

use block::{Block, blocks};
use command::{Kind, kind, run};
use stage::Stage;

#[test]
fn the_examples_of_the_documents_are_correct() {
    let mut problems = Vec::new();
    let documents = documents();
    assert!(documents.iter().any(|path| path.ends_with("README.md")), "there is no README.md");
    for path in documents {
        let text = fs::read_to_string(&path).unwrap();
        let name = path.strip_prefix(repository()).unwrap_or(&path).display().to_string();
        problems.extend(check(&text).into_iter().map(|problem| format!("{name}:{problem}")));
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n\n"));
}

/// The Markdown files at the root and under `docs/`.
fn documents() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![repository().join("docs")];
    let root = fs::read_dir(repository()).unwrap().map(|entry| entry.unwrap().path());
    found.extend(root.filter(|path| path.is_file()));
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    found.sort();
    found
}

/// The errors in a document, each with its line number.
fn check(document: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut stage) = Stage::new(folder.path(), document) else { return Vec::new() };
    let blocks = blocks(document);
    let mut problems = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        let shown = blocks.get(index + 1).filter(|next| is_output(next));
        let result = match block.mark.as_str() {
            "sh" => check_commands(&block.text, shown, &mut stage),
            "toml" => check_configuration(&block.text, &stage),
            "js" | "python" | "yaml" => keep(&stage.with_addresses(&block.text), folder.path()),
            "json" if index == 0 || !block.follows || blocks[index - 1].mark != "sh" => {
                check_json(&block.text)
            }
            _ => Ok(()),
        };
        problems.extend(result.err().map(|problem| format!("{}: {problem}", block.line)));
    }
    problems
}

/// Stores a file that a document shows, if its first line names it.
fn keep(text: &str, folder: &Path) -> Result<(), String> {
    let first = text.lines().next().unwrap_or_default();
    let name = first.strip_prefix("// ").or(first.strip_prefix("# ")).unwrap_or_default();
    let is_name = [".js", ".py", ".yaml"].iter().any(|end| name.ends_with(end));
    if is_name && !name.contains(['/', ' ']) {
        fs::write(folder.join(name), text).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn is_output(block: &Block) -> bool {
    block.follows && matches!(block.mark.as_str(), "text" | "json")
}

fn check_json(text: &str) -> Result<(), String> {
    let parsed = serde_json::from_str::<Value>(text);
    if text.contains('…') { Ok(()) } else { parsed.map(drop).map_err(|error| error.to_string()) }
}

fn check_configuration(text: &str, stage: &Stage<'_>) -> Result<(), String> {
    if text.contains("[dependencies]") {
        return Ok(());
    }
    let first = text.lines().next().and_then(|line| line.strip_prefix("# "));
    let name = first.filter(|name| name.ends_with(".toml") && !name.contains(['/', ' ']));
    let name = name.unwrap_or("creole.toml");
    fs::write(stage.folder.join(name), stage.with_addresses(text)).unwrap();
    run(&format!("creole config check {name}"), stage).map(drop)
}

/// Runs the commands of a block and compares their output.
fn check_commands(text: &str, shown: Option<&Block>, stage: &mut Stage<'_>) -> Result<(), String> {
    let fails = shown.is_some_and(|block| block.text.starts_with("error"));
    let commands: Vec<&str> = text.lines().map(str::trim).filter(|line| is_command(line)).collect();
    let mut printed = String::new();
    for (index, command) in commands.iter().enumerate() {
        match kind(command, stage) {
            Kind::Background(command) => stage.start(command)?,
            Kind::Ours => match run(command, stage) {
                Err(output) if fails && index + 1 == commands.len() => printed.push_str(&output),
                result => {
                    printed.push_str(&result.map_err(|output| format!("{command}\n{output}"))?)
                }
            },
            Kind::Checked(checked) => checked?,
            Kind::Foreign => say(&format!("NOT RUN, because it is not ours: {command}")),
        }
    }
    let Some(shown) = shown else { return Ok(()) };
    let squeeze = |text: &str| match shown.mark.as_str() {
        "json" => text.split_whitespace().collect(),
        _ => text.trim_end().to_owned(),
    };
    if matches(&squeeze(&shown.text), &squeeze(&printed)) {
        return Ok(());
    }
    Err(format!("it prints something else\n--- shown\n{}--- printed\n{printed}", shown.text))
}

fn is_command(line: &str) -> bool {
    !line.is_empty() && !line.starts_with('#')
}

/// Whether a text matches a pattern, in which `…` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('…');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else { return rest.is_empty() };
    for piece in pieces {
        let Some(offset) = rest.find(piece) else { return false };
        rest = &rest[offset + piece.len()..];
    }
    rest.ends_with(last)
}

fn say(line: &str) {
    eprintln!("{line}");
}

#[test]
fn an_ellipsis_matches_any_text() {
    assert!(matches("a…c…e", "abcde") && matches("…", "") && matches("a", "a"));
    assert!(!matches("a…c", "abcd") && !matches("a", "ab") && !matches("a…a", "a"));
}

#[test]
fn a_document_that_is_right_has_no_problem() {
    let document = r#"
```toml
# own.toml
[server]
packs = ["echo"]
```
```sh
# A comment
echo '{"jsonrpc":"2.0","id":1,"method":"ping"}' | cargo run -q -p creole-cli -- serve own.toml
```
```json
{ "jsonrpc": "2.0", "id": 1, "result": {…} }
```
```sh
creole serve wrong.toml
```
```text
error: …wrong.toml…
```
```sh
cargo install --path crates/cli
cargo xtask test
```
"#;
    assert_eq!(check(document), Vec::<String>::new());
}

#[test]
fn a_wrong_document_has_a_problem_with_its_line() {
    let invalid = [
        "```sh\ncreole srve\n```",
        "```sh\ncargo xtask nonsense\n```",
        "```sh\ncargo install --path crates/nowhere\n```",
        "```toml\n[server]\npakcs = []\n```",
        "```json\n{,}\n```",
        "```sh\ncreole --version\n```\n```text\nsomething else\n```",
        "```sh\ncreole --version\n```\n```text\nerror: it does not fail\n```",
    ];
    for document in invalid {
        let problems = check(document);
        assert_eq!(problems.len(), 1, "{document}: {problems:?}");
        assert!(problems[0].starts_with("2: "), "{problems:?}");
    }
}
