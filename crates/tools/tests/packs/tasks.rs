//! Tests of the pack `tasks`, as a client sees it.

use std::time::{Duration, Instant};

use creole_test_wait::delay;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{PackClient, options_for, serve_packs, text_of};

struct TaskDirectory {
    directory: TempDir,
}

impl TaskDirectory {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a directory") }
    }

    /// A client of a new server; all servers share the file.
    async fn client(&self) -> PackClient {
        let service = serve_packs(&["tasks"], &options_for(&self.directory));
        PackClient::session(&service, json!({})).await
    }
}

async fn create_task(client: &mut PackClient, description: &str) -> String {
    let text = client.text("create_task", json!({"description": description})).await;
    let task: Value = serde_json::from_str(&text).expect("a task");
    task["id"].as_str().expect("an id").to_owned()
}

#[tokio::test]
async fn a_created_task_is_returned_unchanged() {
    let directory = TaskDirectory::new();
    let mut client = directory.client().await;
    let text = client.text("create_task", json!({"description": "Fix parser bug"})).await;
    let id = serde_json::from_str::<Value>(&text).unwrap()["id"].as_str().unwrap().to_owned();
    let expected = format!(r#"{{"id":"{id}","description":"Fix parser bug","status":"pending"}}"#);
    assert_eq!(text, expected);
    assert!(id.starts_with("task_") && id.len() >= 17);
    assert_eq!(client.text("get_task", json!({"id": id})).await, expected);
}

#[tokio::test]
async fn a_missing_task_is_a_failure_of_the_tool() {
    let directory = TaskDirectory::new();
    let mut client = directory.client().await;
    let expected = "error: task not found: task_xyz";
    let id = json!({"id": "task_xyz"});
    assert_eq!(client.failure("get_task", id.clone()).await, expected);
    assert_eq!(client.failure("delete_task", id).await, expected);
    let update = json!({"id": "task_xyz", "status": "done"});
    assert_eq!(client.failure("update_task", update.clone()).await, expected);
    assert_eq!(client.failure("wait_task", update).await, expected);
}

#[tokio::test]
async fn descriptions_are_neither_empty_nor_endless() {
    let directory = TaskDirectory::new();
    let mut client = directory.client().await;
    client.failure("create_task", json!({"description": ""})).await;
    client.failure("create_task", json!({"description": "x".repeat(10_001)})).await;
    client.failure("create_task", json!({"description": "x", "extra": 1})).await;
    create_task(&mut client, &"é".repeat(10_000)).await;
}

#[tokio::test]
async fn an_update_changes_the_given_members_and_requires_at_least_one() {
    let directory = TaskDirectory::new();
    let mut client = directory.client().await;
    let id = create_task(&mut client, "one").await;
    let text = client.text("update_task", json!({"id": id, "status": "in_progress"})).await;
    assert_eq!(text, format!(r#"{{"id":"{id}","description":"one","status":"in_progress"}}"#));
    let text = client.text("update_task", json!({"id": id, "description": "two"})).await;
    assert_eq!(text, format!(r#"{{"id":"{id}","description":"two","status":"in_progress"}}"#));
    assert!(
        client
            .failure("update_task", json!({"id": id}))
            .await
            .starts_with("error: nothing to change")
    );
    client.failure("update_task", json!({"id": id, "status": "finished"})).await;
    assert_eq!(client.text("delete_task", json!({"id": id})).await, text);
    client.failure("get_task", json!({"id": id})).await;
}

#[tokio::test]
async fn the_list_is_paged_by_cursors_in_the_order_of_creation() {
    let directory = TaskDirectory::new();
    let mut client = directory.client().await;
    assert_eq!(client.text("list_tasks", json!({})).await, r#"{"tasks":[]}"#);
    for number in 0..5 {
        create_task(&mut client, &number.to_string()).await;
    }
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let mut arguments = json!({"limit": 2});
        if let Some(cursor) = cursor {
            arguments["cursor"] = cursor;
        }
        let page: Value =
            serde_json::from_str(&client.text("list_tasks", arguments).await).unwrap();
        let tasks = page["tasks"].as_array().unwrap();
        seen.extend(tasks.iter().map(|task| task["description"].as_str().unwrap().to_owned()));
        cursor = page.get("next_cursor").cloned();
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["0", "1", "2", "3", "4"]);
    let refused = client.failure("list_tasks", json!({"cursor": "garbage"})).await;
    assert_eq!(refused, "error: the cursor was not returned by list_tasks");
    for limit in [json!(0), json!(101), json!("2")] {
        client.failure("list_tasks", json!({"limit": limit})).await;
    }
}

#[tokio::test]
async fn the_list_can_be_of_one_status() {
    let directory = TaskDirectory::new();
    let mut client = directory.client().await;
    let id = create_task(&mut client, "one").await;
    create_task(&mut client, "two").await;
    client.text("update_task", json!({"id": id, "status": "cancelled"})).await;
    let text = client.text("list_tasks", json!({"status": "cancelled"})).await;
    let task = format!(r#"{{"id":"{id}","description":"one","status":"cancelled"}}"#);
    assert_eq!(text, format!(r#"{{"tasks":[{task}]}}"#));
}

#[tokio::test]
async fn a_wait_sees_changes_of_another_server() {
    let directory = TaskDirectory::new();
    let (mut client, mut other) = (directory.client().await, directory.client().await);
    let id = create_task(&mut client, "shared").await;
    let params = json!({"name": "wait_task", "arguments": {"id": id, "status": "done", "timeout_seconds": 15}});
    let waiting = client.send("tools/call", params).await;
    delay(Duration::from_millis(300)).await;
    other.text("update_task", json!({"id": id, "status": "done"})).await;
    let started = Instant::now();
    let response = client.response(waiting).await;
    let expected = format!(r#"{{"id":"{id}","description":"shared","status":"done"}}"#);
    assert_eq!(text_of(&response["result"]), expected);
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_wait_sees_changes_of_the_same_server() {
    let directory = TaskDirectory::new();
    let mut client = directory.client().await;
    let id = create_task(&mut client, "mine").await;
    let params = json!({"name": "wait_task", "arguments": {"id": id, "status": "done"}});
    let waiting = client.send("tools/call", params).await;
    let update = json!({"name": "update_task", "arguments": {"id": id, "status": "done"}});
    let update = client.send("tools/call", update).await;
    let mut left = vec![
        client.any_response(&[waiting, update]).await,
        client.any_response(&[waiting, update]).await,
    ];
    left.sort_unstable();
    assert_eq!(left, [waiting, update]);
}

#[tokio::test]
async fn a_wait_ends_when_its_time_is_over() {
    let directory = TaskDirectory::new();
    let mut client = directory.client().await;
    let id = create_task(&mut client, "slow").await;
    for seconds in [0, 1] {
        let arguments = json!({"id": id, "status": "done", "timeout_seconds": seconds});
        let expected = format!("error: timed out waiting for {id} to be done; it is pending");
        assert_eq!(client.failure("wait_task", arguments).await, expected);
    }
    client.failure("wait_task", json!({"id": id, "status": "done", "timeout_seconds": 3601})).await;
}

#[tokio::test]
async fn a_wait_shows_that_it_is_alive() {
    let directory = TaskDirectory::new();
    let mut client = directory.client().await;
    let id = create_task(&mut client, "slow").await;
    let params = json!({
        "name": "wait_task",
        "arguments": {"id": id, "status": "done", "timeout_seconds": 2},
        "_meta": {"progressToken": "p"},
    });
    client.request("tools/call", params).await;
    let signs: Vec<_> = client
        .notifications
        .iter()
        .filter(|sent| sent["method"] == "notifications/progress")
        .collect();
    assert!(signs.len() >= 2, "{signs:?}");
    assert_eq!(signs[0]["params"]["message"], format!("{id} is pending"));
    assert_eq!(signs[0]["params"]["total"].as_f64(), Some(2.0));
}

#[tokio::test]
async fn a_cancelled_wait_is_not_answered_and_frees_the_connection() {
    let directory = TaskDirectory::new();
    let mut client = directory.client().await;
    let id = create_task(&mut client, "slow").await;
    let params = json!({"name": "wait_task", "arguments": {"id": id, "status": "done"}});
    let waiting = client.send("tools/call", params).await;
    client.notify("notifications/cancelled", json!({"requestId": waiting})).await;
    // A response to the cancelled call would make this call panic.
    client.text("get_task", json!({"id": id})).await;
}

#[tokio::test]
async fn a_task_is_a_resource_that_can_be_read_completed_and_watched() {
    let directory = TaskDirectory::new();
    let mut client = directory.client().await;
    let id = create_task(&mut client, "seen").await;
    let uri = format!("task://{id}");
    let read = client.request("resources/read", json!({"uri": uri})).await;
    let expected = format!(r#"{{"id":"{id}","description":"seen","status":"pending"}}"#);
    let contents = json!([{"uri": uri, "mimeType": "application/json", "text": expected}]);
    assert_eq!(read["result"]["contents"], contents);

    let missing = client.request("resources/read", json!({"uri": "task://task_none"})).await;
    assert_eq!(missing["error"]["data"]["uri"], "task://task_none");

    let params = json!({
        "ref": {"type": "ref/resource", "uri": "task://{id}"},
        "argument": {"name": "id", "value": &id[..8]},
    });
    let completed = client.request("completion/complete", params).await;
    assert_eq!(completed["result"]["completion"]["values"], json!([id]));

    client.request("resources/subscribe", json!({"uri": uri})).await;
    client.text("update_task", json!({"id": id, "status": "done"})).await;
    let updated = client.notification("notifications/resources/updated").await;
    assert_eq!(updated["params"]["uri"], json!(uri));
}

#[tokio::test]
async fn a_file_that_is_not_a_database_is_reported_to_the_caller() {
    let directory = TaskDirectory::new();
    let data = directory.directory.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("tasks.sqlite3"), "garbage ".repeat(1000)).unwrap();
    let mut client = directory.client().await;
    let message = client.failure("list_tasks", json!({})).await;
    assert!(message.starts_with("error: ") && message.contains("tasks.sqlite3"), "{message}");
    let folder = directory.directory.path().to_str().unwrap();
    assert!(!message.contains(folder) && !message.contains('/'), "{message}");
}

#[tokio::test]
async fn hints_describe_safety() {
    let directory = TaskDirectory::new();
    let mut client = directory.client().await;
    let listed = client.request("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    let hint = |name: &str, hint: &str| {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        tool["annotations"][hint].as_bool()
    };
    for name in ["get_task", "list_tasks", "wait_task"] {
        assert_eq!(hint(name, "readOnlyHint"), Some(true), "{name}");
    }
    assert_eq!(hint("create_task", "destructiveHint"), Some(false));
    assert_eq!(hint("update_task", "idempotentHint"), Some(true));
    assert_eq!(hint("delete_task", "destructiveHint"), Some(true));
}
