//! Tests of replicas on one state file, with a client that returns to another replica.

use std::path::Path;
use std::{fs, thread};

use creole_acceptance::gateway::{
    HandshakeClient, PendingRequest, PendingResponse, ReceivedMessage, ScriptedChildren,
    ScriptedHttpServer, ScriptedReplies, StatelessClient,
};
use creole_acceptance::http::{Connection, Events, ListeningServer, Request};
use serde_json::{Value, json};

use crate::driving::modern;
use crate::{A_MOMENT, asking, form, named, only_key, text};

/// A gateway in front of these children, with its state in this folder.
fn gateway(folder: &Path, puppets: &ScriptedChildren) -> ListeningServer {
    before(folder, &format!("command = {}", json!(puppets.command())))
}

/// A gateway in front of an upstream with this address.
fn before(folder: &Path, reached: &str) -> ListeningServer {
    let file = folder.join("gateway.toml");
    let configuration = format!(
        "[server]\nname = \"gateway\"\npage_size = 1\n\n[state]\nfile = \"state.sqlite\"\n\n\
         [upstreams.behind]\nprefix = \"\"\n{reached}\n"
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
    let (folder, puppets) = (tempfile::tempdir().unwrap(), ScriptedChildren::new(modern()));
    let (first, second) = (gateway(folder.path(), &puppets), gateway(folder.path(), &puppets));
    let mut call = client(&first).begin_call("ask", json!({"n": 1}));
    puppets.hears("tools/call").result(json!({
        "resultType": "input_required", "requestState": "its own",
        "inputRequests": {"who": {"method": "elicitation/create", "params": form("Who?")}},
    }));
    let asked = call.answer()["result"].clone();
    drop(first);
    let answers = json!({only_key(&asked): named("Ann")});
    let state = &asked["requestState"];
    let mut again = client(&second).begin_again("ask", json!({"n": 1}), state, answers);
    let called = puppets.hears("tools/call");
    assert_eq!(called.message["params"]["requestState"], "its own");
    assert_eq!(called.message["params"]["inputResponses"], json!({"who": named("Ann")}));
    called.result(complete("Hello, Ann!"));
    assert_eq!(text(&again.answer()), "Hello, Ann!");
}

#[test]
fn a_list_continues_in_another_replica() {
    let show = ScriptedReplies::new("2025-06-18", json!({"tools": {}}), &["one", "two"]);
    let (folder, puppets) = (tempfile::tempdir().unwrap(), ScriptedChildren::new(show));
    let (first, second) = (gateway(folder.path(), &puppets), gateway(folder.path(), &puppets));
    let page = client(&first).request("tools/list", json!({}))["result"].clone();
    assert_eq!(page["tools"][0]["name"], "one", "{page}");
    let rest = client(&second).request("tools/list", json!({"cursor": page["nextCursor"]}));
    assert_eq!(rest["result"]["tools"][0]["name"], "two", "{rest}");
}

/// A parked call, and the result with the input request.
fn left_at(gateway: &ListeningServer, puppets: &ScriptedChildren) -> (ReceivedMessage, Value) {
    let mut call = client(gateway).begin_call("ask", json!({}));
    let called = puppets.hears("tools/call");
    called.by.asks(json!(1), "elicitation/create", form("Who?"));
    (called, call.answer()["result"].clone())
}

/// Asserts that the caller gets the fault of a lost call from a replica that does not have it.
#[track_caller]
fn is_lost_at(gateway: &ListeningServer, puppets: &ScriptedChildren, asked: &Value) {
    let answers = json!({only_key(asked): named("Ann")});
    let lost = client(gateway).again("ask", json!({}), &asked["requestState"], answers);
    assert_eq!(lost["result"]["isError"], true, "{lost}");
    let told = lost["result"]["content"][0]["text"].as_str().unwrap();
    assert!(told.contains("Its effects are unknown"), "{told}");
    assert!(
        puppets.within(A_MOMENT).is_none(),
        "the call must not be repeated: it may have been executed"
    );
}

/// Retries the call with a response to the only input request.
fn back(gateway: &ListeningServer, asked: &Value, name: &str) -> PendingResponse {
    let answers = json!({only_key(asked): named(name)});
    let client = client(gateway).with_meta(json!({"progressToken": "p"}));
    client.begin_again("ask", json!({}), &asked["requestState"], answers)
}

#[test]
fn a_parked_call_continues_through_other_replicas() {
    let (folder, puppets) = (tempfile::tempdir().unwrap(), ScriptedChildren::new(asking()));
    let [first, second, third] = [(); 3].map(|()| gateway(folder.path(), &puppets));
    let mut call =
        client(&first).with_meta(json!({"progressToken": "p"})).begin_call("ask", json!({}));
    let called = puppets.hears("tools/call");
    called.by.asks(json!(1), "elicitation/create", form("Who?"));
    let asked = call.answer()["result"].clone();
    // The next input request arrives at the replica that got the first response.
    let mut again = back(&second, &asked, "Ann");
    assert_eq!(puppets.next().message["result"], named("Ann"));
    let token = &called.message["params"]["_meta"]["progressToken"];
    let progress = json!({"progressToken": token, "progress": 1, "message": "half"});
    called.by.tells("notifications/progress", &progress);
    called.by.asks(json!(2), "elicitation/create", form("Whose?"));
    let (meanwhile, next) = again.all();
    assert_eq!(meanwhile[0]["params"]["progressToken"], "p", "{meanwhile:?}");
    assert_eq!(meanwhile[0]["params"]["message"], "half", "{meanwhile:?}");
    let next = next["result"].clone();
    // A used request state is rejected by every replica.
    let mut late = back(&third, &asked, "Bob");
    assert_eq!(late.answer()["error"]["data"]["reason"], "state_consumed");
    let mut last = back(&third, &next, "Eve");
    assert_eq!(puppets.next().message["result"], named("Eve"));
    let long = "x".repeat(600_000);
    called.text(&long);
    assert_eq!(text(&last.answer()), long);
    // A caller that lost the response gets the same one again, from every replica.
    assert_eq!(text(&back(&second, &next, "Eve").answer()), long);
    assert_eq!(text(&back(&first, &next, "Eve").answer()), long);
    assert!(puppets.within(A_MOMENT).is_none(), "the upstream got the call once");
}

#[test]
fn a_disconnect_in_one_replica_cancels_in_another() {
    let (folder, puppets) = (tempfile::tempdir().unwrap(), ScriptedChildren::new(asking()));
    let (first, second) = (gateway(folder.path(), &puppets), gateway(folder.path(), &puppets));
    let (called, asked) = left_at(&first, &puppets);
    let again = back(&second, &asked, "Ann");
    assert_eq!(puppets.next().message["result"], named("Ann"));
    again.hang_up();
    let cancelled = puppets.hears("notifications/cancelled");
    assert_eq!(cancelled.message["params"]["requestId"], called.message["id"]);
}

#[test]
fn errors_are_returned_through_another_replica() {
    let (folder, puppets) = (tempfile::tempdir().unwrap(), ScriptedChildren::new(asking()));
    let (first, second) = (gateway(folder.path(), &puppets), gateway(folder.path(), &puppets));
    let told = |through: &ListeningServer| {
        let (called, asked) = left_at(&first, &puppets);
        let mut again = back(through, &asked, "Ann");
        assert_eq!(puppets.next().message["result"], named("Ann"));
        called.error(-32000, "no such name", &json!({"name": "Ann"}));
        again.answer()
    };
    let elsewhere = told(&second);
    assert!(elsewhere.to_string().contains("no such name"), "{elsewhere}");
    assert_eq!(elsewhere, told(&first), "the other replica returns the same");
}

#[test]
fn a_process_that_was_started_again_does_not_call_again() {
    let (folder, puppets) = (tempfile::tempdir().unwrap(), ScriptedChildren::new(asking()));
    let first = gateway(folder.path(), &puppets);
    let (_, asked) = left_at(&first, &puppets);
    drop(first);
    let again = gateway(folder.path(), &puppets);
    is_lost_at(&again, &puppets, &asked);
}

#[test]
fn a_process_that_ended_in_peace_is_not_waited_for() {
    let (folder, puppets) = (tempfile::tempdir().unwrap(), ScriptedChildren::new(asking()));
    let (mut first, second) = (gateway(folder.path(), &puppets), gateway(folder.path(), &puppets));
    let (_, asked) = left_at(&first, &puppets);
    first.stop().unwrap();
    while puppets.within(A_MOMENT).is_some() {}
    is_lost_at(&second, &puppets, &asked);
}

#[test]
fn an_idempotent_call_is_repeated_when_its_replica_was_killed() {
    let tool = json!({
        "name": "ask", "inputSchema": {"type": "object"}, "annotations": {"idempotentHint": true},
    });
    let resource = json!({"uri": "file:///a", "name": "a"});
    let show = ScriptedReplies::new("2025-06-18", json!({"tools": {}, "resources": {}}), &[])
        .answering("tools/list", json!({"tools": [tool]}))
        .answering("resources/list", json!({"resources": [resource]}));
    let (folder, puppets) = (tempfile::tempdir().unwrap(), ScriptedChildren::new(show));
    let retried =
        format!("command = {}\nchain = [{{ kind = \"retry\" }}]", json!(puppets.command()));
    let (first, second) = (before(folder.path(), &retried), before(folder.path(), &retried));
    // The tool declares `idempotentHint`, and the layer `retry` trusts it.
    let (_, asked_by_tool) = left_at(&first, &puppets);
    let read = |gateway: &ListeningServer, asked: &Value, name: &str| {
        let answers = json!({only_key(asked): named(name)});
        let state = &asked["requestState"];
        let params = json!({"uri": "file:///a", "inputResponses": answers, "requestState": state});
        client(gateway).begin(&json!(2), "resources/read", params)
    };
    let mut call = client(&first).begin(&json!(1), "resources/read", json!({"uri": "file:///a"}));
    let called = puppets.hears("resources/read");
    called.by.asks(json!(1), "elicitation/create", form("Who?"));
    let asked = call.answer()["result"].clone();
    let mut more = read(&first, &asked, "Ann");
    assert_eq!(puppets.next().message["result"], named("Ann"));
    called.by.asks(json!(2), "elicitation/create", form("Whose?"));
    let asked = more.answer()["result"].clone();
    drop(first);
    // The call is repeated, and the gateway sends the caller's earlier input responses.
    let mut again = read(&second, &asked, "Bob");
    let called = puppets.hears("resources/read");
    called.by.asks(json!(7), "elicitation/create", form("Who?"));
    assert_eq!(puppets.next().message["result"], named("Ann"));
    called.by.asks(json!(8), "elicitation/create", form("Whose?"));
    assert_eq!(puppets.next().message["result"], named("Bob"));
    // New input requests go to the caller.
    called.by.asks(json!(9), "elicitation/create", form("Why?"));
    let asked = again.answer()["result"].clone();
    let mut last = read(&second, &asked, "Eve");
    assert_eq!(puppets.next().message["result"], named("Eve"));
    called.result(json!({"contents": [{"uri": "file:///a", "text": "all"}]}));
    assert_eq!(last.answer()["result"]["contents"][0]["text"], "all");
    let mut again = back(&second, &asked_by_tool, "Ann");
    let called = puppets.hears("tools/call");
    called.by.asks(json!(7), "elicitation/create", form("Who?"));
    assert_eq!(puppets.next().message["result"], named("Ann"));
    called.text("Hello, Ann!");
    assert_eq!(text(&again.answer()), "Hello, Ann!");
}

/// The next POST, or GET that resumes a stream. The site has no stream for messages outside of calls.
#[track_caller]
fn visited(site: &ScriptedHttpServer) -> PendingRequest {
    loop {
        let mut visit = site.next();
        if visit.method == "POST" || visit.field("last-event-id").is_some() {
            return visit;
        }
        visit.respond("405 Method Not Allowed", "", "");
    }
}

fn question(id: &str, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": form(message)})
}

#[test]
fn another_process_takes_a_call_over_after_its_last_event() {
    let (folder, site) = (tempfile::tempdir().unwrap(), ScriptedHttpServer::with_streams(asking()));
    let reached = format!("url = \"{}\"", site.url());
    let (first, second) = (before(folder.path(), &reached), before(folder.path(), &reached));
    let mut call = client(&first).begin_call("ask", json!({}));
    let mut called = visited(&site);
    assert_eq!(called.message["method"], "tools/call", "{}", called.message);
    called.stream();
    called.event_with_id("e1", &question("who", "Who?"));
    let asked = call.answer()["result"].clone();
    drop(first);
    let mut again = back(&second, &asked, "Ann");
    // The response is sent in the session of the replica that is gone, and its stream is resumed after the last event
    // that this replica received.
    let session = called.field("mcp-session-id").unwrap().to_owned();
    let (mut answered, mut stream) = (visited(&site), visited(&site));
    if answered.method == "GET" {
        std::mem::swap(&mut answered, &mut stream);
    }
    assert_eq!(answered.message["id"], "who", "{}", answered.message);
    assert_eq!(answered.message["result"], named("Ann"));
    answered.respond("202 Accepted", "", "");
    assert_eq!(stream.field("last-event-id"), Some("e1"));
    for visit in [&answered, &stream] {
        assert_eq!(visit.field("mcp-session-id"), Some(&*session));
        assert_eq!(visit.field("mcp-protocol-version"), Some("2025-06-18"));
    }
    // The upstream may send further input requests, and the call ends at the replica that took it over.
    stream.stream();
    stream.event_with_id("e2", &question("whose", "Whose?"));
    let asked = again.answer()["result"].clone();
    let mut last = back(&second, &asked, "Eve");
    let mut answered = visited(&site);
    assert_eq!(answered.message["id"], "whose", "{}", answered.message);
    answered.respond("202 Accepted", "", "");
    let result = json!({"content": [{"type": "text", "text": "Hello, both!"}]});
    let id = &called.message["id"];
    stream.event_with_id("e3", &json!({"jsonrpc": "2.0", "id": id, "result": result}));
    assert_eq!(text(&last.answer()), "Hello, both!");
    // The call was not repeated, and the session is not deleted.
    let rest = std::iter::from_fn(|| site.within(A_MOMENT)).find(|visit| visit.method == "POST");
    assert!(rest.is_none(), "{}", rest.unwrap().message);
}

#[test]
fn a_stalled_replica_leaves_its_call_to_the_one_that_took_it_over() {
    let (folder, site) =
        (tempfile::tempdir().unwrap(), ScriptedHttpServer::with_sessions(asking()));
    let reached = format!("url = \"{}\"", site.url());
    let (mut first, second) = (before(folder.path(), &reached), before(folder.path(), &reached));
    let mut call = client(&first).begin_call("ask", json!({}));
    let mut called = visited(&site);
    called.stream();
    called.event_with_id("e1", &question("who", "Who?"));
    let asked = call.answer()["result"].clone();
    first.signal("STOP");
    let mut again = back(&second, &asked, "Ann");
    let session = called.field("mcp-session-id").unwrap().to_owned();
    let (mut answered, mut stream) = (visited(&site), visited(&site));
    if answered.method == "GET" {
        std::mem::swap(&mut answered, &mut stream);
    }
    assert_eq!(answered.message["result"], named("Ann"));
    answered.respond("202 Accepted", "", "");
    stream.stream();
    first.signal("CONT");
    first.until_said("another replica took over a parked call");
    // At its shutdown, too, it sends nothing about the call and does not delete its session.
    let ended = thread::spawn(move || first.stop());
    let mut ends = Vec::new();
    while !ended.is_finished() {
        let Some(mut visit) = site.within(A_MOMENT) else { continue };
        assert_eq!(visit.method, "DELETE", "{}", visit.message);
        ends.extend(visit.field("mcp-session-id").map(str::to_owned));
        visit.respond("200 OK", "", "");
    }
    ended.join().unwrap().unwrap();
    assert!(!ends.contains(&session), "{ends:?} {session}");
    let result = json!({"content": [{"type": "text", "text": "Hello, Ann!"}]});
    let id = &called.message["id"];
    stream.event_with_id("e2", &json!({"jsonrpc": "2.0", "id": id, "result": result}));
    assert_eq!(text(&again.answer()), "Hello, Ann!");
}

#[test]
fn a_lost_stream_is_resumed_at_another_replica() {
    let (folder, puppets) = (tempfile::tempdir().unwrap(), ScriptedChildren::new(asking()));
    let (first, second) = (gateway(folder.path(), &puppets), gateway(folder.path(), &puppets));
    let client = HandshakeClient::open(first.address(), "2025-06-18", json!({}), None);
    let params = json!({"name": "ask", "arguments": {}, "_meta": {"progressToken": "p"}});
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    let within = |request: Request| {
        request.with("Mcp-Session-Id", client.session()).with("MCP-Protocol-Version", "2025-06-18")
    };
    let mut connection = Connection::open(first.address()).unwrap();
    let request = within(Request::post(call.to_string()));
    connection.write(&request.bytes(first.address())).unwrap();
    let called = puppets.hears("tools/call");
    let token = &called.message["params"]["_meta"]["progressToken"];
    let tell = |progress: u64| {
        let params = json!({"progressToken": token, "progress": progress});
        called.by.tells("notifications/progress", &params);
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
    called.text("done");
    let answer = messages.next().unwrap();
    assert_eq!((&answer["id"], text(&answer)), (&json!(7), "done"));
    assert!(messages.next().is_none(), "the stream ends with the response");
}

#[test]
fn a_message_for_a_2024_stream_may_arrive_at_any_replica() {
    let (folder, puppets) = (tempfile::tempdir().unwrap(), ScriptedChildren::new(asking()));
    let (first, second) = (gateway(folder.path(), &puppets), gateway(folder.path(), &puppets));
    let mut connection = Connection::open(first.address()).unwrap();
    let opening = Request::new("GET", "/sse").with("Accept", "text/event-stream");
    connection.write(&opening.bytes(first.address())).unwrap();
    let head = connection.head().unwrap();
    let mut events = Events::new(connection.body(&head)).filter(|event| !event.data.is_empty());
    let address = events.next().unwrap().data;
    let say = |gateway: &ListeningServer, message: Value| {
        let post = Request::to("POST", &address, message.to_string())
            .with("Content-Type", "application/json");
        post.send(gateway.address()).unwrap().head.status
    };
    let client = json!({"name": "old", "version": "1"});
    let hello = json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": client});
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello});
    assert_eq!(say(&second, hello), 202);
    assert!(events.next().unwrap().data.contains("2024-11-05"));
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(say(&first, initialized), 202);
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ask"}});
    assert_eq!(say(&second, call.clone()), 202);
    puppets.hears("tools/call").text("through another");
    assert!(events.next().unwrap().data.contains("through another"));
    // Closing the stream cancels the call, whichever replica received it.
    assert_eq!(say(&second, call.clone()), 202);
    puppets.hears("tools/call");
    drop(events);
    drop(connection);
    puppets.hears("notifications/cancelled");
    assert_eq!(say(&second, call), 404);
}
