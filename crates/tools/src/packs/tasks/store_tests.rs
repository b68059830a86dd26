//! Tests of the guarantees that only the task file has.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, thread};

use rusqlite::Connection;
use tempfile::TempDir;

use crate::PackOptions;
use crate::packs::tasks::conformance::check_store;
use crate::packs::tasks::database::TaskDatabase;
use crate::packs::tasks::error::StoreError;
use crate::packs::tasks::store::{FILE_NAME, Store};

fn temporary_path() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(FILE_NAME);
    (directory, file)
}

fn refusal(file: &Path) -> String {
    match TaskDatabase::open(file) {
        Ok(_) => panic!("the file was opened"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn a_file_keeps_every_promise_of_a_store() {
    let (directory, _) = temporary_path();
    let options =
        PackOptions { data_dir: Some(directory.path().to_owned()), ..PackOptions::default() };
    check_store(&options).await;
}

#[test]
fn any_text_survives() {
    let (_directory, file) = temporary_path();
    let text = "'; DROP TABLE tasks; -- \u{0} \n \u{1f980} \u{202e} é";
    let id = TaskDatabase::open(&file).unwrap().create(text).unwrap().id;
    assert_eq!(TaskDatabase::open(&file).unwrap().task(&id).unwrap().unwrap().description, text);
}

#[test]
fn writers_on_eight_threads_lose_nothing() {
    let (_directory, file) = temporary_path();
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let file = file.clone();
            thread::spawn(move || {
                // All of them open a file that does not exist yet.
                let mut database = TaskDatabase::open(&file).unwrap();
                let create = |number| database.create(&format!("{writer}.{number}")).unwrap().id;
                (0..25).map(create).collect::<Vec<_>>()
            })
        })
        .collect();
    let acknowledged: BTreeSet<_> =
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
    assert_eq!(acknowledged.len(), 200);
    let found = TaskDatabase::open(&file).unwrap().ids("", 1000).unwrap();
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), acknowledged);
}

#[test]
fn a_file_is_durable_shared_and_of_the_newest_version() {
    let (_directory, file) = temporary_path();
    let database = TaskDatabase::open(&file).unwrap();
    let connection = &database.connection;
    let pragma =
        |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(pragma("synchronous"), 2, "FULL");
    assert_eq!(pragma("busy_timeout"), 5000);
    assert_eq!(pragma("user_version"), 1);
    let journal: String =
        connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
    assert_eq!(journal, "wal");
}

#[test]
fn a_garbage_file_is_refused_and_left_as_it_is() {
    for garbage in [&b"x"[..], b"not a database, at all", &[0x5a; 10_000]] {
        let (_directory, file) = temporary_path();
        fs::write(&file, garbage).unwrap();
        let text = refusal(&file);
        assert!(text.contains(file.to_str().unwrap()) && text.contains("move it away"), "{text}");
        assert_eq!(fs::read(&file).unwrap(), garbage);
    }
}

#[test]
fn a_damaged_file_is_refused_and_left_as_it_is() {
    let (_directory, file) = temporary_path();
    let mut database = TaskDatabase::open(&file).unwrap();
    for _ in 0..100 {
        database.create(&"x".repeat(500)).unwrap();
    }
    drop(database);
    let mut bytes = fs::read(&file).unwrap();
    // Only the header stays intact.
    bytes[100..].fill(0xa5);
    fs::write(&file, &bytes).unwrap();
    let text = refusal(&file);
    assert!(text.contains("damaged"), "{text}");
    assert_eq!(fs::read(&file).unwrap(), bytes);
}

