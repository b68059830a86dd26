//! Tests of the pack `tasks` on every store: the store itself, and two servers that share it.

use std::collections::BTreeSet;
use std::path::Path;

use creole_acceptance::peers::postgres::PASSWORD;
use creole_acceptance::process_under_test::{Server, call};
use creole_tools::PackOptions;
use creole_tools::conformance::check_store as keep_every_promise_of_a_store;
use creole_tools::database::DatabaseAddress;
use serde_json::{Value, json};

use crate::{postgres, start, start_with, told};

#[test]
fn tasks_in_a_file_keep_every_promise() {
    let folder = tempfile::tempdir().unwrap();
    let configuration =
        "[server]\npacks = [\"tasks\"]\n[tasks]\nurl = \"sqlite:own/tasks.sqlite3\"\n";
    let servers = [start(folder.path(), configuration), start(folder.path(), configuration)];
    keep_every_promise(servers);
    assert!(folder.path().join("own/tasks.sqlite3").exists());
}

#[test]
fn tasks_on_a_server_keep_every_promise_and_outlive_it() {
    let Some(mut postgres) = postgres() else { return };
    let folder = tempfile::tempdir().unwrap();
    let url = postgres.url();
    let configuration =
        "[server]\npacks = [\"tasks\"]\n[tasks]\nurl = \"${TASKS}\"\npassword = \"${WORD}\"\n";
    store_keeps_every_promise(&url);
    let variables = [("TASKS", url.as_str()), ("WORD", PASSWORD)];
    let begin = || start_with(folder.path(), configuration, &variables);
    keep_every_promise([begin(), begin()]);

    let mut server = begin();
    let stored = created(&mut server, "kept");
    let zero = told(&server.call("create_task", &json!({ "description": "a\0b" }))).unwrap_err();
    assert!(zero.contains("U+0000"), "{zero}");
    postgres.end();
    let lost = told(&server.call("get_task", &json!({ "id": stored }))).unwrap_err();
    assert!(lost.contains("is not available") && !lost.contains(PASSWORD), "{lost}");
    postgres.resume();
    assert!(told(&server.call("get_task", &json!({ "id": stored }))).unwrap().contains("kept"));
    assert!(!server.finish().log.contains(PASSWORD));

    // With the URL in the environment, without a table in the configuration.
    let with_password = url.replace("reader@", &format!("reader:{PASSWORD}@"));
    let plain = "[server]\npacks = [\"tasks\"]\n";
    let mut server = start_with(folder.path(), plain, &[("CREOLE_TASKS_URL", &with_password)]);
    assert!(told(&server.call("get_task", &json!({ "id": stored }))).is_ok());

    postgres.run("shop", "UPDATE creole_versions SET version = 7");
    let refused = told(&begin().call("get_task", &json!({ "id": stored }))).unwrap_err();
    assert!(refused.contains("its schema is 7, this version supports 1"), "{refused}");
}

/// Checks the store itself, without a server in front of it.
fn store_keeps_every_promise(url: &str) {
    let address = DatabaseAddress::parse(url, Some(PASSWORD), Path::new("")).unwrap();
    let options = PackOptions { tasks: Some(address), ..PackOptions::default() };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(keep_every_promise_of_a_store(&options));
}

#[track_caller]
fn created(server: &mut Server, description: &str) -> String {
    let task = told(&server.call("create_task", &json!({ "description": description }))).unwrap();
    let task: Value = serde_json::from_str(&task).unwrap();
    assert_eq!((&task["description"], &task["status"]), (&json!(description), &json!("pending")));
    task["id"].as_str().unwrap().to_owned()
}

#[track_caller]
fn list(server: &mut Server, arguments: Value) -> (Vec<String>, Option<String>) {
    let listed = told(&server.call("list_tasks", &arguments)).unwrap();
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let tasks = listed["tasks"].as_array().unwrap().iter();
    let names = tasks.map(|task| task["description"].as_str().unwrap().to_owned()).collect();
    (names, listed["next_cursor"].as_str().map(str::to_owned))
}

