//! The bounds of the number of series, and the end of series.

use creole_test_wait::blocking::eventually;
use serde_json::json;

use crate::gateway::{Gateway, auth, both_eras};
use crate::{samples, value};

const DURATION: &str = "mcp_server_operation_duration_seconds_count";

#[test]
fn no_text_of_a_client_becomes_a_label() {
    // 250 tools of this server: more than have series of their own.
    let tool =
        |number: usize| format!("\n[tools.t{number}]\ndescription = \"t\"\ncommand = [\"true\"]\n");
    let tools: String = (0..250).map(tool).collect();
    let config = format!("[server]\nname = \"many\"\n{}{tools}", auth());
    let gateway = Gateway::start(&config);
    for number in 0..40 {
        gateway.stateless("tools/call", json!({"name": format!("stranger-tool-{number}")}));
        gateway.stateless(&format!("stranger/method{number}"), json!({}));
        gateway.open_session(&format!("stranger-client-{number}"));
        gateway.stateless("resources/read", json!({"uri": format!("stranger://{number}")}));
    }
    for tool in ["t0", "t199", "t200", "t249"] {
        gateway.stateless("tools/call", json!({"name": tool, "arguments": {}}));
    }
    let scrape = gateway.scrape();
    assert!(!scrape.contains("stranger"), "{scrape}");
    let called = |labels: &[&str]| value(&scrape, DURATION, labels);
    assert_eq!(called(&["error_type=\"unknown_tool\""]), 40.0);
    assert_eq!(called(&["mcp_method_name=\"_OTHER\""]), 40.0);
    assert_eq!(called(&["mcp_method_name=\"resources/read\""]), 40.0);
    assert_eq!(called(&["gen_ai_tool_name=\"_overflow\""]), 2.0);
    let listed = samples(&scrape, DURATION);
    let tools = listed.iter().filter(|line| line.contains("gen_ai_tool_name=\"t")).count();
    assert_eq!(tools, 2, "{listed:#?}");
    assert!(listed.len() <= 10, "{listed:#?}");
    let series = value(&scrape, "creole_metric_series", &["name=\"mcp_server_operation"]);
    assert_eq!(series, listed.len() as f64);
}

#[test]
fn the_series_of_an_upstream_go_with_it() {
    let gateway = Gateway::start(&both_eras());
    let ready = || {
        let scrape = gateway.scrape();
        let ready = |line: &&str| line.contains("state=\"ready\"") && line.ends_with(" 1");
        samples(&scrape, "creole_upstream_state").iter().filter(|line| ready(line)).count() == 2
    };
    eventually("both upstreams are ready", ready);
    for name in ["old__test_simple_text", "new__test_simple_text"] {
        let response = gateway.stateless("tools/call", json!({"name": name, "arguments": {}}));
        assert_eq!(response.head.status, 200, "{}", response.text());
    }
    let before = gateway.scrape();
    for name in ["old", "new"] {
        let label = format!("upstream=\"{name}\"");
        assert!(before.contains(&label), "{before}");
        let labels = [&*label, "gen_ai_tool_name=\"test_simple_text\""];
        assert_eq!(value(&before, "mcp_client_operation_duration_seconds_count", &labels), 1.0);
    }
    let all = both_eras();
    let (without, _) = all.split_once("\n[upstreams.new]").unwrap();
    gateway.reload(without, "was reloaded; changed");
    let scrape = gateway.scrape();
    let gauges = ["creole_upstream_state", "creole_upstream_items", "creole_upstream_connections"];
    for gauge in gauges {
        let lines = samples(&scrape, gauge);
        assert!(!lines.iter().any(|line| line.contains("upstream=\"new\"")), "{lines:#?}");
        assert!(lines.iter().any(|line| line.contains("upstream=\"old\"")), "{lines:#?}");
    }
    let labels = ["upstream=\"old\"", "gen_ai_tool_name=\"test_simple_text\""];
    assert_eq!(value(&scrape, "mcp_client_operation_duration_seconds_count", &labels), 1.0);
    eventually("all its series are gone", || !gateway.scrape().contains("upstream=\"new\""));
}
