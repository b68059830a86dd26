//! Servers that are called over HTTP and fail there.

use std::fs;

use creole_acceptance::gateway::{Answering, Modern, Site, Visit};
use creole_acceptance::http::Listening;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{A_MOMENT, show};

/// What the gateway proves itself with to the server behind.
const SECRET: &str = "Bearer of-the-gateway-alone";

fn before(site: &Site) -> (Listening, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    let url = site.url();
    let text = format!(
        "[server]\nname = \"gateway\"\n\n[upstreams.site]\nurl = \"{url}\"\nprefix = \"\"\nheaders = {{ \
         Authorization = \"{SECRET}\" }}\n"
    );
    fs::write(&file, text).unwrap();
    (Listening::start(&[&file.display().to_string()]).unwrap(), folder)
}

fn called(gateway: &Listening, site: &Site) -> (Answering, Visit) {
    let call = Modern::new(gateway.address())
        .with_meta(json!({"progressToken": 1}))
        .with_key("of-the-client")
        .begin_call("work", json!({}));
    (call, site.hears("tools/call"))
}

fn text(answer: &Value) -> &Value {
    &answer["result"]["content"][0]["text"]
}

#[test]
fn a_stream_that_breaks_off_is_the_end_of_the_call_and_it_is_not_made_again() {
    let site = Site::new(show());
    let (gateway, _folder) = before(&site);
    let (mut call, mut visit) = called(&gateway, &site);
    visit.stream();
    let token = visit.message["params"]["_meta"]["progressToken"].clone();
    let params = json!({"progressToken": token, "progress": 1});
    visit.event(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}));
    assert_eq!(call.message()["params"], json!({"progressToken": 1, "progress": 1}));
    drop(visit);
    let answer = call.answer();
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    assert_eq!(answer["error"]["data"]["upstream"], "site", "{answer}");
    assert!(site.within(A_MOMENT).is_none(), "nobody knows what it had done");
}

#[test]
fn what_a_status_says_is_told_without_secrets() {
    let site = Site::new(show());
    let (gateway, _folder) = before(&site);
    for status in ["401 Unauthorized", "403 Forbidden", "429 Too Many Requests", "503 Unavailable"]
    {
        let (mut call, mut visit) = called(&gateway, &site);
        assert_eq!(visit.field("authorization"), Some(SECRET));
        visit.respond(status, "Retry-After: 7\r\n", "");
        let answer = call.answer();
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
        let told = answer.to_string();
        assert!(told.contains("site") && !told.contains("of-the-"), "{told}");
    }
    let (mut call, mut visit) = called(&gateway, &site);
    visit.text("well again");
    assert_eq!(text(&call.answer()), "well again");
}

#[test]
fn a_server_that_forgot_the_session_is_called_once_more_in_a_new_one() {
    let site = Site::new(show());
    let (gateway, _folder) = before(&site);
    let (mut call, mut visit) = called(&gateway, &site);
    let session = visit.field("mcp-session-id").unwrap().to_owned();
    visit.respond("404 Not Found", "", "");
    let mut again = site.hears("tools/call");
    assert_ne!(again.field("mcp-session-id"), Some(&*session));
    again.text("new");
    assert_eq!(text(&call.answer()), "new");
    assert!(site.within(A_MOMENT).is_none(), "once is enough");
}

#[test]
fn questions_on_the_streams_of_two_calls_reach_the_caller_of_each() {
    let site = Site::new(show());
    let (gateway, _folder) = before(&site);
    let client = Modern::new(gateway.address()).that_can(json!({"elicitation": {}}));
    let mut calls = Vec::new();
    for who in ["Ann", "Ben"] {
        let call = client.begin_call("work", json!({"who": who}));
        calls.push((who, call, site.hears("tools/call")));
    }
    let session = calls[0].2.field("mcp-session-id").map(str::to_owned);
    assert_eq!(session.as_deref(), calls[1].2.field("mcp-session-id"), "they share a session");
    for (who, _, visit) in calls.iter_mut().rev() {
        visit.stream();
        let params =
            json!({"message": *who, "requestedSchema": {"type": "object", "properties": {}}});
        visit.event(&json!({
            "jsonrpc": "2.0", "id": format!("to {who}"), "method": "elicitation/create", "params": params,
        }));
    }
    for (who, mut call, mut visit) in calls {
        let asked = call.answer()["result"].clone();
        let questions = asked["inputRequests"].as_object().unwrap();
        let (key, question) = questions.iter().next().unwrap();
        assert_eq!((questions.len(), &question["params"]["message"]), (1, &json!(who)));
        let answers = json!({key: {"action": "accept", "content": {}}});
        let arguments = json!({"who": who});
        let mut again = client.begin_again("work", arguments, &asked["requestState"], answers);
        let mut answered = site.next();
        assert_eq!(answered.message["id"], format!("to {who}"));
        assert_eq!(answered.field("mcp-session-id").map(str::to_owned), session);
        answered.respond("202 Accepted", "", "");
        let result = json!({"content": [{"type": "text", "text": who}]});
        visit.event(&json!({"jsonrpc": "2.0", "id": visit.message["id"], "result": result}));
        assert_eq!(text(&again.answer()), who);
    }
}