/// Checks two servers on one empty store.
#[track_caller]
fn keep_every_promise([mut one, mut other]: [Server; 2]) {
    life_and_texts(&mut one, &mut other);
    pages(&mut one);
    // `wait_task` notices changes by another process.
    let id = created(&mut one, "waited for");
    one.write(call(
        900,
        "wait_task",
        &json!({ "id": id, "status": "done", "timeout_seconds": 60 }),
    ));
    told(&other.call("update_task", &json!({ "id": id, "status": "done" }))).unwrap();
    let waited = loop {
        let response = one.answer();
        if response["id"] == 900 {
            break response;
        }
    };
    assert!(told(&waited).unwrap().contains("\"done\""));
    writers(&mut one, &mut other);
}

#[track_caller]
fn life_and_texts(one: &mut Server, other: &mut Server) {
    let text = "'; DROP TABLE tasks; -- \n \u{1f980} \u{202e} é \\ $1 ?1";
    let id = created(one, text);
    let read: Value =
        serde_json::from_str(&told(&other.call("get_task", &json!({ "id": id }))).unwrap())
            .unwrap();
    assert_eq!(read["description"], text);
    let both = json!({ "id": id, "status": "in_progress", "description": "new" });
    assert!(told(&other.call("update_task", &both)).unwrap().contains("in_progress"));
    let uri = format!("task://{id}");
    let resource = one.request("resources/read", &json!({ "uri": uri }));
    assert!(
        resource["result"]["contents"][0]["text"].as_str().unwrap().contains("\"new\""),
        "{resource}"
    );
    assert_eq!(proposed(one, &id[..8]), [id.as_str()]);
    assert!(told(&one.call("delete_task", &json!({ "id": id }))).is_ok());
    for tool in ["get_task", "delete_task"] {
        let gone = told(&other.call(tool, &json!({ "id": id }))).unwrap_err();
        assert_eq!(gone, format!("error: task not found: {id}"));
    }
    assert!(told(&one.call("update_task", &json!({ "id": id, "status": "done" }))).is_err());
}

/// The ids that completion proposes for this prefix.
#[track_caller]
fn proposed(server: &mut Server, beginning: &str) -> Vec<String> {
    let reference = json!({ "type": "ref/resource", "uri": "task://{id}" });
    let params = json!({ "ref": reference, "argument": { "name": "id", "value": beginning } });
    let response = server.request("completion/complete", &params);
    serde_json::from_value(response["result"]["completion"]["values"].clone()).unwrap()
}

#[track_caller]
fn pages(server: &mut Server) {
    let ids: Vec<String> = (0..5).map(|number| created(server, &number.to_string())).collect();
    let (names, cursor) = list(server, json!({ "limit": 2 }));
    assert_eq!(names, ["0", "1"]);
    created(server, "5");
    for id in &ids[..3] {
        told(&server.call("delete_task", &json!({ "id": id }))).unwrap();
    }
    let (names, cursor) = list(server, json!({ "limit": 2, "cursor": cursor.unwrap() }));
    assert_eq!(names, ["3", "4"]);
    let (names, cursor) = list(server, json!({ "limit": 2, "cursor": cursor.unwrap() }));
    assert_eq!((names, cursor), (vec!["5".to_owned()], None));
    told(&server.call("update_task", &json!({ "id": ids[4], "status": "done" }))).unwrap();
    assert_eq!(list(server, json!({ "status": "done" })).0, ["4"]);
    assert!(list(server, json!({ "status": "cancelled" })).0.is_empty());
}

/// Concurrent writers in two processes lose no update.
#[track_caller]
fn writers(one: &mut Server, other: &mut Server) {
    for server in [&mut *one, &mut *other] {
        for number in 0..20 {
            server.write(call(1000 + number, "create_task", &json!({ "description": "at once" })));
        }
    }
    let mut acknowledged = BTreeSet::new();
    for server in [&mut *one, &mut *other] {
        for _ in 0..20 {
            let task: Value = serde_json::from_str(&told(&server.answer()).unwrap()).unwrap();
            acknowledged.insert(task["id"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(acknowledged.len(), 40);
    let (names, _) = list(one, json!({ "limit": 100 }));
    assert_eq!(names.iter().filter(|name| *name == "at once").count(), 40);
}
