//! Tests of the kinds of standard streams: pipes, sockets, files, closed streams, and streams without a reader.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::Duration;
use std::{fs, thread};

use creole_acceptance::process_under_test::{
    ChildGuard, PATIENCE, call, handshake, request, serve, shell,
};
use creole_test_wait::blocking::delay;
use serde_json::json;

use crate::json_of;

const PING: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
const PONG: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";

fn fd(stream: &UnixStream) -> OwnedFd {
    stream.try_clone().unwrap().into()
}

/// Sends requests one by one through sockets, ends the input, and reads to the end.
fn run_session(mut to: &UnixStream, from: &UnixStream) {
    for stream in [to, from] {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
    }
    let mut answers = BufReader::new(from);
    for _ in 0..100 {
        to.write_all(PING.as_bytes()).unwrap();
        let mut line = String::new();
        answers.read_line(&mut line).unwrap();
        assert_eq!(line, PONG);
    }
    to.write_all(PING.repeat(1000).as_bytes()).unwrap();
    to.shutdown(Shutdown::Write).unwrap();
    let mut rest = String::new();
    answers.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, PONG.repeat(1000));
}

#[test]
fn a_socket_for_each_stream_does_as_well_as_a_pipe() {
    // Node.js starts a child in this way.
    let data = tempfile::tempdir().unwrap();
    let (stdin, to) = UnixStream::pair().unwrap();
    let (stdout, from) = UnixStream::pair().unwrap();
    let (stderr, mut log) = UnixStream::pair().unwrap();
    let mut command = serve(data.path(), &[]);
    command.stdin(fd(&stdin)).stdout(fd(&stdout)).stderr(fd(&stderr));
    let mut process = ChildGuard::start(&mut command);
    // The `Command` holds its ends too, so that the end of input would never be seen.
    drop((command, stdin, stdout, stderr));
    run_session(&to, &from);
    assert_eq!(process.wait(), Some(0));
    let mut text = String::new();
    log.read_to_string(&mut text).unwrap();
    assert_eq!(text, "");
}

#[test]
fn one_socket_serves_for_both_directions() {
    // inetd and systemd start a server in this way.
    let data = tempfile::tempdir().unwrap();
    let (remote, local) = UnixStream::pair().unwrap();
    let mut command = serve(data.path(), &[]);
    let mut process = ChildGuard::start(command.stdin(fd(&remote)).stdout(fd(&remote)));
    drop((command, remote));
    run_session(&local, &local);
    assert_eq!(process.wait(), Some(0));
}

#[test]
fn a_non_blocking_stdin_is_read() {
    // The mode is shared by all holders of the stream, and any of them may change it.
    let data = tempfile::tempdir().unwrap();
    let (remote, local) = UnixStream::pair().unwrap();
    remote.set_nonblocking(true).unwrap();
    let mut command = serve(data.path(), &[]);
    let mut process = ChildGuard::start(command.stdin(fd(&remote)).stdout(fd(&remote)));
    drop((command, remote));
    delay(Duration::from_millis(300));
    let before = process.weight().processor;
    delay(Duration::from_millis(300));
    let spent = process.weight().processor - before;
    assert!(spent < Duration::from_millis(100), "{spent:?} of processor time while it waits");
    run_session(&local, &local);
    assert_eq!(process.wait(), Some(0));
}

#[test]
fn a_socket_whose_peer_disconnects_ends_the_server() {
    let data = tempfile::tempdir().unwrap();
    let (remote, local) = UnixStream::pair().unwrap();
    let mut command = serve(data.path(), &[]);
    let mut process = ChildGuard::start(command.stdin(fd(&remote)).stdout(fd(&remote)));
    drop((command, remote));
    (&local).write_all(PING.as_bytes()).unwrap();
    let mut pong = [0; PONG.len()];
    (&local).read_exact(&mut pong).unwrap();
    drop(local);
    assert!(process.wait().is_some());
}

