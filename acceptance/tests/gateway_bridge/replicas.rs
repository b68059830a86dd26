//! Several processes with one file of state, and a client that comes back to another one than it left.

use std::fs;
use std::path::Path;

use creole_acceptance::gateway::{Heard, Modern, Puppeteer, Show};
use creole_acceptance::http::Listening;
use serde_json::{Value, json};

use crate::driving::modern;
use crate::{A_MOMENT, asking, form, named, only_key, text};

/// A gateway before these puppets, which shares the state in this folder.
fn gateway(folder: &Path, puppets: &Puppeteer) -> Listening {
    let file = folder.join("gateway.toml");
    let command = json!(puppets.command());
    let configuration = format!(
        "[server]\nname = \"gateway\"\npage_size = 1\n\n[state]\nfile = \"state.sqlite\"\n\n\
         [upstreams.behind]\nprefix = \"\"\ncommand = {command}\n"
    );
    fs::write(&file, configuration).unwrap();
    Listening::start(&[&file.display().to_string()]).unwrap()
}

fn client(gateway: &Listening) -> Modern {
    Modern::new(gateway.address()).that_can(json!({"elicitation": {}}))
}

fn complete(text: &str) -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": text}]})
}

#[test]
fn a_server_that_keeps_nothing_is_asked_again_through_another_process() {
    let (folder, puppets) = (tempfile::tempdir().unwrap(), Puppeteer::new(modern()));
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
fn a_list_goes_on_in_another_process() {
    let show = Show::new("2025-06-18", json!({"tools": {}}), &["one", "two"]);
    let (folder, puppets) = (tempfile::tempdir().unwrap(), Puppeteer::new(show));
    let (first, second) = (gateway(folder.path(), &puppets), gateway(folder.path(), &puppets));
    let page = client(&first).request("tools/list", json!({}))["result"].clone();
    assert_eq!(page["tools"][0]["name"], "one", "{page}");
    let rest = client(&second).request("tools/list", json!({"cursor": page["nextCursor"]}));
    assert_eq!(rest["result"]["tools"][0]["name"], "two", "{rest}");
}

/// A call whose caller is asked and has left.
fn left_at(gateway: &Listening, puppets: &Puppeteer) -> (Heard, Value) {
    let mut call = client(gateway).begin_call("ask", json!({}));
    let called = puppets.hears("tools/call");
    called.by.asks(json!(1), "elicitation/create", form("Who?"));
    (called, call.answer()["result"].clone())
}

/// The caller comes to a process that does not have its call.
#[track_caller]
fn is_lost_at(gateway: &Listening, puppets: &Puppeteer, asked: &Value) {
    let answers = json!({only_key(asked): named("Ann")});
    let lost = client(gateway).again("ask", json!({}), &asked["requestState"], answers);
    assert_eq!(lost["result"]["isError"], true, "{lost}");
    let told = lost["result"]["content"][0]["text"].as_str().unwrap();
    assert!(told.contains("Nothing is known about its effects"), "{told}");
    assert!(puppets.within(A_MOMENT).is_none(), "it may have been carried out");
}

#[test]
fn a_call_that_waits_in_one_process_is_not_known_to_another_and_goes_on_at_home() {
    let (folder, puppets) = (tempfile::tempdir().unwrap(), Puppeteer::new(asking()));
    let (first, second) = (gateway(folder.path(), &puppets), gateway(folder.path(), &puppets));
    let (called, asked) = left_at(&first, &puppets);
    is_lost_at(&second, &puppets, &asked);
    let answers = json!({only_key(&asked): named("Ann")});
    let mut again = client(&first).begin_again("ask", json!({}), &asked["requestState"], answers);
    assert_eq!(puppets.next().message["result"], named("Ann"));
    called.text("Hello, Ann!");
    assert_eq!(text(&again.answer()), "Hello, Ann!");
}

#[test]
fn a_process_that_was_started_again_does_not_call_again() {
    let (folder, puppets) = (tempfile::tempdir().unwrap(), Puppeteer::new(asking()));
    let first = gateway(folder.path(), &puppets);
    let (_, asked) = left_at(&first, &puppets);
    drop(first);
    let again = gateway(folder.path(), &puppets);
    is_lost_at(&again, &puppets, &asked);
}
