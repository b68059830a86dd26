//! The stage `site`: the preset `buddyboss` in front of a site, called by single POSTs.
//!
//! A line is the body of a POST, and the response is a line. A response that is not a message of the protocol is the
//! line `{"http":STATUS,…}`. A line that begins with `@` is a command to the stage: `@as NAME` sets the caller from now
//! on (`nobody`, `wrong`, or a user of the site), `@GET` and `@DELETE` send a request with that method, and
//! `@platform off` switches the platform of the site off.

use std::collections::VecDeque;
use std::time::Duration;

use creole_acceptance::http::{ListeningServer, Request};
use creole_acceptance::process_under_test::serve;
use creole_acceptance::stage::Stage;
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const NAME: &str = "site";
/// The path of the endpoint.
pub(crate) const PATH: &str = "/wp-json/buddyboss-mcp/v1/mcp";

/// The preset in front of a site.
pub(crate) struct SiteStage {
    server: ListeningServer,
    site: Box<dyn SiteBackend>,
    /// The `Authorization` header of the caller.
    caller: Option<String>,
    said: VecDeque<String>,
    _data: TempDir,
}

/// The site behind the stage.
pub(crate) trait SiteBackend {
    /// The URL of its front page.
    fn url(&self) -> String;
    /// The `Authorization` header of a user.
    fn header_of(&self, user: &str) -> String;
    /// Switches the platform on or off.
    fn set_platform(&self, is_active: bool);
}

/// `creole serve --preset buddyboss` in front of a site.
pub(crate) fn front(url: &str) -> (ListeningServer, TempDir) {
    front_of(url, &["--preset", "buddyboss"])
}

/// The server of the preset with the tools of both phases in front of a site.
pub(crate) fn front_with_every_tool(url: &str) -> (ListeningServer, TempDir) {
    let data = tempfile::tempdir().unwrap();
    let text = format!(
        "[server]\ndialect = \"buddyboss\"\npacks = [\"buddyboss-platform\"]\n\
         [wordpress]\nurl = \"{url}\"\nsets = [\"phase-1\", \"phase-2\"]\n\
         [http]\npath = \"{PATH}\"\nlegacy_sse = \"\"\nlimits.max_body = 4194304\n"
    );
    std::fs::write(data.path().join("creole.toml"), text).unwrap();
    let command = serve(data.path(), &["--http", "127.0.0.1:0", "creole.toml"]);
    (ListeningServer::other(command).unwrap(), data)
}

/// `creole serve` with these arguments in front of a site.
pub(crate) fn front_of(url: &str, words: &[&str]) -> (ListeningServer, TempDir) {
    let data = tempfile::tempdir().unwrap();
    let words = [&["--http", "127.0.0.1:0"], words].concat();
    let mut command = serve(data.path(), &words);
    command.env("CREOLE_WORDPRESS_URL", url);
    (ListeningServer::other(command).unwrap(), data)
}

/// The POST of a message.
pub(crate) fn post(body: impl Into<Vec<u8>>, caller: Option<&str>) -> Request {
    let request = Request::to("POST", PATH, body).with("Content-Type", "application/json");
    match caller {
        Some(caller) => request.with("Authorization", caller),
        None => request,
    }
}

impl SiteStage {
    pub(crate) fn new(site: Box<dyn SiteBackend>) -> Self {
        let (server, data) = front(&site.url());
        let caller = Some(site.header_of("admin"));
        Self { server, site, caller, said: VecDeque::new(), _data: data }
    }

    fn instruct(&mut self, word: &str) {
        match word.split_once(' ') {
            Some(("as", "nobody")) => self.caller = None,
            Some(("as", user)) => self.caller = Some(self.site.header_of(user)),
            Some(("platform", state)) => self.site.set_platform(state == "on"),
            _ => {
                let mut request = Request::to(word, PATH, "").with("Accept", "text/event-stream");
                if let Some(caller) = &self.caller {
                    request = request.with("Authorization", caller);
                }
                self.send_request(&request);
            }
        }
    }

    fn send_request(&mut self, request: &Request) {
        let response = request.send(self.server.address()).unwrap();
        let text = response.text();
        if response.head.status == 200 && response.head.field("content-type").is_some() {
            assert_eq!(response.head.field("content-type"), Some("application/json"), "{text}");
            assert_eq!(response.head.field("mcp-session-id"), None);
            self.said.push_back(text);
            return;
        }
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text.trim().to_owned()));
        let mut line = json!({"http": response.head.status, "body": body});
        for name in ["allow", "www-authenticate"] {
            if let Some(value) = response.head.field(name) {
                line[name] = value.into();
            }
        }
        self.said.push_back(line.to_string());
    }
}

impl Stage for SiteStage {
    fn send(&mut self, bytes: &[u8]) {
        let line = String::from_utf8_lossy(bytes).trim_end_matches('\n').to_owned();
        match line.strip_prefix('@') {
            Some(word) => self.instruct(word),
            None => self.send_request(&post(line, self.caller.as_deref())),
        }
    }

    fn receive(&mut self, _: Duration) -> Option<String> {
        self.said.pop_front()
    }

    fn advance(&mut self, _: Duration) -> bool {
        false
    }

    fn close(&mut self) -> Result<(), String> {
        self.server.stop()
    }

    fn notes(&mut self) -> String {
        self.server.log()
    }
}
