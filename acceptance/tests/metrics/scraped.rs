//! A Prometheus scrapes a gateway with traffic of both eras.

use std::path::Path;

use creole_acceptance::peers::prometheus::{Prometheus, promtool};
use creole_telemetry::documents::dashboard_queries;
use creole_test_wait::blocking::eventually;
use serde_json::json;

use crate::gateway::{Gateway, both_eras};
use crate::{names, samples};

/// The metrics that this traffic cannot have: their parts are off, or nothing went wrong.
const ABSENT: [&str; 7] = [
    "creole_audit_lines_total",
    "creole_audit_lost_total",
    "creole_metric_series_overflow_total",
    "creole_otlp_dropped_total",
    "creole_otlp_exports_total",
    "creole_replica_requests_total",
    "creole_trace_context_invalid_total",
];

/// One round of calls, errors and refusals.
fn traffic(gateway: &Gateway) {
    let session = gateway.open_session("test");
    for upstream in ["old", "new"] {
        let call = |tool: &str, arguments| json!({"name": format!("{upstream}__{tool}"), "arguments": arguments});
        for (tool, arguments) in
            [("test_simple_text", json!({})), ("test_error_handling", json!({}))]
        {
            gateway.stateless("tools/call", call(tool, arguments.clone()));
            gateway.in_session(&session, "tools/call", &call(tool, arguments));
        }
        let asked = call("test_elicitation", json!({"message": "Who?"}));
        let first: serde_json::Value =
            serde_json::from_str(&gateway.stateless("tools/call", asked.clone()).text()).unwrap();
        let result = &first["result"];
        let key = result["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
        let mut again = asked;
        again["requestState"] = result["requestState"].clone();
        again["inputResponses"] =
            json!({key: {"action": "accept", "content": {"username": "Ann", "email": "a@b.c"}}});
        gateway.stateless("tools/call", again);
    }
    gateway.in_session(&session, "tools/list", &json!({}));
    gateway.in_session(&session, "ping", &json!({}));
    gateway.stateless("tools/call", json!({"name": "old__test_image_content"}));
    gateway.post_garbage();
    gateway.post_text("{}", "creole_canary-wrong-key");
    let other = creole_acceptance::http::Request::new("GET", "/nothing");
    assert_eq!(other.send(gateway.server.address()).unwrap().head.status, 404);
    let ended = creole_acceptance::http::Request::delete(&session)
        .with("Authorization", &format!("Bearer {}", crate::gateway::KEY));
    assert_eq!(ended.send(gateway.server.address()).unwrap().head.status, 204);
}

fn expected_names() -> Vec<&'static str> {
    let all = creole::internal::telemetry::metrics::table::ALL.iter().map(|metric| metric.name);
    all.filter(|name| !ABSENT.contains(name)).collect()
}

#[test]
fn prometheus_scrapes_every_metric_and_answers_every_query_of_the_dashboard() {
    let gateway = Gateway::start(&both_eras());
    let prometheus = Prometheus::start(gateway.admin, None).unwrap();
    traffic(&gateway);
    let scrape = gateway.scrape();
    let output = promtool(Path::new("/"), &["check", "metrics"], &scrape);
    let problems = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && problems.is_empty(), "{problems}\n{scrape}");
    let found = names(&scrape);
    let missing: Vec<_> =
        expected_names().into_iter().filter(|name| !found.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:#?}\n{scrape}");
    eventually("the target is up", || !prometheus.query("up{job=\"creole\"} == 1").is_empty());
    let is_answered = |query: &str| {
        let query = query.replace("$__rate_interval", "1m");
        !prometheus.query(&query).is_empty()
    };
    for (title, query) in dashboard_queries() {
        // Rates need two scrapes of growing counters.
        let answered = || {
            is_answered(query) || {
                traffic(&gateway);
                false
            }
        };
        eventually(|| format!("{title}: {query}"), answered);
    }
    let slowest = prometheus.query("max_over_time(scrape_duration_seconds[1m]) > 0.1");
    assert!(slowest.is_empty(), "{slowest:?}");
    let known = prometheus.names();
    assert!(known.iter().any(|name| name == "creole_build_info"), "{known:?}");
}

#[test]
fn a_scraper_chooses_the_format() {
    let gateway = Gateway::start("[server]\nname = \"one\"\npacks = [\"echo\"]\n");
    let text = gateway.scrape_as("");
    assert_eq!(text.head.field("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let open = gateway.scrape_as("application/openmetrics-text");
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(open.head.field("content-type"), Some(kind));
    assert!(open.text().ends_with("# EOF\n"));
    assert_eq!(samples(&open.text(), "creole_build_info").len(), 1);
    let hidden = creole_acceptance::http::Request::new("GET", "/metrics");
    let response = hidden.send(gateway.server.address()).unwrap();
    assert_eq!(response.head.status, 404, "the MCP listener has no metrics");
}
