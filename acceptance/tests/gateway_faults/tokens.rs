//! Tests of upstreams over HTTP whose tokens expire.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use creole_acceptance::gateway::{
    HandshakeClient, PendingResponse, ScriptedHttpServer, StatelessClient,
};
use creole_acceptance::http::ListeningServer;
use creole_acceptance::stage::stdio::binary;
use serde_json::json;
use tempfile::TempDir;

use crate::{A_MOMENT, GLANCE, PATIENCE, show};

/// Every token contains this text, and nothing else does.
const CANARY: &str = "canary";

/// A gateway with the highest log level in front of a site, and the folder of its configuration.
struct Gateway {
    listening: ListeningServer,
    folder: TempDir,
}

impl Gateway {
    /// The line names the source of the token. The first token is in the file `token`.
    fn before(site: &ScriptedHttpServer, line: &str, token: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let gateway = folder.path().join("gateway.toml");
        let text = format!(
            "[server]\nname = \"gateway\"\n\n[log]\nlevel = \"trace\"\n\n[upstreams.site]\nurl = \"{}\"\n\
             prefix = \"\"\n{}\n",
            site.url(),
            line.replace("FOLDER", &folder.path().display().to_string()),
        );
        fs::write(&gateway, text).unwrap();
        if let Some(token) = token {
            fs::write(folder.path().join("token"), format!("{token}\n")).unwrap();
        }
        let listening = ListeningServer::start(&[&gateway.display().to_string()]).unwrap();
        Self { listening, folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Replaces the token in one step, as a tool that rotates tokens does.
    fn replace(&self, token: &str) {
        fs::write(self.path("other"), token).unwrap();
        fs::rename(self.path("other"), self.path("token")).unwrap();
    }

    fn call(&self) -> PendingResponse {
        StatelessClient::new(self.listening.address()).begin_call("work", json!({}))
    }

    /// Asserts that neither its log nor the output of commands about the configuration contains a token.
    #[track_caller]
    fn assert_no_token(&self) {
        let log = self.listening.log();
        assert!(!log.contains(CANARY), "{log}");
        let file = self.path("gateway.toml");
        for words in [["config", "check"], ["config", "show"]] {
            let said = Command::new(binary().unwrap()).args(words).arg(&file).output().unwrap();
            let bytes = [said.stdout, said.stderr].concat();
            let said = String::from_utf8_lossy(&bytes);
            assert!(!said.contains(CANARY), "{words:?}: {said}");
        }
    }
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

/// The number of lines in a file.
fn lines(path: &Path) -> usize {
    fs::read_to_string(path).unwrap_or_default().lines().count()
}

#[test]
fn twenty_calls_that_are_refused_at_once_have_one_token_fetched() {
    let script = "echo run >> FOLDER/runs; echo said-$(cat FOLDER/token) >&2; cat FOLDER/token";
    let line = format!("token_command = [\"sh\", \"-c\", \"{script}\"]");
    let site = ScriptedHttpServer::new(show());
    let gateway = Gateway::before(&site, &line, Some("old-canary"));
    let mut calls: Vec<_> = (0..20).map(|_| gateway.call()).collect();
    let requests: Vec<_> = calls.iter().map(|_| site.hears("tools/call")).collect();
    assert_eq!(lines(&gateway.path("runs")), 1);
    gateway.replace("new-canary");
    for mut request in requests {
        assert_eq!(request.field("authorization"), Some(&*bearer("old-canary")));
        request.respond("401 Unauthorized", "", "");
    }
    for _ in &calls {
        let mut repeated = site.hears("tools/call");
        assert_eq!(repeated.field("authorization"), Some(&*bearer("new-canary")));
        repeated.text("done");
    }
    for call in &mut calls {
        assert_eq!(call.answer()["result"]["content"][0]["text"], "done");
    }
    assert!(site.within(A_MOMENT).is_none(), "each request is retried once");
    assert_eq!(lines(&gateway.path("runs")), 2);
    gateway.assert_no_token();
}

#[test]
fn all_that_is_sent_in_a_session_has_the_token_of_the_file() {
    let site = ScriptedHttpServer::with_streams(show());
    site.wants(&bearer("old-canary"));
    let mut gateway = Gateway::before(&site, "token_file = \"token\"", Some("old-canary"));
    let mut streams = Vec::new();
    // The streams of sessions are requested before the call or after it.
    let mut next_call = || loop {
        match site.next() {
            request if request.method == "GET" => streams.push(request),
            request => return request,
        }
    };
    let mut call = gateway.call();
    next_call().text("old");
    assert_eq!(call.answer()["result"]["content"][0]["text"], "old");
    gateway.replace("new-canary");
    site.wants(&bearer("new-canary"));
    let mut call = gateway.call();
    next_call().text("new");
    assert_eq!(call.answer()["result"]["content"][0]["text"], "new");
    while streams.is_empty() {
        streams.push(site.next());
    }
    gateway.listening.stop().unwrap();
    let shown = site.shown();
    let with = |method: &str, token: &str| {
        let token = Some(bearer(token));
        shown.iter().filter(|(its, shown)| its == method && *shown == token).count()
    };
    assert_eq!(with("POST", "new-canary"), 1, "{shown:?}");
    assert!(with("DELETE", "new-canary") > 0, "{shown:?}");
    assert_eq!(with("DELETE", "old-canary"), 0, "{shown:?}");
    assert!(shown.iter().all(|(_, shown)| shown.is_some()), "{shown:?}");
    gateway.assert_no_token();
}

#[test]
fn a_token_that_is_refused_again_is_reported_and_not_fetched_for_a_while() {
    let script = "echo run >> FOLDER/runs; cat FOLDER/token";
    let line = format!("token_command = [\"sh\", \"-c\", \"{script}\"]");
    let site = ScriptedHttpServer::new(show());
    let gateway = Gateway::before(&site, &line, Some("old-canary"));
    for expected in ["old-canary", "new-canary"] {
        let mut call = gateway.call();
        let mut request = site.hears("tools/call");
        assert_eq!(request.field("authorization"), Some(&*bearer(expected)));
        gateway.replace("new-canary");
        request.respond("401 Unauthorized", "", "");
        if expected == "old-canary" {
            site.hears("tools/call").respond("401 Unauthorized", "", "");
        }
        let response = call.answer();
        assert_eq!(response["error"]["data"]["status"], 401, "{response}");
        assert!(!response.to_string().contains(CANARY), "{response}");
    }
    assert!(site.within(A_MOMENT).is_none(), "each request is retried at most once");
    assert_eq!(lines(&gateway.path("runs")), 2);
    gateway.assert_no_token();
}

#[test]
fn a_server_without_its_token_is_named_and_the_others_are_served() {
    let sites = [ScriptedHttpServer::new(show()), ScriptedHttpServer::new(show())];
    let other = format!(
        "token_file = \"token\"\n[upstreams.other]\nurl = \"{}\"\nprefix = \"other_\"",
        sites[1].url()
    );
    let gateway = Gateway::before(&sites[0], &other, None);
    let client = HandshakeClient::open(gateway.listening.address(), "2025-06-18", json!({}), None);
    let mut call = client.begin(&json!(1), "tools/call", &json!({"name": "other_work"}));
    sites[1].hears("tools/call").text("served");
    assert_eq!(call.answer()["result"]["content"][0]["text"], "served");
    let expected = "cannot get a token for `site`: the token file does not exist";
    gateway.listening.until_said(expected);
    assert!(sites[0].shown().is_empty(), "no request is sent without a token");
    gateway.replace("late-canary");
    let started = Instant::now();
    let begin = || client.begin(&json!(2), "tools/call", &json!({"name": "work"}));
    let mut call = begin();
    loop {
        if let Some(mut request) = sites[0].within(GLANCE) {
            assert_eq!(request.field("authorization"), Some(&*bearer("late-canary")));
            request.text("there");
            assert_eq!(call.answer()["result"]["content"][0]["text"], "there");
            break;
        }
        assert!(started.elapsed() < PATIENCE, "{}", gateway.listening.log());
        if call.within(GLANCE).is_some() {
            call = begin();
        }
    }
    gateway.assert_no_token();
}
