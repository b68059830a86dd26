//! Finding out how a server wants to be spoken to, and the client that does so by itself.

use std::sync::atomic::{AtomicUsize, Ordering};

use creole::client::http::Target;
use creole::client::{Client, ClientBuilder, Dialer, Found, Offer, Way};
use creole::proto::client::Limits;
use creole::proto::dialect::builtin;
use creole::proto::fault::FaultKind;
use creole::proto::model::ListKind;
use creole::proto::revision::{Era, Revision};
use creole::proto::wire::Raw;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::scripted::{Script, opening, serve, serve_old, status};
use crate::support::{LONG, call, child, profile, sh, shaking, text, tool};

fn stateless() -> Found {
    Found::Stateless(Revision::newest(Era::Stateless).rules())
}

fn dialer(way: Way) -> Dialer {
    Dialer::new(way, profile(Limits::default()))
}

async fn dial(dialer: &Dialer) -> creole::client::Connection {
    timeout(LONG, dialer.connect(&Offer::default())).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_child_that_knows_the_newest_way_is_spoken_to_in_it() {
    let dialer = dialer(Way::Child(child()));
    let connection = dial(&dialer).await;
    assert_eq!(dialer.known(), Some(stateless()));
    assert_eq!(text(call(&connection, tool("echo", json!({"message": "m"}))).await), "m");
}

#[tokio::test]
async fn a_child_that_ends_errs_or_is_silent_when_asked_is_shaken_hands_with() {
    let refusal = r#"{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32601,"message":"?"}}"#;
    let reactions = ["exit 1", &format!("echo '{refusal}'; cat"), "cat >/dev/null"];
    for reaction in reactions {
        let script = shaking("cat >/dev/null");
        let script = script.replacen(
            "id=$(id \"$line\");",
            &format!(
                "id=$(id \"$line\"); case $line in *server/discover*) {reaction}; exit 1;; esac;"
            ),
            1,
        );
        let dialer = dialer(Way::Child(sh(&script)));
        let connection = dial(&dialer).await;
        assert_eq!(connection.greeting().card.identity.name, "sh", "{reaction}");
        assert_eq!(dialer.known(), Some(Found::Handshake), "{reaction}");
        connection.close().await;
    }
}

#[tokio::test]
async fn a_child_that_only_knows_the_newest_way_is_found_even_if_it_takes_long_to_start() {
    let result =
        r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}"#;
    let answer = format!(r#"{{"jsonrpc":"2.0","id":'"$id"',"result":{result}}}"#);
    let refusal = r#"{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32601,"message":"?"}}"#;
    let folder = tempfile::tempdir().unwrap();
    // The first process is silent; later ones are quick.
    let script = format!(
        "id() {{ printf '%s' \"$1\" | sed -E 's/.*\"id\":([0-9]+).*/\\1/'; }}\n\
         mkdir \"$FOLDER/started\" && exec cat >/dev/null\n\
         while read -r line; do id=$(id \"$line\")\n\
         case $line in *server/discover*) echo '{answer}';; *) echo '{refusal}';; esac; done"
    );
    let dialer = dialer(Way::Child(sh(&script).env("FOLDER", folder.path())));
    let connection = dial(&dialer).await;
    assert_eq!(connection.greeting().rules.era, Era::Stateless);
    assert_eq!(dialer.known(), Some(stateless()));
}

#[tokio::test]
async fn a_child_that_was_only_slow_to_start_is_spoken_to_in_its_own_way_the_next_time() {
    let result =
        r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}"#;
    let answer = format!(r#"{{"jsonrpc":"2.0","id":'"$id"',"result":{result}}}"#);
    let script = shaking("cat >/dev/null").replacen(
        "id=$(id \"$line\");",
        &format!("id=$(id \"$line\"); case $line in *server/discover*) sleep 3.5; echo '{answer}'; exec cat;; esac;"),
        1,
    );
    let dialer = dialer(Way::Child(sh(&script)));
    let connection = dial(&dialer).await;
    assert_eq!(connection.greeting().rules.era, Era::Handshake);
    let learns = async {
        while dialer.known() != Some(stateless()) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    timeout(LONG, learns).await.unwrap();
}

#[tokio::test]
async fn a_child_that_is_always_slow_to_start_is_spoken_to_in_its_own_way_at_once() {
    let result =
        r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}"#;
    let answer = format!(r#"{{"jsonrpc":"2.0","id":'"$id"',"result":{result}}}"#);
    let shakes = shaking("cat >/dev/null").replacen(
        "id=$(id \"$line\");",
        &format!(
            "id=$(id \"$line\"); case $line in *server/discover*) echo '{answer}'; exec cat;; esac;"
        ),
        1,
    );
    let dialer = dialer(Way::Child(sh(&format!("sleep 3.5\n{shakes}"))));
    let connection = dial(&dialer).await;
    assert_eq!(connection.greeting().rules.era, Era::Stateless);
}

fn web(address: std::net::SocketAddr) -> Way {
    Way::Http(Target::new("web", &format!("http://{address}/mcp")).unwrap())
}

#[tokio::test]
async fn an_http_server_is_spoken_to_in_its_own_era() {
    let new: Script = |request| opening(request).unwrap();
    let old: Script = |request| match request.is("server/discover") {
        true => status("400 Bad Request", ""),
        false => opening(request).unwrap(),
    };
    // A new server is asked by each opening as well.
    for (script, expected, discoveries) in [(new, stateless(), 3), (old, Found::Handshake, 1)] {
        let (address, seen) = serve(script).await;
        let dialer = dialer(web(address));
        dial(&dialer).await;
        assert_eq!(dialer.known(), Some(expected));
        dial(&dialer).await;
        let seen = seen.lock().unwrap().clone();
        let asked = seen.iter().filter(|request| request.is("server/discover")).count();
        assert_eq!(asked, discoveries, "what is known is not asked again");
    }
}

#[tokio::test]
async fn a_server_that_contradicts_what_is_known_is_asked_again() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    // New when it is first asked, and while it is first spoken to; then replaced by an old one.
    let script: Script = |request| {
        let is_new = ASKED.fetch_add(1, Ordering::SeqCst) < 2;
        match request.is("server/discover") && !is_new {
            true => status("404 Not Found", ""),
            false => opening(request).unwrap(),
        }
    };
    let (address, _) = serve(script).await;
    let dialer = dialer(web(address));
    dial(&dialer).await;
    assert_eq!(dialer.known(), Some(stateless()));
    let connection = dial(&dialer).await;
    assert_eq!(connection.greeting().rules.era, Era::Handshake);
    assert_eq!(dialer.known(), Some(Found::Handshake));
}

#[tokio::test]
async fn a_server_of_the_oldest_transport_is_found_even_where_only_a_handshake_is_allowed() {
    for pinned in [None, Some(Found::Handshake)] {
        let address = serve_old("/messages?sid=7").await;
        let mut dialer = dialer(web(address));
        if let Some(pinned) = pinned {
            dialer = dialer.pinned(pinned);
        }
        let connection = dial(&dialer).await;
        assert_eq!(connection.greeting().version, "2024-11-05");
        assert_eq!(dialer.known(), Some(Found::OldSse));
    }
}

#[tokio::test]
async fn neither_an_outage_nor_a_closed_door_says_anything_about_the_era() {
    let rows: [(Script, &str); 3] = [
        (|_| status("401 No", ""), "`web` wants other credentials (status 401)"),
        (|_| status("503 Down", ""), "`web` is not available (status 503)"),
        (
            |_| status("301 Moved", "Location: /x\r\n"),
            "`web` points elsewhere, which is not followed (status 301)",
        ),
    ];
    for (script, expected) in rows {
        let (address, seen) = serve(script).await;
        let dialer = dialer(web(address));
        let fault = dialer.connect(&Offer::default()).await.unwrap_err();
        assert_eq!(fault.detail, expected);
        assert_eq!(dialer.known(), None);
        assert_eq!(seen.lock().unwrap().len(), 1);
    }
}

/// A client that fills in forms.
fn client() -> ClientBuilder {
    let answer = || Raw::of(&json!({"action": "accept", "content": {"name": "Ada"}}));
    ClientBuilder::new("tester", "1").on_form(move |_| std::future::ready(Some(answer())))
}

fn said(result: &Raw) -> String {
    let result: Value = result.decode().unwrap();
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_client_lists_calls_and_answers_in_both_eras() {
    let mut old = builtin("spec").unwrap();
    old.stateless = false;
    for (builder, era) in [(client(), Era::Stateless), (client().dialect(old), Era::Handshake)] {
        let client = timeout(LONG, builder.connect(Way::Child(child()))).await.unwrap().unwrap();
        assert_eq!(client.connection().greeting().rules.era, era);
        let tools = client.list(ListKind::Tools).await.unwrap();
        let names: Vec<_> = tools.iter().map(|tool| tool.name()).collect();
        assert!(names.contains(&"echo") && names.contains(&"ask"), "{names:?}");
        let result = client.call_tool("echo", &json!({"message": "hi"})).await.unwrap();
        assert_eq!(said(&result), "hi");
        let asked = timeout(LONG, client.call_tool("ask", &json!({}))).await.unwrap();
        assert_eq!(said(&asked.unwrap()), "hello \"Ada\"");
        let unknown = client.read("test://nothing").await.unwrap_err();
        assert_ne!(unknown.kind, FaultKind::BackendUnavailable, "{unknown:?}");
        client.close().await;
    }
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_is_told_so_by_the_server() {
    let client = Client::connect(Way::Child(child())).await.unwrap();
    let outcome = timeout(LONG, client.call_tool("ask", &json!({}))).await.unwrap();
    assert!(!outcome.is_ok_and(|result| said(&result).starts_with("hello")));
}
