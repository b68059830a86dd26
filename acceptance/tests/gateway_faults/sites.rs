//! Tests of upstreams over HTTP that fail.

use std::fs;
use std::time::{Duration, Instant};

use creole_acceptance::gateway::{
    HandshakeClient, PendingRequest, PendingResponse, ScriptedHttpServer, StatelessClient,
};
use creole_acceptance::http::ListeningServer;
use creole_test_wait::blocking::eventually;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{A_MOMENT, show};

/// The gateway's credentials for the upstream.
const SECRET: &str = "Bearer of-the-gateway-alone";

pub(crate) fn before(site: &ScriptedHttpServer) -> (ListeningServer, TempDir) {
    with_layers(site, "")
}

/// A gateway in front of the site, with these layers in the chain of its upstream.
fn with_layers(site: &ScriptedHttpServer, layers: &str) -> (ListeningServer, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    let url = site.url();
    let text = format!(
        "[server]\nname = \"gateway\"\n\n[upstreams.site]\nurl = \"{url}\"\nprefix = \"\"\nheaders = {{ \
         Authorization = \"{SECRET}\" }}\n{layers}"
    );
    fs::write(&file, text).unwrap();
    (ListeningServer::start(&[&file.display().to_string()]).unwrap(), folder)
}

fn called(
    gateway: &ListeningServer,
    site: &ScriptedHttpServer,
) -> (PendingResponse, PendingRequest) {
    let call = StatelessClient::new(gateway.address())
        .with_meta(json!({"progressToken": 1}))
        .with_key("of-the-client")
        .begin_call("work", json!({}));
    (call, site.hears("tools/call"))
}

fn text(response: &Value) -> &Value {
    &response["result"]["content"][0]["text"]
}

#[test]
fn a_stream_that_breaks_off_is_the_end_of_the_call_and_it_is_not_made_again() {
    let site = ScriptedHttpServer::new(show());
    let (gateway, _folder) = before(&site);
    let (mut call, mut request) = called(&gateway, &site);
    request.stream();
    let token = request.message["params"]["_meta"]["progressToken"].clone();
    let params = json!({"progressToken": token, "progress": 1});
    request.event(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}));
    assert_eq!(call.message()["params"], json!({"progressToken": 1, "progress": 1}));
    drop(request);
    let response = call.answer();
    assert_eq!(response["error"]["code"], -32603, "{response}");
    assert_eq!(response["error"]["data"]["upstream"], "site", "{response}");
    assert!(
        site.within(A_MOMENT).is_none(),
        "the call must not be repeated: its effects are unknown"
    );
}

#[test]
fn an_http_status_is_reported_without_secrets() {
    let site = ScriptedHttpServer::new(show());
    let (gateway, _folder) = before(&site);
    for status in ["401 Unauthorized", "403 Forbidden", "429 Too Many Requests", "503 Unavailable"]
    {
        let (mut call, mut request) = called(&gateway, &site);
        assert_eq!(request.field("authorization"), Some(SECRET));
        request.respond(status, "Retry-After: 7\r\n", "");
        let response = call.answer();
        assert_eq!(response["error"]["code"], -32603, "{response}");
        let message = response.to_string();
        assert!(message.contains("site") && !message.contains("of-the-"), "{message}");
    }
    let (mut call, mut request) = called(&gateway, &site);
    request.text("well again");
    assert_eq!(text(&call.answer()), "well again");
}

#[test]
fn retry_after_is_reported_in_both_eras() {
    let site = ScriptedHttpServer::new(show());
    let (gateway, _folder) = before(&site);
    let legacy = HandshakeClient::open(gateway.address(), "2025-06-18", json!({}), None);
    let params = json!({"name": "work", "arguments": {}});
    let modern = StatelessClient::new(gateway.address());
    let begin = |is_modern: bool, id: i64| match is_modern {
        true => modern.begin(&json!(id), "tools/call", params.clone()),
        false => legacy.begin(&json!(id), "tools/call", &params),
    };
    for (status, code) in [("429 Too Many Requests", 429), ("503 Unavailable", 503)] {
        for is_modern in [true, false] {
            let mut call = begin(is_modern, code);
            site.hears("tools/call").respond(status, "Retry-After: 7\r\n", "");
            let error = call.answer()["error"].clone();
            assert_eq!(error["code"], -32603, "{error}");
            assert_eq!(error["data"]["status"], code, "{error}");
            assert_eq!(error["data"]["retryAfter"], 7, "{error}");
            assert!(error["message"].as_str().unwrap().contains("in 7 s"), "{error}");
        }
    }
}

#[test]
fn a_layer_that_tries_again_waits_as_long_as_the_server_wants_if_it_may() {
    let site = ScriptedHttpServer::new(show());
    let layer = "chain = [{ kind = \"retry\", attempts = 3, delay_ms = 1, max_delay_ms = 1000, \
                 names = [\"work\"] }]\n";
    let (gateway, _folder) = with_layers(&site, layer);
    let (mut call, mut request) = called(&gateway, &site);
    let started = Instant::now();
    request.respond("503 Unavailable", "Retry-After: 1\r\n", "");
    let mut request = site.hears("tools/call");
    assert!(started.elapsed() >= Duration::from_secs(1), "{:?}", started.elapsed());
    request.respond("503 Unavailable", "Retry-After: 2\r\n", "");
    let error = call.answer()["error"].clone();
    assert_eq!(error["data"]["retryAfter"], 2, "{error}");
    assert!(site.within(A_MOMENT).is_none(), "the server requested a longer wait");
}

