//! Tests of scopes: what a token lacks is asked for before anything runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use creole::auth::{Principal, ProtectedResource, ResourceSettings, ScopeRule, ScopeRules};
use creole::internal::http::{McpBody, Response};
use creole::internal::name_patterns::NamePatterns;
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::operation::Operation;
use creole::proto::wire::Raw;
use creole::serve::http::McpEndpoint;
use creole::{BoxFuture, Call, Next, Outcome, Server, TaskSupport, Tool};
use http::Request;
use serde_json::{Value, json};

use crate::client::{Whole, call, in_session, modern_call, post, text};
use crate::principals::token;

const METADATA: &str =
    "resource_metadata=\"https://mcp.example.com/.well-known/oauth-protected-resource/mcp\"";

/// A server with the tools `read`, `write`, `clock` and `guarded`, and what its tokens are for.
struct Bench {
    endpoint: McpEndpoint,
    resource: Arc<ProtectedResource>,
    runs: Arc<AtomicUsize>,
}

impl Bench {
    fn new(denies_unlisted: bool) -> Self {
        let runs = Arc::new(AtomicUsize::new(0));
        let tool = |name: &str| {
            let runs = Arc::clone(&runs);
            Tool::new(name, "Counts", move |_: Value| {
                runs.fetch_add(1, Ordering::SeqCst);
                async { "done" }
            })
        };
        let tools = ["read", "write", "clock", "guarded"].map(tool);
        let job = tool("job").task(TaskSupport::Optional);
        let server =
            tools.into_iter().fold(Server::new("test"), Server::tool).tool(job).with(guard);
        let settings = ResourceSettings {
            path: "/mcp".to_owned(),
            public_url: Some("https://mcp.example.com".to_owned()),
            issuers: vec![("corp".into(), "https://id.example.com".into())],
            required_scopes: vec!["mcp".into()],
            scopes_supported: vec!["mcp".into()],
            ..ResourceSettings::default()
        };
        let resource = Arc::new(ProtectedResource::new(settings, Arc::new(rules(denies_unlisted))));
        Self { endpoint: server.start().into(), resource, runs }
    }

    fn by(&self, scopes: &[&str], mut request: Request<Whole>) -> Request<Whole> {
        let token = token("ada", "editor", scopes);
        let expanded = self.resource.scopes().expand(&token.scopes);
        let principal = Principal::from_token(token, &expanded.roles, &expanded.implied);
        request.extensions_mut().insert(principal);
        request.extensions_mut().insert(Arc::clone(&self.resource));
        request
    }

    async fn send(&self, scopes: &[&str], request: Request<Whole>) -> Response<McpBody> {
        self.endpoint.handle(self.by(scopes, request)).await
    }

    /// Opens a session of this revision.
    async fn open(&self, revision: &str) -> String {
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": client});
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let response = self.send(&["mcp"], post(&[], &hello)).await;
        assert_eq!(response.status(), 200);
        response.headers()["mcp-session-id"].to_str().unwrap().to_owned()
    }

