//! The conformance test of task stores, files and servers alike. It runs on an empty store.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::collections::BTreeSet;

use crate::PackOptions;
use crate::packs::tasks::database::TaskUpdate;
use crate::packs::tasks::store::Store;
use crate::packs::tasks::task::{Task, TaskStatus};

/// Checks all guarantees of a store, with two handles to the same empty store, each with its own connections.
///
/// # Panics
/// When a guarantee is violated.
pub async fn check_store(options: &PackOptions) {
    let (one, other) = (Store::new(options.clone()), Store::new(options.clone()));
    a_task_lives(&one, &other).await;
    any_text_survives(&one, &other).await;
    pages_go_on_while_tasks_come_and_go(&one, &other).await;
    a_number_is_never_given_out_twice(&one).await;
    a_page_can_be_of_one_status(&one).await;
    ids_are_found_by_their_beginning(&one).await;
    changes_are_told(&one).await;
    writers_at_once_lose_nothing(&one, &other).await;
}

fn status(status: TaskStatus) -> TaskUpdate {
    TaskUpdate { status: Some(status), description: None }
}

fn descriptions(tasks: &[Task]) -> Vec<&str> {
    tasks.iter().map(|task| task.description.as_str()).collect()
}

async fn clear(store: &Store) {
    for id in store.ids(String::new(), 1000).await.unwrap() {
        store.delete(&id).await.unwrap().unwrap();
    }
}

async fn a_task_lives(one: &Store, other: &Store) {
    let task = one.create("write it".into()).await.unwrap();
    assert_eq!(task.status, TaskStatus::Pending);
    assert_eq!(other.task(&task.id).await.unwrap(), Some(task.clone()));

    let both =
        || TaskUpdate { status: Some(TaskStatus::Done), description: Some("wrote it".into()) };
    let changed = other.update(&task.id, both()).await.unwrap().unwrap();
    assert_eq!((changed.status, changed.description.as_str()), (TaskStatus::Done, "wrote it"));
    let again = one.update(&task.id, status(TaskStatus::InProgress)).await.unwrap().unwrap();
    assert_eq!((again.status, again.description.as_str()), (TaskStatus::InProgress, "wrote it"));
    let named = TaskUpdate { status: None, description: Some("named".into()) };
    let named = one.update(&task.id, named).await.unwrap().unwrap();
    assert_eq!((named.status, named.description.as_str()), (TaskStatus::InProgress, "named"));

    assert_eq!(one.delete(&task.id).await.unwrap(), Some(named));
    for store in [one, other] {
        assert_eq!(store.task(&task.id).await.unwrap(), None);
        assert_eq!(store.delete(&task.id).await.unwrap(), None);
        assert_eq!(store.update(&task.id, both()).await.unwrap(), None);
    }
}

async fn any_text_survives(one: &Store, other: &Store) {
    let long = "ä".repeat(100_000);
    for text in ["'; DROP TABLE tasks; -- \n \u{1f980} \u{202e} é \\ $1 ?1 %s", "", &long] {
        let id = one.create(text.into()).await.unwrap().id;
        assert_eq!(other.task(&id).await.unwrap().unwrap().description, text);
    }
    for id in ["", "' OR 1=1 --", "%", "\u{1f980}"] {
        assert_eq!(one.task(id).await.unwrap(), None, "{id}");
    }
    clear(one).await;
}

async fn pages_go_on_while_tasks_come_and_go(one: &Store, other: &Store) {
    let mut ids = Vec::new();
    for number in 0..5 {
        ids.push(one.create(number.to_string()).await.unwrap().id);
    }
    let first = one.page(None, 0, 2).await.unwrap();
    assert_eq!(descriptions(&first.tasks), ["0", "1"]);
    other.create("5".into()).await.unwrap();
    for id in &ids[..3] {
        other.delete(id).await.unwrap().unwrap();
    }
    let second = one.page(None, first.more_after.unwrap(), 2).await.unwrap();
    assert_eq!(descriptions(&second.tasks), ["3", "4"]);
    let third = other.page(None, second.more_after.unwrap(), 2).await.unwrap();
    assert_eq!((descriptions(&third.tasks), third.more_after), (vec!["5"], None));
    clear(one).await;
}

async fn a_number_is_never_given_out_twice(store: &Store) {
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(store.create("old".into()).await.unwrap().id);
    }
    let after = store.page(None, 0, 2).await.unwrap().more_after.unwrap();
    store.delete(&ids[2]).await.unwrap();
    store.create("new".into()).await.unwrap();
    let rest = store.page(None, after + 1, 10).await.unwrap();
    assert_eq!(descriptions(&rest.tasks), ["new"]);
    clear(store).await;
}

async fn a_page_can_be_of_one_status(store: &Store) {
    for number in 0..6 {
        let id = store.create(number.to_string()).await.unwrap().id;
        if number % 2 == 0 {
            store.update(&id, status(TaskStatus::Done)).await.unwrap();
        }
    }
    let done = store.page(Some(TaskStatus::Done), 0, 2).await.unwrap();
    assert_eq!(descriptions(&done.tasks), ["0", "2"]);
    let rest = store.page(Some(TaskStatus::Done), done.more_after.unwrap(), 2).await.unwrap();
    assert_eq!((descriptions(&rest.tasks), rest.more_after), (vec!["4"], None));
    assert!(store.page(Some(TaskStatus::Cancelled), 0, 2).await.unwrap().tasks.is_empty());
    clear(store).await;
}

async fn ids_are_found_by_their_beginning(store: &Store) {
    let mut ids = BTreeSet::new();
    for _ in 0..20 {
        ids.insert(store.create("x".into()).await.unwrap().id);
    }
    let all = store.ids(String::new(), 1000).await.unwrap();
    assert_eq!(all, ids.into_iter().collect::<Vec<_>>(), "the tasks are in order");
    let one = &all[7];
    assert_eq!(store.ids(one.clone(), 1000).await.unwrap(), std::slice::from_ref(one));
    assert_eq!(store.ids("task_".into(), 3).await.unwrap(), all[..3]);
    // A prefix is not a pattern, and case matters.
    for none in ["%", "_", "*", "\\", "'", "TASK_", "zzz"] {
        assert!(store.ids(none.into(), 1000).await.unwrap().is_empty(), "{none}");
    }
    clear(store).await;
}

/// A waiter in the same process is notified of every change, and only of changes.
async fn changes_are_told(store: &Store) {
    let mut changes = store.changes();
    let id = store.create("x".into()).await.unwrap().id;
    assert!(changes.has_changed().unwrap());
    changes.borrow_and_update();
    store.task(&id).await.unwrap();
    store.page(None, 0, 10).await.unwrap();
    assert!(!changes.has_changed().unwrap(), "reading changes nothing");
    store.delete(&id).await.unwrap();
    assert!(changes.has_changed().unwrap());
}

async fn writers_at_once_lose_nothing(one: &Store, other: &Store) {
    let writers: Vec<_> = (0..60)
        .map(|number| {
            let store = if number % 2 == 0 { one.clone() } else { other.clone() };
            tokio::spawn(async move { store.create(number.to_string()).await.unwrap().id })
        })
        .collect();
    let mut acknowledged = BTreeSet::new();
    for writer in writers {
        acknowledged.insert(writer.await.unwrap());
    }
    assert_eq!(acknowledged.len(), 60);
    let found = one.ids(String::new(), 1000).await.unwrap();
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), acknowledged);
    clear(other).await;
}
