//! Tasks of the history: each that was acknowledged ends, and only its principal finds it.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use creole_acceptance::gateway::StatelessClient;
use creole_acceptance::replicas::tenant_key;
use creole_test_wait::blocking::eventually;
use serde_json::{Value, json};

use super::client::{HistoryClient, may_fail_with};

/// How often a client reads a task before the run ends.
const MAX_LOOKS: usize = 10;

/// A task that a replica acknowledged.
pub(super) struct AcknowledgedTask {
    tenant: usize,
    id: String,
    nonce: String,
}

/// A principal without tasks.
const ANOTHER: usize = 0;

/// The statuses of a task that has ended.
const ENDS: [&str; 2] = ["completed", "failed"];

/// Creates a task, and looks at it for a while.
pub(super) fn run(client: &mut HistoryClient<'_>, tool: &str) {
    let call = client.begin(tool);
    let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let stateless = client.stateless(tasks);
    let params = json!({"name": call.tool, "arguments": call.arguments});
    let request = stateless.written(&call.id, "tools/call", params);
    let messages = client.send(&request).unwrap_or_default();
    let id = messages.first().and_then(|message| message["result"]["taskId"].as_str());
    let Some(id) = id.map(str::to_owned) else {
        let expected = call.nonce.clone();
        client.end(call, &messages, expected);
        // A replica that does not reach the store refuses at once.
        client.pause();
        return;
    };
    client.run.answered.fetch_add(1, Ordering::Relaxed);
    let task = AcknowledgedTask { tenant: client.tenant, id, nonce: call.nonce.clone() };
    let request = stateless.written(&json!("look"), "tasks/get", json!({"taskId": task.id}));
    for _ in 0..MAX_LOOKS {
        let found = client.send(&request).and_then(|mut messages| messages.pop());
        if found.is_some_and(|found| task.has_ended(&found["result"])) || !client.pause() {
            break;
        }
    }
    client.end_task(call, task);
}

impl AcknowledgedTask {
    /// Whether a task has ended.
    ///
    /// # Panics
    /// When it has ended in another way than it may.
    fn has_ended(&self, found: &Value) -> bool {
        let Some(status) = found["status"].as_str().filter(|status| ENDS.contains(status)) else {
            return false;
        };
        let is_right = match status {
            "completed" => found["result"]["content"][0]["text"] == *self.nonce,
            _ => {
                let text = found.to_string();
                text.contains("has ended") || may_fail_with(&text)
            }
        };
        assert!(is_right, "{}: {found}", self.nonce);
        true
    }

    fn get(&self, address: SocketAddr, tenant: usize) -> Value {
        let client = StatelessClient::new(address).with_key(&tenant_key(tenant));
        let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
        client.that_can(tasks).request("tasks/get", json!({"taskId": self.id}))
    }
}

/// Waits until all tasks have ended, and looks for them as another principal. Returns the nonces of those with a result.
pub(super) fn settle(addresses: &[SocketAddr], tasks: &[AcknowledgedTask]) -> HashSet<String> {
    let mut completed = HashSet::new();
    assert!(!tasks.is_empty(), "no task was acknowledged");
    for (number, task) in tasks.iter().enumerate() {
        let address = addresses[number % addresses.len()];
        let what = || format!("{} ends: {}", task.nonce, task.get(address, task.tenant));
        let end = eventually(what, || {
            let found = task.get(address, task.tenant)["result"].take();
            task.has_ended(&found).then_some(found)
        });
        if end["status"] == "completed" {
            completed.insert(task.nonce.clone());
        }
        let other = task.get(address, ANOTHER);
        assert!(other.get("error").is_some(), "another principal finds {}: {other}", task.nonce);
    }
    completed
}
