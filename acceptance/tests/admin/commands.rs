//! `creole top` and `creole trace`.

use std::fs;

use creole_acceptance::process_under_test::finished_command::FinishedCommand;
use creole_test_wait::blocking::eventually;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};

use super::{Admin, CONFIG};

/// What two answers at different moments cannot share.
fn without_times(mut overview: Value) -> Value {
    for name in ["now", "uptime_ms", "points", "rates"] {
        overview.as_object_mut().unwrap().remove(name);
    }
    overview["refusals"].as_object_mut().unwrap().remove("since");
    for upstream in overview["upstreams"].as_array_mut().unwrap() {
        upstream.as_object_mut().unwrap().remove("calls_per_second");
    }
    overview
}

#[test]
fn top_prints_the_overview_of_the_api() {
    let admin = Admin::with_link("");
    let bearer = admin.sign_in();
    let is_ready = || admin.get(&bearer, "/overview")["upstreams"][0]["state"] == "ready";
    eventually("the upstream is ready, and its numbers stay", is_ready);
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

#[test]
fn trace_prints_a_call_of_a_tool_and_not_the_list_after_it() {
    let admin = Admin::with_link("");
    admin.sign_in();
    let url = admin.server.url();
    admin.creole(&["call", &url, "files__echo", "--arg", "message=hello"]).succeeded();
    admin.creole(&["list", &url]).succeeded();
    let first_line = |words: &[&str]| {
        let trace = admin.creole(words).succeeded();
        trace.stdout.lines().next().unwrap_or_default().to_owned()
    };
    let last = first_line(&["trace"]);
    assert!(last.contains("tools/call files__echo") && last.contains("translated)"), "{last}");
    let list = first_line(&["trace", "--method", "tools/list"]);
    assert!(list.contains("tools/list"), "{list}");
}

#[test]
fn a_command_that_cannot_use_the_listener_says_what_to_do() {
    let admin = Admin::with_keys();
    let url = format!("http://{}", admin.address());
    let message = |words: &[&str], key: Option<&str>| {
        let mut command = admin.command(words);
        key.map(|key| command.env("CREOLE_ADMIN_KEY", key));
        let failed = FinishedCommand::run(&mut command, "");
        assert_ne!(failed.code, Some(0), "{failed:?}");
        failed.stderr
    };
    let shown = message(&["top", "--once", "--admin", &url], Some("wrong"));
    assert!(
        shown.contains("the key in CREOLE_ADMIN_KEY is not accepted; use one of the file"),
        "{shown}"
    );
    let shown = message(&["top", "--once"], None);
    assert!(shown.contains("if it has users, use --admin URL and set CREOLE_ADMIN_KEY"), "{shown}");
    let shown = message(&["console"], None);
    assert!(shown.contains("if it has users, open its address in a browser"), "{shown}");
    assert!(!shown.contains("CREOLE_ADMIN_KEY"), "{shown}");
}

#[test]
fn a_listener_with_tls_is_trusted_by_its_authority() {
    let folder = tempfile::tempdir().unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = folder.path().join("ca.pem").display().to_string();
    fs::write(&authority, params.self_signed(&key).unwrap().pem()).unwrap();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = certificate.signed_by(&key, &issuer).unwrap();
    fs::write(folder.path().join("certificate.pem"), certificate.pem()).unwrap();
    fs::write(folder.path().join("key.pem"), key.serialize_pem()).unwrap();
    let more = "tls = { certificate = \"certificate.pem\", key = \"key.pem\" }\n";
    let admin = Admin::start_at(folder, CONFIG, more, " at https://");
    let unknown = admin.creole(&["top", "--once"]);
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    assert!(unknown.stderr.contains("`--cacert FILE`"), "{unknown:?}");
    let trusted = admin.creole(&["top", "--once", "--cacert", &authority]).succeeded();
    assert!(trusted.stdout.contains("files"), "{trusted:?}");
    let mut plain = admin.command(&["top", "--once", "--admin"]);
    plain.arg(format!("http://{}", admin.address())).env("CREOLE_ADMIN_KEY", "any");
    let plain = FinishedCommand::run(&mut plain, "");
    assert!(plain.stderr.contains("if the listener has TLS, write `https://`"), "{plain:?}");
}
