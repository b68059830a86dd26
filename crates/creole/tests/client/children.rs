//! Tests of children that misbehave or exit, and of the faults that their callers get.

use creole::client::ChildServer;
use creole::internal::client::Connection;
use creole::proto::client::{CallRequest, ClientLimits};
use creole::proto::fault::FaultKind;
use creole::proto::model::ListKind;
use creole::proto::operation::Operation;
use creole::proto::revision::Era;
use creole_test_wait::eventually;
use serde_json::json;
use std::time::Duration;
use tokio::time::timeout;

use crate::support::{
    LONG, call, child, fault, open, open_child, open_within, sh, shaking, text, tool,
};

#[tokio::test]
async fn a_child_that_exits_during_a_call_is_named_to_its_caller() {
    let connection = open_child(&child(), Era::Handshake).await.unwrap();
    let fault = fault(call(&connection, tool("exit", json!({}))).await);
    assert_eq!(fault.kind, FaultKind::BackendUnavailable);
    assert_eq!(fault.detail, "`child` was killed by signal 6");
    assert!(connection.close_reason().is_some());
}

#[tokio::test]
async fn an_incomplete_last_line_is_not_a_message() {
    let answer = r#"{"jsonrpc":"2.0","id":'"$(id "$line")"',"result":{}}"#;
    let script = shaking(&format!("read -r line; printf '%s' '{answer}'; exit 0"));
    let connection = open_child(&sh(&script), Era::Handshake).await.unwrap();
    let fault = fault(call(&connection, tool("x", json!({}))).await);
    assert_eq!(fault.detail, "`files` exited with code 0");
}

#[tokio::test]
async fn protocol_violations_are_counted_and_reach_no_caller() {
    let script = shaking(
        r#"printf 'Welcome!\n\033[31mred\033[0m\n{"a":1}\n{"jsonrpc":"2.0","id":999,"result":{}}\n\n'
        read -r line
        echo '{"jsonrpc":"2.0","id":'"$(id "$line")"',"result":{"tools":[]}}'; cat"#,
    );
    let connection = open_child(&sh(&script), Era::Handshake).await.unwrap();
    let list = CallRequest::new(Operation::List(ListKind::Tools, None));
    let outcome = call(&connection, list).await;
    assert!(matches!(outcome, creole::Outcome::Complete(_)), "{outcome:?}");
    assert_eq!(connection.violation_count(), 4);
}

#[tokio::test]
async fn a_flood_of_noise_ends_the_connection() {
    let script = shaking("while echo noise; do :; done");
    let connection = open_child(&sh(&script), Era::Handshake).await.unwrap();
    let closed = timeout(LONG, connection.wait_closed()).await.unwrap();
    assert_eq!(
        closed.fault.detail,
        "`files` sent too many invalid messages; the connection was closed"
    );
}

#[tokio::test]
async fn an_overlong_line_is_dropped_and_the_next_is_read() {
    let script = shaking(
        r#"head -c 100000 /dev/zero | tr '\0' x; echo; read -r line
        echo '{"jsonrpc":"2.0","id":'"$(id "$line")"',"result":{"tools":[]}}'; cat"#,
    );
    let server = ChildServer::start(&sh(&script)).await.unwrap().max_message(10_000);
    let connection = open(server, Era::Handshake).await.unwrap();
    let list = CallRequest::new(Operation::List(ListKind::Tools, None));
    assert!(matches!(call(&connection, list).await, creole::Outcome::Complete(_)));
    assert_eq!(connection.violation_count(), 1);
}

