//! Who may see and do what: links, roles, other origins, and the end of a session.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::Duration;

use creole_acceptance::http::Request;
use creole_acceptance::process_under_test::finished_command::FinishedCommand;
use creole_acceptance::stage::stdio::binary;
use creole_test_wait::blocking::{eventually, never_within};
use serde_json::{Value, json};

use crate::Console;

const PLAIN: &str = "[server]\nname = \"house\"\npacks = [\"hello\", \"echo\"]\n";

#[test]
fn a_link_signs_in_once() {
    let console = Console::start(PLAIN);
    let Some(mut browser) = console.browser_outside() else { return };
    let link = console.link();
    browser.open(&link);
    browser.wait("role=heading[name=\"Overview\"]");
    let address = browser.evaluate("location.href");
    assert!(address.as_str().unwrap().ends_with("/#/overview"), "the token is gone: {address}");
    assert_eq!(browser.evaluate("document.cookie"), "");

    let mut second = console.browser_outside().unwrap();
    second.open(&link);
    second.wait("text=This link was used");
    let advice = second.text("main");
    assert!(advice.contains("creole console"), "{advice}");

    // The first tab stays signed in when it is loaded again.
    browser.reload();
    browser.wait("role=heading[name=\"Overview\"]");
    browser.assert_harmless();
}

#[test]
fn a_session_that_ends_shows_the_sign_in_and_asks_no_more() {
    let console = Console::start(PLAIN);
    let Some(mut browser) = console.browser() else { return };
    browser.open("#/calls");
    browser.wait("text=No call yet");
    // Another tab with the same bearer signs out.
    let ended = browser.evaluate(
        "fetch('/api/v1/logout', { method: 'POST', body: '{}', headers: { 'Content-Type': 'application/json', \
         Authorization: `Bearer ${sessionStorage.getItem('creole.bearer')}` } }).then((it) => it.status)",
    );
    assert_eq!(ended, 204);
    browser.wait("text=You are signed out");
    let sent = |seen: &Value| seen["requests"].as_array().unwrap().len();
    let before = sent(&browser.seen());
    never_within(Duration::from_secs(3), "a request after the end of the session", || {
        sent(&browser.seen()) > before
    });
    assert_eq!(browser.evaluate("sessionStorage.getItem('creole.bearer')"), Value::Null);
}

/// Users with one role each. The password of a user is their name and some letters.
fn with_users() -> Console {
    let folder = tempfile::tempdir().unwrap();
    for (name, role) in [("reader", "admin:read"), ("worker", "admin:operate")] {
        let mut command = Command::new(binary().unwrap());
        command.args(["passwd", "admins.txt", name, "--role", role]).current_dir(folder.path());
        let _ = FinishedCommand::run(&mut command, &format!("{name}-password\n")).succeeded();
    }
    let admin = "\n[admin]\nlisten = \"127.0.0.1:0\"\nusers = \"admins.txt\"\n";
    Console::start_in(folder, &format!("{PLAIN}{admin}"))
}

#[test]
fn a_reader_finds_no_button_that_acts() {
    let console = with_users();
    let Some(mut browser) = console.browser_outside() else { return };
    browser.open("#/overview");
    browser.fill("role=textbox[name=\"Name\"]", "reader");
    browser.fill("input[type=password]", "wrong-password");
    browser.click("role=button[name=\"Sign in\"]");
    browser.wait("text=The name or the password is wrong");
    browser.fill("input[type=password]", "reader-password");
    browser.press("Enter");
    browser.wait("role=heading[name=\"Overview\"]");
    let acting = "role=button[name=/^(Run|Restart|Probe|Reset|Capture|End|Approve|Reject)/]";
    for page in [
        "overview",
        "upstreams",
        "tools",
        "calls",
        "sessions",
        "approvals",
        "audit",
        "log",
        "config",
    ] {
        browser.open(&format!("#/{page}"));
        browser.wait("main h1");
        browser.wait_gone(".loading");
        assert_eq!(browser.count(acting), 0, "{page}");
    }
    browser.open("#/tools");
    browser.click("td >> role=link[name=\"echo\"]");
    browser.wait("text=Description");
    assert_eq!(browser.count("role=link[name=\"Try\"]"), 0);
    let refused = browser.evaluate(
        "Promise.all([['POST', '/servers/house/calls'], ['POST', '/captures'], ['POST', '/upstreams/x/restart'], ['DELETE', '/sessions/x']]\
         .map(([method, path]) => fetch('/api/v1' + path, { method, body: method === 'POST' ? '{}' : undefined, headers: \
         { 'Content-Type': 'application/json', Authorization: `Bearer ${sessionStorage.getItem('creole.bearer')}` } }).then((it) => it.status)))",
    );
    assert_eq!(refused, json!([403, 403, 403, 403]));
    browser.assert_harmless();
}

