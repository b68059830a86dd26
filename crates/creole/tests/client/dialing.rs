//! Tests of the detection of a server's era, and of the client that does it automatically.

use std::sync::atomic::{AtomicUsize, Ordering};

use creole::client::{Address, Client, ClientBuilder, DetectedEra, HttpAddress};
use creole::internal::client::{ClientOffer, Connector, EraSupport};
use creole::proto::client::{CallRequest, ClientLimits};
use creole::proto::dialect::builtin;
use creole::proto::fault::FaultKind;
use creole::proto::model::ListKind;
use creole::proto::operation::{Operation, Outcome, Payload};
use creole::proto::revision::{Era, Revision, Rules};
use creole::proto::wire::Raw;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::scripted::{ResponseScript, opening, serve, serve_old, status};
use crate::support::{LONG, call, child, profile, sh, text, tool};

fn stateless() -> DetectedEra {
    DetectedEra::of(Rules::CANONICAL)
}

fn handshake() -> DetectedEra {
    DetectedEra::of(Rules::NEWEST_HANDSHAKE)
}

fn connector_for(address: Address) -> Connector {
    Connector::new(address, profile(ClientLimits::default()))
}

async fn dial(connector: &Connector) -> creole::internal::client::Connection {
    timeout(LONG, connector.connect(&ClientOffer::default())).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_child_of_the_newest_revision_is_used_in_it() {
    let connector = connector_for(Address::Child(child()));
    let connection = dial(&connector).await;
    assert_eq!(connector.detected(), Some(stateless()));
    assert_eq!(text(call(&connection, tool("echo", json!({"message": "m"}))).await), "m");
}

const DISCOVERED: &str = r#"{"jsonrpc":"2.0","id":'"$id"',"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}}"#;

const REFUSED: &str = r#"{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32601,"message":"?"}}"#;

/// A script that responds to lines of these methods, and to others with `otherwise`, until its input ends.
fn response_script(rows: &[(&str, &str)], otherwise: &str) -> String {
    let rows: Vec<_> =
        rows.iter().map(|(method, answer)| format!("*'{method}'*) echo '{answer}';;")).collect();
    format!(
        "id() {{ printf '%s' \"$1\" | sed -E 's/.*\"id\":([0-9]+).*/\\1/'; }}\n\
         while read -r line; do id=$(id \"$line\")\n\
         case $line in {} *) {otherwise};; esac; done",
        rows.join(" ")
    )
}

const SHAKEN: &str = r#"{"jsonrpc":"2.0","id":'"$id"',"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"sh","version":"1"}}}"#;

/// A script that records each of its starts in a file.
struct CountedProgram {
    folder: tempfile::TempDir,
    program: creole::client::Program,
}

impl CountedProgram {
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = format!("echo $$ >> \"$FOLDER/started\"\n{script}");
        let program = sh(&script).env("FOLDER", folder.path());
        Self { folder, program }
    }

    fn address(&self) -> Address {
        Address::Child(self.program.clone())
    }

    fn starts(&self) -> usize {
        let started = std::fs::read_to_string(self.folder.path().join("started"));
        started.unwrap().lines().count()
    }
}

async fn connect_in(connector: &Connector, era: Era) -> creole::internal::client::Connection {
    timeout(LONG, connector.connect_in(era, &ClientOffer::default())).await.unwrap().unwrap()
}

#[tokio::test]
async fn the_probed_process_is_the_one_that_is_used() {
    let both = response_script(&[("server/discover", DISCOVERED), ("initialize\"", SHAKEN)], ":");
    let old = response_script(
        &[("initialize\"", SHAKEN), ("initialized", "")],
        &format!("echo '{REFUSED}'"),
    );
    let new = response_script(&[("server/discover", DISCOVERED)], &format!("echo '{REFUSED}'"));
    let rows = [
        (&both, Era::Stateless, Era::Stateless),
        (&both, Era::Handshake, Era::Handshake),
        (&old, Era::Stateless, Era::Handshake),
        (&old, Era::Handshake, Era::Handshake),
        (&new, Era::Stateless, Era::Stateless),
        (&new, Era::Handshake, Era::Stateless),
    ];
    for (script, caller, expected) in rows {
        let server = CountedProgram::new(script);
        let dialer = connector_for(server.address());
        let connection = connect_in(&dialer, caller).await;
        assert_eq!(connection.greeting().rules.era, expected, "{caller:?} of {script}");
        assert_eq!(server.starts(), 1, "{caller:?} of {script}");
        assert_eq!(dialer.supported_eras().era_for(caller), Some(expected));
        // A detected era is not probed again.
        connect_in(&dialer, caller).await;
        assert_eq!(server.starts(), 2);
        connection.close().await;
    }
}

