//! Live views: the state of an upstream, and calls under load.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use creole_acceptance::gateway::{
    HandshakeClient, ScriptedChildren, ScriptedReplies, StatelessClient,
};
use creole_test_wait::blocking::{eventually, within};
use serde_json::{Value, json};

use crate::{Console, toml_command};

/// How long it may take until a row shows a failure: two seconds, and much more on a busy machine.
const SHOWN_WITHIN: Duration = Duration::from_secs(30);

#[test]
fn an_upstream_that_dies_and_returns_changes_its_row_in_place() {
    let children =
        ScriptedChildren::new(ScriptedReplies::new("2025-06-18", json!({"tools": {}}), &["work"]));
    let mut config = "[server]\nname = \"house\"\npacks = [\"echo\"]\n".to_owned();
    for name in ["first", "second"] {
        config += &format!("\n[upstreams.{name}]\n{}", toml_command(&children.command()));
    }
    let console = Console::start(&config);
    let Some(mut browser) = console.browser() else { return };
    browser.open("#/upstreams");
    browser.wait("tr:has-text(\"second\") >> text=ready");
    browser.evaluate("document.querySelector('td a[href$=\"second\"]').focus(); globalThis.row = document.activeElement; 1");
    let process_of = |name: &str| {
        let pids = children.children().into_iter().map(|child| child.pid).collect::<Vec<_>>();
        assert!(!pids.is_empty(), "{name} has a process");
        pids
    };
    // Its process is killed, and so is each of its next ones, so that the next start has to wait.
    let backoff = "tr:has-text(\"second\"):has-text(\"backoff\"):has-text(\"next start in \")";
    let shown = within(SHOWN_WITHIN, || {
        for pid in process_of("second") {
            let mut kill = Command::new("kill");
            let _ = kill.args(["-9", &pid.to_string()]).stderr(Stdio::null()).status();
        }
        browser.count(backoff) > 0
    });
    assert!(shown.is_some(), "no countdown: {}", browser.text("main"));
    let countdown = "document.querySelector('td a[href$=\"second\"]').closest('tr').innerText\
                     .match(/next start in ([^;\\n]*)/)?.[1] ?? 'ready'";
    let first = browser.evaluate(countdown);
    eventually("the countdown moves", || browser.evaluate(countdown) != first);
    browser.wait("tr:has-text(\"second\") >> text=ready");
    assert_eq!(
        browser.evaluate("document.activeElement === globalThis.row && row.isConnected"),
        true,
        "the focus moved"
    );
    browser.assert_harmless();
}

/// The clients that call at once, the batches of each, and the calls of a batch: as many calls as 1,000 in a second for
/// half a minute.
const CLIENTS: u64 = 4;
const BATCHES: u64 = 75;
const CALLS: u64 = 100;

/// Calls a tool many times in one message.
fn call_in_batches(address: SocketAddr, calls: &AtomicU64) {
    let client = HandshakeClient::open(address, "2025-03-26", json!({}), None);
    let call = |id: u64| {
        let params = json!({"name": "echo", "arguments": {"message": "hello"}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    for _ in 0..BATCHES {
        let batch: Value = (0..CALLS).map(call).collect();
        let response = client.exchange(&batch);
        assert_eq!(response.head.status, 200, "{}", response.text());
        calls.fetch_add(CALLS, Ordering::Relaxed);
    }
}

#[test]
fn the_live_view_answers_while_thousands_of_calls_arrive() {
    let console = Console::start("[server]\nname = \"house\"\npacks = [\"echo\"]\n");
    let Some(mut browser) = console.browser() else { return };
    browser.open("#/calls");
    browser.wait("text=No call yet");
    let calls = AtomicU64::new(0);
    let address = console.server.address();
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| call_in_batches(address, &calls));
        }
        browser.wait("td >> text=echo");
        while calls.load(Ordering::Relaxed) < CLIENTS * BATCHES * CALLS {
            // A click that pauses the list and one that resumes it, each until the frame that shows its effect.
            for _ in 0..2 {
                browser.evaluate(
                    "new Promise((done) => { document.querySelector('[data-key=p]').click(); \
                     requestAnimationFrame(() => requestAnimationFrame(() => done(true))); })",
                );
            }
        }
    });
    browser.wait(".page-head >> text=/[\\d,]+ missed/");
    browser.wait(".page-head >> text=/2,000 kept/");
    let rows = browser.count("tbody tr");
    assert!(rows <= 200, "{rows} rows");
    let heap = browser.heap();
    assert!(heap < 80_000_000, "{heap} bytes");
    browser.assert_harmless();
}

#[test]
fn the_log_is_shown_live_by_level_and_can_be_paused_by_keyboard() {
    let config = "[server]\nname = \"house\"\npacks = [\"echo\"]\n\n[log]\nlevel = \"warn\"\n";
    let console = Console::start(config);
    let Some(mut browser) = console.browser() else { return };
    browser.press("g");
    browser.press("l");
    browser.wait("role=heading[name=\"Log\"]");
    browser.wait("text=No event yet");
    let client = StatelessClient::new(console.server.address());
    let _ = client.call("echo", json!({"message": "hello"}));
    browser.wait("tr:has-text(\"info\"):has-text(\"creole::request\"):has-text(\"tool=echo\")");
    browser.press("/");
    browser.type_text("no such event");
    browser.wait("text=No event yet");
    browser.fill("input[type=search]", "");
    browser.wait("td >> text=tool invoked >> nth=0");

    // A list that is paused stays as it is, and says what waits.
    browser.evaluate("document.querySelector('h1').focus()");
    browser.press("p");
    browser.wait(".page-head >> text=paused");
    let before = browser.count("tbody tr");
    let _ = client.call("echo", json!({"message": "again"}));
    browser.wait(".page-head >> text=/new events? wait/");
    assert_eq!(browser.count("tbody tr"), before);
    browser.press("p");
    eventually("the list has more rows", || browser.count("tbody tr") > before);

    // Errors only: what was less important is gone.
    browser.choose("role=combobox[name=\"Level\"]", "errors");
    browser.wait("text=No event yet");
    assert!(browser.evaluate("location.hash").as_str().unwrap().contains("level=error"));
    browser.assert_harmless();
}
