//! Tests of upstreams of HTTP+SSE, the transport of 2024-11-05, whose stream does not link an input request to its
//! call.

use std::fs;

use creole_acceptance::gateway::{ScriptedSseServer, StatelessClient};
use creole_acceptance::http::ListeningServer;
use serde_json::json;

use crate::{asking, form, named, only_key, text};

#[test]
fn calls_with_capabilities_have_a_stream_each_if_input_requests_do_not_name_their_call() {
    // The era alone does not determine the transport.
    for era in ["auto", "handshake"] {
        let site = ScriptedSseServer::new(asking());
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("gateway.toml");
        let upstream = format!("url = \"{}\"\nprefix = \"\"\nera = \"{era}\"\n", site.url());
        fs::write(&file, format!("[server]\nname = \"gateway\"\n[upstreams.site]\n{upstream}"))
            .unwrap();
        let gateway = ListeningServer::start(&[&file.display().to_string()]).unwrap();
        let client = StatelessClient::new(gateway.address()).that_can(json!({"elicitation": {}}));
        let mut calls = ["Ann", "Bob"].map(|name| {
            let call = client.begin_call("ask", json!({"name": name}));
            (name, call, site.hears("tools/call"))
        });
        assert_ne!(
            calls[0].2.stream, calls[1].2.stream,
            "{era}: concurrent calls must not share a stream"
        );
        for (name, call, called) in calls.iter_mut().rev() {
            called.asks(json!(name), "elicitation/create", form(&format!("Are you {name}?")));
            let asked = call.answer()["result"].clone();
            let key = only_key(&asked);
            let question = &asked["inputRequests"][&key]["params"];
            assert_eq!(question["message"], format!("Are you {name}?"), "{asked}");
            let (state, answers) = (&asked["requestState"], json!({key: named(name)}));
            let mut again = client.begin_again("ask", json!({"name": name}), state, answers);
            let answered = site.next();
            assert_eq!(answered.stream, called.stream);
            assert_eq!(answered.message["result"], named(name));
            called.text(name);
            assert_eq!(text(&again.answer()), *name);
        }
    }
}
