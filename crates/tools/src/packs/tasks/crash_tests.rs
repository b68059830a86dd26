//! Acknowledged writes survive `kill -9`: a child process of this test binary writes and is killed.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, thread};

use crate::packs::tasks::database::{TaskDatabase, TaskUpdate};
use crate::packs::tasks::store::FILE_NAME;
use crate::packs::tasks::task::TaskStatus;
use creole_test_wait::blocking::delay;

const VARIABLE: &str = "CREOLE_CRASH_TEST_DIR";
const CHILD: &str = "packs::tasks::crash_tests::child_that_writes_until_it_is_killed";
const ROUNDS: u64 = 20;

#[test]
fn acknowledged_writes_survive_kill_nine() {
    let directory = tempfile::tempdir().unwrap();
    let mut acknowledged = BTreeSet::new();
    for round in 0..ROUNDS {
        let new = killed_after(directory.path(), Duration::from_millis(5 + 7 * round));
        acknowledged.extend(new);
        let database = TaskDatabase::open(&directory.path().join(FILE_NAME)).unwrap();
        let whole: String =
            database.connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(whole, "ok", "round {round}");
        for id in &acknowledged {
            let task = database.task(id).unwrap();
            assert_eq!(task.map(|task| task.status), Some(TaskStatus::Done), "round {round}");
        }
    }
    assert!(acknowledged.len() > 20, "only {} writes were acknowledged", acknowledged.len());
}

/// Lets a child write for a while after its first output, and returns its acknowledged ids.
fn killed_after(directory: &Path, time: Duration) -> Vec<String> {
    let mut child = Command::new(env::current_exe().unwrap())
        .args([CHILD, "--exact", "--nocapture", "--test-threads=1"])
        .env(VARIABLE, directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let id_in = |line: String| {
        line.split_whitespace().find(|word| word.starts_with("task_")).map(str::to_owned)
    };
    let mut acknowledged = vec![lines.by_ref().find_map(id_in).expect("the child writes")];
    let reader = thread::spawn(move || lines.filter_map(id_in).collect::<Vec<_>>());
    delay(time);
    child.kill().unwrap();
    child.wait().unwrap();
    acknowledged.extend(reader.join().unwrap());
    acknowledged
}

#[test]
fn child_that_writes_until_it_is_killed() {
    let Some(directory) = env::var_os(VARIABLE) else { return };
    let mut database = TaskDatabase::open(&PathBuf::from(directory).join(FILE_NAME)).unwrap();
    let done = TaskUpdate { status: Some(TaskStatus::Done), description: None };
    let mut output = std::io::stdout();
    for number in 0..100_000 {
        let task = database.create(&format!("number {number}")).unwrap();
        database.update(&task.id, &done).unwrap();
        // The whole line is written at once, so that the parent never sees a partial acknowledgement.
        output.write_all(format!("{}\n", task.id).as_bytes()).unwrap();
        output.flush().unwrap();
    }
}
