//! The guarantees of a state file, and the files that are left alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use creole_test_wait::{delay, eventually, eventually_async};
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use tempfile::TempDir;

use super::super::conformance::count_to;
use super::super::error::StateFileError;
use super::super::{Backend, LogRetention, State, StateError, StateLimits, TopicEvent};
use super::file;

fn temporary_path() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state.sqlite3");
    (folder, file)
}

async fn open(file: &Path) -> State {
    State::sqlite(file, StateLimits::default()).await.unwrap()
}

async fn refusal(file: &Path) -> StateFileError {
    let before = fs::read(file).unwrap();
    let error = State::sqlite(file, StateLimits::default()).await.unwrap_err();
    assert_eq!(fs::read(file).unwrap(), before, "the file was changed");
    assert!(error.to_string().contains("state.sqlite3"), "{error}");
    match error {
        StateError::File { error: problem, .. } => problem,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn everything_is_there_when_the_file_is_opened_again() {
    let (_folder, file) = temporary_path();
    let keep = LogRetention { entries: 9, ttl: Duration::from_secs(600) };
    let state = open(&file).await;
    let version = state.put("a", Bytes::from("x"), None).await.unwrap();
    state.append("l", Bytes::from("y"), keep).await.unwrap();
    let lease = state.lease("l", keep.ttl).await.unwrap().unwrap();
    drop(state);
    let state = open(&file).await;
    assert_eq!(state.get("a").await.unwrap().unwrap().version, version);
    assert_eq!(state.append("l", Bytes::from("z"), keep).await.unwrap(), 2);
    assert_eq!(state.read_after("l", 0, 9).await.unwrap().len(), 2);
    assert!(state.lease("l", keep.ttl).await.unwrap().is_none());
    assert!(state.remove("a").await.unwrap());
    assert!(state.put("a", Bytes::from("x"), None).await.unwrap() > lease.fence().max(version));
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_not_changed() {
    let (_folder, file) = temporary_path();
    let connection = file::open(&file).unwrap();
    connection.pragma_update(None, "user_version", 7).unwrap();
    drop(connection);
    assert_eq!(refusal(&file).await, StateFileError::Newer { found: 7, known: 1 });

    // The same when the newer version was killed and its last commits are in the WAL.
    let connection = Connection::open(&file).unwrap();
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
    connection.pragma_update(None, "user_version", 8).unwrap();
    drop(connection);
    assert_eq!(refusal(&file).await, StateFileError::Newer { found: 8, known: 1 });
}

#[tokio::test]
async fn a_file_of_another_program_is_not_changed() {
    let (_folder, file) = temporary_path();
    Connection::open(&file).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    assert_eq!(refusal(&file).await, StateFileError::Foreign);
    fs::write(&file, "x").unwrap();
    assert_eq!(refusal(&file).await, StateFileError::Foreign);
    fs::write(&file, "no database at all\n".repeat(100)).unwrap();
    assert!(matches!(refusal(&file).await, StateFileError::Damaged(_)));
}

#[tokio::test]
async fn a_damaged_file_is_refused() {
    let (_folder, file) = temporary_path();
    let connection = file::open(&file).unwrap();
    for number in 0..200 {
        let sql = "INSERT INTO entries VALUES (0, ?1, zeroblob(500), 1, NULL)";
        connection.execute(sql, [number.to_string()]).unwrap();
    }
    drop(connection);
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 4096].fill(0xff);
    fs::write(&file, bytes).unwrap();
    assert!(matches!(refusal(&file).await, StateFileError::Damaged(_)));
}

#[tokio::test]
async fn an_unwritable_path_is_named() {
    let (folder, _) = temporary_path();
    let file = folder.path().join("missing").join("state.sqlite3");
    let error = State::sqlite(&file, StateLimits::default()).await.unwrap_err();
    assert!(error.to_string().contains("cannot open or write the state file"), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn only_its_owner_may_read_the_file() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, file) = temporary_path();
    let state = open(&file).await;
    state.put("a", Bytes::from("x"), None).await.unwrap();
    let mut seen = 0;
    for beside in fs::read_dir(folder.path()).unwrap() {
        let mode = beside.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
        seen += 1;
    }
    assert!(seen >= 2, "the file and its journal");
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_counters_of_two_connections_lose_nothing() {
    let (_folder, file) = temporary_path();
    let (one, two) = (open(&file).await, open(&file).await);
    one.put("n", Bytes::from("0"), None).await.unwrap();
    let tasks: Vec<_> = [&one, &two, &one, &two]
        .map(|state| tokio::spawn(count_to(state.clone(), 25)))
        .into_iter()
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(two.get("n").await.unwrap().unwrap().value, "100");
}

#[tokio::test]
async fn a_message_reaches_the_listeners_of_another_connection() {
    let (_folder, file) = temporary_path();
    let limits = StateLimits { backlog: 256, ..StateLimits::default() };
    let one = State::sqlite(&file, limits).await.unwrap();
    let two = State::sqlite(&file, limits).await.unwrap();
    one.publish("t", Bytes::from("before")).await.unwrap();
    let mut here = one.subscribe("t").await.unwrap();
    let mut there = two.subscribe("t").await.unwrap();
    // More than one read returns.
    for number in 0..150 {
        let message = Bytes::from(number.to_string());
        one.publish("t", message.clone()).await.unwrap();
        assert_eq!(here.next().await, Some(TopicEvent::Message(message.clone())));
        if number % 30 == 0 {
            two.publish("t", Bytes::from("from there")).await.unwrap();
            assert_eq!(here.next().await, Some(TopicEvent::Message(Bytes::from("from there"))));
        }
    }
    let (mut foreign, mut own) = (0, 0);
    while foreign < 150 || own < 5 {
        match there.next().await.unwrap() {
            TopicEvent::Message(message) if message == "from there" => own += 1,
            TopicEvent::Message(message) => {
                assert_eq!(message, foreign.to_string());
                foreign += 1;
            }
            TopicEvent::Missed => panic!("after {foreign}"),
        }
    }
}

#[tokio::test]
async fn a_reader_that_is_too_late_for_messages_of_others_is_notified() {
    let (_folder, file) = temporary_path();
    let (one, two) = (open(&file).await, open(&file).await);
    let mut there = two.subscribe("t").await.unwrap();
    // As if a long time had passed between two polls: published, and deleted again.
    let other = Connection::open(&file).unwrap();
    other.busy_timeout(Duration::from_secs(5)).unwrap();
    let sql = "BEGIN IMMEDIATE;
               INSERT INTO messages (origin, topic, message, sent) VALUES (1, 't', x'00', 0);
               DELETE FROM messages;
               COMMIT;";
    other.execute_batch(sql).unwrap();
    assert_eq!(there.next().await, Some(TopicEvent::Missed));
    one.publish("t", Bytes::from("x")).await.unwrap();
    assert_eq!(there.next().await, Some(TopicEvent::Message(Bytes::from("x"))));
}

#[tokio::test]
async fn messages_do_not_pile_up_in_the_file() {
    let (_folder, file) = temporary_path();
    let state = open(&file).await;
    let all: Vec<_> = (0..1200)
        .map(|_| {
            let state = state.clone();
            tokio::spawn(async move { state.publish("t", Bytes::from("x")).await.unwrap() })
        })
        .collect();
    for one in all {
        one.await.unwrap();
    }
    let count = "SELECT count(*) FROM messages";
    let other = Connection::open(&file).unwrap();
    let kept: i64 = other.query_row(count, [], |row| row.get(0)).unwrap();
    assert!(kept <= 1024, "{kept}");
    // Long ago, for the next write.
    other.busy_timeout(Duration::from_secs(5)).unwrap();
    other.execute("UPDATE messages SET sent = 0", []).unwrap();
    for _ in 0..200 {
        state.remove("nothing").await.unwrap();
    }
    let kept: i64 = other.query_row(count, [], |row| row.get(0)).unwrap();
    assert_eq!(kept, 0);
}

#[tokio::test]
async fn old_values_and_entries_do_not_pile_up_in_the_file() {
    let (_folder, file) = temporary_path();
    let state = open(&file).await;
    let keep = LogRetention { entries: 5, ttl: Duration::ZERO };
    for number in 0..100 {
        let key = number.to_string();
        state.put(&key, Bytes::from("x"), Some(Duration::ZERO)).await.unwrap();
        state.append(&key, Bytes::from("x"), keep).await.unwrap();
    }
    state.remove("nothing").await.unwrap();
    let other = Connection::open(&file).unwrap();
    let sql = "SELECT (SELECT count(*) FROM entries), (SELECT count(*) FROM log_entries),
                      entries, bytes FROM totals";
    let counts: [i64; 4] = other
        .query_row(sql, [], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]))
        .unwrap();
    assert_eq!(counts, [0, 0, 0, 0]);
}

#[tokio::test]
async fn a_refused_write_does_not_affect_the_others_of_its_batch() {
    let (_folder, file) = temporary_path();
    let limits = StateLimits { entries: 40, ..StateLimits::default() };
    let state = State::sqlite(&file, limits).await.unwrap();
    let all: Vec<_> = (0..60)
        .map(|number| {
            let state = state.clone();
            tokio::spawn(async move { state.put(&number.to_string(), Bytes::new(), None).await })
        })
        .collect();
    let mut written = 0;
    for (number, one) in all.into_iter().enumerate() {
        let exists = state.get(&number.to_string()).await.unwrap().is_some();
        let result = one.await.unwrap();
        let exists = exists || state.get(&number.to_string()).await.unwrap().is_some();
        assert_eq!(exists, result.is_ok());
        written += usize::from(exists);
    }
    assert_eq!(written, 40);
}

/// How often a thread slept, as Linux counts it.
#[cfg(target_os = "linux")]
fn sleeps(thread: &Path) -> u64 {
    let status = fs::read_to_string(thread.join("status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.unwrap().trim().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn nothing_wakes_the_thread_but_work_and_listeners() {
    let (_folder, file) = temporary_path();
    let state = open(&file).await;
    let Backend::Sqlite(sqlite) = &state.backend else { panic!("{state:?}") };
    let itself = |_: &Connection| Ok(fs::read_link("/proc/thread-self").unwrap());
    let thread = Path::new("/proc").join(sqlite.read(itself).await.unwrap());
    let listener = state.subscribe("t").await.unwrap();
    let start = sleeps(&thread);
    eventually("the thread polls for the listener", || sleeps(&thread) >= start + 3).await;
    drop(listener);
    // Running work ends, and then the count does not change any more.
    let rests = async || {
        let before = sleeps(&thread);
        delay(Duration::from_millis(500)).await;
        sleeps(&thread) == before
    };
    eventually_async("the thread rests", rests).await;
    state.get("a").await.unwrap();
}
