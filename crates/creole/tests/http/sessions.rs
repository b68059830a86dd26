//! Tests of sessions of the handshake era: their owner, their state and their end.

use std::sync::atomic::Ordering;
use std::time::Duration;

use creole::auth::Principal;
use creole::internal::replicas::Replicas;
use creole::proto::operation::{Operation, Outcome};
use creole::serve::http::{EndpointSettings, McpEndpoint, PeerAddress};
use creole::state::State;
use creole::{BoxFuture, Call, Middleware, Next, Resource, Server};
use creole_test_wait::delay;
use http::{Method, Request};
use serde_json::json;
use tokio::sync::mpsc;

use crate::client::{
    ToolWatch, Whole, call, document, endpoint, endpoint_on, in_session, open, part, post, request,
    service, text,
};

fn resume(session: &str, last: &str) -> Request<Whole> {
    let headers =
        [("accept", "text/event-stream"), ("mcp-session-id", session), ("last-event-id", last)];
    request(Method::GET, &headers, "")
}

fn listen(session: &str) -> Request<Whole> {
    let headers = [("accept", "text/event-stream"), ("mcp-session-id", session)];
    request(Method::GET, &headers, "")
}

fn delete(session: &str) -> Request<Whole> {
    request(Method::DELETE, &[("mcp-session-id", session)], "")
}

#[tokio::test]
async fn a_session_exists_until_it_is_deleted() {
    let (endpoint, _) = endpoint();
    let session = open(&endpoint).await;
    assert!(session.len() >= 22 && session.bytes().all(|byte| byte.is_ascii_graphic()));
    let response = document(endpoint.handle(call(&session, 1, "echo")).await).await;
    assert_eq!(response["id"], 1);
    assert_eq!(endpoint.handle(delete(&session)).await.status(), 204);
    assert_eq!(endpoint.handle(call(&session, 2, "echo")).await.status(), 404);
    assert_eq!(endpoint.handle(delete(&session)).await.status(), 404);
}