/// A page of another origin that tries to use the admin listener.
fn foreign_page(target: &str) -> String {
    let page = format!(
        "<!doctype html><title>elsewhere</title><img id=i src='{target}/api/v1/self'>\
         <form id=f method=post action='{target}/api/v1/captures' enctype='text/plain'><input name='{{\"minutes\":1,\"x\":\"' value='\"}}'></form>\
         <script>globalThis.results = {{}};\
         const note = (name, work) => work.then((it) => results[name] = it.status ?? 'read', () => results[name] = 'blocked');\
         note('get', fetch('{target}/api/v1/self'));\
         note('login', fetch('{target}/api/v1/login', {{ method: 'POST', headers: {{ 'Content-Type': 'application/json' }}, body: '{{\"token\":\"guess\"}}' }}));\
         note('simple', fetch('{target}/api/v1/captures', {{ method: 'POST', mode: 'no-cors', headers: {{ 'Content-Type': 'text/plain' }}, body: '{{}}' }}).then((it) => ({{ status: it.type }})));\
         </script>"
    );
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://localhost:{}", listener.local_addr().unwrap().port());
    thread::spawn(move || {
        for mut client in listener.incoming().map_while(Result::ok) {
            let mut request = [0; 4096];
            let _ = client.read(&mut request);
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                page.len()
            );
            let _ = client.write_all(format!("{head}{page}").as_bytes());
        }
    });
    address
}

#[test]
fn pages_of_other_origins_read_and_change_nothing() {
    let console = Console::start(PLAIN);
    let Some(mut browser) = console.browser_outside() else { return };
    let origin = console.origin();
    browser.open(&foreign_page(&origin));
    eventually("the requests end", || {
        browser.evaluate("Object.keys(results).length === 3 && document.images[0].complete") == true
    });
    let results = browser.evaluate("results");
    assert_eq!(results, json!({"get": "blocked", "login": "blocked", "simple": "blocked"}));
    assert_eq!(browser.evaluate("document.images[0].naturalWidth"), 0);
    // A form leads to the refusal itself, and a window that is opened cannot be read.
    browser.evaluate("document.getElementById('f').submit()");
    browser.wait("text=foreign-origin");

    // What these requests looked like: the server refuses each by its headers.
    let address = origin.strip_prefix("http://").unwrap().parse().unwrap();
    let refused = |name: &str, value: &str| {
        let request = Request::to("POST", "/api/v1/login", "{\"token\":\"guess\"}".to_owned())
            .with("Content-Type", "application/json")
            .with(name, value);
        request.send(address).unwrap().head.status
    };
    assert_eq!(refused("Sec-Fetch-Site", "cross-site"), 403);
    assert_eq!(refused("Origin", "http://localhost:1"), 403);
    assert_eq!(refused("Sec-Fetch-Site", "same-origin"), 401, "a wrong token of our own page");
    // A name that an attacker lets point to this machine.
    let mut stream = TcpStream::connect(address).unwrap();
    let rebound = "GET / HTTP/1.1\r\nHost: attacker.example\r\nConnection: close\r\n\r\n";
    stream.write_all(rebound.as_bytes()).unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    assert!(answer.starts_with("HTTP/1.1 403") || answer.starts_with("HTTP/1.1 421"), "{answer}");
}
