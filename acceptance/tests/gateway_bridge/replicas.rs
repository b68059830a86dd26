//! Tests of replicas on one file, Redis server or PostgreSQL server, with a client that returns to another replica.

use std::{fs, thread};

use creole_acceptance::gateway::{
    HandshakeClient, PendingRequest, PendingResponse, ReceivedMessage, ScriptedChildren,
    ScriptedHttpServer, ScriptedReplies, StatelessClient,
};
use creole_acceptance::http::{Connection, Events, ListeningServer, Request};
use creole_acceptance::replicas::{ReplicaStore, each_store};
use serde_json::{Value, json};

use crate::driving::modern;
use crate::{A_MOMENT, asking, form, named, only_key, text};

/// A gateway in front of these children, on this store.
fn gateway(store: &ReplicaStore, children: &ScriptedChildren) -> ListeningServer {
    before(store, &format!("command = {}", json!(children.command())))
}

/// A gateway in front of an upstream with this address.
fn before(store: &ReplicaStore, reached: &str) -> ListeningServer {
    let file = store.folder().join("gateway.toml");
    let configuration = format!(
        "[server]\nname = \"gateway\"\npage_size = 1\n\n{}\n[upstreams.behind]\nprefix = \"\"\n{reached}\n",
        store.table()
    );
    fs::write(&file, configuration).unwrap();
    ListeningServer::start(&[&file.display().to_string()]).unwrap()
}

fn client(gateway: &ListeningServer) -> StatelessClient {
    StatelessClient::new(gateway.address()).that_can(json!({"elicitation": {}}))
}

fn complete(text: &str) -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": text}]})
}

#[test]
fn an_upstream_without_state_is_called_again_through_another_replica() {
    each_store(|store| {
        let children = ScriptedChildren::new(modern());
        let (first, second) = (gateway(&store, &children), gateway(&store, &children));
        let mut call = client(&first).begin_call("ask", json!({"n": 1}));
        children.hears("tools/call").result(json!({
            "resultType": "input_required", "requestState": "its own",
            "inputRequests": {"who": {"method": "elicitation/create", "params": form("Who?")}},
        }));
        let request = call.answer()["result"].clone();
        drop(first);
        let responses = json!({only_key(&request): named("Ann")});
        let state = &request["requestState"];
        let mut retry = client(&second).begin_again("ask", json!({"n": 1}), state, responses);
        let received = children.hears("tools/call");
        assert_eq!(received.message["params"]["requestState"], "its own");
        assert_eq!(received.message["params"]["inputResponses"], json!({"who": named("Ann")}));
        received.result(complete("Hello, Ann!"));
        assert_eq!(text(&retry.answer()), "Hello, Ann!");
    });
}

#[test]
fn a_list_continues_in_another_replica() {
    each_store(|store| {
        let show = ScriptedReplies::new("2025-06-18", json!({"tools": {}}), &["one", "two"]);
        let children = ScriptedChildren::new(show);
        let (first, second) = (gateway(&store, &children), gateway(&store, &children));
        let page = client(&first).request("tools/list", json!({}))["result"].clone();
        assert_eq!(page["tools"][0]["name"], "one", "{page}");
        let rest = client(&second).request("tools/list", json!({"cursor": page["nextCursor"]}));
        assert_eq!(rest["result"]["tools"][0]["name"], "two", "{rest}");
    });
}

/// A parked call, and the result with the input request.
fn left_at(gateway: &ListeningServer, children: &ScriptedChildren) -> (ReceivedMessage, Value) {
    let mut call = client(gateway).begin_call("ask", json!({}));
    let received = children.hears("tools/call");
    received.by.asks(json!(1), "elicitation/create", form("Who?"));
    (received, call.answer()["result"].clone())
}

/// Asserts that the caller gets the fault of a lost call from a replica that does not have it.
#[track_caller]
fn is_lost_at(gateway: &ListeningServer, children: &ScriptedChildren, request: &Value) {
    let responses = json!({only_key(request): named("Ann")});
    let lost = client(gateway).again("ask", json!({}), &request["requestState"], responses);
    assert_eq!(lost["result"]["isError"], true, "{lost}");
    let message = lost["result"]["content"][0]["text"].as_str().unwrap();
    assert!(message.contains("Its effects are unknown"), "{message}");
    assert!(
        children.within(A_MOMENT).is_none(),
        "the call must not be repeated: it may have been executed"
    );
}

