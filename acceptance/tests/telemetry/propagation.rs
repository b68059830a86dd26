//! Tests of the trace context that an upstream gets.

use creole_acceptance::gateway::{
    PendingRequest, ScriptedHttpServer, ScriptedReplies, StatelessClient,
};
use creole_acceptance::http::ListeningServer;
use creole_acceptance::peers::otlp::receiver;
use creole_test_wait::blocking::eventually;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{CLIENT, PARENT, SERVER, TRACE_ID, exporting, is_part_of, listen};

fn site() -> ScriptedHttpServer {
    ScriptedHttpServer::new(ScriptedReplies::new("2025-06-18", json!({"tools": {}}), &["work"]))
}

/// A gateway in front of the site, with these keys of the upstream and these tables.
fn before(site: &ScriptedHttpServer, keys: &str, tables: &str) -> (ListeningServer, TempDir) {
    let upstream = format!("[upstreams.site]\nurl = \"{}\"\nprefix = \"\"\n{keys}", site.url());
    listen(&format!("[server]\nname = \"g\"\n{upstream}\n{tables}"))
}

/// What the upstream gets for a call with this `_meta` and these headers.
fn forwarded(
    server: &ListeningServer,
    site: &ScriptedHttpServer,
    meta: Value,
    headers: &[(&str, &str)],
) -> PendingRequest {
    let client = StatelessClient::new(server.address()).with_meta(meta);
    let params = json!({"name": "work", "arguments": {}});
    let request = client.written(&json!(1), "tools/call", params);
    let request = headers.iter().fold(request, |request, (name, value)| request.with(name, value));
    let address = server.address();
    let caller = std::thread::spawn(move || request.send(address).unwrap());
    let mut received = site.hears("tools/call");
    received.text("done");
    let response = caller.join().unwrap();
    assert!(response.message()["result"].is_object(), "{}", response.text());
    received
}

fn meta(received: &PendingRequest) -> &Value {
    &received.message["params"]["_meta"]
}

#[test]
fn without_telemetry_the_context_passes_unchanged_and_baggage_does_not() {
    let site = site();
    let (server, _folder) = before(&site, "", "");
    let context =
        json!({"traceparent": PARENT, "tracestate": "b=2,a=1", "baggage": "x=1", "k": "v"});
    let received = forwarded(&server, &site, context, &[]);
    let sent = meta(&received);
    assert_eq!((&sent["traceparent"], &sent["tracestate"]), (&json!(PARENT), &json!("b=2,a=1")));
    assert_eq!((sent.get("baggage"), &sent["k"]), (None, &json!("v")), "{sent}");
    for name in ["traceparent", "tracestate", "baggage"] {
        assert_eq!(received.field(name), None, "{name}");
    }
    let received = forwarded(&server, &site, json!({}), &[("traceparent", PARENT)]);
    assert!(
        meta(&received).get("traceparent").is_none() && received.field("traceparent").is_none()
    );
}

#[test]
fn an_upstream_gets_the_client_span_in_meta_and_in_the_header() {
    let Some(receiver) = receiver(&[]) else { return };
    let site = site();
    let traces = exporting(&receiver, "[telemetry.traces]\nparent = \"client\"");
    let (server, _folder) = before(&site, "baggage = [\"tenant\"]", &traces);
    let context =
        json!({"traceparent": PARENT, "tracestate": "a=1", "baggage": "tenant=7,secret=1"});
    let received = forwarded(&server, &site, context, &[]);
    let sent = meta(&received)["traceparent"].as_str().unwrap().to_owned();
    assert_eq!(received.field("traceparent"), Some(&*sent));
    assert_eq!(
        (&meta(&received)["tracestate"], received.field("tracestate")),
        (&json!("a=1"), Some("a=1"))
    );
    assert_eq!(
        (&meta(&received)["baggage"], received.field("baggage")),
        (&json!("tenant=7"), Some("tenant=7"))
    );
    let named = |kind: u64| {
        let spans = receiver.spans("tools/call work");
        spans.into_iter().find(|span| span["kind"] == kind)
    };
    let client = eventually("the span of the upstream's request", || named(CLIENT));
    let server_span = eventually("the span of the call", || named(SERVER));
    let expected = format!("00-{TRACE_ID}-{}-01", client["span_id"].as_str().unwrap());
    assert_eq!(sent, expected);
    eventually("the spans between", || is_part_of(&receiver, &client, &server_span));
    assert_eq!(client["attributes"]["creole.translation"], "lowered");
    let place = |name| &client["attributes"][name];
    let port = json!(site.port());
    assert_eq!((place("server.address"), place("server.port")), (&json!("127.0.0.1"), &port));
}