#[test]
fn from_a_file_into_a_file_nothing_is_lost() {
    // A regression test: a response was lost when the process exited before the thread that writes files.
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in"), folder.path().join("out"));
    let calls: String =
        (1..=20).map(|id| call(id, "echo", &json!({"message": "x".repeat(500)}))).collect();
    fs::write(&input, format!("{}{calls}", handshake())).unwrap();
    for round in 0..50 {
        let mut command = serve(folder.path(), &[]);
        command.stdin(File::open(&input).unwrap()).stdout(File::create(&output).unwrap());
        assert!(command.status().unwrap().success());
        let text = fs::read_to_string(&output).unwrap();
        let ids: Vec<_> = text.lines().map(|line| json_of(line)["id"].clone()).collect();
        assert_eq!(ids, (0..=20).map(|id| json!(id)).collect::<Vec<_>>(), "round {round}");
        assert!(text.ends_with('\n'));
    }
}

#[test]
fn a_slow_call_writes_its_response_to_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in"), folder.path().join("out"));
    let slow = call(1, "test_slow", &json!({"milliseconds": 100}));
    fs::write(&input, format!("{}{slow}", handshake())).unwrap();
    let mut command = serve(folder.path(), &["--preset", "everything"]);
    command.stdin(File::open(&input).unwrap()).stdout(File::create(&output).unwrap());
    assert!(command.status().unwrap().success());
    let text = fs::read_to_string(&output).unwrap();
    let last = json_of(text.lines().last().unwrap());
    assert_eq!(last["result"]["content"][0]["text"], "Slept 100 ms");
}

/// Runs a script in a shell. Returns its exit code, stdout and stderr.
fn run(script: &str) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let output = shell(folder.path(), script).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_closed_stdout_ends_the_server_without_a_panic() {
    let (code, printed, text) = run(&format!("printf '{PING}' | creole serve >&-"));
    assert!(matches!(code, Some(0 | 1)), "{code:?}");
    assert_eq!(printed, "");
    assert!(!text.contains("panic"), "{text}");
}

#[test]
fn a_closed_stdin_is_an_input_that_ended() {
    let (code, printed, text) = run("creole serve <&-");
    assert_eq!((code, printed.as_str(), text.as_str()), (Some(0), "", ""));
}

#[test]
fn a_closed_stderr_costs_no_answer() {
    let (code, printed, _) =
        run(&format!("printf '{PING}' | creole serve --preset bossman --debug --log json 2>&-"));
    assert_eq!(code, Some(0));
    assert_eq!(json_of(&printed)["id"], 1);
}

#[test]
fn streams_that_are_all_closed_do_not_mix_up_files() {
    // The task file must not be opened as descriptor 1, because responses would be written into it.
    let script = format!(
        "printf '%s' '{}' > in; creole serve < in >&- 2>&-; echo $?; head -c 15 *.db */*.db *.sqlite* 2>/dev/null",
        handshake() + &call(1, "create_task", &json!({"description": "kept apart"})),
    );
    let (_, printed, _) = run(&script);
    assert!(printed.starts_with('0') || printed.starts_with('1'), "{printed}");
    assert!(!printed.contains("jsonrpc"), "{printed}");
}

#[test]
fn an_unread_log_blocks_nothing() {
    const CALLS: u64 = 5000;
    let data = tempfile::tempdir().unwrap();
    let mut command = serve(data.path(), &["--preset", "bb-mcp-server", "--log", "json"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = ChildGuard::start(&mut command);
    let mut input = process.child().stdin.take().unwrap();
    let lines: String = (1..=CALLS).map(|id| request(id, "tools/list", &json!({}))).collect();
    let writer = thread::spawn(move || input.write_all(lines.as_bytes()));
    let answers = BufReader::new(process.child().stdout.take().unwrap()).lines().count();
    assert_eq!(answers as u64, CALLS);
    writer.join().unwrap().unwrap();
    assert_eq!(process.wait(), Some(0));
}