/// A child that responds to its first call with this text, in which `ID` stands for the id of the call and `BIG` for a
/// value that is too long.
async fn answering_at_length(text: &str) -> Connection {
    let text = text.replace("ID", r#"'"$(id "$line")"'"#);
    let text = text.replace("BIG", r#"'; head -c 100000 /dev/zero | tr '\0' x; printf '%s' '"#);
    let script = shaking(&format!("read -r line; printf '%s' '{text}'; echo; cat"));
    let server = ChildServer::start(&sh(&script)).await.unwrap().max_message(10_000);
    open(server, Era::Handshake).await.unwrap()
}

#[tokio::test]
async fn an_overlong_response_fails_its_call_at_once_wherever_its_id_is() {
    let result = r#""result":{"content":[{"type":"text","text":"BIG"}]}"#;
    for text in [
        format!(r#"{{"jsonrpc":"2.0","id":ID,{result}}}"#),
        format!(r#"{{{result},"jsonrpc":"2.0","id":ID}}"#),
        format!(r#"{{{result},"id":ID,"jsonrpc":"2.0"}}"#),
        // The response's call cannot be identified.
        format!(r#"[{{{result},"id":ID}}]"#),
    ] {
        let connection = answering_at_length(&text).await;
        let outcome = timeout(LONG, call(&connection, tool("x", json!({})))).await;
        let fault = fault(outcome.unwrap_or_else(|_| panic!("the call still waits: {text}")));
        assert_eq!(fault.kind, FaultKind::BackendUnavailable);
        assert_eq!(fault.detail, "the server's response is longer than the limit", "{text}");
        assert!(connection.close_reason().is_none());
    }
}

#[tokio::test]
async fn an_overlong_notification_fails_no_call() {
    let note = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"BIG"}}"#;
    let answer = r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"ok"}]}}"#;
    let connection = answering_at_length(&format!("{note}\n{answer}")).await;
    assert_eq!(text(call(&connection, tool("x", json!({}))).await), "ok");
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_fails_its_call_at_once() {
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    for (value, problem) in [("NaN", "expected a value"), (&deep, "too many nested values")] {
        let answer = format!(r#"{{"jsonrpc":"2.0","id":ID,"result":{{"content":{value}}}}}"#);
        let connection = answering_at_length(&answer).await;
        let outcome = timeout(LONG, call(&connection, tool("x", json!({})))).await;
        let fault = fault(outcome.unwrap_or_else(|_| panic!("the call still waits: {problem}")));
        let begin = "the server's response is malformed: ";
        assert!(fault.detail.starts_with(begin) && fault.detail.contains(problem), "{fault:?}");
    }
}

#[tokio::test]
async fn a_child_that_closes_its_output_is_ended() {
    let script = shaking("echo \"pid $$\" >&2; exec >&-; sleep 1000");
    let mut program = sh(&script);
    program.grace_periods.after_close = Duration::from_millis(50);
    let connection = open_child(&program, Era::Handshake).await.unwrap();
    let closed = timeout(LONG, connection.wait_closed()).await.unwrap();
    assert_eq!(closed.fault.detail, "`files` closed its output");
}

#[tokio::test]
async fn a_late_response_is_dropped() {
    // The child responds to the first call only after the second has arrived.
    let answer =
        r#"{"jsonrpc":"2.0","id":'"$first"',"result":{"content":[{"type":"text","text":"late"}]}}"#;
    let own = r#"{"jsonrpc":"2.0","id":'"$(id "$line")"',"result":{"content":[{"type":"text","text":"own"}]}}"#;
    let script = shaking(&format!(
        "read -r line; first=$(id \"$line\"); read -r cancelled; read -r line\necho '{answer}'; echo '{own}'; cat"
    ));
    let connection = open_child(&sh(&script), Era::Handshake).await.unwrap();
    let mut request = tool("slow", json!({}));
    request.options.idle_timeout = Some(Duration::from_millis(100));
    assert_eq!(fault(call(&connection, request).await).kind, FaultKind::Timeout);
    assert_eq!(text(call(&connection, tool("quick", json!({}))).await), "own");
    assert_eq!(connection.violation_count(), 0);
}

#[tokio::test]
async fn an_incomplete_line_and_then_silence_time_out() {
    let script = shaking("read -r line; printf '{\"jsonrpc\":'; cat >/dev/null");
    let connection = open_child(&sh(&script), Era::Handshake).await.unwrap();
    let mut request = tool("slow", json!({}));
    request.options.idle_timeout = Some(Duration::from_millis(100));
    assert_eq!(fault(call(&connection, request).await).kind, FaultKind::Timeout);
    connection.close().await;
}

#[tokio::test]
async fn progress_for_ever_does_not_keep_a_call_alive_for_ever() {
    let script = shaking(
        r#"read -r line; token=$(id "$line"); n=0
        while n=$((n+1)); echo '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":'"$token"',"progress":'"$n"'}}'; do sleep 0.02; done"#,
    );
    let server = ChildServer::start(&sh(&script)).await.unwrap();
    let limits =
        ClientLimits { call_total_timeout: Duration::from_millis(500), ..ClientLimits::default() };
    let connection = open_within(server, Era::Handshake, limits).await.unwrap();
    let mut request = tool("busy", json!({}));
    request.options.idle_timeout = Some(Duration::from_secs(20));
    assert_eq!(fault(call(&connection, request).await).kind, FaultKind::Timeout);
}

#[tokio::test]
async fn a_program_that_cannot_be_started_or_says_nothing_useful_is_named() {
    let script = "echo no key >&2; echo bye >&2; exit 3";
    let fault = open_child(&sh(script), Era::Handshake).await.unwrap_err();
    assert_eq!(fault.detail, "`files` exited with code 3");
    assert_eq!(fault.trace.as_deref(), Some("no key\nbye"));
    let missing = creole::client::Program::new("files", "/no/such/thing");
    let fault = open_child(&missing, Era::Handshake).await.unwrap_err();
    assert_eq!(fault.detail, "upstream `files`: the program `thing` does not exist");
}

#[tokio::test]
async fn closing_waits_until_no_process_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    let script = shaking("sleep 1000 & echo $$ $! > \"$PIDS\"; cat");
    let connection = open_child(&sh(&script).env("PIDS", &file), Era::Handshake).await.unwrap();
    let written = || std::fs::read_to_string(&file).ok().filter(|pids| pids.ends_with('\n'));
    let pids = eventually("the child writes its process ids", written).await;
    timeout(LONG, connection.close()).await.unwrap();
    for pid in pids.split_whitespace() {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        assert!(stat.is_empty() || stat.contains(") Z"), "{pid} is left: {stat}");
    }
}
