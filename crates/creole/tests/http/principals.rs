//! Tests of principals with access tokens: which sessions, streams and messages are theirs.

use std::pin::Pin;
use std::time::{Duration, SystemTime};

use creole::auth::{Principal, TokenIdentity, TokenMethod};
use creole::internal::replicas::Replicas;
use creole::serve::http::{EndpointSettings, McpEndpoint};
use creole::state::State;
use creole::{Context, Server, Tool};
use http::{Method, Request};
use serde_json::{Value, json};

use crate::client::{Whole, call, document, in_session, modern, modern_call, part, post, request};

/// The access token of a person, or of a program whose subject is its client.
pub(crate) fn token(subject: &str, client: &str, scopes: &[&str]) -> TokenIdentity {
    TokenIdentity {
        issuer: "https://id.example.com".into(),
        label: "corp".into(),
        subject: Some(subject.into()),
        subject_claim: "sub".into(),
        client: Some(client.into()),
        is_program: subject == client,
        scopes: scopes.iter().map(|scope| (*scope).into()).collect(),
        claims: serde_json::Map::default(),
        expires_at: SystemTime::now() + Duration::from_secs(600),
        method: TokenMethod::Jwt,
        is_dpop: false,
        fingerprint: [1, 2, 3, 4],
    }
}

fn principal(subject: &str, client: &str, scopes: &[&str], roles: &[&str]) -> Principal {
    let roles: Vec<_> = roles.iter().map(|role| (*role).into()).collect();
    Principal::from_token(token(subject, client, scopes), &roles, &[])
}

/// An endpoint whose tool tells the principal of the call.
fn endpoint_on(state: &State) -> McpEndpoint {
    let who = Tool::new("who", "Tells the caller", |_: Value, context: Context| async move {
        let principal = context.principal();
        let scopes = principal.token().map(|token| token.scopes.clone());
        format!("{} {:?} {:?}", principal.id(), scopes.unwrap_or_default(), principal.roles())
    });
    let mut settings = EndpointSettings::default();
    settings.state = state.clone();
    settings.replicas = Replicas::new(state.clone());
    McpEndpoint::new(Server::new("test").tool(who).start(), settings)
}

fn by(principal: &Principal, mut request: Request<Whole>) -> Request<Whole> {
    request.extensions_mut().insert(principal.clone());
    request
}

/// Opens a session of this principal.
async fn open(endpoint: &McpEndpoint, principal: &Principal) -> String {
    let response = endpoint.handle(by(principal, post(&[], &hello("2025-11-25")))).await;
    assert_eq!(response.status(), 200);
    let session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let confirmed = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let confirmed = by(principal, in_session(&session, &confirmed));
    assert_eq!(endpoint.handle(confirmed).await.status(), 202);
    session
}

