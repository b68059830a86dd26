//! Live views: the state of an upstream, and calls under load.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

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

/// Says that something is over when it is dropped.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn the_live_view_answers_while_a_thousand_calls_a_second_arrive() {
    let console = Console::start("[server]\nname = \"house\"\npacks = [\"echo\"]\n");
    let Some(mut browser) = console.browser() else { return };
    browser.open("#/calls");
    browser.wait("text=No call yet");
    let (is_over, calls) = (AtomicBool::new(false), AtomicU64::new(0));
    let address = console.server.address();
    let mut clicks = Vec::new();
    thread::scope(|scope| {
        // Also when an expectation fails.
        let _end = SetOnDrop(&is_over);
        for _ in 0..4 {
            scope.spawn(|| {
                let client = StatelessClient::new(address);
                while !is_over.load(Ordering::Relaxed) {
                    let _ = client.call("echo", json!({"message": "hello"}));
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        browser.wait("td >> text=echo");
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(6) {
            // How long the page takes from a click to the frame that shows its effect.
            let took = browser.evaluate(
                "new Promise((done) => { const start = performance.now(); document.querySelector('[data-key=p]').click(); \
                 requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - start))); })",
            );
            clicks.push(took.as_f64().unwrap());
        }
    });
    let made = calls.load(Ordering::Relaxed);
    assert!(made > 1000, "only {made} calls were made");
    // The median: other processes of the machine delay single clicks.
    clicks.sort_by(f64::total_cmp);
    let median = clicks[clicks.len() / 2];
    assert!(median < 200.0, "a click took {median} ms: {clicks:?}");
    let rows = browser.count("tbody tr");
    assert!(rows <= 200, "{rows} rows");
    let kept = browser.text(".page-head");
    assert!(kept.contains("2,000 kept") || made < 2000, "{kept}, {made} calls");
    let heap = browser.heap();
    assert!(heap < 80_000_000, "{heap} bytes");
    browser.assert_harmless();
}