#[tokio::test]
async fn a_server_of_both_eras_serves_each_caller_in_its_own() {
    let both = response_script(&[("server/discover", DISCOVERED), ("initialize\"", SHAKEN)], ":");
    let connector = connector_for(Address::Child(sh(&both)));
    for era in [Era::Stateless, Era::Handshake, Era::Stateless, Era::Handshake] {
        assert_eq!(connect_in(&connector, era).await.greeting().rules.era, era);
    }
    assert_eq!(connector.supported_eras(), EraSupport::BOTH);
    for revision in ["2025-06-18", "2026-07-28"] {
        let rules = Revision::from_name(revision).unwrap().rules();
        let pinned = connector_for(Address::Child(sh(&both))).pin_revision(rules);
        for era in [Era::Stateless, Era::Handshake] {
            assert_eq!(connect_in(&pinned, era).await.greeting().rules.era, rules.era);
        }
    }
}

#[tokio::test]
async fn a_pinned_revision_is_the_one_that_is_proposed() {
    let echo = SHAKEN.replace("2025-11-25", r#"'"$version"'"#);
    let script = response_script(&[("initialize\"", &echo)], ":").replace(
        "case $line",
        "version=$(printf '%s' \"$line\" | sed -E 's/.*\"protocolVersion\":\"([^\"]+)\".*/\\1/')\ncase $line",
    );
    for revision in ["2025-11-25", "2025-06-18", "2024-11-05"] {
        let rules = Revision::from_name(revision).unwrap().rules();
        let dialer = connector_for(Address::Child(sh(&script))).pin_revision(rules);
        assert_eq!(dial(&dialer).await.greeting().version, revision);
    }
}

#[tokio::test]
async fn a_child_that_exits_fails_or_is_silent_when_probed_gets_a_handshake() {
    for (reaction, starts) in
        [("exit 1", 2), (&*format!("echo '{REFUSED}'; continue"), 1), ("continue", 1)]
    {
        let script = response_script(&[("initialize\"", SHAKEN)], ":");
        let script = script.replacen(
            "case $line in ",
            &format!("case $line in *server/discover*) {reaction};; "),
            1,
        );
        let server = CountedProgram::new(&script);
        let dialer = connector_for(server.address());
        let connection = dial(&dialer).await;
        assert_eq!(connection.greeting().server_info.identity.name, "sh", "{reaction}");
        assert_eq!(dialer.detected(), Some(handshake()), "{reaction}");
        assert_eq!(server.starts(), starts, "{reaction}");
        connection.close().await;
    }
}

#[tokio::test]
async fn a_slow_child_is_started_once_and_used_in_its_own_era() {
    let listed = r#"{"jsonrpc":"2.0","id":'"$id"',"result":{"resultType":"complete","tools":[]}}"#;
    let rows = [("server/discover", DISCOVERED), ("initialize\"", REFUSED), ("tools/list", listed)];
    let server = CountedProgram::new(&format!("sleep 3.5\n{}", response_script(&rows, ":")));
    let connector = connector_for(server.address());
    let connection = dial(&connector).await;
    assert_eq!(connection.greeting().rules.era, Era::Stateless);
    assert_eq!(server.starts(), 1);
    // The late response to the handshake is not taken for the response to a call.
    let listed = timeout(
        LONG,
        connection.call_without_input(CallRequest::new(Operation::List(ListKind::Tools, None))),
    );
    assert!(matches!(listed.await.unwrap(), Outcome::Complete(Payload::Page(_))));
}

#[tokio::test]
async fn a_child_that_is_silent_after_the_probe_is_replaced() {
    let script = response_script(&[("initialize\"", SHAKEN)], "exec sleep 1000");
    let server = CountedProgram::new(&script);
    // The wait is limited by the handshake timeout.
    let limits = ClientLimits {
        handshake_timeout: std::time::Duration::from_secs(5),
        ..ClientLimits::default()
    };
    let connector = Connector::new(server.address(), profile(limits));
    let connection = dial(&connector).await;
    assert_eq!(connection.greeting().rules.era, Era::Handshake);
    assert_eq!(server.starts(), 2);
}

#[tokio::test]
async fn messages_before_the_probe_response_are_not_lost() {
    let text = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"early"}}"#;
    let script = response_script(&[("initialize\"", &format!("{text}'; echo '{SHAKEN}"))], ":");
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let on_log: creole::internal::client::OnLog =
        std::sync::Arc::new(move |event| _ = sender.send(event));
    let offer = ClientOffer { on_log: Some(on_log), ..ClientOffer::default() };
    let connector = connector_for(Address::Child(sh(&script)));
    timeout(LONG, connector.connect_in(Era::Handshake, &offer)).await.unwrap().unwrap();
    assert!(timeout(LONG, receiver.recv()).await.unwrap().is_some());
}

fn web(address: std::net::SocketAddr) -> Address {
    Address::Http(HttpAddress::new("web", &format!("http://{address}/mcp")).unwrap())
}