fn hello(revision: &str) -> Value {
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

/// What the tool tells in this session, or the status of the refusal.
async fn told(endpoint: &McpEndpoint, session: &str, principal: &Principal) -> Result<String, u16> {
    let response = endpoint.handle(by(principal, call(session, 1, "who"))).await;
    if response.status() != 200 {
        return Err(response.status().as_u16());
    }
    let document = document(response).await;
    Ok(document["result"]["content"][0]["text"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_session_is_of_one_person_and_client_and_survives_a_refreshed_token() {
    let state = State::default();
    // The second endpoint is another process that shares the state.
    let (here, there) = (endpoint_on(&state), endpoint_on(&state));
    let editor = principal("ada", "editor", &["mcp"], &[]);
    let session = open(&here, &editor).await;
    let refreshed = principal("ada", "editor", &["mcp", "files"], &[]);
    for endpoint in [&here, &there] {
        for other in [principal("ada", "phone", &["mcp"], &[]), "oauth:corp:ada".into()] {
            assert_eq!(told(endpoint, &session, &other).await, Err(404));
        }
        assert!(told(endpoint, &session, &refreshed).await.is_ok());
    }
}

#[tokio::test]
async fn a_person_and_a_program_of_the_same_name_share_no_session() {
    let endpoint = endpoint_on(&State::default());
    let person = principal("ci", "app", &["mcp"], &[]);
    let program = principal("ci", "ci", &["mcp"], &[]);
    let (of_person, of_program) = (open(&endpoint, &person).await, open(&endpoint, &program).await);
    assert_eq!(told(&endpoint, &of_person, &program).await, Err(404));
    assert_eq!(told(&endpoint, &of_program, &person).await, Err(404));
    let said = told(&endpoint, &of_program, &program).await;
    assert_eq!(said.as_deref(), Ok("oauth-client:corp:ci [\"mcp\"] []"));
}

#[tokio::test]
async fn a_call_in_a_session_has_the_scopes_and_roles_of_its_own_request() {
    let endpoint = endpoint_on(&State::default());
    let session = open(&endpoint, &principal("ada", "editor", &["mcp"], &["reader"])).await;
    for (scopes, roles) in [(&["files"][..], &["writer"][..]), (&[], &[])] {
        let caller = principal("ada", "editor", scopes, roles);
        let expected = format!("oauth:corp:ada {scopes:?} {roles:?}");
        assert_eq!(told(&endpoint, &session, &caller).await, Ok(expected));
    }
    let user = |roles: &[&str]| {
        let roles: Vec<_> = roles.iter().map(|role| (*role).into()).collect();
        Principal::new("user:ada", &roles)
    };
    let session = open(&endpoint, &user(&["reader"])).await;
    let said = told(&endpoint, &session, &user(&["writer"])).await;
    assert_eq!(said.as_deref(), Ok("user:ada [] [\"writer\"]"));
}

#[tokio::test]
async fn a_stateless_call_has_the_principal_of_its_request() {
    let endpoint = endpoint_on(&State::default());
    let caller = principal("ada", "editor", &["mcp"], &["reader"]);
    let response = document(endpoint.handle(by(&caller, modern_call("who"))).await).await;
    let said = &response["result"]["content"][0]["text"];
    assert_eq!(said, "oauth:corp:ada [\"mcp\"] [\"reader\"]");
}

#[tokio::test]
async fn a_message_that_another_process_received_has_the_principal_of_its_request() {
    let state = State::default();
    let (here, there) = (endpoint_on(&state), endpoint_on(&state));
    let editor = principal("ada", "editor", &["mcp"], &[]);
    let mut received = request(Method::GET, &[("accept", "text/event-stream")], "");
    *received.uri_mut() = "/sse".parse().unwrap();
    let mut stream = here.handle(by(&editor, received)).await;
    let opening = part(stream.body_mut()).await.unwrap();
    let address = opening.strip_prefix("event: endpoint\ndata: ").unwrap().trim().to_owned();
    let say = async |principal: &Principal, message: &Value| {
        let mut request = by(principal, post(&[], message));
        *request.uri_mut() = address.parse().unwrap();
        there.handle(request).await.status().as_u16()
    };
    let hello = hello("2024-11-05");
    assert_eq!(say(&principal("ada", "phone", &["mcp"], &[]), &hello).await, 404);
    assert_eq!(say(&editor, &hello).await, 202);
    assert!(part(stream.body_mut()).await.unwrap().contains("2024-11-05"));
    let params = json!({"name": "who", "arguments": {}});
    let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    assert_eq!(say(&principal("ada", "editor", &["files"], &["writer"]), &ask).await, 202);
    let said = part(stream.body_mut()).await.unwrap();
    assert!(said.contains(r#"oauth:corp:ada [\"files\"] [\"writer\"]"#), "{said}");
}

/// A principal whose token expires after this time.
fn expiring(seconds: u64) -> Principal {
    let mut token = token("ada", "editor", &["mcp"]);
    token.expires_at = SystemTime::now() + Duration::from_secs(seconds);
    Principal::from_token(token, &[], &[])
}

/// The rest of a stream, and how long it took to end.
async fn rest(response: http::Response<creole::internal::http::McpBody>) -> (String, Duration) {
    let (mut body, started) = (response.into_body(), tokio::time::Instant::now());
    let mut text = String::new();
    loop {
        let next =
            std::future::poll_fn(|task| http_body::Body::poll_frame(Pin::new(&mut body), task));
        match next.await {
            Some(frame) => {
                text.push_str(&String::from_utf8_lossy(&frame.unwrap().into_data().unwrap()))
            }
            None => return (text, started.elapsed()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_a_session_ends_a_minute_after_the_token_and_the_session_goes_on() {
    let endpoint = endpoint_on(&State::default());
    let session = open(&endpoint, &expiring(600)).await;
    let headers = [("accept", "text/event-stream"), ("mcp-session-id", &*session)];
    let listen = by(&expiring(30), request(Method::GET, &headers, ""));
    let (_, lasted) = rest(endpoint.handle(listen).await).await;
    assert!((85..=95).contains(&lasted.as_secs()), "{lasted:?}");
    assert!(told(&endpoint, &session, &expiring(600)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_subscription_ends_a_minute_after_the_token_with_its_result() {
    let endpoint = endpoint_on(&State::default());
    let listen =
        modern("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let (text, lasted) = rest(endpoint.handle(by(&expiring(30), listen)).await).await;
    assert!((85..=95).contains(&lasted.as_secs()), "{lasted:?}");
    let last = text.lines().filter_map(|line| line.strip_prefix("data: ")).next_back().unwrap();
    let last: Value = serde_json::from_str(last).unwrap();
    assert!(last["result"].is_object(), "{last}");
}

#[tokio::test(start_paused = true)]
async fn the_stream_of_2024_ends_a_minute_after_the_token() {
    let endpoint = endpoint_on(&State::default());
    let mut open = request(Method::GET, &[("accept", "text/event-stream")], "");
    *open.uri_mut() = "/sse".parse().unwrap();
    let (text, lasted) = rest(endpoint.handle(by(&expiring(30), open)).await).await;
    assert!(text.starts_with("event: endpoint"), "{text}");
    assert!((85..=95).contains(&lasted.as_secs()), "{lasted:?}");
}
