//! `creole top` and `creole trace`.

use serde_json::{Value, json};

use super::Admin;

/// What two answers at different moments cannot share.
fn without_times(mut overview: Value) -> Value {
    for name in ["now", "uptime_ms", "points", "rates"] {
        overview.as_object_mut().unwrap().remove(name);
    }
    overview["refusals"].as_object_mut().unwrap().remove("since");
    overview
}

#[test]
fn top_prints_the_overview_of_the_api() {
    let admin = Admin::with_link("");
    let bearer = admin.sign_in();
    let top = admin.creole(&["top", "--once", "--json"]);
    assert_eq!((top.code, top.stderr.as_str()), (Some(0), ""));
    let printed: Value = serde_json::from_str(&top.stdout).unwrap();
    let overview = admin.get(&bearer, "/overview");
    assert_eq!(without_times(printed.clone()), without_times(overview));
    let document = admin.get(&bearer, "/openapi.json");
    let response = &document["paths"]["/overview"]["get"]["responses"]["200"];
    let mut schema = response["content"]["application/json"]["schema"].clone();
    schema["components"] = document["components"].clone();
    assert!(jsonschema::is_valid(&schema, &printed), "{printed}");
    let table = admin.creole(&["top", "--once"]);
    assert!(table.stdout.contains("UPSTREAM") && table.stdout.contains("files"), "{table:?}");
    let other = admin.creole(&["top", "--once", "--admin", "http://127.0.0.1:1"]);
    assert_eq!(other.code, Some(2), "{other:?}");
    assert!(other.stderr.contains("CREOLE_ADMIN_KEY"), "{other:?}");
}

#[test]
fn trace_prints_the_steps_of_a_call() {
    let admin = Admin::with_link("");
    let bearer = admin.sign_in();
    let wanted = json!({
        "method": "tools/call",
        "params": {"name": "files__echo", "arguments": {"message": "hello"}},
        "as": {"revision": "2025-06-18"},
    });
    let answer = admin.call(&bearer, "POST", "/servers/team/calls", Some(&wanted));
    assert!(answer.text().contains("event: result"), "{}", answer.text());
    let trace = admin.creole(&["trace", "--tool", "files__echo"]);
    assert_eq!(trace.code, Some(0), "{trace:?}");
    let first = trace.stdout.lines().next().unwrap_or_default();
    assert!(first.contains("tools/call files__echo"), "{trace:?}");
    assert!(first.contains("2025-06-18") && first.ends_with("success"), "{trace:?}");
    assert!(trace.stdout.contains("creole-console"), "{trace:?}");
}
