//! Tests of URL elicitations during a call that are completed late, never, or by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use creole::input::url_elicitation;
use creole::proto::model::KeyedInputRequest;
use creole::{BoxFuture, Call, Context, Middleware, Next, Outcome, Server, Tool, ToolError};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{MemoryClient, Nothing, call, slow};

/// Requests a URL elicitation until this many seconds have passed, and counts its calls.
struct SignIn {
    began: Instant,
    takes: Duration,
    calls: Arc<AtomicUsize>,
}

impl Middleware for SignIn {
    fn handle<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        if !call.operation.may_require_input() || self.began.elapsed() >= self.takes {
            return next.call(call);
        }
        self.calls.fetch_add(1, Ordering::Relaxed);
        let input_request = url_elicitation("Sign in", "https://a.example/");
        let input_requests =
            vec![KeyedInputRequest { key: "page".to_owned(), question: input_request }];
        Box::pin(async move {
            Outcome::InputRequired { requests: input_requests, request_state: Some("s".to_owned()) }
        })
    }
}

/// The final response to a client that accepts the URL elicitation immediately, and the number of calls at the server.
async fn after_signing_in(takes: Duration) -> (Value, usize) {
    let calls = Arc::new(AtomicUsize::new(0));
    let service = Server::new("t")
        .tool(Tool::new("slow", "Waits", slow))
        .with(SignIn { began: Instant::now(), takes, calls: Arc::clone(&calls) })
        .start();
    let mut client = MemoryClient::connect(&service);
    client.initialize("2025-11-25", json!({"elicitation": {"url": {}}})).await;
    let request = client.ask(call(1, "slow", json!({"milliseconds": 0}))).await;
    assert_eq!(request["method"], "elicitation/create", "{request}");
    let agreed = json!({"jsonrpc": "2.0", "id": request["id"], "result": {"action": "accept"}});
    let mut message = client.ask(agreed).await;
    while message["method"] == "notifications/elicitation/complete" {
        message = client.receive().await;
    }
    (message, calls.load(Ordering::Relaxed))
}

#[tokio::test(start_paused = true)]
async fn a_page_is_waited_for_as_long_as_any_question() {
    let (response, calls) = after_signing_in(Duration::from_secs(500)).await;
    assert_eq!(response["result"]["content"][0]["text"], "done", "{response}");
    assert!((20..60).contains(&calls), "{calls} calls in 500 seconds");
}

#[tokio::test(start_paused = true)]
async fn a_page_that_nobody_comes_back_from_is_given_up() {
    let started = Instant::now();
    let (response, _) = after_signing_in(Duration::from_secs(10_000)).await;
    assert_eq!(response["result"]["isError"], true, "{response}");
    let text = response["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("600 s"), "{text}");
    assert!(started.elapsed() <= Duration::from_secs(600));
}

#[tokio::test]
async fn a_client_that_cannot_open_a_page_is_told_where_it_is() {
    async fn sign_in(_: Nothing, context: Context) -> Result<String, ToolError> {
        context.elicit_with("page", url_elicitation("Sign in", "https://a.example/"))?;
        Ok("done".to_owned())
    }
    let service = Server::new("t").tool(Tool::new("sign_in", "Signs in", sign_in)).start();
    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let mut client = MemoryClient::connect(&service);
        client.initialize(version, json!({"elicitation": {}})).await;
        let answer = client.ask(call(1, "sign_in", json!({}))).await;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        let said = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(said.contains("Sign in\nhttps://a.example/"), "{said}");
    }
}
