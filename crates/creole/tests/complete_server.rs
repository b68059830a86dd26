//! Runs the example `complete-server` over stdio and within an axum application.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

#[allow(dead_code, reason = "the example has a `main` of its own")]
#[path = "../examples/complete-server.rs"]
mod complete_server;

use creole::client::{Address, ClientBuilder, HttpAddress, Program};
use creole::proto::revision::{ElicitationSupport, Revision};
use creole::proto::wire::Raw;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Set in the process that is the server.
const SERVES: &str = "CREOLE_TEST_SERVES";

#[test]
fn serves_on_its_standard_streams() {
    if std::env::var_os(SERVES).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(complete_server::server().serve_stdio()).unwrap();
    }
}

#[tokio::test]
async fn the_example_works_over_stdio_in_every_revision() {
    // With one thread, the test runner would write the test's name before the first message.
    let args = ["serves_on_its_standard_streams", "--exact", "--test-threads=2"];
    let program = Program::new("notes", std::env::current_exe().unwrap());
    let program = program.args(args).env(SERVES, "1");
    for revision in Revision::ALL {
        use_every_item(Address::Child(program.clone()), revision).await;
    }
}

#[tokio::test]
async fn the_example_works_within_axum_in_every_revision() {
    for revision in Revision::ALL {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let serving = axum::serve(listener, complete_server::application());
        let serving = tokio::spawn(async { serving.await.unwrap() });
        let address = HttpAddress::new("notes", &url).unwrap();
        use_every_item(Address::Http(address), revision).await;
        serving.abort();
    }
}

/// Calls the tools, reads the resource and renders the prompt. The user is asked only where the revision can ask.
async fn use_every_item(address: Address, revision: Revision) {
    let consent = json!({"action": "accept", "content": {"delete": true}});
    let builder = ClientBuilder::new("test", "1").revision(revision).on_form(move |_| {
        let consent = Raw::from_value(&consent);
        async move { Some(consent) }
    });
    let client = builder.connect(address).await.unwrap();
    let note = json!({"text": "buy oat milk"});
    assert_eq!(client.call_tool("add", &note).await.unwrap().text(), "kept", "{revision:?}");

    let counted = client.call_tool("count", &json!({})).await.unwrap();
    let counted: Value = serde_json::from_str(&counted.text()).unwrap();
    assert_eq!(counted, json!({"notes": 1, "words": 3}), "{revision:?}");

    let read: Value = client.read_resource("notes://all").await.unwrap().decode().unwrap();
    assert_eq!(read["contents"][0]["text"], "buy oat milk", "{revision:?}");

    let prompt = client.get_prompt("summarize", &json!({"words": "5"})).await.unwrap();
    let prompt: Value = prompt.decode().unwrap();
    let text = &prompt["messages"][0]["content"]["text"];
    assert_eq!(text, "Please summarize the notes in 5 words.", "{revision:?}");

    let can_ask = revision.rules().elicitation != ElicitationSupport::Absent;
    let cleared = client.call_tool("clear", &json!({})).await.unwrap();
    assert_eq!(cleared.text() == "deleted", can_ask, "{revision:?}");
    client.close().await;
}