#[tokio::test]
async fn an_http_server_is_spoken_to_in_its_own_era() {
    let new: ResponseScript = |request| opening(request).unwrap();
    let old: ResponseScript = |request| match request.is("server/discover") {
        true => status("400 Bad Request", ""),
        false => opening(request).unwrap(),
    };
    // Opening a connection to a new server sends `server/discover` as well.
    for (script, expected, discoveries) in [(new, stateless(), 3), (old, handshake(), 1)] {
        let (address, seen) = serve(script).await;
        let dialer = connector_for(web(address));
        dial(&dialer).await;
        assert_eq!(dialer.detected(), Some(expected));
        dial(&dialer).await;
        let seen = seen.lock().unwrap().clone();
        let asked = seen.iter().filter(|request| request.is("server/discover")).count();
        assert_eq!(asked, discoveries, "a detected era is not probed again");
    }
}

#[tokio::test]
async fn a_server_that_contradicts_what_is_known_is_asked_again() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    // A new server during the probe and the first connection; then an old one replaces it.
    let script: ResponseScript = |request| {
        let is_new = ASKED.fetch_add(1, Ordering::SeqCst) < 2;
        match request.is("server/discover") && !is_new {
            true => status("404 Not Found", ""),
            false => opening(request).unwrap(),
        }
    };
    let (address, _) = serve(script).await;
    let connector = connector_for(web(address));
    dial(&connector).await;
    assert_eq!(connector.detected(), Some(stateless()));
    let connection = dial(&connector).await;
    assert_eq!(connection.greeting().rules.era, Era::Handshake);
    assert_eq!(connector.detected(), Some(handshake()));
}

#[tokio::test]
async fn a_server_of_the_oldest_transport_is_found_even_where_only_a_handshake_is_allowed() {
    for pinned in [None, Some(Revision::newest(Era::Handshake).rules())] {
        let address = serve_old("/messages?sid=7").await;
        let mut dialer = connector_for(web(address));
        if let Some(pinned) = pinned {
            dialer = dialer.pin_revision(pinned);
        }
        let connection = dial(&dialer).await;
        assert_eq!(connection.greeting().version, "2024-11-05");
        assert_eq!(dialer.detected(), Some(DetectedEra::LEGACY_SSE));
    }
}

#[tokio::test]
async fn neither_an_outage_nor_a_closed_door_says_anything_about_the_era() {
    let rows: [(ResponseScript, &str); 3] = [
        (|_| status("401 No", ""), "`web` requires credentials (status 401); set `headers`"),
        (|_| status("503 Down", ""), "`web` is not available (status 503)"),
        (
            |_| status("301 Moved", "Location: /x\r\n"),
            "`web` responded with a redirect, which is not followed (status 301)",
        ),
    ];
    for (script, expected) in rows {
        let (address, seen) = serve(script).await;
        let dialer = connector_for(web(address));
        let fault = dialer.connect(&ClientOffer::default()).await.unwrap_err();
        assert!(fault.detail.starts_with(expected), "{}", fault.detail);
        assert_eq!(dialer.detected(), None);
        assert_eq!(seen.lock().unwrap().len(), 1);
    }
}

/// A client that supports forms.
fn client() -> ClientBuilder {
    let answer = || Raw::from_value(&json!({"action": "accept", "content": {"name": "Ada"}}));
    ClientBuilder::new("tester", "1").on_form(move |_| std::future::ready(Some(answer())))
}

fn result_text(result: &Raw) -> String {
    let result: Value = result.decode().unwrap();
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_client_lists_calls_and_answers_in_both_eras() {
    let mut old = builtin("spec").unwrap();
    old.stateless = false;
    for (builder, era) in [(client(), Era::Stateless), (client().dialect(old), Era::Handshake)] {
        let client =
            timeout(LONG, builder.connect(Address::Child(child()))).await.unwrap().unwrap();
        assert_eq!(client.connection().greeting().rules.era, era);
        let tools = client.list(ListKind::Tools).await.unwrap();
        let names: Vec<_> = tools.iter().map(|tool| tool.name()).collect();
        assert!(names.contains(&"echo") && names.contains(&"ask"), "{names:?}");
        let result = client.call_tool("echo", &json!({"message": "hi"})).await.unwrap();
        assert_eq!(result_text(result.as_raw()), "hi");
        let asked = timeout(LONG, client.call_tool("ask", &json!({}))).await.unwrap();
        assert_eq!(result_text(asked.unwrap().as_raw()), "hello \"Ada\"");
        let unknown = client.read_resource("test://nothing").await.unwrap_err();
        assert_ne!(unknown.kind, FaultKind::BackendUnavailable, "{unknown:?}");
        client.close().await;
    }
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_is_told_so_by_the_server() {
    let client = Client::connect(Address::Child(child())).await.unwrap();
    let outcome = timeout(LONG, client.call_tool("ask", &json!({}))).await.unwrap();
    assert!(!outcome.is_ok_and(|result| result_text(result.as_raw()).starts_with("hello")));
}
