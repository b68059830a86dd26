//! The metrics of requests that no client sees, of layers, of connections and of replicas.

use creole_test_wait::blocking::eventually;
use serde_json::json;

use crate::gateway::{Gateway, both_eras};
use crate::value;

const CLIENT: &str = "mcp_client_operation_duration_seconds_count";
const SERVER: &str = "mcp_server_operation_duration_seconds_count";

#[test]
fn the_gateways_own_lists_and_requests_without_a_call_are_measured() {
    let gateway = Gateway::start(&both_eras());
    for upstream in ["old", "new"] {
        for method in ["tools/list", "resources/list", "prompts/list"] {
            let labels = [format!("upstream=\"{upstream}\""), format!("name=\"{method}\"")];
            let labels = labels.each_ref().map(|label| &**label);
            let count = || {
                let scrape = gateway.scrape();
                let has = |line: &&str| labels.iter().all(|label| line.contains(label));
                crate::samples(&scrape, CLIENT).into_iter().any(|line| has(&line))
            };
            eventually(|| format!("{upstream} {method}"), count);
        }
    }
    let session = gateway.open_session("test");
    gateway.in_session(&session, "ping", &json!({}));
    gateway.in_session(&session, "ping", &json!({}));
    let scrape = gateway.scrape();
    assert_eq!(value(&scrape, SERVER, &["mcp_method_name=\"ping\""]), 2.0);
    assert_eq!(value(&scrape, SERVER, &["mcp_method_name=\"notifications/initialized\""]), 1.0);
}

#[test]
fn a_layer_that_changes_an_outcome_is_counted_as_one_that_changed() {
    let redact =
        "[[server.chain]]\nkind = \"redact\"\npatterns = [\"simple\"]\n\n[[server.chain]]\n";
    let gateway = Gateway::start(&both_eras().replacen("[[server.chain]]\n", redact, 1));
    let call = |tool: &str| {
        let response = gateway.stateless("tools/call", json!({"name": tool, "arguments": {}}));
        assert_eq!(response.head.status, 200, "{}", response.text());
        response.text()
    };
    assert!(!call("old__test_simple_text").contains("simple"));
    call("old__test_error_handling");
    let scrape = gateway.scrape();
    let changed = ["server=\"gate\"", "layer=\"redact\"", "decision=\"changed\""];
    assert_eq!(value(&scrape, "creole_layer_decisions_total", &changed), 1.0, "{scrape}");
}

#[test]
fn the_connections_of_the_admin_listener_and_the_replicas_are_counted() {
    let gateway = Gateway::start(&both_eras());
    let scrape = gateway.scrape();
    // That of the scrape itself.
    let own = ["listener=\"admin\"", "http_version=\"1.1\""];
    assert!(value(&scrape, "creole_connections", &own) >= 1.0, "{scrape}");
    assert_eq!(value(&scrape, "creole_connections_limit", &["listener=\"admin\""]), 32.0);
    assert_eq!(value(&scrape, "creole_replicas", &[]), 1.0);
}