#[test]
fn a_list_that_the_gateway_fetches_is_a_span_and_carries_it() {
    let Some(receiver) = receiver(&[]) else { return };
    let replies = ScriptedReplies::new("2025-06-18", json!({"tools": {}}), &["work"]);
    let site = ScriptedHttpServer::new(replies.leaving("tools/list"));
    let always = exporting(&receiver, "[telemetry.traces]\nsample = 1");
    let (_server, _folder) = before(&site, "", &always);
    let mut list = site.hears("tools/list");
    let sent = meta(&list)["traceparent"].as_str().unwrap().to_owned();
    assert_eq!(list.field("traceparent"), Some(&*sent));
    list.result(json!({"tools": []}));
    let span = receiver.span("tools/list");
    let [trace, id] = ["trace_id", "span_id"].map(|key| span[key].as_str().unwrap());
    assert_eq!((&span["kind"], sent), (&json!(CLIENT), format!("00-{trace}-{id}-01")));
    assert_eq!(span["attributes"]["server.port"], json!(site.port()), "{span:#}");
    assert_eq!(span["attributes"]["creole.upstream"], "site", "{span:#}");
}

#[test]
fn an_unsampled_context_goes_on_in_both_places_and_a_foreign_upstream_gets_nothing() {
    let Some(receiver) = receiver(&[]) else { return };
    let site = site();
    let never = exporting(&receiver, "[telemetry.traces]\nsample = 0");
    let (server, _folder) = before(&site, "", &never);
    let received =
        forwarded(&server, &site, json!({}), &[("traceparent", PARENT), ("tracestate", "a=1")]);
    assert_eq!(
        (&meta(&received)["traceparent"], received.field("traceparent")),
        (&json!(PARENT), Some(PARENT))
    );
    assert_eq!(
        (&meta(&received)["tracestate"], received.field("tracestate")),
        (&json!("a=1"), Some("a=1"))
    );
    let (server, _folder) = before(&site, "propagate = false", &never);
    let received =
        forwarded(&server, &site, json!({"traceparent": PARENT, "baggage": "a=1", "k": 1}), &[]);
    let sent = meta(&received);
    assert!(sent.get("traceparent").is_none() && sent.get("baggage").is_none(), "{sent}");
    assert_eq!((received.field("traceparent"), &sent["k"]), (None, &json!(1)));
}

/// Contexts that are not of W3C's form.
fn malformed() -> Vec<Value> {
    let parent = |text: String| json!({"traceparent": text});
    let state = |text: String| json!({"traceparent": PARENT, "tracestate": text});
    let baggage = |text: String| json!({"baggage": text});
    let zeros = "0".repeat(32);
    let many = |count: usize| (0..count).map(|n| format!("k{n}=v")).collect::<Vec<_>>().join(",");
    vec![
        parent(PARENT.to_uppercase()),
        parent(PARENT.replace("0af7", "0AF7")),
        parent(PARENT.replace(TRACE_ID, &zeros)),
        parent(PARENT.replace("b7ad6b7169203331", &zeros[..16])),
        parent(PARENT.replacen("00-", "ff-", 1)),
        parent(PARENT.replacen("00-", "01-", 1)),
        parent(format!("{PARENT}-00")),
        parent(format!("{PARENT}\n")),
        parent(format!(" {PARENT}")),
        parent(PARENT.replace('-', "")),
        parent(PARENT.replace("b7ad", "b7ag")),
        parent(PARENT[..54].to_owned()),
        parent("x".repeat(65_536)),
        parent(String::new()),
        json!({"traceparent": [PARENT]}),
        json!({"traceparent": null}),
        json!({"traceparent": 7}),
        json!({"traceparent": {"a": PARENT}}),
        state("A=1".to_owned()),
        state("a".to_owned()),
        state("a=1,a=2".to_owned()),
        state("a=\n".to_owned()),
        state(many(33)),
        state(format!("a={}", "v".repeat(600))),
        json!({"traceparent": PARENT, "tracestate": ["a=1"]}),
        baggage("a".to_owned()),
        baggage("a=\"1\"".to_owned()),
        baggage(many(65)),
        baggage(format!("a={}", "v".repeat(9000))),
        json!({"baggage": 1}),
    ]
}

#[test]
fn malformed_contexts_are_answered_as_without_them_counted_and_not_forwarded() {
    let Some(receiver) = receiver(&[]) else { return };
    let site = site();
    let tables = exporting(
        &receiver,
        "[telemetry.traces]\nsample = 0\n[telemetry.metrics]\ninterval_seconds = 1",
    );
    let (server, _folder) = before(&site, "baggage = [\"a\"]", &tables);
    let contexts = malformed();
    assert_eq!(contexts.len(), 30);
    for context in &contexts {
        let received = forwarded(&server, &site, context.clone(), &[]);
        let sent = meta(&received);
        // A valid parent stays, without its malformed companion.
        let parent =
            if context.get("tracestate").is_some() { Some(&context["traceparent"]) } else { None };
        assert_eq!(
            (sent.get("traceparent"), sent.get("tracestate"), sent.get("baggage")),
            (parent, None, None),
            "{context}"
        );
    }
    let count = || {
        let mut points = receiver.items("metric").into_iter();
        points.rfind(|point| point["name"] == "creole.trace_context.invalid")
    };
    eventually(
        || format!("30 malformed contexts: {:?}", count()),
        || count().is_some_and(|it| it["value"] == 30),
    );
}
