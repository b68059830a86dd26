//! Tests of lists that fail, change and differ. The upstreams are in this process, and the clock is simulated.

use std::sync::atomic::{AtomicU32, Ordering};

use creole::client::Program;
use creole::proto::model::ListKind;
use creole::proto::operation::{Operation, Payload};
use creole::stream::MemoryConnection;
use creole::{Server, Service};
use serde_json::{Value, json};

use super::*;
use crate::federation::Federation;
use crate::layers::testing::{ask, call, listed_names};
use crate::upstream::connections::connector;

/// Responds to each request with a result or an error. `None` is no response.
async fn serve(
    mut client: MemoryConnection,
    answers: impl Fn(&str) -> Option<Result<Value, Value>>,
) {
    let mut rest = Vec::new();
    while let Some(bytes) = client.receive().await {
        rest.extend_from_slice(&bytes);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            let message: Value = serde_json::from_slice(&line).unwrap();
            let response = match message["method"].as_str().and_then(&answers) {
                None => continue,
                Some(Ok(result)) => {
                    json!({"jsonrpc": "2.0", "id": message["id"], "result": result})
                }
                Some(Err(error)) => json!({"jsonrpc": "2.0", "id": message["id"], "error": error}),
            };
            if client.send(format!("{response}\n").as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

/// A server with tools and prompts. `resources` supplies the response to `resources/list`.
fn with_resources(
    method: &str,
    resources: impl Fn() -> Option<Result<Value, Value>>,
) -> Option<Result<Value, Value>> {
    let schema = json!({"type": "object"});
    match method {
        "initialize" => Some(Ok(json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
            "serverInfo": {"name": "lists", "version": "1"},
        }))),
        "tools/list" => Some(Ok(json!({"tools": [{"name": "work", "inputSchema": schema}]}))),
        "prompts/list" => Some(Ok(json!({"prompts": [{"name": "greet"}]}))),
        "resources/list" => resources(),
        "tools/call" => Some(Ok(json!({"content": [{"type": "text", "text": "worked"}]}))),
        "ping" => Some(Ok(json!({}))),
        "notifications/initialized" => None,
        _ => Some(Err(json!({"code": -32601, "message": "Method not found"}))),
    }
}

async fn without_method(client: MemoryConnection) {
    let unknown = || Some(Err(json!({"code": -32601, "message": "Method not found"})));
    serve(client, |method| with_resources(method, unknown)).await;
}

async fn broken_list(client: MemoryConnection) {
    let broken = || Some(Err(json!({"code": -32603, "message": "the database is down"})));
    serve(client, |method| with_resources(method, broken)).await;
}

async fn silent_list(client: MemoryConnection) {
    serve(client, |method| with_resources(method, || None)).await;
}

static FETCHES: AtomicU32 = AtomicU32::new(0);

/// Its fourth response to `resources/list` is the first success.
async fn recovering_list(client: MemoryConnection) {
    let answer = || match FETCHES.fetch_add(1, Ordering::Relaxed) {
        0..3 => Some(Err(json!({"code": -32603, "message": "the database is down"}))),
        _ => Some(Ok(json!({"resources": [{"uri": "file:///a", "name": "a"}]}))),
    };
    serve(client, |method| with_resources(method, answer)).await;
}

fn settings(name: &str) -> UpstreamSettings {
    UpstreamSettings::new(Address::Child(Program::new(name, "none")))
}

/// A gateway with only these upstreams.
fn gateway(federation: &Federation, servers: Vec<UpstreamSettings>) -> Service {
    let service = Server::new("gateway").with(federation.layer()).start();
    federation.start_upstreams(servers, &service.registry(), false);
    service
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_does_not_make_the_only_upstream_unusable() {
    connector::in_process::register("lists_without", without_method);
    connector::in_process::register("lists_broken", broken_list);
    connector::in_process::register("lists_silent", silent_list);
    for (name, message) in [
        ("lists_without", "Method not found"),
        ("lists_broken", "the database is down"),
        ("lists_silent", "no response to `resources/list` within 10 s"),
    ] {
        let federation = Federation::default();
        let service = gateway(&federation, vec![settings(name)]);
        let welcome = ask(&service, "a", Operation::Discover).await;
        assert!(matches!(&welcome, Outcome::Complete(Payload::Server(_))), "{welcome:?}");
        assert_eq!(listed_names(&service, ListKind::Tools).await, ["work"]);
        assert_eq!(listed_names(&service, ListKind::Prompts).await, ["greet"], "{name}");
        let worked = call(&service, "a", "work", "{}").await;
        assert!(matches!(worked, Outcome::Complete(_)), "{worked:?}");

        let refused = ask(&service, "a", Operation::List(ListKind::Resources, None)).await;
        let Outcome::Fail(fault) = refused else { panic!("{refused:?}") };
        assert!(fault.detail.contains(message) || message == "Method not found", "{fault:?}");

        let [status] = &federation.status()[..] else { panic!("one upstream") };
        assert_eq!(status.state, UpstreamState::Ready);
        assert_eq!((status.items(ListKind::Tools), status.items(ListKind::Prompts)), (1, 1));
        assert_eq!(status.revision.as_deref(), Some("2025-06-18"));
        let failed: Vec<_> = status.failed_lists().collect();
        assert_eq!(failed.len(), 1, "{failed:?}");
        assert_eq!(failed[0].0, ListKind::Resources);
        assert!(failed[0].1.contains(message), "{failed:?}");
        assert!(status.last_error.as_ref().unwrap().message.contains(message), "{status:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_list_is_fetched_again_with_backoff_and_announced_when_it_comes() {
    connector::in_process::register("lists_recovering", recovering_list);
    let federation = Federation::default();
    let service = gateway(&federation, vec![settings("lists_recovering")]);
    assert_eq!(listed_names(&service, ListKind::Tools).await, ["work"]);
    let (started, mut changes) = (Instant::now(), service.registry().changes());
    let changed = tokio::time::timeout(Duration::from_secs(60), changes.recv()).await;
    assert_eq!(
        changed.expect("a change notification").unwrap().change,
        Change::List(ListKind::Resources)
    );
    // Attempts after 1, 2 and 4 seconds: not one in each second.
    assert_eq!(started.elapsed().as_secs(), 7);
    assert_eq!(FETCHES.load(Ordering::Relaxed), 4);
    assert_eq!(listed_names(&service, ListKind::Resources).await, ["file:///a"]);
    assert_eq!(federation.status()[0].failed_lists().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_failed_list_of_one_upstream_leaves_those_of_others_as_they_are() {
    connector::in_process::register("lists_bad", broken_list);
    connector::in_process::register("lists_good", |client| async {
        let good = || Some(Ok(json!({"resources": [{"uri": "file:///g", "name": "g"}]})));
        serve(client, |method| with_resources(method, good)).await;
    });
    let federation = Federation::default();
    let prefixed = |name: &str| UpstreamSettings {
        naming: Naming { prefix: format!("{name}__") },
        ..settings(name)
    };
    let service = gateway(&federation, vec![prefixed("lists_bad"), prefixed("lists_good")]);
    assert_eq!(
        listed_names(&service, ListKind::Tools).await,
        ["lists_bad__work", "lists_good__work"]
    );
    assert_eq!(listed_names(&service, ListKind::Resources).await, ["file:///g"]);
}