#[test]
fn a_file_of_a_newer_version_is_refused_and_left_as_it_is() {
    let (_directory, file) = temporary_path();
    drop(TaskDatabase::open(&file).unwrap());
    let connection = Connection::open(&file).unwrap();
    connection.pragma_update(None, "user_version", 7).unwrap();
    drop(connection);
    let before = fs::read(&file).unwrap();
    let text = refusal(&file);
    assert!(text.contains("its schema is 7, this version supports 1"), "{text}");
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[test]
fn a_database_of_another_program_is_refused_and_left_as_it_is() {
    let (_directory, file) = temporary_path();
    let connection = Connection::open(&file).unwrap();
    connection.execute_batch("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)").unwrap();
    drop(connection);
    let before = fs::read(&file).unwrap();
    assert!(refusal(&file).contains("another program"));
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[test]
fn when_space_runs_out_reads_continue_and_writes_recover() {
    let (_directory, file) = temporary_path();
    let mut database = TaskDatabase::open(&file).unwrap();
    let task = database.create("kept").unwrap();
    let limit = |database: &TaskDatabase, pages: i64| {
        let set = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
        database
            .connection
            .query_row(&format!("PRAGMA max_page_count = {pages}"), [], set)
            .unwrap();
    };
    limit(&database, 10);
    let error = loop {
        if let Err(error) = database.create(&"x".repeat(9000)) {
            break error.to_string();
        }
    };
    assert!(error.contains("no space left") && error.contains(file.to_str().unwrap()), "{error}");
    assert_eq!(database.task(&task.id).unwrap(), Some(task));
    limit(&database, 1_000_000);
    database.create(&"x".repeat(9000)).unwrap();
    let whole: String =
        database.connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(whole, "ok");
}

#[test]
fn a_lock_that_is_not_released_ends_in_an_error() {
    let (_directory, file) = temporary_path();
    let mut database = TaskDatabase::open(&file).unwrap();
    database.connection.busy_timeout(Duration::from_millis(50)).unwrap();
    let other = Connection::open(&file).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = database.create("late").unwrap_err().to_string();
    assert!(error.contains("has locked the task file"), "{error}");
    other.execute_batch("COMMIT").unwrap();
    database.create("in time").unwrap();
}

#[test]
fn nothing_is_made_before_the_first_call_and_then_for_the_owner_only() {
    let (directory, _) = temporary_path();
    let data_dir = directory.path().join("a/b");
    let store =
        Store::new(PackOptions { data_dir: Some(data_dir.clone()), ..PackOptions::default() });
    assert!(!data_dir.exists());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(store.create("first".into())).unwrap();
    assert!(data_dir.join(FILE_NAME).exists());
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &fs::metadata(&data_dir).unwrap().permissions(),
        );
        assert_eq!(mode & 0o777, 0o700);
    }
}

#[tokio::test]
async fn a_directory_that_cannot_be_made_is_named_and_tried_again() {
    let (directory, _) = temporary_path();
    let blocker = directory.path().join("blocked");
    fs::write(&blocker, "a file, not a directory").unwrap();
    let store =
        Store::new(PackOptions { data_dir: Some(blocker.join("data")), ..PackOptions::default() });
    let error = store.create("x".into()).await.unwrap_err();
    assert!(matches!(&error, StoreError::Directory(..)), "{error}");
    assert!(error.to_string().contains(blocker.to_str().unwrap()), "{error}");
    let creole::ToolError::Failed(message) = error.into() else {
        panic!("another kind of failure")
    };
    assert!(message.contains("cannot create the directory for tasks"), "{message}");
    assert!(!message.contains(directory.path().to_str().unwrap()), "{message}");
    fs::remove_file(&blocker).unwrap();
    store.create("x".into()).await.unwrap();
}

#[test]
fn a_file_that_cannot_be_opened_is_named_with_advice() {
    let (_directory, file) = temporary_path();
    // A directory in place of the file: even a superuser cannot write to it.
    fs::create_dir(&file).unwrap();
    let text = refusal(&file);
    assert!(
        text.contains("cannot write the task file") && text.contains("CREOLE_DATA_DIR"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_at_the_same_time_share_one_connection() {
    let (directory, file) = temporary_path();
    let store = Store::new(PackOptions {
        data_dir: Some(directory.path().to_owned()),
        ..PackOptions::default()
    });
    let calls: Vec<_> = (0..50)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move { store.create(format!("{number}")).await.unwrap().id })
        })
        .collect();
    let mut acknowledged = BTreeSet::new();
    for call in calls {
        acknowledged.insert(call.await.unwrap());
    }
    assert_eq!(acknowledged.len(), 50);
    let found = TaskDatabase::open(&file).unwrap().ids("", 1000).unwrap();
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), acknowledged);
}
