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
//! - A command that listens and ends with ` &` runs in the background until the document ends. Port 8080 in the
//!   document then stands for its port.
//! - In a document with `creole login`, `https://mcp.example.com` stands for a server that `oidc-provider` protects, and
//!   `https://id.example.com` for its issuer, whose tokens a server of the document may accept. The browser is a program
//!   that approves. Without Node.js such a document is skipped, which is reported on stderr, and is a failure with
//!   `CI=true`.
//! - A command with `python3` is skipped where there is none. The skip is reported on stderr, and is a failure with
//!   `CI=true`.
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

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use creole_acceptance::peers::idp::{self, IdentityProvider};
use creole_acceptance::peers::if_installed;
use creole_acceptance::process_under_test::{ChildGuard, PATIENCE, shell};
use creole_acceptance::stage::stdio::repository;
use creole_test_wait::blocking::within;
use serde_json::Value;

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

/// A fenced block.
#[derive(Debug, PartialEq)]
struct Block {
    /// The number of its first line.
    line: usize,
    /// Its info string.
    mark: String,
    text: String,
    /// Whether only empty lines separate it from the block before.
    follows: bool,
}

fn blocks(document: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let (mut open, mut follows) = (false, false);
    for (index, line) in document.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), open) {
            (Some(mark), false) => {
                let mark = mark.trim().to_owned();
                blocks.push(Block { line: index + 2, mark, text: String::new(), follows });
                open = true;
            }
            (Some(_), true) => (open, follows) = (false, true),
            (None, true) => {
                let text = &mut blocks.last_mut().expect("an open block").text;
                text.push_str(line);
                text.push('\n');
            }
            (None, false) => follows = follows && line.trim().is_empty(),
        }
    }
    blocks
}

/// The errors in a document, each with its line number.
fn check(document: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut stage =
        Stage { folder: folder.path(), port: None, background: Vec::new(), provider: None };
    if document.contains("creole login ") {
        stage.provider = idp::provider(&[]);
        if stage.provider.is_none() {
            return Vec::new();
        }
    }
    let blocks = blocks(document);
    let mut problems = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        let shown = blocks.get(index + 1).filter(|next| is_output(next));
        let result = match block.mark.as_str() {
            "sh" => check_commands(&block.text, shown, &mut stage),
            "toml" => check_configuration(&block.text, &stage),
            "js" | "python" | "yaml" => keep(&block.text, folder.path()),
            "json" if index == 0 || !block.follows || blocks[index - 1].mark != "sh" => {
                check_json(&block.text)
            }
            _ => Ok(()),
        };
        problems.extend(result.err().map(|problem| format!("{}: {problem}", block.line)));
    }
    problems
}

/// The folder and the port for the commands of a document.
struct Stage<'a> {
    folder: &'a Path,
    /// The port of the background command.
    port: Option<u16>,
    background: Vec<ChildGuard>,
    /// The authorization server of the document.
    provider: Option<IdentityProvider>,
}

/// The server and the issuer that documents show.
const SHOWN: [&str; 2] = ["https://mcp.example.com", "https://id.example.com"];

impl Stage<'_> {
    /// Starts a command that listens, and waits until it does.
    fn start(&mut self, command: &str) -> Result<(), String> {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.map_err(|error| error.to_string())?.port();
        self.port = Some(port);
        let command = self.with_addresses(&format!("exec {command}"));
        let mut shell = shell(self.folder, &command);
        shell.stdout(Stdio::null()).stderr(Stdio::null());
        self.background.push(ChildGuard::start(&mut shell));
        within(PATIENCE, || TcpStream::connect(("127.0.0.1", port)).is_ok())
            .ok_or_else(|| format!("{command} does not listen"))
    }

    /// The text with the addresses of this run.
    fn with_addresses(&self, text: &str) -> String {
        let mut text = text.to_owned();
        if let Some(provider) = &self.provider {
            let real = [provider.server(""), provider.issuer()];
            for (shown, real) in SHOWN.iter().zip(&real) {
                text = text.replace(shown, real);
            }
        }
        match self.port {
            Some(port) => text.replace(":8080", &format!(":{port}")),
            None => text,
        }
    }

    /// The output with the addresses that the documents show.
    fn shown(&self, printed: &str) -> String {
        let mut text = printed.to_owned();
        if let Some(provider) = &self.provider {
            text = text.replace(&provider.server(""), SHOWN[0]);
            text = text.replace(&provider.issuer(), SHOWN[1]);
        }
        if let Some(port) = self.port {
            text = text.replace(&format!("127.0.0.1:{port}"), "127.0.0.1:8080");
        }
        shown_port(&text)
    }
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
        match kind(command) {
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

/// How a command line is handled.
enum Kind<'a> {
    /// It is run.
    Ours,
    /// It is started in the background.
    Background(&'a str),
    /// It is only checked.
    Checked(Result<(), String>),
    /// It is ignored.
    Foreign,
}

fn kind(command: &str) -> Kind<'_> {
    if command.contains("python3") && !has_python() {
        return Kind::Foreign;
    }
    if let Some(command) = command.strip_prefix("creole").and_then(|_| command.strip_suffix(" &")) {
        return Kind::Background(command);
    }
    let words: Vec<&str> = command.split_whitespace().collect();
    match words.as_slice() {
        ["creole" | "echo" | "printf", ..] | ["cargo", "run", ..] => Kind::Ours,
        ["cargo", "install", rest @ ..] => Kind::Checked(check_install(rest)),
        ["cargo", "xtask", rest @ ..] => Kind::Checked(check_chore(rest)),
        _ => Kind::Foreign,
    }
}

/// Whether Python is installed for the servers that documents show.
fn has_python() -> bool {
    let mut python = Command::new("python3");
    python.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    if_installed("python3", python.status()).is_some()
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
fn run(command: &str, stage: &Stage<'_>) -> Result<String, String> {
    let mut shell = shell(stage.folder, &ended(&stage.with_addresses(&ours(command))));
    shell.env("NO_COLOR", "1").env("BROWSER", env!("CARGO_BIN_EXE_test-browser"));
    let output = shell.output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    let printed = stage.shown(&String::from_utf8_lossy(&printed));
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
fn a_block_is_recognised_by_its_mark_and_its_context() {
    let document = "```sh\na\n```\n\n```text\nb\n```\nprose\n```json\n{}\n```\n";
    let found: Vec<_> = blocks(document)
        .into_iter()
        .map(|block| (block.line, block.mark, block.text, block.follows))
        .collect();
    let block =
        |line, mark: &str, text: &str, follows| (line, mark.to_owned(), text.to_owned(), follows);
    assert_eq!(
        found,
        [
            block(2, "sh", "a\n", false),
            block(6, "text", "b\n", true),
            block(10, "json", "{}\n", false)
        ]
    );
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