    fn run_count(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}

fn rules(denies_unlisted: bool) -> ScopeRules {
    let rule = |name: &str, tool: &str, implied: &[&str]| ScopeRule {
        name: name.into(),
        tools: NamePatterns::new(tool.split(' ')),
        implies: implied.iter().map(|scope| (*scope).into()).collect(),
        ..ScopeRule::default()
    };
    let all = [rule("files:read", "read", &[]), rule("files:write", "write job", &["files:read"])];
    ScopeRules::new(all.into(), denies_unlisted)
}

/// Refuses the tool `guarded` as a policy does.
fn guard(call: Call, next: Next<'_>) -> BoxFuture<'_, Outcome> {
    Box::pin(async move {
        let is_guarded =
            matches!(&call.operation, Operation::CallTool { name, .. } if name == "guarded");
        match is_guarded {
            true => {
                let data = Raw::from_value(&json!({"required_scopes": ["a", "b"]}));
                let fault = Fault::new(FaultKind::InsufficientScope, "a rule needs scopes");
                fault.with_data(data).into()
            }
            false => next.call(call).await,
        }
    })
}

/// The scopes that a refusal names; checks everything else of it.
fn asked(response: &Response<McpBody>) -> String {
    assert_eq!(response.status(), 403);
    assert_eq!(response.headers()["cache-control"], "no-store");
    let header = response.headers()["www-authenticate"].to_str().unwrap();
    let start = "Bearer realm=\"creole\", error=\"insufficient_scope\", scope=\"";
    let end = format!("\", {METADATA}, error_description=\"additional scopes required\"");
    let scopes = header.strip_prefix(start).and_then(|rest| rest.strip_suffix(&end));
    scopes.unwrap_or_else(|| panic!("{header}")).to_owned()
}

#[tokio::test]
async fn a_missing_scope_is_asked_for_as_the_revision_of_the_client_demands() {
    let bench = Bench::new(false);
    let held = ["mcp", "files:read", "openid"];
    let refused = bench.send(&held, modern_call("write")).await;
    assert_eq!(asked(&refused), "mcp files:write");
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let session = bench.open(revision).await;
        let mut request = call(&session, 1, "write");
        request.headers_mut().insert("mcp-protocol-version", revision.parse().unwrap());
        let refused = bench.send(&held, request).await;
        assert_eq!(asked(&refused), "mcp files:read files:write", "{revision}");
    }
    assert_eq!(bench.run_count(), 0);
}

#[tokio::test]
async fn a_scope_includes_the_implied_ones_and_unnamed_tools_need_none() {
    let bench = Bench::new(false);
    assert_eq!(bench.send(&["mcp", "files:write"], modern_call("read")).await.status(), 200);
    assert_eq!(bench.send(&["mcp"], modern_call("clock")).await.status(), 200);
    assert_eq!(bench.run_count(), 2);
}

#[tokio::test]
async fn nothing_of_a_batch_runs_if_one_of_its_calls_lacks_a_scope() {
    let bench = Bench::new(false);
    let session = bench.open("2025-03-26").await;
    let ask = |id: u64, tool: &str| {
        let params = json!({"name": tool, "arguments": {}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    let send = async |messages: Value| {
        let mut request = in_session(&session, &messages);
        request.headers_mut().insert("mcp-protocol-version", "2025-03-26".parse().unwrap());
        bench.send(&["mcp"], request).await
    };
    let refused = send(json!([ask(1, "clock"), ask(2, "write"), ask(3, "read")])).await;
    assert_eq!(asked(&refused), "mcp files:write files:read");
    assert_eq!(bench.run_count(), 0);
    // The session goes on, and the ids are free again.
    let answered = send(json!([ask(1, "clock"), ask(2, "clock")])).await;
    assert_eq!(answered.status(), 200);
    let answered: Value = serde_json::from_str(&text(answered).await).unwrap();
    assert_eq!(answered.as_array().map(Vec::len), Some(2), "{answered}");
    assert_eq!(bench.run_count(), 2);
}

#[tokio::test]
async fn an_unlisted_tool_can_be_refused_without_a_scope_to_ask_for() {
    let bench = Bench::new(true);
    let refused = bench.send(&["mcp", "files:write"], modern_call("clock")).await;
    assert_eq!(refused.status(), 403);
    assert_eq!(refused.headers().get("www-authenticate"), None);
    assert_eq!(bench.send(&["mcp", "files:write"], modern_call("read")).await.status(), 200);
    assert_eq!(bench.run_count(), 1);
}

#[tokio::test]
async fn the_scopes_of_a_policy_are_asked_for_all_at_once() {
    let bench = Bench::new(false);
    let refused = bench.send(&["mcp"], modern_call("guarded")).await;
    assert_eq!(asked(&refused), "mcp a b");
    let session = bench.open("2025-11-25").await;
    let refused = bench.send(&["mcp", "files:read"], call(&session, 1, "guarded")).await;
    assert_eq!(asked(&refused), "mcp files:read a b");
    // Without a token there is nothing to challenge: the caller gets the fault.
    let response = bench.endpoint.handle(modern_call("guarded")).await;
    assert_eq!(response.status(), 200);
    let response: Value = serde_json::from_str(&text(response).await).unwrap();
    assert_eq!(response["error"]["data"]["required_scopes"], json!(["a", "b"]));
}

#[tokio::test]
async fn callers_with_a_key_are_not_limited_by_scopes() {
    let bench = Bench::new(true);
    let mut request = modern_call("write");
    request.extensions_mut().insert(Principal::from("key:ci"));
    assert_eq!(bench.endpoint.handle(request).await.status(), 200);
}

#[tokio::test]
async fn a_task_needs_the_scope_of_the_call_that_created_it() {
    let bench = Bench::new(false);
    let session = bench.open("2025-11-25").await;
    let send = async |scopes: &[&str], method: &str, params: Value| {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        bench.send(scopes, in_session(&session, &message)).await
    };
    let params = json!({"name": "job", "arguments": {}, "task": {}});
    let created = send(&["mcp", "files:write"], "tools/call", params).await;
    assert_eq!(created.status(), 200);
    let created: Value = serde_json::from_str(&text(created).await).unwrap();
    let id = created["result"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}"));
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let refused = send(&["mcp"], method, json!({"taskId": id})).await;
        assert_eq!(asked(&refused), "mcp files:write", "{method}");
    }
    let seen = send(&["mcp", "files:write"], "tasks/get", json!({"taskId": id})).await;
    assert_eq!(seen.status(), 200);
    let seen: Value = serde_json::from_str(&text(seen).await).unwrap();
    assert_eq!(seen["result"]["taskId"], id, "{seen}");
}
