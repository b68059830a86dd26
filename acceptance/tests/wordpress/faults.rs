//! Tests of site faults and of the handling of passwords, with a mock that misbehaves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use creole_acceptance::http::{ListeningServer, Request};
use creole_acceptance::process_under_test::{Server, serve};
use creole_test_wait::blocking::delay;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::mock::{ADMIN, ED, Mock, ServiceRequest, answer, error_response, ok};
use crate::stage::{front, front_of, post};

/// The result of a call: its text, and whether it is an error.
pub(crate) fn called(server: &ListeningServer, tool: &str, arguments: &Value) -> (String, bool) {
    called_as(server, ADMIN, tool, arguments)
}

/// The same as this caller.
pub(crate) fn called_as(
    server: &ListeningServer,
    caller: &str,
    tool: &str,
    arguments: &Value,
) -> (String, bool) {
    let params = json!({"name": tool, "arguments": arguments});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let response = post(body.to_string(), Some(caller)).send(server.address()).unwrap();
    let message = response.message();
    let result = &message["result"];
    let text = result["content"][0]["text"].as_str();
    let text = text.unwrap_or_else(|| panic!("{} {message}", response.head.status));
    (text.to_owned(), result["isError"] == true)
}

/// A site that sends this raw response for its members, and the preset in front of it.
fn broken(
    answer: impl Fn(&ServiceRequest) -> String + Send + Sync + 'static,
) -> (Mock, ListeningServer, TempDir) {
    let site = Mock::with(move |request| {
        request.line.contains("/buddyboss/v1/members").then(|| answer(request))
    });
    let (server, data) = front(&site.url());
    (site, server, data)
}

#[track_caller]
fn assert_told(raw: &str, expected: &str) {
    let raw = raw.to_owned();
    let (_site, server, _data) = broken(move |_| raw.clone());
    let message = called(&server, "buddyboss_list_members", &json!({}));
    assert_eq!(message, (expected.to_owned(), true));
}

