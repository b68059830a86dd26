//! Several processes on one file, and one that is killed: children of this test binary.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, thread};

use bytes::Bytes;
use creole_test_wait::blocking::delay;
use rusqlite::Connection;

use super::super::conformance::count_to;
use super::super::{State, StateLimits};

const FILE: &str = "CREOLE_STATE_TEST_FILE";
const COUNTER: &str = "state::sqlite::process_tests::child_that_counts";
const WRITER: &str = "state::sqlite::process_tests::child_that_writes_until_it_is_killed";
const ROUNDS: u64 = 10;

fn child(name: &str, file: &Path) -> Child {
    Command::new(env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(FILE, file)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

async fn open(file: impl AsRef<Path>) -> State {
    State::sqlite(file.as_ref(), StateLimits::default()).await.unwrap()
}

#[tokio::test]
async fn concurrent_counters_of_two_processes_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state.sqlite3");
    let state = open(&file).await;
    state.put("n", Bytes::from("0"), None).await.unwrap();
    let children = [child(COUNTER, &file), child(COUNTER, &file)];
    count_to(state.clone(), 30).await;
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    assert_eq!(state.get("n").await.unwrap().unwrap().value, "90");
}

#[tokio::test]
async fn child_that_counts() {
    let Some(file) = env::var_os(FILE) else { return };
    count_to(open(file.as_os_str()).await, 30).await;
}

#[tokio::test]
async fn acknowledged_writes_survive_kill_nine() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state.sqlite3");
    let mut acknowledged: Vec<u64> = vec![];
    for round in 0..ROUNDS {
        acknowledged.extend(killed_after(&file, Duration::from_millis(5 + 11 * round)));
        let state = open(&file).await;
        for version in &acknowledged {
            let entry = state.get(&version_key(*version)).await.unwrap();
            assert!(entry.is_some(), "round {round}, version {version}");
        }
        let sql = "PRAGMA integrity_check";
        let connection = Connection::open(&file).unwrap();
        let whole: String = connection.query_row(sql, [], |row| row.get(0)).unwrap();
        assert_eq!(whole, "ok", "round {round}");
    }
    assert!(acknowledged.is_sorted(), "a version was assigned twice");
    assert!(acknowledged.len() > 20, "only {} writes were acknowledged", acknowledged.len());
}

fn version_key(version: u64) -> String {
    format!("seen {version}")
}

/// Lets a child write for a while after its first output; returns the versions that it acknowledged.
fn killed_after(file: &Path, time: Duration) -> Vec<u64> {
    let mut child = child(WRITER, file);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let version_in = |line: String| line.split("version ").nth(1)?.trim().parse().ok();
    let mut acknowledged = vec![lines.by_ref().find_map(version_in).expect("the child writes")];
    let reader = thread::spawn(move || lines.filter_map(version_in).collect::<Vec<u64>>());
    delay(time);
    child.kill().unwrap();
    child.wait().unwrap();
    acknowledged.extend(reader.join().unwrap());
    acknowledged
}

#[tokio::test]
async fn child_that_writes_until_it_is_killed() {
    let Some(file) = env::var_os(FILE) else { return };
    let state = open(file.as_os_str()).await;
    let mut output = std::io::stdout();
    for _ in 0..100_000 {
        let version = state.put("last", Bytes::from("x"), None).await.unwrap();
        state.put(&version_key(version), Bytes::from("y"), None).await.unwrap();
        // One write of a whole line: the parent never sees half of an acknowledgement.
        output.write_all(format!("version {version}\n").as_bytes()).unwrap();
        output.flush().unwrap();
    }
}