/// Whether Linux sends keep-alive probes on idle connections: those accepted on one port, and those opened to the
/// other.
#[cfg(target_os = "linux")]
fn are_probed(served: u16, called: u16) -> bool {
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let rows: Vec<Vec<&str>> = table.lines().map(|row| row.split_whitespace().collect()).collect();
    // The columns are the local address, the remote address, the state and the timer: 2 is keep-alive.
    let probed = |column: usize, port: u16| {
        let port = format!(":{port:04X}");
        let open =
            rows.iter().filter(|row| row.get(column).is_some_and(|text| text.ends_with(&port)));
        let mut open = open.filter(|row| row[3] == "01").peekable();
        open.peek().is_some() && open.all(|row| row[5].starts_with("02:"))
    };
    probed(1, served) && probed(2, called)
}

#[test]
#[cfg(target_os = "linux")]
fn connections_on_which_nothing_happens_are_probed_on_both_sides() {
    let site = ScriptedHttpServer::new(show());
    let (gateway, _folder) = before(&site);
    let (mut call, mut request) = called(&gateway, &site);
    request.stream();
    let table = || fs::read_to_string("/proc/net/tcp").unwrap();
    eventually(table, || are_probed(gateway.address().port(), site.port()));
    let result = json!({"content": [{"type": "text", "text": "there"}]});
    request.event(&json!({"jsonrpc": "2.0", "id": request.message["id"], "result": result}));
    assert_eq!(text(&call.answer()), "there");
}

#[test]
fn a_server_that_forgot_the_session_is_called_once_more_in_a_new_one() {
    let site = ScriptedHttpServer::new(show());
    let (gateway, _folder) = before(&site);
    let (mut call, mut request) = called(&gateway, &site);
    let session = request.field("mcp-session-id").unwrap().to_owned();
    request.respond("404 Not Found", "", "");
    let mut repeated = site.hears("tools/call");
    assert_ne!(repeated.field("mcp-session-id"), Some(&*session));
    repeated.text("new");
    assert_eq!(text(&call.answer()), "new");
    assert!(site.within(A_MOMENT).is_none(), "the call is retried once");
}

#[test]
fn only_the_call_that_the_server_refused_is_called_again_in_a_new_session() {
    let site = ScriptedHttpServer::new(show());
    let (gateway, _folder) = before(&site);
    let (mut running, mut answered) = called(&gateway, &site);
    let (mut broken, mut lost) = called(&gateway, &site);
    let (mut refused, mut request) = called(&gateway, &site);
    let session = request.field("mcp-session-id").map(str::to_owned);
    for other in [&mut answered, &mut lost] {
        assert_eq!(other.field("mcp-session-id"), session.as_deref());
        other.stream();
    }
    request.respond("404 Not Found", "", "");
    let mut repeated = site.hears("tools/call");
    assert_ne!(repeated.field("mcp-session-id"), session.as_deref());
    repeated.text("new");
    assert_eq!(text(&refused.answer()), "new");
    // The server may have executed the other calls, although it lost their session.
    let result = json!({"content": [{"type": "text", "text": "old"}]});
    answered.event(&json!({"jsonrpc": "2.0", "id": answered.message["id"], "result": result}));
    assert_eq!(text(&running.answer()), "old");
    drop(lost);
    assert!(broken.answer().get("error").is_some(), "a call whose stream breaks off fails");
    assert!(site.within(A_MOMENT).is_none(), "only one call is made again");
}

#[test]
fn input_requests_on_the_streams_of_two_calls_reach_the_caller_of_each() {
    let site = ScriptedHttpServer::new(show());
    let (gateway, _folder) = before(&site);
    let client = StatelessClient::new(gateway.address()).that_can(json!({"elicitation": {}}));
    let mut calls = Vec::new();
    for who in ["Ann", "Ben"] {
        let call = client.begin_call("work", json!({"who": who}));
        calls.push((who, call, site.hears("tools/call")));
    }
    let session = calls[0].2.field("mcp-session-id").map(str::to_owned);
    assert_eq!(
        session.as_deref(),
        calls[1].2.field("mcp-session-id"),
        "both calls share a session"
    );
    for (who, _, request) in calls.iter_mut().rev() {
        request.stream();
        let params =
            json!({"message": *who, "requestedSchema": {"type": "object", "properties": {}}});
        request.event(&json!({
            "jsonrpc": "2.0", "id": format!("to {who}"), "method": "elicitation/create", "params": params,
        }));
    }
    for (who, mut call, mut request) in calls {
        let received = call.answer()["result"].clone();
        let requests = received["inputRequests"].as_object().unwrap();
        let (key, sent) = requests.iter().next().unwrap();
        assert_eq!((requests.len(), &sent["params"]["message"]), (1, &json!(who)));
        let responses = json!({key: {"action": "accept", "content": {}}});
        let arguments = json!({"who": who});
        let mut retry = client.begin_again("work", arguments, &received["requestState"], responses);
        let mut answered = site.next();
        assert_eq!(answered.message["id"], format!("to {who}"));
        assert_eq!(answered.field("mcp-session-id").map(str::to_owned), session);
        answered.respond("202 Accepted", "", "");
        let result = json!({"content": [{"type": "text", "text": who}]});
        request.event(&json!({"jsonrpc": "2.0", "id": request.message["id"], "result": result}));
        assert_eq!(text(&retry.answer()), who);
    }
}
