//! Tests of the lines that calls leave.

mod failures;
mod files;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use creole::internal::call::Origin;
use creole::internal::telemetry::{PayloadView, Telemetry};
use creole::{Principal, TokenIdentity, TokenMethod};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::operation::Operation;
use creole_proto::revision::Rules;
use serde_json::{Map, Value, json};

use super::*;
use crate::layers::Redactor;
use crate::layers::testing::{FlakyTools, ask_as, call, slow_service};

fn file_settings(folder: &Path) -> AuditFileSettings {
    let path = folder.join("audit.log");
    AuditFileSettings { path, max_bytes: 1 << 20, keep: 2, sync: false }
}

fn settings(folder: &Path) -> AuditSettings {
    AuditSettings {
        to: AuditTarget::File(file_settings(folder)),
        arguments: AuditArguments::Digest,
        chain: false,
        required: false,
        remote: true,
        replica: None,
    }
}

fn audit(settings: AuditSettings) -> Audit {
    Audit::new("acme", settings, AuditScope::Layer, &Telemetry::default()).unwrap()
}

fn file(folder: &Path) -> PathBuf {
    folder.join("audit.log")
}

fn lines(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn each_call_is_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let (settings, file) = (settings(folder.path()), file(folder.path()));
    let (service, flaky) =
        FlakyTools::serve(audit(settings), Fault::new(FaultKind::BackendUnavailable, ""), 0);
    call(&service, "ann", "read", r#"{"a":1}"#).await;
    flaky.fail(1);
    call(&service, "bob", "read", r#"{ "a": 1.0 }"#).await;
    drop(service);
    let [first, second] = &lines(&file)[..] else { panic!() };
    let told = |key: &str| (first[key].clone(), second[key].clone());
    assert_eq!(told("principal"), (json!("ann"), json!("bob")));
    assert_eq!(told("outcome"), (json!("ok"), json!("fault")));
    assert_eq!(told("fault"), (Value::Null, json!("backend-unavailable")));
    assert_eq!(first["argumentsSha256"], second["argumentsSha256"]);
    assert_eq!((&first["method"], &first["target"]), (&json!("tools/call"), &json!("read")));
    assert_eq!(first["server"], "acme");
    assert!(first["time"].as_str().unwrap().ends_with('Z') && first["durationUs"].is_u64());
    assert_eq!(
        (&first["v"], &first["via"], &first["era"]),
        (&1.into(), &json!("mcp"), &json!("stateless"))
    );
    assert!(first["id"].as_str().unwrap().len() == 32 && first["id"] != second["id"]);
    assert!(first.get("hash").is_none() && first.get("remote").is_none());
}

#[test]
fn a_person_who_looks_at_messages_leaves_a_line_in_the_logs_of_the_call() {
    let folder = tempfile::tempdir().unwrap();
    let telemetry = Telemetry::default();
    let log = |name: &str, scope: AuditScope| {
        let path = folder.path().join(format!("{name}.log"));
        let to = AuditTarget::File(AuditFileSettings { path, ..file_settings(folder.path()) });
        let settings = AuditSettings { to, ..settings(folder.path()) };
        Audit::new(name, settings, scope, &telemetry).unwrap()
    };
    let serving = || AuditScope::Server(Arc::new(AtomicBool::new(true)));
    let replaced = || AuditScope::Server(Arc::default());
    let logs = [
        log("team", serving()),
        log("other", serving()),
        log("files", AuditScope::Layer),
        log("mail", AuditScope::Layer),
    ];
    let view = PayloadView {
        principal: &"user:ada".into(),
        remote: Some([127, 0, 0, 1].into()),
        call: 0xabc,
        server: "team",
        upstreams: &["files"],
        rules: Rules::CANONICAL,
        target: "read",
    };
    telemetry.report_payload_view(&view);
    drop(logs);
    let written = |name: &str| lines(&folder.path().join(format!("{name}.log")));
    let [line] = &written("team")[..] else { panic!("one line: {:?}", written("team")) };
    let told = ["principal", "via", "method", "target", "outcome", "remote", "auth"]
        .map(|key| line[key].as_str().unwrap().to_owned());
    assert_eq!(told, ["user:ada", "console", "payloads/view", "read", "ok", "127.0.0.1", "basic"]);
    assert_eq!(line["id"], format!("{:032x}", 0xabc));
    assert_eq!((written("files").len(), written("mail").len()), (1, 0));
    assert_eq!(written("other").len(), 0);
    let old = log("team", replaced());
    telemetry.report_payload_view(&view);
    drop(old);
    assert_eq!(written("team").len(), 1, "the server that replaced it writes the line");
}

#[tokio::test]
async fn the_line_of_a_token_has_its_client_issuer_scopes_and_fingerprint() {
    let folder = tempfile::tempdir().unwrap();
    let (settings, file) = (settings(folder.path()), file(folder.path()));
    let service = slow_service(audit(settings));
    let token = TokenIdentity {
        issuer: "https://id.example.com".into(),
        label: "corp".into(),
        subject: Some("ada:\u{202e}".into()),
        subject_claim: "sub".into(),
        client: Some("editor".into()),
        is_program: false,
        scopes: vec!["mcp".into(), "files:read".into()],
        claims: Map::from_iter([("email".to_owned(), json!("ada@example.com"))]),
        expires_at: SystemTime::now(),
        method: TokenMethod::Introspection,
        is_dpop: false,
        fingerprint: [0xde, 0xad, 0xbe, 0xef],
    };
    for principal in [
        Principal::from_token(token.clone(), &[], &["implied".into()]),
        Principal::from_token(TokenIdentity { is_dpop: true, client: None, ..token }, &[], &[]),
        "key:ci".into(),
        "user:ada".into(),
        Principal::local(),
    ] {
        let operation = Operation::List(creole_proto::model::ListKind::Tools, None);
        ask_as(&service, Origin::new(principal), operation).await;
    }
    drop(service);
    let written = lines(&file);
    let told = |key: &str| written.iter().map(|line| line[key].clone()).collect::<Vec<_>>();
    let name = "oauth:corp:ada%3A%E2%80%AE";
    assert_eq!(told("principal"), [name, name, "key:ci", "user:ada", "local"]);
    let none = Value::Null;
    let auth = ["introspection", "dpop", "key", "basic"].map(Value::from);
    assert_eq!(told("auth"), [&auth[..], std::slice::from_ref(&none)].concat());
    assert_eq!(told("client")[..3], [json!("editor"), none.clone(), none.clone()]);
    assert_eq!(told("issuer")[1..3], [json!("corp"), none.clone()]);
    assert_eq!(told("scopes")[0], json!(["mcp", "files:read"]));
    assert_eq!(told("token")[..3], [json!("deadbeef"), json!("deadbeef"), none]);
    assert!(!fs::read_to_string(&file).unwrap().contains("example.com"), "no claim is written");
}

#[tokio::test]
async fn direction_marks_are_escaped() {
    let folder = tempfile::tempdir().unwrap();
    let (settings, file) = (settings(folder.path()), file(folder.path()));
    let (service, _) =
        FlakyTools::serve(audit(settings), Fault::new(FaultKind::BackendUnavailable, ""), 0);
    call(&service, "ann\u{202e}", "re\u{2066}ad", "{}").await;
    drop(service);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("ann\\u202e") && text.contains("re\\u2066ad"), "{text}");
    assert_eq!(lines(&file)[0]["principal"], "ann\u{202e}");
}

#[tokio::test]
async fn arguments_are_written_without_redacted_values() {
    let folder = tempfile::tempdir().unwrap();
    let redactor =
        Redactor::new(&["sk-\\w+".to_owned()], &["/password".to_owned()], "***").unwrap();
    let settings =
        AuditSettings { arguments: AuditArguments::Redacted(redactor), ..settings(folder.path()) };
    let file = file(folder.path());
    let service = slow_service(audit(settings));
    call(&service, "ann", "wait", r#"{"password":"x","text":"a sk-1 b"}"#).await;
    drop(service);
    assert_eq!(lines(&file)[0]["arguments"], json!({"password": "***", "text": "a *** b"}));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cancelled_is_written_too() {
    let folder = tempfile::tempdir().unwrap();
    let (settings, file) = (settings(folder.path()), file(folder.path()));
    let service = slow_service(audit(settings));
    let waiting = call(&service, "ann", "wait", r#"{"seconds":60}"#);
    assert!(tokio::time::timeout(Duration::from_secs(1), waiting).await.is_err());
    drop(service);
    assert_eq!(lines(&file)[0]["outcome"], "cancelled");
}

#[tokio::test]
async fn large_arguments_and_targets_do_not_make_large_lines() {
    let folder = tempfile::tempdir().unwrap();
    let redactor = Redactor::new(&[], &["/a".to_owned()], "***").unwrap();
    let settings =
        AuditSettings { arguments: AuditArguments::Redacted(redactor), ..settings(folder.path()) };
    let service = slow_service(audit(settings));
    let arguments = format!("{{\"text\":\"{}\"}}", "x".repeat(300 << 10));
    call(&service, "ann", "wait", &arguments).await;
    call(&service, "ann", &"\u{20ac}".repeat(5000), "{}").await;
    drop(service);
    let [first, second] = &lines(&file(folder.path()))[..] else { panic!() };
    assert_eq!(first["argumentsBytes"], arguments.len());
    assert!(first["argumentsSha256"].is_string() && first.get("arguments").is_none());
    let target = second["target"].as_str().unwrap();
    assert!(target.len() < 4200 && target.ends_with("\u{20ac}\u{2026}"), "{}", target.len());
}

#[tokio::test]
async fn the_lines_of_a_chain_have_the_hashes_of_their_predecessors() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let settings = AuditSettings { chain: true, ..settings(folder.path()) };
        let service = slow_service(audit(settings));
        for _ in 0..3 {
            call(&service, "ann\u{202e}", "wait", "{}").await;
        }
    }
    let file = file(folder.path());
    let written = lines(&file);
    let hashes: Vec<_> = written.iter().map(|line| line["hash"].clone()).collect();
    let before: Vec<_> = written.iter().map(|line| line["prev"].clone()).collect();
    assert_eq!((&hashes[..5], &before[0]), (&before[1..], &json!("0".repeat(64))));
    let found = verify(&[file], None).unwrap();
    assert_eq!((found.lines, found.first_break), (6, None));
    assert_eq!(found.chains[0].newest, hashes[5].as_str().unwrap());
}

#[tokio::test]
async fn a_collector_gets_the_lines_of_one_chain() {
    use std::sync::{Arc, Mutex};

    let exported = Arc::new(Mutex::new(Vec::new()));
    let folder = tempfile::tempdir().unwrap();
    let receive = Arc::clone(&exported);
    let exporter = AuditExporter::new(move |export: AuditExport| {
        let mut all = receive.lock().unwrap();
        // The third line does not fit into the queue.
        let fits = all.len() != 2;
        all.push(export);
        fits
    });
    let to = AuditTarget::Exporter(exporter);
    let service = slow_service(audit(AuditSettings { to, chain: true, ..settings(folder.path()) }));
    for number in 0..5 {
        call(&service, "ann", "wait", "{}").await;
        let count = || exported.lock().unwrap().len();
        creole_test_wait::eventually("the line is exported", || count() > number).await;
    }
    drop(service);
    let mut all: Vec<String> =
        exported.lock().unwrap().iter().map(|export| export.line.to_string()).collect();
    all.remove(2);
    let found = verify_reader(format!("{}\n", all.join("\n")).as_bytes(), None).unwrap();
    assert_eq!((found.first_break.clone(), found.chains.len()), (None, 1), "{found:?}");
    assert!(all.iter().any(|line| line.contains("\"lost\":1")), "{all:?}");
    assert_eq!(all.len(), 5, "four calls and the lost one");
}

#[tokio::test]
async fn written_lines_are_valid_against_the_schema() {
    let folder = tempfile::tempdir().unwrap();
    let service = slow_service(audit(AuditSettings {
        chain: true,
        required: true,
        replica: Some("r1".into()),
        ..settings(folder.path())
    }));
    call(&service, "key:ci", "wait", "{}").await;
    drop(service);
    let written = lines(&file(folder.path()));
    let outcomes: Vec<_> = written.iter().map(|line| line["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["started", "ok"]);
    assert_eq!(written[0]["id"], written[1]["id"]);
    let schema = line_schema();
    for line in &written {
        for (key, value) in line.as_object().unwrap() {
            let member = &schema["properties"][key];
            assert!(member.is_object(), "the schema has no `{key}`");
            if let Some(values) = member["enum"].as_array() {
                assert!(values.contains(value), "{key}: {value}");
            }
        }
    }
}