/// Retries the call with a response to the only input request.
fn back(gateway: &ListeningServer, request: &Value, name: &str) -> PendingResponse {
    let responses = json!({only_key(request): named(name)});
    let client = client(gateway).with_meta(json!({"progressToken": "p"}));
    client.begin_again("ask", json!({}), &request["requestState"], responses)
}

#[test]
fn a_parked_call_continues_through_other_replicas() {
    each_store(|store| {
        let children = ScriptedChildren::new(asking());
        let [first, second, third] = [(); 3].map(|()| gateway(&store, &children));
        let mut call =
            client(&first).with_meta(json!({"progressToken": "p"})).begin_call("ask", json!({}));
        let received = children.hears("tools/call");
        received.by.asks(json!(1), "elicitation/create", form("Who?"));
        let request = call.answer()["result"].clone();
        // The next input request arrives at the replica that got the first response.
        let mut retry = back(&second, &request, "Ann");
        assert_eq!(children.next().message["result"], named("Ann"));
        let token = &received.message["params"]["_meta"]["progressToken"];
        let progress = json!({"progressToken": token, "progress": 1, "message": "half"});
        received.by.tells("notifications/progress", &progress);
        received.by.asks(json!(2), "elicitation/create", form("Whose?"));
        let (meanwhile, next) = retry.all();
        assert_eq!(meanwhile[0]["params"]["progressToken"], "p", "{meanwhile:?}");
        assert_eq!(meanwhile[0]["params"]["message"], "half", "{meanwhile:?}");
        let next = next["result"].clone();
        // A used request state is rejected by every replica.
        let mut late = back(&third, &request, "Bob");
        assert_eq!(late.answer()["error"]["data"]["reason"], "state_consumed");
        let mut last = back(&third, &next, "Eve");
        assert_eq!(children.next().message["result"], named("Eve"));
        let long = "x".repeat(600_000);
        received.text(&long);
        assert_eq!(text(&last.answer()), long);
        // A caller that lost the response gets the same one again, from every replica.
        assert_eq!(text(&back(&second, &next, "Eve").answer()), long);
        assert_eq!(text(&back(&first, &next, "Eve").answer()), long);
        assert!(children.within(A_MOMENT).is_none(), "the upstream got the call once");
    });
}

#[test]
fn a_disconnect_in_one_replica_cancels_in_another() {
    each_store(|store| {
        let children = ScriptedChildren::new(asking());
        let (first, second) = (gateway(&store, &children), gateway(&store, &children));
        let (call, request) = left_at(&first, &children);
        let retry = back(&second, &request, "Ann");
        assert_eq!(children.next().message["result"], named("Ann"));
        retry.hang_up();
        let cancelled = children.hears("notifications/cancelled");
        assert_eq!(cancelled.message["params"]["requestId"], call.message["id"]);
    });
}

#[test]
fn errors_are_returned_through_another_replica() {
    each_store(|store| {
        let children = ScriptedChildren::new(asking());
        let (first, second) = (gateway(&store, &children), gateway(&store, &children));
        let told = |through: &ListeningServer| {
            let (call, request) = left_at(&first, &children);
            let mut retry = back(through, &request, "Ann");
            assert_eq!(children.next().message["result"], named("Ann"));
            call.error(-32000, "no such name", &json!({"name": "Ann"}));
            retry.answer()
        };
        let elsewhere = told(&second);
        assert!(elsewhere.to_string().contains("no such name"), "{elsewhere}");
        assert_eq!(elsewhere, told(&first), "the other replica returns the same");
    });
}

#[test]
fn a_process_that_was_started_again_does_not_call_again() {
    each_store(|store| {
        let children = ScriptedChildren::new(asking());
        let first = gateway(&store, &children);
        let (_, request) = left_at(&first, &children);
        drop(first);
        let again = gateway(&store, &children);
        is_lost_at(&again, &children, &request);
    });
}

#[test]
fn a_process_that_ended_in_peace_is_not_waited_for() {
    each_store(|store| {
        let children = ScriptedChildren::new(asking());
        let (mut first, second) = (gateway(&store, &children), gateway(&store, &children));
        let (_, request) = left_at(&first, &children);
        first.stop().unwrap();
        while children.within(A_MOMENT).is_some() {}
        is_lost_at(&second, &children, &request);
    });
}

