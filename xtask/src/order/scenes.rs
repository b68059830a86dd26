//! What the program does while callgrind watches: the starts and calls that everybody makes.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::profile;
use super::visitor::Visitor;

pub(super) const HANDSHAKE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"order","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"ping"}
{"jsonrpc":"2.0","id":3,"method":"tools/list"}
{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello"}}}
"#;

pub(super) const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"order","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;

pub(super) const CALL: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"order","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;

/// The functions of the program that ran, each with the first scene that needs it, so that a server on stdio
/// does not keep what only HTTP needs.
pub(super) fn functions(program: &Path, folder: &Path) -> Result<Vec<String>, String> {
    let stage = Stage { program, folder };
    fs::create_dir_all(folder.join("empty"))
        .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let default: &[&str] = &["serve"];
    let mut on_stdio = stage.on_stdio("handshake", default, HANDSHAKE)?;
    on_stdio.extend(stage.on_stdio("stateless", default, &format!("{LIST}\n{CALL}\n"))?);
    let everything = &["serve", "--preset", "everything"];
    let scenes = [
        on_stdio,
        stage.on_stdio("everything", everything, HANDSHAKE)?,
        stage.over_http("http", Visitor::stand_alone)?,
        stage.over_http("session", Visitor::in_session)?,
    ];
    let mut seen = BTreeSet::new();
    Ok(scenes.into_iter().flatten().filter(|name| seen.insert(name.clone())).collect())
}

struct Stage<'a> {
    program: &'a Path,
    folder: &'a Path,
}

impl Stage<'_> {
    fn on_stdio(
        &self,
        scene: &str,
        arguments: &[&str],
        input: &str,
    ) -> Result<BTreeSet<String>, String> {
        let mut running = self.start(scene, arguments)?;
        let mut stdin = running.stdin.take().ok_or("the program has no stdin")?;
        stdin.write_all(input.as_bytes()).map_err(|error| format!("{scene}: {error}"))?;
        let stdout = running.stdout.take().ok_or("the program has no stdout")?;
        // A client hears the answers before it goes.
        let answers = input.lines().filter(|line| line.contains("\"id\"")).count();
        let heard = BufReader::new(stdout).lines().map_while(Result::ok).take(answers).count();
        if heard < answers {
            return Err(format!("{scene}: {heard} answers to {answers} requests"));
        }
        drop(stdin);
        self.finish(scene, running)
    }

    fn over_http(
        &self,
        scene: &str,
        visit: fn(&Visitor) -> io::Result<()>,
    ) -> Result<BTreeSet<String>, String> {
        let mut running = self.start(scene, &["serve", "--http", "127.0.0.1:0"])?;
        let stderr = running.stderr.take().ok_or("the program has no stderr")?;
        let address = BufReader::new(stderr)
            .lines()
            .map_while(Result::ok)
            .find_map(|line| Some(line.split_once("http://")?.1.split('/').next()?.to_owned()))
            .ok_or("the program did not say where it listens")?;
        visit(&Visitor { address }).map_err(|error| format!("{scene}: {error}"))?;
        let pid = running.id().to_string();
        Command::new("kill")
            .arg(&pid)
            .status()
            .map_err(|error| format!("cannot end process {pid}: {error}"))?;
        self.finish(scene, running)
    }

    fn start(&self, scene: &str, arguments: &[&str]) -> Result<Child, String> {
        Command::new("valgrind")
            .args(["--tool=callgrind", "--demangle=no"])
            .arg(format!("--callgrind-out-file={}", self.profile(scene).display()))
            .arg(self.program)
            .args(arguments)
            .current_dir(self.folder.join("empty"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| {
                format!("cannot run valgrind ({error}): install the package `valgrind`")
            })
    }

    fn finish(&self, scene: &str, mut running: Child) -> Result<BTreeSet<String>, String> {
        drop(running.stdin.take());
        let status = running.wait().map_err(|error| format!("{scene}: {error}"))?;
        if !status.success() {
            return Err(format!("the program ended with {status} in the scene `{scene}`"));
        }
        let path = self.profile(scene);
        let written = fs::read_to_string(&path)
            .map_err(|error| format!("callgrind left no profile in {}: {error}", path.display()))?;
        Ok(profile::functions(&written, &self.program.display().to_string()))
    }

    fn profile(&self, scene: &str) -> PathBuf {
        self.folder.join(format!("{scene}.out"))
    }
}
