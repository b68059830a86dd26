//! Tests of third-party clients in front of a mock. Clients that only support stdio use a bridge.

use creole_acceptance::peers;
use creole_acceptance::peers::{Mode, Peer, Steps, if_installed, is_installed};
use serde_json::json;

use crate::mock::{ADMIN, Mock};
use crate::stage::{PATH, front};

#[test]
fn clients_of_standard_streams_call_tools_through_the_bridge() {
    let site = Mock::start();
    let (server, _data) = front(&site.url());
    let url = format!("http://{}{PATH}", server.address());
    let Some(mut bridge) = if_installed("mcp-remote", peers::bridge(&url)) else { return };
    bridge.extend(["--header".into(), format!("Authorization:{ADMIN}").into()]);
    let steps = Steps::new().call("buddyboss_list_members", json!({"per_page": 3}));
    for peer in [Peer::PythonV1, Peer::TypeScriptV1] {
        if !is_installed(peer) {
            continue;
        }
        let message = peers::run(peer, Mode::Legacy, &steps, &bridge).unwrap();
        assert_eq!(message["errors"], json!([]), "{peer}: {message}");
        assert_eq!(message["protocol"], "2025-11-25", "{peer}");
        let text = &message["call"]["content"][0]["text"];
        assert!(text.as_str().is_some_and(|text| text.starts_with("[{")), "{peer}: {message}");
    }
}