#[test]
fn an_idempotent_call_is_repeated_when_its_replica_was_killed() {
    each_store(|store| {
        let tool = json!({
            "name": "ask", "inputSchema": {"type": "object"}, "annotations": {"idempotentHint": true},
        });
        let resource = json!({"uri": "file:///a", "name": "a"});
        let show = ScriptedReplies::new("2025-06-18", json!({"tools": {}, "resources": {}}), &[])
            .answering("tools/list", json!({"tools": [tool]}))
            .answering("resources/list", json!({"resources": [resource]}));
        let children = ScriptedChildren::new(show);
        let retried =
            format!("command = {}\nchain = [{{ kind = \"retry\" }}]", json!(children.command()));
        let (first, second) = (before(&store, &retried), before(&store, &retried));
        // The tool declares `idempotentHint`, and the layer `retry` trusts it.
        let (_, asked_by_tool) = left_at(&first, &children);
        let read = |gateway: &ListeningServer, request: &Value, name: &str| {
            let responses = json!({only_key(request): named(name)});
            let state = &request["requestState"];
            let params =
                json!({"uri": "file:///a", "inputResponses": responses, "requestState": state});
            client(gateway).begin(&json!(2), "resources/read", params)
        };
        let mut call =
            client(&first).begin(&json!(1), "resources/read", json!({"uri": "file:///a"}));
        let received = children.hears("resources/read");
        received.by.asks(json!(1), "elicitation/create", form("Who?"));
        let request = call.answer()["result"].clone();
        let mut more = read(&first, &request, "Ann");
        assert_eq!(children.next().message["result"], named("Ann"));
        received.by.asks(json!(2), "elicitation/create", form("Whose?"));
        let request = more.answer()["result"].clone();
        drop(first);
        // The call is repeated, and the gateway sends the caller's earlier input responses.
        let mut retry = read(&second, &request, "Bob");
        let received = children.hears("resources/read");
        received.by.asks(json!(7), "elicitation/create", form("Who?"));
        assert_eq!(children.next().message["result"], named("Ann"));
        received.by.asks(json!(8), "elicitation/create", form("Whose?"));
        assert_eq!(children.next().message["result"], named("Bob"));
        // New input requests go to the caller.
        received.by.asks(json!(9), "elicitation/create", form("Why?"));
        let request = retry.answer()["result"].clone();
        let mut last = read(&second, &request, "Eve");
        assert_eq!(children.next().message["result"], named("Eve"));
        received.result(json!({"contents": [{"uri": "file:///a", "text": "all"}]}));
        assert_eq!(last.answer()["result"]["contents"][0]["text"], "all");
        let mut retry = back(&second, &asked_by_tool, "Ann");
        let received = children.hears("tools/call");
        received.by.asks(json!(7), "elicitation/create", form("Who?"));
        assert_eq!(children.next().message["result"], named("Ann"));
        received.text("Hello, Ann!");
        assert_eq!(text(&retry.answer()), "Hello, Ann!");
    });
}

/// The next POST, or GET that resumes a stream. The site has no stream for messages outside of calls.
#[track_caller]
fn visited(site: &ScriptedHttpServer) -> PendingRequest {
    loop {
        let mut request = site.next();
        if !is_refused_stream(&mut request) {
            return request;
        }
    }
}

/// Whether a request asks for the stream of messages outside of calls. It is refused.
fn is_refused_stream(request: &mut PendingRequest) -> bool {
    let is_stream = request.method == "GET" && request.field("last-event-id").is_none();
    if is_stream {
        request.respond("405 Method Not Allowed", "", "");
    }
    is_stream
}

fn input_request(id: &str, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": form(message)})
}

