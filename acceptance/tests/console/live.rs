//! Live views: the state of an upstream, and calls under load.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use creole_acceptance::gateway::{ScriptedChildren, ScriptedReplies, StatelessClient};
use creole_test_wait::blocking::eventually;
use serde_json::json;

use crate::{Console, toml_command};

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
    // Its process is killed, and so is each of its next ones.
    let backoff = "tr:has-text(\"second\"):has-text(\"backoff\"):has-text(\"next \")";
    eventually("the row says backoff", || {
        for child in children.children() {
            let mut kill = Command::new("kill");
            let _ = kill.args(["-9", &child.pid.to_string()]).stderr(Stdio::null()).status();
        }
        browser.count(backoff) > 0
    });
    browser.wait("tr:has-text(\"second\") >> text=ready");
    assert_eq!(
        browser.evaluate("document.activeElement === globalThis.row && row.isConnected"),
        true,
        "the focus moved"
    );
    browser.assert_harmless();
}

/// The clients that call at once, and the calls of each.
const CLIENTS: u64 = 4;
const CALLS: u64 = 750;

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
            scope.spawn(|| {
                let client = StatelessClient::new(address);
                for _ in 0..CALLS {
                    let _ = client.call("echo", json!({"message": "hello"}));
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        browser.wait("td >> text=echo");
        while calls.load(Ordering::Relaxed) < CLIENTS * CALLS {
            // A click that pauses the list and one that resumes it, each until the frame that shows its effect.
            for _ in 0..2 {
                browser.evaluate(
                    "new Promise((done) => { document.querySelector('[data-key=p]').click(); \
                     requestAnimationFrame(() => requestAnimationFrame(() => done(true))); })",
                );
            }
        }
    });
    browser.wait(".page-head >> text=/2,000 kept|missed/");
    let rows = browser.count("tbody tr");
    assert!(rows <= 200, "{rows} rows");
    let heap = browser.heap();
    assert!(heap < 80_000_000, "{heap} bytes");
    browser.assert_harmless();
}
