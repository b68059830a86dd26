//! Where the listener is, what it needs to be reachable, and the headers of its answers.

use std::fs;
use std::process::Command;

use creole_acceptance::http::{ListeningServer, Request};
use creole_acceptance::process_under_test::check;
use creole_acceptance::process_under_test::finished_command::FinishedCommand;
use serde_json::json;

use super::{Admin, body, request};

/// The policy of operations.md 4.1, to the letter.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

#[test]
fn the_listener_of_clients_serves_nothing_of_the_admin_listener() {
    let admin = Admin::with_link("");
    for path in ["/metrics", "/api/v1/self", "/console", "/console/app.js", "/api/v1/login"] {
        let answer = Request::new("GET", path).send(admin.server.address()).unwrap();
        assert_eq!(answer.head.status, 404, "{path}");
    }
}

#[test]
fn an_address_that_others_can_reach_needs_users_and_tls() {
    let folder = tempfile::tempdir().unwrap();
    let write = |listen: &str, more: &str| {
        let text = format!("[server]\npacks = [\"echo\"]\n[admin]\nlisten = \"{listen}\"\n{more}");
        fs::write(folder.path().join("creole.toml"), text).unwrap();
        check(folder.path())
    };
    let (code, _, message) = write("0.0.0.0:9464", "");
    assert_eq!(code, Some(2));
    assert_eq!(
        message,
        "error: the admin listener on `0.0.0.0:9464` can be reached from other machines, and has neither users nor TLS\n \
         --> creole.toml:4:10\n  |\n4 | listen = \"0.0.0.0:9464\"\n  |          ^^^^^^^^^^^^^^\n  = help: listen on 127.0.0.1 or on a Unix socket; \
         or add `users` or `keys_file`, and `tls`; or start with --insecure-admin if a proxy or a mesh does both\n"
    );
    let (code, _, message) = write("[::]:9464", "users = \"users.txt\"\n");
    assert_eq!(code, Some(2));
    assert!(message.contains("has no TLS"), "{message}");
    for local in ["127.0.0.1:0", "[::1]:0", "unix:admin.sock"] {
        let (code, shown, message) = write(local, "");
        assert_eq!(code, Some(0), "{local}: {message}");
        assert!(shown.contains("  admin    "), "{shown}");
    }
}

#[test]
fn a_link_signs_in_once() {
    let admin = Admin::with_link("");
    let link = admin.creole(&["console"]);
    let (url, token) = link.stdout.trim().split_once("/#t=").expect("a link");
    assert_eq!(url, format!("http://{}", admin.address()));
    assert_eq!(token.len(), 32);
    let first = admin.login(&json!({ "token": token }));
    assert_eq!((first.head.status, body(&first)["name"].as_str()), (200, Some("admin")));
    let second = admin.login(&json!({ "token": token }));
    assert_eq!((second.head.status, body(&second)["code"].as_str()), (401, Some("link-used")));
    assert!(!admin.server.log().contains(token), "the token is in no log");
    let bearer = admin.sign_in();
    assert_eq!(admin.call(&bearer, "POST", "/logout", Some(&json!({}))).head.status, 204);
    let after = admin.call(&bearer, "GET", "/self", None);
    assert_eq!((after.head.status, body(&after)["code"].as_str()), (401, Some("session-ended")));
}

#[test]
fn every_answer_has_the_headers_and_sets_no_cookie() {
    let admin = Admin::with_link("metrics_open = true\n");
    let bearer = admin.sign_in();
    let requests = [
        Request::new("GET", "/"),
        Request::new("GET", "/metrics"),
        Request::new("GET", "/health"),
        Request::new("GET", "/ready"),
        Request::new("GET", "/nothing"),
        Request::new("POST", "/"),
        Request::new("GET", "/api/v1/self"),
        Request::new("GET", "/api/v1/self").with("Authorization", &format!("Bearer {bearer}")),
        Request::new("GET", "/api/v1/self").replacing("Host", "evil.example"),
        request("POST", "/api/v1/login", Some(&json!({}))),
    ];
    for request in requests {
        let answer = admin.send(&request);
        let field = |name: &str| answer.head.field(name).unwrap_or_default().to_owned();
        assert_eq!(field("content-security-policy"), POLICY, "{request:?}");
        assert_eq!(field("x-content-type-options"), "nosniff");
        assert_eq!(field("referrer-policy"), "no-referrer");
        assert_eq!(field("cross-origin-opener-policy"), "same-origin");
        assert_eq!(field("cross-origin-resource-policy"), "same-origin");
        assert_eq!(
            field("permissions-policy"),
            "camera=(), microphone=(), geolocation=(), clipboard-read=()"
        );
        assert_eq!(answer.head.field("set-cookie"), None);
        assert_eq!(answer.head.field("access-control-allow-origin"), None);
    }
}

