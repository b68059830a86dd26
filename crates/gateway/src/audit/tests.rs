//! Tests of the written lines and of rotation.

use std::fs;
use std::path::Path;
use std::time::Duration;

use creole::TokenIdentity;
use creole::internal::call::Origin;
use creole_proto::fault::{Fault, FaultKind};

use super::*;
use crate::layers::testing::{FlakyTools, ask_as, call, slow_service};

fn settings(folder: &Path) -> AuditSettings {
    let file = folder.join("audit.log");
    AuditSettings {
        file,
        max_bytes: 1 << 20,
        keep: 2,
        arguments: AuditArguments::Digest,
        sync: false,
    }
}

fn lines(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn each_call_is_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path());
    let file = settings.file.clone();
    let audit = Audit::new("acme", settings).unwrap();
    let (service, flaky) =
        FlakyTools::serve(audit, Fault::new(FaultKind::BackendUnavailable, ""), 0);
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
}

#[tokio::test]
async fn the_line_of_a_token_has_its_client_issuer_scopes_and_fingerprint() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path());
    let file = settings.file.clone();
    let service = slow_service(Audit::new("acme", settings).unwrap());
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
    let settings = settings(folder.path());
    let file = settings.file.clone();
    let audit = Audit::new("acme", settings).unwrap();
    let (service, _) = FlakyTools::serve(audit, Fault::new(FaultKind::BackendUnavailable, ""), 0);
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
    let file = settings.file.clone();
    let service = slow_service(Audit::new("acme", settings).unwrap());
    call(&service, "ann", "wait", r#"{"password":"x","text":"a sk-1 b"}"#).await;
    drop(service);
    assert_eq!(lines(&file)[0]["arguments"], json!({"password": "***", "text": "a *** b"}));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cancelled_is_written_too() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path());
    let file = settings.file.clone();
    let service = slow_service(Audit::new("acme", settings).unwrap());
    let waiting = call(&service, "ann", "wait", r#"{"seconds":60}"#);
    assert!(tokio::time::timeout(Duration::from_secs(1), waiting).await.is_err());
    drop(service);
    assert_eq!(lines(&file)[0]["outcome"], "cancelled");
}

#[test]
fn a_large_file_is_rotated_and_the_oldest_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let settings = AuditSettings { max_bytes: 10, ..settings(folder.path()) };
    let mut journal = AuditFile::open(&settings).unwrap();
    let words = ["first-line", "second-line", "third-line", "fourth-line", "5"];
    journal.write(words.iter().map(ToString::to_string));
    drop(journal);
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read("audit.log"), "5\n");
    assert_eq!(read("audit.log.1"), "fourth-line\n");
    assert_eq!(read("audit.log.2"), "third-line\n");
    assert!(!folder.path().join("audit.log.3").exists());
    AuditFile::open(&settings).unwrap().write(["6".to_owned()].into_iter());
    assert_eq!(read("audit.log"), "5\n6\n");
}

#[test]
fn two_that_write_to_one_file_lose_nothing_and_put_it_aside_once() {
    let folder = tempfile::tempdir().unwrap();
    let settings = AuditSettings { max_bytes: 1000, keep: 100, ..settings(folder.path()) };
    let writers: Vec<_> = ["a", "b"]
        .map(|name| {
            let settings = settings.clone();
            std::thread::spawn(move || {
                let mut journal = AuditFile::open(&settings).unwrap();
                for number in 0..200 {
                    let lines = (0..3).map(|part| format!("{name} {number} {part}"));
                    journal.write(lines);
                }
            })
        })
        .into();
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    let mut found = Vec::new();
    for file in fs::read_dir(folder.path()).unwrap() {
        let path = file.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.len() < 1100, "{} has {} bytes", path.display(), text.len());
        if path != settings.file {
            assert!(text.len() >= 1000, "{} has {} bytes", path.display(), text.len());
        }
        found.extend(text.lines().map(str::to_owned));
    }
    found.sort();
    let all = |name| (0..200).flat_map(move |number| (0..3).map(move |part| (name, number, part)));
    let mut expected: Vec<_> = all("a")
        .chain(all("b"))
        .map(|(name, number, part)| format!("{name} {number} {part}"))
        .collect();
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn a_file_that_was_rotated_by_hand_is_created_again() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path());
    let mut journal = AuditFile::open(&settings).unwrap();
    journal.write(["1".to_owned()].into_iter());
    fs::rename(&settings.file, folder.path().join("aside")).unwrap();
    journal.write(["2".to_owned()].into_iter());
    assert_eq!(fs::read_to_string(&settings.file).unwrap(), "2\n");
    assert_eq!(fs::read_to_string(folder.path().join("aside")).unwrap(), "1\n");
}

#[test]
fn a_file_that_cannot_be_opened_is_an_error_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("none/audit.log");
    assert!(Audit::new("acme", AuditSettings { file, ..settings(folder.path()) }).is_err());
}
