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
        for (name, call, received) in calls.iter_mut().rev() {
            received.asks(json!(name), "elicitation/create", form(&format!("Are you {name}?")));
            let request = call.answer()["result"].clone();
            let key = only_key(&request);
            let sent = &request["inputRequests"][&key]["params"];
            assert_eq!(sent["message"], format!("Are you {name}?"), "{request}");
            let (state, responses) = (&request["requestState"], json!({key: named(name)}));
            let mut retry = client.begin_again("ask", json!({"name": name}), state, responses);
            let response = site.next();
            assert_eq!(response.stream, received.stream);
            assert_eq!(response.message["result"], named(name));
            received.text(name);
            assert_eq!(text(&retry.answer()), *name);
        }
    }
}
