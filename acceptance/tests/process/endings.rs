//! Tests of the end of the process: after its input ends, without a reader, and without any message (security C10, C11).

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use std::{fs, io};

use creole_acceptance::process_under_test::{ChildGuard, Server, call, handshake, request, serve};
use creole_acceptance::stage::stdio::binary;
use creole_test_wait::blocking::{delay, eventually};
use serde_json::json;
use tempfile::TempDir;

use crate::json_of;

/// A server after its handshake. The test holds both ends of its pipes.
struct HeldProcess {
    process: ChildGuard,
    input: io::PipeWriter,
    output: BufReader<io::PipeReader>,
    _data: TempDir,
}

impl HeldProcess {
    fn start() -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), &["--preset", "everything"])
    }

    fn start_in(data: TempDir, words: &[&str]) -> Self {
        let (stdin, input) = io::pipe().unwrap();
        let (output, stdout) = io::pipe().unwrap();
        let mut command = serve(data.path(), words);
        let process = ChildGuard::start(command.stdin(stdin).stdout(stdout).stderr(Stdio::null()));
        // The `Command` holds its ends of the pipes, and would keep its own reader alive.
        drop(command);
        let mut child = Self { process, input, output: BufReader::new(output), _data: data };
        child.input.write_all(handshake().as_bytes()).unwrap();
        let mut response = String::new();
        child.output.read_line(&mut response).unwrap();
        assert!(response.contains("result"), "{response}");
        child
    }

    /// Closes the server's stdout with its input still open: it must exit soon, and must not retry in a loop.
    #[track_caller]
    fn lose_the_reader(mut self) {
        let before = self.process.weight().processor;
        let gone = Instant::now();
        drop(self.output);
        let spent = self.process.processor_time_until_end() - before;
        let took = gone.elapsed();
        assert!(took < Duration::from_secs(5), "it took {took:?} to notice the closed output");
        assert!(spent < Duration::from_millis(500), "it used {spent:?} of processor time to exit");
        assert!(self.process.wait().is_some(), "a signal ended it");
        drop(self.input);
    }
}

#[test]
fn an_idle_server_exits_when_its_reader_disconnects() {
    HeldProcess::start().lose_the_reader();
}

#[test]
fn a_server_with_a_call_in_flight_exits_when_its_reader_disconnects() {
    let mut child = HeldProcess::start();
    let slow = call(1, "test_slow", &json!({"milliseconds": 600_000}));
    let ping = request(2, "ping", &json!({}));
    child.input.write_all(format!("{slow}{ping}").as_bytes()).unwrap();
    let mut pong = String::new();
    child.output.read_line(&mut pong).unwrap();
    assert_eq!(json_of(&pong)["id"], 2);
    child.lose_the_reader();
}

#[test]
fn a_server_that_waits_for_its_reader_exits_when_it_disconnects() {
    let child = HeldProcess::start();
    // More responses than a pipe holds, and more requests than the server reads ahead.
    let mut input = child.input.try_clone().unwrap();
    let listing = request(1, "tools/list", &json!({})).repeat(1000);
    let writer = std::thread::spawn(move || input.write_all(listing.as_bytes()));
    delay(Duration::from_millis(300));
    child.lose_the_reader();
    // The server closed the reading end of this pipe at its exit, so the writer cannot hang.
    let _ = writer.join().unwrap();
}

/// A script of an upstream that exits neither at the end of its input nor at SIGTERM. Its process id is in the file
/// `number` of the folder.
fn stubborn(folder: &Path) -> String {
    let (file, creole) = (folder.join("number"), binary().unwrap());
    format!(
        "trap '' TERM PIPE; echo $$ > {}; {} serve --preset fpf-governance; while :; do sleep 1; done",
        file.display(),
        creole.display()
    )
}

/// Whether the process of that script has ended. A zombie may stay in the process table.
fn is_over(number: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{number}/stat"));
    stat.map_or(true, |stat| stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")))
}

#[test]
fn an_upstream_that_does_not_exit_is_killed_when_the_reader_disconnects() {
    let data = tempfile::tempdir().unwrap();
    let (script, file) = (stubborn(data.path()), data.path().join("number"));
    let child = HeldProcess::start_in(data, &["--", "sh", "-c", &script]);
    let number = fs::read_to_string(file).unwrap();
    assert!(!is_over(number.trim()));
    child.lose_the_reader();
    assert!(is_over(number.trim()), "{number}");
}

#[test]
fn an_upstream_that_does_not_exit_is_killed_when_its_gateway_was() {
    let data = tempfile::tempdir().unwrap();
    let script = stubborn(data.path());
    let server = Server::start_in(data.path(), &["--", "sh", "-c", &script]).greeted();
    let number = fs::read_to_string(data.path().join("number")).unwrap();
    assert!(!is_over(number.trim()));
    let _ = server.kill();
    eventually(|| format!("process {number} is left"), || is_over(number.trim()));
}

#[test]
fn a_slow_call_is_answered_after_the_input_ended() {
    let mut server = Server::start(&["--preset", "everything"]).greeted();
    server.write(call(1, "test_slow", &json!({"milliseconds": 300})));
    let ended = server.finish();
    assert_eq!(ended.code, Some(0));
    assert_eq!(ended.output.len(), 1, "{:?}", ended.output);
    let response = json_of(&ended.output[0]);
    assert_eq!(response["result"]["content"][0]["text"], "Slept 300 ms");
}

#[test]
fn a_call_of_many_minutes_is_aborted_some_seconds_after_the_input_ended() {
    let mut server = Server::start(&[]).greeted();
    let created = server.call("create_task", &json!({"description": "never done"}));
    let task = json_of(created["result"]["content"][0]["text"].as_str().unwrap());
    let expected = json!({"id": task["id"], "status": "done", "timeout_seconds": 500});
    server.write(call(99, "wait_task", &expected));
    let closed = Instant::now();
    let ended = server.finish();
    assert_eq!(ended.code, Some(0), "{}", ended.log);
    let took = closed.elapsed();
    // Calls in flight get ten seconds. The rest is for a busy machine.
    assert!(took > Duration::from_secs(5) && took < Duration::from_secs(30), "{took:?}");
    assert!(ended.output.len() <= 1, "{:?}", ended.output);
}

#[test]
fn a_client_that_neither_reads_nor_sends_any_more_is_disconnected_some_seconds_later() {
    let mut child = HeldProcess::start();
    let listing = request(1, "tools/list", &json!({})).repeat(100);
    child.input.write_all(listing.as_bytes()).unwrap();
    let closed = Instant::now();
    drop(child.input);
    assert!(child.process.wait().is_some(), "a signal ended it");
    assert!(closed.elapsed() < Duration::from_secs(40), "{:?}", closed.elapsed());
    drop(child.output);
}

#[test]
fn a_server_without_input_exits_cleanly_and_silently() {
    for preset in ["default", "bossman", "fpf-governance", "bb-mcp-server", "everything"] {
        let ended = Server::start(&["--preset", preset]).finish();
        assert_eq!((ended.code, ended.output, ended.log.as_str()), (Some(0), vec![], ""));
    }
}

#[test]
fn a_cold_start_says_nothing_on_stderr() {
    let mut server = Server::start(&[]).greeted();
    server.ping();
    let created = server.call("create_task", &json!({"description": "first of all"}));
    assert!(created["result"].is_object(), "{created}");
    let ended = server.finish();
    assert_eq!((ended.code, ended.output, ended.log.as_str()), (Some(0), vec![], ""));
}