#[tokio::test]
async fn a_call_continues_without_its_client_and_its_response_can_be_fetched() {
    let (endpoint, watch) = endpoint();
    let session = open(&endpoint).await;
    let mut response = endpoint.handle(call(&session, 1, "tell")).await;
    let opening = part(response.body_mut()).await.unwrap();
    let mut ids = opening.lines().filter_map(|line| line.strip_prefix("id: "));
    let (primed, first) = (ids.next().unwrap().to_owned(), ids.next().unwrap().to_owned());
    assert!(opening.contains(r#""progress":1"#), "{opening}");
    drop(response);
    watch.go_on.notify_one();
    let rest = text(endpoint.handle(resume(&session, &first)).await).await;
    assert!(!rest.contains(r#""progress":1"#), "{rest}");
    assert!(rest.contains(r#""progress":2"#) && rest.contains("told"), "{rest}");
    let again = text(endpoint.handle(resume(&session, &primed)).await).await;
    assert!(again.contains(r#""progress":1"#) && again.contains("told"), "{again}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_an_idle_session_is_forgotten_in_time() {
    let (endpoint, watch) = endpoint();
    let session = open(&endpoint).await;
    let mut response = endpoint.handle(call(&session, 1, "tell")).await;
    let opening = part(response.body_mut()).await.unwrap();
    let primed = opening.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
    watch.go_on.notify_one();
    drop(text(response).await);
    delay(Duration::from_secs(50)).await;
    let again = text(endpoint.handle(resume(&session, &primed)).await).await;
    assert!(again.contains("told"), "{again}");
    // The session is idle meanwhile.
    delay(Duration::from_secs(25)).await;
    let mut gone = endpoint.handle(resume(&session, &primed)).await;
    let first = part(gone.body_mut()).await.unwrap();
    assert!(!first.contains("told") && !first.contains("progress"), "{first}");
}

#[tokio::test]
async fn a_cancelled_call_ends_its_stream_without_an_answer() {
    let (endpoint, watch) = endpoint();
    let session = open(&endpoint).await;
    let mut response = endpoint.handle(call(&session, 5, "tell")).await;
    part(response.body_mut()).await.unwrap();
    let params = json!({"requestId": 5, "reason": "enough"});
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    assert_eq!(endpoint.handle(in_session(&session, &cancel)).await.status(), 202);
    assert_eq!(part(response.body_mut()).await, None);
    assert_eq!(watch.finished.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn two_requests_with_one_id_get_their_own_answers() {
    let (endpoint, watch) = endpoint();
    let session = open(&endpoint).await;
    let (first, second) = (endpoint.clone(), endpoint.clone());
    let waiting = call(&session, 1, "wait");
    let waiting = tokio::spawn(async move { text(first.handle(waiting).await).await });
    watch.started.notified().await;
    let quick = document(second.handle(call(&session, 1, "echo")).await).await;
    assert_eq!(quick["result"]["content"][0]["text"], "");
    watch.go_on.notify_one();
    assert!(waiting.await.unwrap().contains("went on"));
}

#[tokio::test]
async fn changes_reach_the_stream_that_belongs_to_no_request_and_only_the_newest_reader() {
    let watch = ToolWatch::default();
    let service = service(&watch);
    let endpoint = McpEndpoint::new(service.clone(), EndpointSettings::default());
    let session = open(&endpoint).await;
    let mut old = endpoint.handle(listen(&session)).await;
    part(old.body_mut()).await.unwrap();
    let mut new = endpoint.handle(listen(&session)).await;
    assert_eq!(part(old.body_mut()).await, None);
    part(new.body_mut()).await.unwrap();
    service.registry().remove_tool("wait");
    let changed = part(new.body_mut()).await.unwrap();
    assert!(changed.contains("notifications/tools/list_changed"), "{changed}");
    endpoint.drain();
    assert_eq!(text(new).await, "retry: 500\n\n");
}

#[tokio::test]
async fn a_session_continues_in_another_process_that_shares_the_state() {
    let state = State::default();
    let (first, second) = (endpoint_on(&state), endpoint_on(&state));
    let session = open(&first).await;
    let level = json!({"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": {"level": "error"}});
    assert_eq!(second.handle(in_session(&session, &level)).await.status(), 200);
    assert_eq!(document(second.handle(call(&session, 2, "echo")).await).await["id"], 2);
    assert_eq!(first.handle(delete(&session)).await.status(), 204);
    let elsewhere = endpoint_on(&state);
    assert_eq!(elsewhere.handle(call(&session, 3, "echo")).await.status(), 404);
}

/// Reports the resources with subscriptions.
struct WatchLayer(mpsc::UnboundedSender<String>);

impl Middleware for WatchLayer {
    fn handle<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        if let Operation::Subscribe { uri } = &call.operation {
            self.0.send(uri.clone()).unwrap();
        }
        next.call(call)
    }
}

fn watching_on(state: &State) -> (McpEndpoint, mpsc::UnboundedReceiver<String>) {
    let (told, watched) = mpsc::unbounded_channel();
    let open = Resource::text("test://open", "open", "text/plain", "open");
    let service = Server::new("test").resource(open).with(WatchLayer(told)).start();
    let mut settings = EndpointSettings::default();
    settings.state = state.clone();
    (McpEndpoint::new(service, settings), watched)
}

#[tokio::test]
async fn a_session_that_goes_on_elsewhere_has_its_resources_watched_there() {
    let state = State::default();
    let (first, mut watched_here) = watching_on(&state);
    let session = open(&first).await;
    let params = json!({"uri": "test://open"});
    let subscribe =
        json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": params});
    assert_eq!(first.handle(in_session(&session, &subscribe)).await.status(), 200);
    assert_eq!(watched_here.recv().await.as_deref(), Some("test://open"));
    let (second, mut watched_there) = watching_on(&state);
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    assert_eq!(second.handle(in_session(&session, &ping)).await.status(), 200);
    assert_eq!(watched_there.recv().await.as_deref(), Some("test://open"));
    assert!(watched_here.try_recv().is_err() && watched_there.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn sessions_are_bounded_and_the_unused_ones_make_room() {
    let endpoint = endpoint_for(2, &State::default());
    let (first, _second) = (open(&endpoint).await, open(&endpoint).await);
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let full = endpoint.handle(post(&[], &hello)).await;
    assert_eq!(full.status(), 503);
    assert!(full.headers().contains_key("retry-after"));
    delay(Duration::from_secs(31 * 60)).await;
    assert_eq!(endpoint.handle(post(&[], &hello)).await.status(), 200);
    assert_eq!(endpoint.handle(call(&first, 1, "echo")).await.status(), 404);
}

fn hello() -> serde_json::Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
}

/// The request with this principal and this source address.
fn by(mut request: Request<Whole>, who: Option<&str>, from: [u8; 4]) -> Request<Whole> {
    if let Some(who) = who {
        request.extensions_mut().insert(named(who));
    }
    request.extensions_mut().insert(PeerAddress((from, 1).into()));
    request
}

/// Opens a session for a principal. Returns its id, or the status of the error.
async fn opened(endpoint: &McpEndpoint, who: Option<&str>, from: [u8; 4]) -> Result<String, u16> {
    let response = endpoint.handle(by(post(&[], &hello()), who, from)).await;
    let id = response.headers().get("mcp-session-id").ok_or(response.status().as_u16())?;
    Ok(id.to_str().unwrap().to_owned())
}

/// The status of a ping in a session.
async fn pinged(endpoint: &McpEndpoint, session: &str, who: Option<&str>) -> u16 {
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let request = by(in_session(session, &ping), who, HERE);
    endpoint.handle(request).await.status().as_u16()
}

const HERE: [u8; 4] = [192, 0, 2, 1];
const THERE: [u8; 4] = [192, 0, 2, 2];
const ANN: Option<&str> = Some("ann");
const BOB: Option<&str> = Some("bob");

/// An endpoint on this state, with room for so many sessions.
fn endpoint_for(max: usize, state: &State) -> McpEndpoint {
    let mut settings = EndpointSettings::default();
    settings.max_sessions = max;
    settings.state = state.clone();
    McpEndpoint::new(service(&ToolWatch::default()), settings)
}

#[tokio::test]
async fn a_principal_that_opens_all_sessions_blocks_no_other_and_loses_unused_ones_first() {
    let endpoint = endpoint_for(4, &State::default());
    let mut anns = Vec::new();
    for _ in 0..4 {
        anns.push(opened(&endpoint, ANN, HERE).await.unwrap());
    }
    assert_eq!(pinged(&endpoint, &anns[0], ANN).await, 200);
    assert_eq!(
        opened(&endpoint, ANN, HERE).await,
        Err(503),
        "she has the maximum number of sessions"
    );
    let bobs = opened(&endpoint, BOB, HERE).await.unwrap();
    assert_eq!(
        pinged(&endpoint, &anns[1], ANN).await,
        404,
        "the oldest unused session was evicted"
    );
    for session in [&anns[0], &anns[2], &anns[3]] {
        assert_eq!(pinged(&endpoint, session, ANN).await, 200);
    }
    assert_eq!(pinged(&endpoint, &bobs, BOB).await, 200);
}

#[tokio::test(start_paused = true)]
async fn a_principal_that_uses_all_sessions_blocks_no_other_until_they_have_as_many() {
    let endpoint = endpoint_for(4, &State::default());
    let mut anns = Vec::new();
    for _ in 0..4 {
        anns.push(opened(&endpoint, ANN, HERE).await.unwrap());
    }
    for index in [2, 0, 3, 1] {
        assert_eq!(pinged(&endpoint, &anns[index], ANN).await, 200);
        delay(Duration::from_secs(1)).await;
    }
    for lost in [2, 0] {
        let bobs = opened(&endpoint, BOB, HERE).await.unwrap();
        assert_eq!(pinged(&endpoint, &bobs, BOB).await, 200);
        assert_eq!(
            pinged(&endpoint, &anns[lost], ANN).await,
            404,
            "the least recently used session was evicted"
        );
    }
    assert_eq!(opened(&endpoint, BOB, HERE).await, Err(503), "both have two");
    assert_eq!(opened(&endpoint, ANN, HERE).await, Err(503), "both have two");
}

#[tokio::test]
async fn without_principals_each_address_has_its_share() {
    let endpoint = endpoint_for(4, &State::default());
    for _ in 0..4 {
        opened(&endpoint, None, HERE).await.unwrap();
    }
    assert_eq!(opened(&endpoint, None, HERE).await, Err(503));
    opened(&endpoint, None, THERE).await.unwrap();
    opened(&endpoint, None, THERE).await.unwrap();
    assert_eq!(opened(&endpoint, None, THERE).await, Err(503));
}

#[tokio::test(start_paused = true)]
async fn sessions_that_were_not_used_for_long_after_their_opening_make_room_for_anybody() {
    let endpoint = endpoint_for(2, &State::default());
    let first = opened(&endpoint, ANN, HERE).await.unwrap();
    let second = opened(&endpoint, BOB, HERE).await.unwrap();
    assert_eq!(opened(&endpoint, Some("eve"), HERE).await, Err(503));
    delay(Duration::from_secs(121)).await;
    assert_eq!(pinged(&endpoint, &second, BOB).await, 200);
    opened(&endpoint, Some("eve"), HERE).await.unwrap();
    assert_eq!(pinged(&endpoint, &first, ANN).await, 404);
    assert_eq!(pinged(&endpoint, &second, BOB).await, 200);
}

#[tokio::test]
async fn a_flood_of_sessions_leaves_no_records() {
    let state = State::default();
    let endpoint = endpoint_for(2, &state);
    let first = opened(&endpoint, ANN, HERE).await.unwrap();
    opened(&endpoint, ANN, HERE).await.unwrap();
    opened(&endpoint, BOB, HERE).await.unwrap();
    assert_eq!(pinged(&endpoint, &first, ANN).await, 404, "an evicted session cannot be used");
    assert!(state.get(&format!("session/{first}")).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_session_is_not_extended_by_other_principals() {
    let endpoint = endpoint_for(10, &State::default());
    let anns = opened(&endpoint, ANN, HERE).await.unwrap();
    for _ in 0..4 {
        delay(Duration::from_secs(8 * 60)).await;
        assert_eq!(pinged(&endpoint, &anns, BOB).await, 404);
    }
    assert_eq!(pinged(&endpoint, &anns, ANN).await, 404, "it was unused for 32 minutes");
}

#[tokio::test]
async fn resumed_sessions_count_like_others() {
    let state = State::default();
    let before = endpoint_on(&state);
    let mut anns = Vec::new();
    for _ in 0..3 {
        anns.push(opened(&before, ANN, HERE).await.unwrap());
    }
    let after = endpoint_for(2, &state);
    assert_eq!(pinged(&after, &anns[0], ANN).await, 200);
    assert_eq!(pinged(&after, &anns[1], ANN).await, 200);
    assert_eq!(pinged(&after, &anns[2], ANN).await, 503);
    assert_eq!(pinged(&after, &anns[1], ANN).await, 200);
}

#[tokio::test]
async fn answers_to_nothing_and_messages_without_a_session_are_refused() {
    let (endpoint, _) = endpoint();
    let session = open(&endpoint).await;
    let response = json!({"jsonrpc": "2.0", "id": "creole-1", "result": {}});
    assert_eq!(endpoint.handle(in_session(&session, &response)).await.status(), 400);
    assert_eq!(endpoint.handle(post(&[], &response)).await.status(), 400);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    assert_eq!(endpoint.handle(post(&[], &list)).await.status(), 400);
    let version = [("mcp-session-id", &*session), ("mcp-protocol-version", "1900-01-01")];
    assert_eq!(endpoint.handle(post(&version, &list)).await.status(), 400);
}

/// An endpoint of a replica on this state.
fn one_of_several(state: &State, watch: &ToolWatch) -> McpEndpoint {
    let peers = Replicas::new(state.clone());
    let mut settings = EndpointSettings::default();
    settings.state = state.clone();
    settings.replicas = peers;
    McpEndpoint::new(service(watch), settings)
}

fn named(who: &str) -> Principal {
    who.into()
}

/// Sends a message with the transport of 2024-11-05 as this principal.
async fn say(endpoint: &McpEndpoint, address: &str, who: &str, message: &serde_json::Value) -> u16 {
    let mut request = post(&[], message);
    *request.uri_mut() = address.parse().unwrap();
    request.extensions_mut().insert(named(who));
    endpoint.handle(request).await.status().as_u16()
}

#[tokio::test]
async fn messages_of_the_transport_of_2024_reach_the_process_that_has_the_stream() {
    let (state, watch) = (State::default(), ToolWatch::default());
    let (first, second) = (one_of_several(&state, &watch), one_of_several(&state, &watch));
    let mut received = request(Method::GET, &[("accept", "text/event-stream")], "");
    *received.uri_mut() = "/sse".parse().unwrap();
    received.extensions_mut().insert(named("ann"));
    let mut stream = first.handle(received).await;
    let message = part(stream.body_mut()).await.unwrap();
    let address = message.strip_prefix("event: endpoint\ndata: ").unwrap().trim().to_owned();
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    assert_eq!(
        say(&second, &address, "bob", &hello).await,
        404,
        "the session belongs to another principal"
    );
    assert_eq!(say(&second, &address, "ann", &hello).await, 202);
    assert!(part(stream.body_mut()).await.unwrap().contains("2024-11-05"));
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(say(&first, &address, "ann", &initialized).await, 202);
    let wait =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "wait"}});
    assert_eq!(say(&second, &address, "ann", &wait).await, 202);
    watch.started.notified().await;
    let long = "x".repeat(2 * 1024 * 1024);
    let long = json!({"jsonrpc": "2.0", "id": 2, "method": "ping", "params": {"x": long}});
    assert_eq!(
        say(&second, &address, "ann", &long).await,
        413,
        "the value is too long for the state"
    );
    // Closing the stream cancels the calls, whichever replica received them.
    drop(stream);
    watch.dropped.notified().await;
    assert_eq!(say(&second, &address, "ann", &wait).await, 404);
}

#[tokio::test]
async fn a_stream_continues_through_a_process_that_does_not_own_it() {
    let (state, watch) = (State::default(), ToolWatch::default());
    let (first, second) =
        (one_of_several(&state, &watch), one_of_several(&state, &ToolWatch::default()));
    let session = open(&first).await;
    let mut response = first.handle(call(&session, 1, "tell")).await;
    let opening = part(response.body_mut()).await.unwrap();
    let ids: Vec<&str> = opening.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
    drop(response);
    // This replica has a stream of that number too, of another call.
    let other = second.handle(call(&session, 2, "tell")).await;
    let rest = second.handle(resume(&session, ids[1])).await;
    watch.go_on.notify_one();
    let rest = text(rest).await;
    assert!(!rest.contains(r#""progress":1"#), "{rest}");
    assert!(rest.contains(r#""progress":2"#) && rest.contains(r#""id":1"#), "{rest}");
    drop(other);
    // The stream is resumed from the beginning, even after its end.
    let again = text(second.handle(resume(&session, ids[0])).await).await;
    assert!(again.contains(r#""progress":1"#) && again.contains(r#""id":1"#), "{again}");
    // An unknown replica has no events, so the session's own stream is opened.
    let nobody = format!("1-0.{}", "0".repeat(32));
    let common = second.handle(resume(&session, &nobody)).await;
    second.drain();
    let common = text(common).await;
    assert!(!common.contains("progress") && common.contains("id: 0-0."), "{common}");
}

#[tokio::test(start_paused = true)]
async fn a_process_says_that_it_is_there_only_while_it_has_streams() {
    let (state, watch) = (State::default(), ToolWatch::default());
    let peers = Replicas::new(state.clone()).unwrap();
    let location = format!("peer/{}", peers.name());
    let mut settings = EndpointSettings::default();
    settings.state = state.clone();
    settings.replicas = Some(peers);
    let endpoint = McpEndpoint::new(service(&watch), settings);
    let session = open(&endpoint).await;
    assert_eq!(state.get(&location).await, Ok(None));
    let listening = endpoint.handle(listen(&session)).await;
    assert!(state.get(&location).await.unwrap().is_some());
    drop(listening);
    delay(Duration::from_secs(90)).await;
    assert_eq!(state.get(&location).await, Ok(None));
    let mut response = endpoint.handle(call(&session, 1, "tell")).await;
    part(response.body_mut()).await.unwrap();
    assert!(state.get(&location).await.unwrap().is_some());
    watch.go_on.notify_one();
    text(response).await;
    // The response may have been lost, so it is kept for a minute.
    delay(Duration::from_secs(30)).await;
    assert!(state.get(&location).await.unwrap().is_some());
    delay(Duration::from_secs(60)).await;
    assert_eq!(state.get(&location).await, Ok(None));
}

#[tokio::test]
async fn the_transport_of_2024_has_one_stream_for_everything() {
    let (endpoint, _) = endpoint();
    let mut received = request(Method::GET, &[("accept", "text/event-stream")], "");
    *received.uri_mut() = "/sse".parse().unwrap();
    let mut stream = endpoint.handle(received).await;
    let text = part(stream.body_mut()).await.unwrap();
    let address = text.strip_prefix("event: endpoint\ndata: ").unwrap().trim().to_owned();
    let say = |message: serde_json::Value| {
        let mut request = post(&[], &message);
        *request.uri_mut() = address.parse().unwrap();
        endpoint.handle(request)
    };
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    assert_eq!(say(hello).await.status(), 202);
    let response = part(stream.body_mut()).await.unwrap();
    assert!(response.starts_with("event: message\ndata: ") && response.contains("2024-11-05"));
    say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    say(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).await;
    assert!(part(stream.body_mut()).await.unwrap().contains("echo"));
    drop(stream);
    assert_eq!(say(json!({"jsonrpc": "2.0", "id": 2, "method": "ping"})).await.status(), 404);
}