#[test]
fn requests_of_other_sites_and_for_other_hosts_are_refused() {
    let admin = Admin::with_link("");
    let bearer = admin.sign_in();
    let with = |name: &str, value: &str| {
        let request = Request::new("GET", "/api/v1/self")
            .with("Authorization", &format!("Bearer {bearer}"))
            .replacing(name, value);
        let answer = admin.send(&request);
        let code = (answer.head.status != 200).then(|| body(&answer)["code"].to_string());
        (answer.head.status, code.unwrap_or_default())
    };
    let foreign = || (403, "\"foreign-origin\"".to_owned());
    assert_eq!(with("Host", "evil.example"), (403, "\"wrong-host\"".to_owned()));
    assert_eq!(with("Origin", "http://evil.example"), foreign());
    assert_eq!(with("Origin", "null"), foreign());
    assert_eq!(with("Sec-Fetch-Site", "cross-site"), foreign());
    assert_eq!(with("Sec-Fetch-Site", "same-site"), foreign());
    assert_eq!(with("Sec-Fetch-Site", "same-origin").0, 200);
    assert_eq!(with("Origin", &format!("http://{}", admin.address())).0, 200);
    let plain = Request::to("POST", "/api/v1/login", "{}").replacing("Content-Type", "text/plain");
    assert_eq!(admin.send(&plain).head.status, 415);
}

#[test]
fn a_unix_socket_serves_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let config =
        "[server]\nname = \"team\"\npacks = [\"echo\"]\n[admin]\nlisten = \"unix:admin.sock\"\n";
    fs::write(folder.path().join("creole.toml"), config).unwrap();
    let mut command =
        creole_acceptance::process_under_test::serve(folder.path(), &["--http", "127.0.0.1:0"]);
    command.env("XDG_RUNTIME_DIR", folder.path());
    // The folder of the process is not the one of the command.
    command.current_dir(folder.path()).arg("creole.toml");
    let mut server = ListeningServer::other(command).unwrap();
    server.until_said("`creole top` and `creole trace` use it");
    let run = |words: &[&str]| {
        let mut command = Command::new(creole_acceptance::stage::stdio::binary().unwrap());
        command.args(words).env("XDG_RUNTIME_DIR", folder.path()).env_remove("CREOLE_ADMIN_KEY");
        FinishedCommand::run(&mut command, "")
    };
    let shown = run(&["top", "--once"]).succeeded().stdout;
    assert!(shown.contains("UPSTREAM") && shown.contains("There are no upstreams."), "{shown}");
    let socket = folder.path().join("admin.sock");
    let address = format!("unix:{}", socket.display());
    run(&["top", "--once", "--admin", &address]).succeeded();
    let console = run(&["console"]);
    assert_eq!(console.code, Some(2), "{console:?}");
    assert!(console.stderr.contains(&format!("a browser cannot open {address}")), "{console:?}");
    server.stop().unwrap();
    assert!(!socket.exists(), "the end removes the socket");
    let links = fs::read_dir(folder.path().join("creole")).unwrap();
    assert_eq!(links.count(), 0, "and the file of the link");
}

#[test]
fn an_address_that_cannot_be_listened_on_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("plain"), "").unwrap();
    let cases = [
        ("unix:none/admin.sock", "the folder of the socket does not exist; create it, or choose"),
        ("unix:plain", "there is a file that is no socket; remove it, or choose"),
        ("192.0.2.1:9464\"\nusers = \"none.txt", "`creole passwd` creates it"),
    ];
    for (listen, expected) in cases {
        let text = format!("[server]\npacks = [\"echo\"]\n[admin]\nlisten = \"{listen}\"\n");
        fs::write(folder.path().join("creole.toml"), text).unwrap();
        let words = ["--http", "127.0.0.1:0", "--insecure-admin", "creole.toml"];
        let mut command = creole_acceptance::process_under_test::serve(folder.path(), &words);
        let failed = FinishedCommand::run(command.current_dir(folder.path()), "");
        assert_ne!(failed.code, Some(0), "{failed:?}");
        assert!(failed.stderr.contains(expected), "{failed:?}");
    }
}