#[test]
fn another_process_takes_a_call_over_after_its_last_event() {
    each_store(|store| {
        let site = ScriptedHttpServer::with_streams(asking());
        let reached = format!("url = \"{}\"", site.url());
        let (first, second) = (before(&store, &reached), before(&store, &reached));
        let mut call = client(&first).begin_call("ask", json!({}));
        let mut received = visited(&site);
        assert_eq!(received.message["method"], "tools/call", "{}", received.message);
        received.stream();
        received.event_with_id("e1", &input_request("who", "Who?"));
        let request = call.answer()["result"].clone();
        drop(first);
        let mut retry = back(&second, &request, "Ann");
        // The response is sent in the session of the replica that is gone, and its stream is resumed after the last event
        // that this replica received.
        let session = received.field("mcp-session-id").unwrap().to_owned();
        let (mut sent, mut stream) = (visited(&site), visited(&site));
        if sent.method == "GET" {
            std::mem::swap(&mut sent, &mut stream);
        }
        assert_eq!(sent.message["id"], "who", "{}", sent.message);
        assert_eq!(sent.message["result"], named("Ann"));
        sent.respond("202 Accepted", "", "");
        assert_eq!(stream.field("last-event-id"), Some("e1"));
        for visit in [&sent, &stream] {
            assert_eq!(visit.field("mcp-session-id"), Some(&*session));
            assert_eq!(visit.field("mcp-protocol-version"), Some("2025-06-18"));
        }
        // The upstream may send further input requests, and the call ends at the replica that took it over.
        stream.stream();
        stream.event_with_id("e2", &input_request("whose", "Whose?"));
        let request = retry.answer()["result"].clone();
        let mut last = back(&second, &request, "Eve");
        let mut sent = visited(&site);
        assert_eq!(sent.message["id"], "whose", "{}", sent.message);
        sent.respond("202 Accepted", "", "");
        let result = json!({"content": [{"type": "text", "text": "Hello, both!"}]});
        let id = &received.message["id"];
        stream.event_with_id("e3", &json!({"jsonrpc": "2.0", "id": id, "result": result}));
        assert_eq!(text(&last.answer()), "Hello, both!");
        // The call was not repeated, and the session is not deleted.
        let rest =
            std::iter::from_fn(|| site.within(A_MOMENT)).find(|visit| visit.method == "POST");
        assert!(rest.is_none(), "{}", rest.unwrap().message);
    });
}

#[test]
fn a_process_that_stops_leaves_its_parked_calls_to_another() {
    each_store(|store| {
        let site = ScriptedHttpServer::with_sessions(asking());
        let reached = format!("url = \"{}\"", site.url());
        let (mut first, second) = (before(&store, &reached), before(&store, &reached));
        let mut call = client(&first).begin_call("ask", json!({}));
        let mut received = visited(&site);
        received.stream();
        received.event_with_id("e1", &input_request("who", "Who?"));
        let request = call.answer()["result"].clone();
        let session = received.field("mcp-session-id").unwrap().to_owned();
        // The process ends its own sessions, but not that of the call.
        let ended = thread::spawn(move || first.stop());
        while !ended.is_finished() {
            let Some(mut visit) = site.within(A_MOMENT) else { continue };
            if is_refused_stream(&mut visit) {
                continue;
            }
            assert_eq!(visit.method, "DELETE", "{}", visit.message);
            assert_ne!(visit.field("mcp-session-id"), Some(&*session));
            visit.respond("200 OK", "", "");
        }
        ended.join().unwrap().unwrap();
        let mut retry = back(&second, &request, "Ann");
        let (mut sent, mut stream) = (visited(&site), visited(&site));
        if sent.method == "GET" {
            std::mem::swap(&mut sent, &mut stream);
        }
        assert_eq!(sent.message["result"], named("Ann"));
        sent.respond("202 Accepted", "", "");
        assert_eq!(stream.field("last-event-id"), Some("e1"));
        stream.stream();
        let result = json!({"content": [{"type": "text", "text": "Hello, Ann!"}]});
        let id = &received.message["id"];
        stream.event_with_id("e2", &json!({"jsonrpc": "2.0", "id": id, "result": result}));
        assert_eq!(text(&retry.answer()), "Hello, Ann!");
    });
}

#[test]
fn a_stalled_replica_leaves_its_call_to_the_one_that_took_it_over() {
    each_store(|store| {
        let site = ScriptedHttpServer::with_sessions(asking());
        let reached = format!("url = \"{}\"", site.url());
        let (mut first, second) = (before(&store, &reached), before(&store, &reached));
        let mut call = client(&first).begin_call("ask", json!({}));
        let mut received = visited(&site);
        received.stream();
        received.event_with_id("e1", &input_request("who", "Who?"));
        let request = call.answer()["result"].clone();
        first.signal("STOP");
        let mut retry = back(&second, &request, "Ann");
        let session = received.field("mcp-session-id").unwrap().to_owned();
        let (mut sent, mut stream) = (visited(&site), visited(&site));
        if sent.method == "GET" {
            std::mem::swap(&mut sent, &mut stream);
        }
        assert_eq!(sent.message["result"], named("Ann"));
        sent.respond("202 Accepted", "", "");
        stream.stream();
        first.signal("CONT");
        first.until_said("another replica took over a parked call");
        // At its shutdown, too, it sends nothing about the call and does not delete its session.
        let ended = thread::spawn(move || first.stop());
        let mut ends = Vec::new();
        while !ended.is_finished() {
            let Some(mut visit) = site.within(A_MOMENT) else { continue };
            if is_refused_stream(&mut visit) {
                continue;
            }
            assert_eq!(visit.method, "DELETE", "{}", visit.message);
            ends.extend(visit.field("mcp-session-id").map(str::to_owned));
            visit.respond("200 OK", "", "");
        }
        ended.join().unwrap().unwrap();
        assert!(!ends.contains(&session), "{ends:?} {session}");
        let result = json!({"content": [{"type": "text", "text": "Hello, Ann!"}]});
        let id = &received.message["id"];
        stream.event_with_id("e2", &json!({"jsonrpc": "2.0", "id": id, "result": result}));
        assert_eq!(text(&retry.answer()), "Hello, Ann!");
    });
}