#[test]
fn a_response_that_is_not_from_wordpress_is_reported_and_not_shown() {
    let html = "Content-Type: text/html\r\n";
    assert_told(
        &answer("503 Service Unavailable", html, "<h1>Briefly unavailable for maintenance</h1>"),
        "Error: WordPress responded with HTTP 503 and text/html, not JSON",
    );
    assert_told(
        &answer("200 OK", html, "<br />Warning: Undefined variable in /srv/secret.php [1]"),
        "Error: WordPress responded with HTTP 200 and text/html, not JSON",
    );
    assert_told(
        &answer("200 OK", "", ""),
        "Error: WordPress responded with HTTP 200 and application/json; charset=UTF-8, not JSON",
    );
    assert_told(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n[{",
        "Error: could not reach WordPress: the response ended early",
    );
    let limited = json!({"code": "too_many", "message": "Slow down.", "data": {"status": 429}});
    assert_told(
        &answer("429 Too Many Requests", "Retry-After: 7\r\n", &limited.to_string()),
        "Error: Slow down (too_many, HTTP 429); try again in 7 s",
    );
}

#[test]
fn a_password_never_follows_a_redirect_to_another_origin() {
    let elsewhere = Mock::start();
    let target = format!("{}/wp-json/buddyboss/v1/members", elsewhere.url());
    let (_site, server, _data) =
        broken(move |_| answer("302 Found", &format!("Location: {target}\r\n"), ""));
    let (message, is_error) = called(&server, "buddyboss_list_members", &json!({}));
    assert!(is_error && message.contains("responded with a redirect"), "{message}");
    assert!(elsewhere.requests().is_empty());
}

#[test]
fn a_silent_site_times_out_and_a_write_is_not_repeated() {
    let site = Mock::with(|request| {
        let hangs = request.line.contains("/buddyboss/v1/members?")
            || request.line.starts_with("POST /wp-json/wp/v2/users");
        hangs.then(|| {
            delay(Duration::from_secs(10));
            String::new()
        })
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("creole.toml");
    let text = "[server]\ndialect = \"buddyboss\"\npacks = [\"buddyboss-platform\"]\n[wordpress]\ntimeout_seconds = 1\n\
                url = \"${CREOLE_WORDPRESS_URL}\"\n[http]\npath = \"/wp-json/buddyboss-mcp/v1/mcp\"\nlegacy_sse = \"\"";
    std::fs::write(&file, text).unwrap();
    let (server, _data) = front_of(&site.url(), &[file.to_str().unwrap()]);
    let message = called(&server, "buddyboss_list_members", &json!({}));
    assert_eq!(message.0, "Error: could not reach WordPress: timed out after 1 s");
    let new = json!({"username": "kim", "email": "kim@example.org", "password": "secret words"});
    let (message, is_error) = called(&server, "buddyboss_create_member", &new);
    let expected =
        "Error: could not reach WordPress: timed out after 1 s; it may or may not have been done";
    assert_eq!((message.as_str(), is_error), (expected, true));
    assert_eq!(site.count("POST "), 1);
    assert!(!server.log().contains("secret words"), "{}", server.log());
}

#[test]
fn an_unreachable_site_is_a_bad_gateway_and_authenticates_no_caller() {
    let address = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    let (server, _data) = front(&format!("http://{address}"));
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let response = post(list, Some(ADMIN)).send(server.address()).unwrap();
    assert_eq!(response.head.status, 502, "{}", response.text());
    assert_eq!(response.message()["code"], "site_unreachable");
}

#[test]
fn callers_are_looked_up_once_and_only_their_own_password_is_sent() {
    let site = Mock::start();
    let (server, _data) = front(&site.url());
    for _ in 0..3 {
        called(&server, "buddyboss_get_member", &json!({"id": 1}));
    }
    assert_eq!(site.count("GET /wp-json/wp/v2/users/me?"), 1);
    assert_eq!(site.count("GET /wp-json/?"), 1, "the platform is probed once");
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    for _ in 0..3 {
        assert_eq!(post(list, Some(ED)).send(server.address()).unwrap().head.status, 403);
    }
    assert_eq!(
        site.count("GET /wp-json/wp/v2/users/me?"),
        2,
        "a rejection is cached for a short time"
    );
    let request = post(list, Some(ADMIN)).with("Cookie", "a=b").with("X-WP-Nonce", "1");
    assert_eq!(request.send(server.address()).unwrap().head.status, 200);
    for received in site.requests() {
        let allowed =
            ["accept", "user-agent", "authorization", "host", "content-type", "content-length"];
        let foreign = received.head.iter().find(|(name, _)| !allowed.contains(&name.as_str()));
        assert_eq!(foreign, None, "{}", received.line);
        let is_public = received.line.starts_with("GET /wp-json/?");
        assert_eq!(received.header("authorization").is_none(), is_public, "{}", received.line);
    }
    assert!(!server.log().contains("YWRtaW46cGFzcw"), "{}", server.log());
}

#[test]
fn somebody_else_never_acts_with_the_password_of_another() {
    // Both users may manage options here. The response names the caller.
    let site = Mock::with(|request| {
        let me = if request.header("authorization") == Some(ADMIN) { 1 } else { 2 };
        if request.line.contains("/users/me") {
            return Some(ok(&json!({"id": me, "capabilities": {"manage_options": true}})));
        }
        request.line.contains("/members/7").then(|| ok(&json!({"asked_by": me})))
    });
    let (server, _data) = front(&site.url());
    thread::scope(|scope| {
        for (caller, me) in [(ADMIN, 1), (ED, 2)].repeat(4) {
            let server = &server;
            scope.spawn(move || {
                for _ in 0..5 {
                    let (text, _) =
                        called_as(server, caller, "buddyboss_get_member", &json!({"id": 7}));
                    let message: Value = serde_json::from_str(&text).unwrap();
                    assert_eq!(message["asked_by"], me);
                }
            });
        }
    });
}

#[test]
fn a_long_answer_is_cut_between_members() {
    let long: Vec<Value> = (0..9).map(|id| json!({"id": id, "bio": "x".repeat(30_000)})).collect();
    let long = answer("200 OK", "", &json!(long).to_string());
    let (_site, server, _data) = broken(move |_| long.clone());
    let (text, is_error) = called(&server, "buddyboss_list_members", &json!({}));
    let shown: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert_eq!((shown.len(), is_error), (3, false));
}

#[test]
fn who_guesses_passwords_is_made_to_wait_and_who_is_known_is_not() {
    let site = Mock::start();
    let (server, _data) = front(&site.url());
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let status = |caller: &str| {
        let response = post(list, Some(caller)).send(server.address()).unwrap();
        (response.head.status, response.head.field("retry-after").is_some())
    };
    assert_eq!(status(ADMIN), (200, false));
    let invalid = [
        "YTpi", "YTpj", "YTpk", "YTpl", "YTpm", "YTpn", "YTpo", "YTpp", "YTpq", "YTpr", "YTps",
        "YTpt", "YTpu", "YTpv", "YTpw", "YTpx", "YTpy", "YTpz", "YTow", "YTox",
    ];
    for guess in invalid {
        assert_eq!(status(&format!("Basic {guess}")), (401, false), "{guess}");
    }
    assert_eq!(status("Basic YToy"), (429, true));
    assert_eq!(site.count("GET /wp-json/wp/v2/users/me"), 1 + invalid.len());
    assert_eq!(status(ADMIN), (200, false), "a user who is logged in can continue");
}

/// A configuration file with these lines below `[wordpress]`.
fn configured(site: &Mock, lines: &str) -> (std::path::PathBuf, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("creole.toml");
    let text = format!(
        "[server]\ndialect = \"buddyboss\"\npacks = [\"buddyboss-platform\"]\n[wordpress]\nurl = \"{}\"\n{lines}",
        site.url()
    );
    std::fs::write(&file, text).unwrap();
    (file, folder)
}

#[test]
fn sets_of_tools_are_switched_one_by_one_or_by_phase() {
    let site = Mock::start();
    let rows = [
        ("[\"members\"]", 5),
        ("[\"phase-1\"]", 42),
        ("[\"phase-2\"]", 52),
        ("[\"groups\", \"phase-2\"]", 61),
    ];
    for (sets, count) in rows {
        let (file, folder) = configured(&site, &format!("sets = {sets}"));
        let mut server = Server::start_command(serve(folder.path(), &[file.to_str().unwrap()]));
        let list = server.request("tools/list", &json!({}));
        assert_eq!(list["result"]["tools"].as_array().unwrap().len(), count, "{sets}");
    }
}

#[test]
fn on_standard_streams_the_account_of_the_configuration_calls() {
    let site = Mock::start();
    let rows = [
        (
            "user = \"admin\"\npassword = \"pass\"",
            "{\"id\":1,\"name\":\"Member 1\",\"email\":\"admin@example.org\"",
        ),
        (
            "user = \"admin\"\npassword = \"wrong\"",
            "Error: the site rejects the configured account",
        ),
        ("user = \"ed\"\npassword = \"pass\"", "Error: Insufficient permissions"),
        ("", "Error: no user is authenticated at the site"),
    ];
    for (account, expected) in rows {
        let (file, folder) = configured(&site, account);
        let mut server = Server::start_command(serve(folder.path(), &[file.to_str().unwrap()]));
        let response = server.call("buddyboss_get_member", &json!({"id": 1}));
        let text = response["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.starts_with(expected), "{account}: {response}");
    }
}

#[test]
fn a_slow_call_is_answered_in_json_or_aborted() {
    let site = Mock::with(|received| {
        received.line.contains("/members/7").then(|| {
            delay(Duration::from_secs(3));
            ok(&json!({"id": 7}))
        })
    });
    let http = "[http]\npath = \"/wp-json/buddyboss-mcp/v1/mcp\"\nlegacy_sse = \"\"";
    let (file, _folder) = configured(&site, http);
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"buddyboss_get_member","arguments":{"id":7}}}"#;
    let request = post(call, Some(ADMIN)).with("Accept", "application/json, text/event-stream");
    let (server, _data) = front_of(&site.url(), &[file.to_str().unwrap()]);
    let response = request.send(server.address()).unwrap();
    assert_eq!(response.head.field("content-type"), Some("application/json"));
    assert_eq!(response.message()["result"].get("isError"), None);
    let limits =
        format!("{http}\n[server.limits]\ncall_timeout_seconds = 1\ncall_timeout_max_seconds = 1");
    let (file, _folder) = configured(&site, &limits);
    let (server, _data) = front_of(&site.url(), &[file.to_str().unwrap()]);
    let response = request.send(server.address()).unwrap();
    assert_eq!(response.message()["error"]["code"], -32603, "{}", response.text());
}

#[test]
fn a_revoked_password_ends_with_the_first_call_that_the_site_refuses() {
    let is_revoked = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&is_revoked);
    let site = Mock::with(move |request| {
        let comes_as_somebody = request.header("authorization").is_some();
        let refuses = comes_as_somebody && seen.load(Ordering::SeqCst);
        refuses.then(|| error_response(401, "incorrect_password"))
    });
    let (server, _data) = front(&site.url());
    let list = json!({"per_page": 1});
    let (_, is_error) = called_as(&server, ADMIN, "buddyboss_list_members", &list);
    assert!(!is_error);
    is_revoked.store(true, Ordering::SeqCst);
    let (message, is_error) = called_as(&server, ADMIN, "buddyboss_list_members", &list);
    assert!(is_error && message.contains("incorrect_password, HTTP 401"), "{message}");
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let response = post(ping, Some(ADMIN)).send(server.address()).unwrap();
    assert_eq!(response.head.status, 401, "{}", response.text());
}

#[test]
fn site_requirements_may_change_while_callers_are_authenticated() {
    let site = Mock::start();
    let (file, folder) = configured(&site, "sets = [\"members\"]\n");
    let words = ["--http", "127.0.0.1:0", file.to_str().unwrap()];
    let server = ListeningServer::other(serve(folder.path(), &words)).unwrap();
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let ask = |caller: &str| {
        let request = Request::post(list).with("Authorization", caller);
        let response = request.send(server.address()).unwrap();
        (response.head.status, response.text().matches("\"inputSchema\"").count())
    };
    let replace = |text: String| {
        std::fs::write(folder.path().join("new"), text).unwrap();
        std::fs::rename(folder.path().join("new"), &file).unwrap();
    };
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!((ask(ADMIN), ask(ED).0), ((200, 5), 403));
    let wider = text.replace("\"members\"", "\"members\", \"friends\"");
    replace(format!("{wider}capability = \"read\"\n"));
    server.until_said("was reloaded; changed: tools");
    assert_eq!((ask(ADMIN), ask(ED).0), ((200, 10), 200));
    replace(text.replace("http://127.0.0.1", "http://localhost"));
    server.until_said("`url` in `[wordpress]` cannot change while the server runs");
    assert_eq!(ask(ED), (200, 10));
}
