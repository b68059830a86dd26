//! Tests of many requests, slow readers and broken tools: memory stays bounded and no response is lost.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use creole_acceptance::process_under_test::resource_usage::ResourceUsage;
use creole_acceptance::process_under_test::{
    ChildGuard, PATIENCE, Server, call, handshake, request, serve,
};
use creole_test_wait::blocking::{delay, eventually, within};
use serde_json::{Value, json};

use crate::{MEBIBYTE, error_code, json_of};

/// The maximum memory that is kept for a client that does not read.
const PATIENTLY_KEPT: u64 = 16 * MEBIBYTE;

#[test]
fn a_client_that_never_reads_stops_being_read_and_gets_every_answer_in_the_end() {
    flood("default", 50_000, |id| request(id, "ping", &json!({})));
}

#[test]
fn large_responses_to_a_slow_reader_are_not_buffered() {
    let message = "x".repeat(2000);
    flood("default", 20_000, move |id| call(id, "echo", &json!({"message": message})));
}

#[test]
fn small_requests_for_large_answers_are_not_gathered_in_memory() {
    flood("everything", 10_000, |id| request(id, "tools/list", &json!({})));
}

#[test]
fn calls_that_end_without_a_reader_keep_their_responses() {
    flood("everything", 20_000, |id| call(id, "test_slow", &json!({"milliseconds": 1})));
}

/// Sends requests without reading until the server stops reading, then reads all responses.
#[track_caller]
fn flood(preset: &str, count: u64, line: impl Fn(u64) -> String + Send + 'static) {
    let data = tempfile::tempdir().unwrap();
    let mut command = serve(data.path(), &["--preset", preset]);
    let mut process = ChildGuard::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let mut input = process.child().stdin.take().unwrap();
    let mut output = BufReader::new(process.child().stdout.take().unwrap());
    input.write_all(handshake().as_bytes()).unwrap();
    output.read_line(&mut String::new()).unwrap();
    let before = process.weight();

    let input = send_until_stuck(input, count, line);
    let unread = process.weight();
    assert_kept_little("while nothing was read", before, unread);

    let (answered, output) = read_slowly(output, count);
    assert_eq!(answered.len() as u64, count, "responses with distinct ids");
    assert_kept_little("while it was read", before, process.weight());
    drop(input.join().unwrap());
    assert_eq!(process.wait(), Some(0));
    drop(output);
}

#[track_caller]
fn assert_kept_little(when: &str, before: ResourceUsage, after: ResourceUsage) {
    let growth = after.growth_since(before);
    assert!(growth < PATIENTLY_KEPT, "{} KiB more {when}: {before:?} {after:?}", growth / 1024);
}

/// Sends in a thread, which returns the input, and waits until the server stops reading.
fn send_until_stuck(
    mut input: ChildStdin,
    count: u64,
    line: impl Fn(u64) -> String + Send + 'static,
) -> thread::JoinHandle<ChildStdin> {
    let sent = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&sent);
    let writer = thread::spawn(move || {
        for id in 1..=count {
            input.write_all(line(id).as_bytes()).expect("the server reads again");
            counter.store(id, Ordering::Relaxed);
        }
        input
    });
    eventually("the server stops reading", || {
        let before = sent.load(Ordering::Relaxed);
        let reads_on = || before < count && sent.load(Ordering::Relaxed) > before;
        within(Duration::from_millis(400), reads_on).is_none()
    });
    writer
}

/// Reads this many responses, slower than they could arrive. Returns their ids, and the output, which must stay open
/// until the server exits.
#[track_caller]
fn read_slowly(
    mut output: BufReader<ChildStdout>,
    count: u64,
) -> (HashSet<u64>, BufReader<ChildStdout>) {
    let (sender, ids) = channel();
    let reader = thread::spawn(move || {
        for number in 0..count {
            let mut line = String::new();
            if !matches!(output.read_line(&mut line), Ok(1..)) {
                break;
            }
            // If the test no longer waits, it has reported the reason.
            let _ = sender.send(json_of(&line)["id"].as_u64());
            if number % 100 == 0 {
                delay(Duration::from_millis(1));
            }
        }
        output
    });
    let next = |_| ids.recv_timeout(PATIENCE).expect("every response arrives").expect("an id");
    let answered = (0..count).map(next).collect();
    (answered, reader.join().unwrap())
}

#[test]
fn two_hundred_slow_calls_run_concurrently_and_delay_no_ping() {
    let mut server = Server::start(&["--preset", "everything"]).greeted();
    // If the calls ran one after the other, the first and longest would get its response first.
    server.write(call(1, "test_slow", &json!({"milliseconds": 3000})));
    let calls: String =
        (2..=200).map(|id| call(id, "test_slow", &json!({"milliseconds": 300}))).collect();
    server.write(calls + &request(1000, "ping", &json!({})));
    let ids: Vec<u64> = (0..201).map(|_| server.answer()["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.first(), Some(&1000), "the ping gets the first response: {ids:?}");
    assert_eq!(ids.last(), Some(&1), "the longest call gets the last response: {ids:?}");
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 201, "{ids:?}");
    let ended = server.finish();
    assert_eq!((ended.code, ended.output), (Some(0), vec![]));
}

#[test]
fn a_tool_that_panics_breaks_its_own_call_and_nothing_else() {
    let mut server = Server::start(&["--preset", "everything"]).greeted();
    let slow = call(500, "test_slow", &json!({"milliseconds": 300}));
    server.write(slow);
    for _ in 0..20 {
        let response = server.call("test_panic", &json!({}));
        assert_eq!(error_code(&response), -32603, "{response}");
        assert!(
            !response.to_string().contains("behaviour.rs"),
            "the error reveals no source location: {response}"
        );
        server.ping();
    }
    assert_eq!(server.answer()["id"], 500);
    assert_eq!(server.call("test_structured", &json!({}))["result"]["isError"], Value::Null);
    let ended = server.finish();
    assert_eq!((ended.code, ended.output), (Some(0), vec![]));
}

#[test]
fn five_thousand_calls_leak_no_descriptor_no_thread_and_no_memory() {
    let mut server = Server::start(&[]).greeted();
    let created = server.call("create_task", &json!({"description": "read often"}));
    let task = json_of(created["result"]["content"][0]["text"].as_str().unwrap());
    let id = json!({"id": task["id"]});
    let mut round = |calls: usize| {
        for number in 0..calls {
            let response = match number % 5 {
                0 => server.call("echo", &json!({"message": "again"})),
                1 => server.call("get_task", &id),
                2 => server.call("calculate", &json!({"expression": "1+1"})),
                3 => server.call("no_such_tool", &json!({})),
                _ => server.request("resources/read", &json!({"uri": "creole://guide"})),
            };
            assert_eq!(response.get("error").is_some(), number % 5 == 3, "{response}");
        }
        server.weight()
    };
    let before = round(500);
    let after = round(5000);
    assert!(after.descriptors <= before.descriptors, "{before:?} {after:?}");
    // The pool that reads the database starts another thread whenever one is not idle yet, which is frequent on a busy
    // machine. A thread leaked by each of a thousand reads would still be detected.
    assert!(after.threads < before.threads + 100, "{before:?} {after:?}");
    assert!(after.memory < before.memory + 16 * MEBIBYTE, "{before:?} {after:?}");
}