#[test]
fn a_lost_stream_is_resumed_at_another_replica() {
    each_store(|store| {
        let children = ScriptedChildren::new(asking());
        let (first, second) = (gateway(&store, &children), gateway(&store, &children));
        let client = HandshakeClient::open(first.address(), "2025-06-18", json!({}), None);
        let params = json!({"name": "ask", "arguments": {}, "_meta": {"progressToken": "p"}});
        let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
        let within = |request: Request| {
            request
                .with("Mcp-Session-Id", client.session())
                .with("MCP-Protocol-Version", "2025-06-18")
        };
        let mut connection = Connection::open(first.address()).unwrap();
        let request = within(Request::post(call.to_string()));
        connection.write(&request.bytes(first.address())).unwrap();
        let received = children.hears("tools/call");
        let token = &received.message["params"]["_meta"]["progressToken"];
        let tell = |progress: u64| {
            let params = json!({"progressToken": token, "progress": progress});
            received.by.tells("notifications/progress", &params);
        };
        tell(1);
        let head = connection.head().unwrap();
        let mut events = Events::new(connection.body(&head)).filter(|event| !event.data.is_empty());
        let last = events.next().unwrap().id.unwrap();
        drop(events);
        drop(connection);
        tell(2);
        let mut connection = Connection::open(second.address()).unwrap();
        let request = Request::get(client.session()).with("MCP-Protocol-Version", "2025-06-18");
        let request = request.with("Last-Event-ID", &last);
        connection.write(&request.bytes(second.address())).unwrap();
        let head = connection.head().unwrap();
        assert_eq!(head.status, 200);
        let events = Events::new(connection.body(&head)).filter(|event| !event.data.is_empty());
        let mut messages = events.map(|event| serde_json::from_str::<Value>(&event.data).unwrap());
        assert_eq!(messages.next().unwrap()["params"]["progress"], 2);
        received.text("done");
        let response = messages.next().unwrap();
        assert_eq!((&response["id"], text(&response)), (&json!(7), "done"));
        assert!(messages.next().is_none(), "the stream ends with the response");
    });
}

#[test]
fn a_message_for_a_2024_stream_may_arrive_at_any_replica() {
    each_store(|store| {
        let children = ScriptedChildren::new(asking());
        let (first, second) = (gateway(&store, &children), gateway(&store, &children));
        let mut connection = Connection::open(first.address()).unwrap();
        let request = Request::new("GET", "/sse").with("Accept", "text/event-stream");
        connection.write(&request.bytes(first.address())).unwrap();
        let head = connection.head().unwrap();
        let mut events = Events::new(connection.body(&head)).filter(|event| !event.data.is_empty());
        let address = events.next().unwrap().data;
        let say = |gateway: &ListeningServer, message: Value| {
            let post = Request::to("POST", &address, message.to_string())
                .with("Content-Type", "application/json");
            post.send(gateway.address()).unwrap().head.status
        };
        let client = json!({"name": "old", "version": "1"});
        let hello =
            json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": client});
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello});
        assert_eq!(say(&second, hello), 202);
        assert!(events.next().unwrap().data.contains("2024-11-05"));
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(say(&first, initialized), 202);
        let call =
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ask"}});
        assert_eq!(say(&second, call.clone()), 202);
        children.hears("tools/call").text("through another");
        assert!(events.next().unwrap().data.contains("through another"));
        // Closing the stream cancels the call, whichever replica received it.
        assert_eq!(say(&second, call.clone()), 202);
        children.hears("tools/call");
        drop(events);
        drop(connection);
        children.hears("notifications/cancelled");
        assert_eq!(say(&second, call), 404);
    });
}
