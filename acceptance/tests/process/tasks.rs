//! Tests of the task file with processes that are killed or share it (security C25).

use std::collections::HashSet;
use std::path::Path;
use std::thread;

use creole_acceptance::process_under_test::{Server, call};
use serde_json::{Value, json};

use crate::json_of;

/// The task in a tool's result.
#[track_caller]
fn task_of(response: &Value) -> Value {
    let text = response["result"]["content"][0]["text"].as_str();
    json_of(text.unwrap_or_else(|| panic!("no task: {response}")))
}

fn id_of(response: &Value) -> String {
    task_of(response)["id"].as_str().unwrap().to_owned()
}

/// The ids of all tasks in a data directory, as a new process lists them.
fn stored(data: &Path) -> HashSet<String> {
    let mut server = Server::start_in(data, &[]).greeted();
    let mut ids = HashSet::new();
    let mut arguments = json!({"limit": 100});
    loop {
        let page = task_of(&server.call("list_tasks", &arguments));
        let tasks = page["tasks"].as_array().unwrap_or_else(|| panic!("no page: {page}"));
        ids.extend(tasks.iter().map(|task| task["id"].as_str().unwrap().to_owned()));
        let Some(cursor) = page.get("next_cursor").filter(|cursor| !cursor.is_null()) else {
            return ids;
        };
        arguments["cursor"] = cursor.clone();
    }
}

#[test]
fn an_acknowledged_task_survives_a_kill() {
    let data = tempfile::tempdir().unwrap();
    let mut acknowledged = HashSet::new();
    for round in 0..10 {
        let mut server = Server::start_in(data.path(), &[]).greeted();
        let calls: String = (1..=100)
            .map(|id| call(id, "create_task", &json!({"description": format!("{round}.{id}")})))
            .collect();
        server.write(calls);
        // Each round kills the server at another point of its work.
        for _ in 0..=round * 9 {
            acknowledged.insert(id_of(&server.answer()));
        }
        let ended = server.kill();
        assert_eq!(ended.code, None, "it must end by a signal");
        acknowledged.extend(ended.output.iter().map(|line| id_of(&json_of(line))));
    }
    let stored = stored(data.path());
    let lost: Vec<_> = acknowledged.difference(&stored).collect();
    assert!(lost.is_empty(), "{} of {} tasks are lost: {lost:?}", lost.len(), acknowledged.len());
}

#[test]
fn two_processes_that_share_a_file_lose_nothing() {
    const EACH: u64 = 200;
    let data = tempfile::tempdir().unwrap();
    let create = |name: &'static str| {
        let mut server = Server::start_in(data.path(), &[]).greeted();
        let calls: String = (1..=EACH)
            .map(|id| call(id, "create_task", &json!({"description": format!("{name} {id}")})))
            .collect();
        server.write(calls);
        let ids: Vec<String> = (0..EACH).map(|_| id_of(&server.answer())).collect();
        assert_eq!(server.finish().code, Some(0));
        ids
    };
    let (ours, theirs) = thread::scope(|scope| {
        let theirs = scope.spawn(|| create("theirs"));
        (create("ours"), theirs.join().unwrap())
    });
    let created: HashSet<String> = ours.into_iter().chain(theirs).collect();
    assert_eq!(created.len() as u64, 2 * EACH);
    assert_eq!(stored(data.path()), created);
}

#[test]
fn a_wait_in_one_process_sees_changes_of_another_process() {
    let data = tempfile::tempdir().unwrap();
    let mut waiting = Server::start_in(data.path(), &[]).greeted();
    let mut working = Server::start_in(data.path(), &["--preset", "default"]).greeted();
    let id = id_of(&waiting.call("create_task", &json!({"description": "shared"})));
    let expected = json!({"id": id, "status": "done", "timeout_seconds": 60});
    waiting.write(call(77, "wait_task", &expected));
    waiting.ping();
    for status in ["in_progress", "done"] {
        let updated = working.call("update_task", &json!({"id": id, "status": status}));
        assert_eq!(task_of(&updated)["status"], status);
    }
    let response = waiting.answer();
    assert_eq!(response["id"], 77, "{response}");
    assert_eq!(task_of(&response), json!({"id": id, "description": "shared", "status": "done"}));
}

#[test]
fn two_processes_that_begin_at_the_same_time_make_one_file() {
    for _ in 0..10 {
        let data = tempfile::tempdir().unwrap();
        let mut servers: Vec<Server> =
            (0..3).map(|_| Server::start_in(data.path(), &[]).greeted()).collect();
        for server in &mut servers {
            server.write(call(1, "create_task", &json!({"description": "the first"})));
        }
        let created: HashSet<String> =
            servers.iter_mut().map(|server| id_of(&server.answer())).collect();
        assert_eq!(stored(data.path()), created);
    }
}
