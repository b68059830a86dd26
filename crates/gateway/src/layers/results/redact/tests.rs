//! Tests of secrets in all shapes of results.

use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::ToolResult;
use creole_proto::operation::RelayedKind;
use creole_proto::revision::{Era, Revision};
use serde_json::{Value, json};

use super::*;
use crate::layers::testing::{FlakyTools, call, events_of, fault, text};

fn redactor() -> Redactor {
    let patterns = ["sk-[a-z0-9]+".to_owned()];
    let pointers = ["/user/email".to_owned(), "/list/*/key~1s".to_owned()];
    Redactor::new(&patterns, &pointers, "[redacted]").unwrap()
}

fn results() -> Redact {
    Redact::new(redactor(), RedactScope::Results)
}

#[tokio::test]
async fn texts_and_faults_are_redacted() {
    let broken = Fault::new(FaultKind::ToolFailed, "no key sk-abc");
    let result = ToolResult::text("the key is sk-123, or sk-4");
    let (service, flaky) = FlakyTools::serve_with_result(results(), broken, 0, result);
    let expected = "the key is [redacted], or [redacted]";
    assert_eq!(text(&call(&service, "a", "read", "{}").await), expected);
    flaky.fail(1);
    assert_eq!(fault(call(&service, "a", "read", "{}").await).detail, "no key [redacted]");
}

#[tokio::test]
async fn arguments_are_redacted_before_the_tool_gets_them() {
    let output = r#"{"data":"a sk-1 b","user":{"email":"x"},"n":1}"#;
    let seen_with = async |from| {
        let layer = Redact::new(redactor(), from);
        let broken = Fault::new(FaultKind::ToolFailed, "");
        let (service, flaky) =
            FlakyTools::serve_with_result(layer, broken, 0, ToolResult::text("sk-2"));
        let answered = text(&call(&service, "a", "read", output).await).to_owned();
        (flaky.last_arguments(), answered)
    };
    let whole: Value = serde_json::from_str(output).unwrap();
    let redacted = json!({"data": "a [redacted] b", "user": {"email": "[redacted]"}, "n": 1});
    let clean = "[redacted]".to_owned();
    assert_eq!(seen_with(RedactScope::Results).await, (whole, clean.clone()));
    assert_eq!(seen_with(RedactScope::Arguments).await, (redacted.clone(), "sk-2".to_owned()));
    assert_eq!(seen_with(RedactScope::Both).await, (redacted, clean));
}

#[tokio::test]
async fn progress_and_log_messages_are_redacted() {
    let data = r#"{"data":"sk-1","user":{"email":"a@b"},"n":1}"#;
    let events = events_of(results(), "found sk-2", data).await;
    let [Event::Progress { message, .. }, Event::Log { logger, data, .. }] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(message.as_deref(), Some("found [redacted]"));
    assert_eq!(logger.as_deref(), Some("teller"));
    let expected = json!({"data": "[redacted]", "user": {"email": "[redacted]"}, "n": 1});
    assert_eq!(data.decode::<Value>().unwrap(), expected);
}

#[test]
fn data_is_redacted_at_the_paths_and_otherwise_unchanged() {
    let data = |text: &str| redactor().redact_data(&Raw::parse(text).unwrap());
    let before =
        r#"{"z": 1e400,"user":{"email":["a@b"],"name":"sk-1"},"list":[{"key/s":1},{"x":2.0}]}"#;
    let after = r#"{"z":1e400,"user":{"email":"[redacted]","name":"[redacted]"},"list":[{"key/s":"[redacted]"},{"x":2.0}]}"#;
    assert_eq!(data(before).unwrap().as_str(), after);
    assert_eq!(data(r#"{"user":{}}"#), None);
}

#[test]
fn texts_that_are_json_are_redacted_at_the_paths() {
    let mut text = r#"{"user":{"email":"a@b"},"n":1}"#.to_owned();
    redactor().redact_text(&mut text);
    assert_eq!(text, r#"{"user":{"email":"[redacted]"},"n":1}"#);
}

#[tokio::test]
async fn details_of_faults_are_redacted() {
    let mut broken = Fault::new(FaultKind::ToolFailed, "no");
    broken.data = Some(Raw::parse(r#"{"trace":"with sk-1"}"#).unwrap());
    let (service, flaky) =
        FlakyTools::serve_with_result(results(), broken, 0, ToolResult::text(""));
    flaky.fail(1);
    let told = fault(call(&service, "a", "read", "{}").await);
    assert_eq!(told.data.unwrap().as_str(), r#"{"trace":"with [redacted]"}"#);
}

#[test]
fn a_relayed_result_is_unchanged_except_for_the_secrets() {
    let result = r#"{"content":[{"type":"text","text":"sk-1"},{"type":"image","data":"sk-9","mimeType":"a/b"}], "structuredContent":{"user":{"email":"x"},"data":"sk-7"},"_meta":{ "n": 1.0 }}"#;
    let rules = Revision::newest(Era::Handshake).rules();
    let relayed = RelayedResult::new(Raw::parse(result).unwrap(), rules, RelayedKind::Tool);
    let mut payload = Payload::Relayed(relayed);
    redactor().redact_payload(&mut payload);
    let Payload::Relayed(relayed) = payload else { panic!() };
    let text = relayed.result().as_str();
    assert!(text.ends_with(r#""_meta":{ "n": 1.0 }}"#), "{text}");
    let value: Value = relayed.result().decode().unwrap();
    assert_eq!(value["content"][0]["text"], "[redacted]");
    assert_eq!(value["content"][1]["data"], "sk-9");
    assert_eq!(value["structuredContent"]["user"]["email"], "[redacted]");
    assert_eq!(value["structuredContent"]["data"], "[redacted]");
}

#[test]
fn a_replacement_is_no_template() {
    let redactor = Redactor::new(&["(s)k".to_owned()], &[], "$1").unwrap();
    let mut text = "sk".to_owned();
    redactor.redact_text(&mut text);
    assert_eq!(text, "$1");
}

#[test]
fn messages_in_records_are_redacted_in_both_directions() {
    let messages = [
        (
            r#"{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"user":{"email":"a@b"},"data":"sk-1"}}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"user":{"email":"[redacted]"},"data":"[redacted]"}}}"#,
        ),
        (
            r#"{"id":1,"result":{"structuredContent":{"list":[{"key/s":"x"}]},"content":[{"text":"sk-2"}]}}"#,
            r#"{"id":1,"result":{"structuredContent":{"list":[{"key/s":"[redacted]"}]},"content":[{"text":"[redacted]"}]}}"#,
        ),
        // The start of a long message may end before the secret does.
        (r#"{"id":1,"params":{"arguments":{"user":{"ema"#, "[redacted]"),
    ];
    for (message, expected) in messages {
        assert_eq!(results().redact_text(message).as_deref(), Some(expected));
    }
    let patterns = Redactor::new(&["sk-[a-z0-9]+".to_owned()], &[], "-").unwrap();
    assert_eq!(patterns.redact_message("{\"a\":\"sk-1"), "{\"a\":\"-");
}
