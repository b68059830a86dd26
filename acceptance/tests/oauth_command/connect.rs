//! `creole connect` inside a client: who must log in, how, and that the call continues after the login.

use std::process::Command;

use creole_acceptance::oauth::browser::Browser;
use creole_acceptance::peers::idp::IdentityProvider;
use creole_acceptance::process_under_test::{Server, request, told};
use serde_json::{Value, json};

use crate::{Home, provider};

/// The two ways in which clients speak.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Era {
    /// 2025-11-25.
    Sessions,
    /// 2026-07-28.
    Stateless,
}

pub(crate) const ERAS: [Era; 2] = [Era::Sessions, Era::Stateless];

/// A client that has started `creole connect`.
pub(crate) struct Client {
    server: Server,
    era: Era,
    capabilities: Value,
    last_id: u64,
    /// The notifications and requests that arrived before the last response.
    others: Vec<Value>,
}

/// What arrived: the response to the last request, or a request of the server.
enum Arrived {
    Response(Value),
    Asked { id: Value, params: Value },
}

impl Arrived {
    #[track_caller]
    fn response(self) -> Value {
        match self {
            Self::Response(response) => response,
            Self::Asked { params, .. } => panic!("the client was asked: {params}"),
        }
    }
}

impl Client {
    /// A client whose user has no browser on this machine.
    pub(crate) fn without_browser(home: &Home, url: &str, era: Era, capabilities: Value) -> Self {
        let mut command = home.command(&["connect", url]);
        command.env_remove("BROWSER");
        Self::start(command, era, capabilities)
    }

    pub(crate) fn start(command: Command, era: Era, capabilities: Value) -> Self {
        let server = Server::start_command(command);
        Self { server, era, capabilities, last_id: 0, others: Vec::new() }
    }

    /// The process that serves the client.
    pub(crate) fn into_server(self) -> Server {
        self.server
    }

    fn send(&mut self, method: &str, mut params: Value) {
        if self.era == Era::Stateless {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "acceptance", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            });
        }
        self.last_id += 1;
        self.others.clear();
        self.server.write(request(self.last_id, method, &params));
    }

    /// The response to the last request, or a request of the server before it.
    #[track_caller]
    fn next(&mut self) -> Arrived {
        loop {
            let message = self.server.answer();
            if message["method"] == "elicitation/create" {
                let (id, params) = (message["id"].clone(), message["params"].clone());
                return Arrived::Asked { id, params };
            }
            if message["id"] == json!(self.last_id) {
                return Arrived::Response(message);
            }
            self.others.push(message);
        }
    }

    /// Sends a request, and takes its response. No person is asked meanwhile.
    #[track_caller]
    fn request(&mut self, method: &str, params: Value) -> Value {
        self.send(method, params);
        self.next().response()
    }

    /// Sends the first request of its era, and takes its response.
    #[track_caller]
    pub(crate) fn open(&mut self) -> Value {
        self.send_first();
        self.first_response()
    }

    pub(crate) fn send_first(&mut self) {
        if self.era == Era::Stateless {
            return self.send("server/discover", json!({}));
        }
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": self.capabilities,
            "clientInfo": {"name": "acceptance", "version": "1"},
        });
        self.send("initialize", params);
    }

    /// The response to the first request. It ends the handshake of a session.
    #[track_caller]
    pub(crate) fn first_response(&mut self) -> Value {
        let response = self.next().response();
        if self.era == Era::Sessions && response["error"].is_null() {
            let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
            self.server.write(format!("{initialized}\n"));
        }
        response
    }

    #[track_caller]
    fn lists_tools(&mut self) {
        let listed = self.request("tools/list", json!({}));
        assert_eq!(tool_names(&listed), ["whoami", "write"], "{listed}");
    }

    #[track_caller]
    pub(crate) fn calls_whoami(&mut self) {
        let called = self.request("tools/call", json!({"name": "whoami", "arguments": {}}));
        assert!(told(&called).unwrap().contains("alice"), "{called}");
    }

    /// Takes the request to show an address, and answers it with what the person does. Returns the id of the
    /// elicitation.
    #[track_caller]
    fn is_asked(&mut self, provider: &IdentityProvider, action: &str) -> String {
        let Arrived::Asked { id, params } = self.next() else { panic!("the client was not asked") };
        let url = address(&params, provider);
        if action == "accept" {
            Browser::default().follow(&url).unwrap();
        }
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"action": action}});
        self.server.write(format!("{answer}\n"));
        params["elicitationId"].as_str().unwrap().to_owned()
    }

    /// Calls a tool, and takes the address that the client shows before it repeats the call with these parameters.
    #[track_caller]
    fn is_told(
        &mut self,
        provider: &IdentityProvider,
        tool: &str,
        action: &str,
    ) -> (String, Value) {
        let mut params = json!({"name": tool, "arguments": {}});
        let told = self.request("tools/call", params.clone());
        let result = &told["result"];
        assert_eq!(result["resultType"], "input_required", "{told}");
        let (key, asked) = result["inputRequests"].as_object().unwrap().iter().next().unwrap();
        assert_eq!(asked["method"], "elicitation/create", "{told}");
        params["inputResponses"] = json!({key: {"action": action}});
        if !result["requestState"].is_null() {
            params["requestState"] = result["requestState"].clone();
        }
        (address(&asked["params"], provider), params)
    }

    /// Whether this notification arrived before the last response.
    fn was_notified(&self, method: &str, params: &Value) -> bool {
        self.others.iter().any(|it| it["method"] == method && it["params"] == *params)
    }
}

/// The address that the person opens.
#[track_caller]
fn address(params: &Value, provider: &IdentityProvider) -> String {
    let (url, message) = (params["url"].as_str().unwrap(), params["message"].as_str().unwrap());
    assert_eq!(params["mode"], "url", "{params}");
    assert!(url.starts_with(&format!("{}/auth?", provider.issuer())), "{url}");
    assert!(message.contains(&provider.issuer()) && message.contains("Log in to "), "{message}");
    url.to_owned()
}

fn tool_names(listed: &Value) -> Vec<&str> {
    let tools = listed["result"]["tools"].as_array().into_iter().flatten();
    tools.filter_map(|tool| tool["name"].as_str()).collect()
}

/// The capabilities of a client that shows addresses.
fn shows_urls() -> Value {
    json!({"elicitation": {"url": {}}})
}

/// Checks that an error says which server wants a login, and what to run.
#[track_caller]
pub(crate) fn names_the_command(response: &Value, url: &str) {
    let message = response["error"]["message"].as_str().unwrap_or_default();
    let host = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let expected = format!("`{host}` requires a login; run: creole login {url}");
    assert!(message.ends_with(&expected), "{response}");
    assert_eq!(response["error"]["data"]["reason"], "login_required", "{response}");
}

#[test]
fn a_client_with_a_session_shows_the_address_and_its_list_goes_on() {
    let Some(provider) = provider(&[]) else { return };
    let (home, url) = (Home::new(), provider.server("/mcp"));
    let mut client = Client::without_browser(&home, &url, Era::Sessions, shows_urls());
    let opened = client.open();
    assert!(opened["result"]["capabilities"]["tools"].is_object(), "{opened}");
    client.send("tools/list", json!({}));
    let elicitation = client.is_asked(&provider, "accept");
    let listed = client.next().response();
    assert_eq!(tool_names(&listed), ["whoami", "write"], "{listed}");
    let completed = json!({"elicitationId": elicitation});
    let others = &client.others;
    assert!(client.was_notified("notifications/elicitation/complete", &completed), "{others:?}");
    client.calls_whoami();
    assert_eq!(provider.token_requests("authorization_code", 200), 1);
    assert_eq!(home.browser_log(), "");
}

#[test]
fn a_stateless_client_gets_the_address_with_its_call_and_repeats_it() {
    let Some(provider) = provider(&[]) else { return };
    let url = provider.server("/mcp");
    for is_repeated_first in [false, true] {
        let home = Home::new();
        let mut client = Client::without_browser(&home, &url, Era::Stateless, shows_urls());
        let (address, repeated) = client.is_told(&provider, "whoami", "accept");
        if is_repeated_first {
            // The call waits for the login.
            client.send("tools/call", repeated);
            Browser::default().follow(&address).unwrap();
        } else {
            Browser::default().follow(&address).unwrap();
            client.send("tools/call", repeated);
        }
        let called = client.next().response();
        assert!(told(&called).unwrap().contains("alice"), "{called}");
        client.lists_tools();
        assert_eq!(home.browser_log(), "");
    }
    assert_eq!(provider.token_requests("authorization_code", 200), 2);
}

#[test]
fn a_stateless_client_that_cannot_be_asked_yet_is_told_and_asked_in_its_call() {
    let Some(provider) = provider(&[]) else { return };
    let (home, url) = (Home::new(), provider.server("/mcp"));
    let mut client = Client::without_browser(&home, &url, Era::Stateless, shows_urls());
    names_the_command(&client.open(), &url);
    names_the_command(&client.request("tools/list", json!({})), &url);
    assert_eq!(provider.visits("/auth"), 0);
    let (address, repeated) = client.is_told(&provider, "whoami", "accept");
    Browser::default().follow(&address).unwrap();
    let called = client.request("tools/call", repeated);
    assert!(told(&called).unwrap().contains("alice"), "{called}");
    client.lists_tools();
}

#[test]
fn a_call_that_needs_more_scopes_is_asked_for_and_runs_once() {
    let Some(provider) = provider(&[]) else { return };
    let url = provider.server("/mcp");
    for (number, era) in ERAS.into_iter().enumerate() {
        let home = Home::new();
        home.run(&["login", &url]).succeeded();
        let mut client = Client::without_browser(&home, &url, era, shows_urls());
        client.open();
        client.lists_tools();
        match era {
            Era::Sessions => {
                client.send("tools/call", json!({"name": "write", "arguments": {}}));
                client.is_asked(&provider, "accept");
            }
            Era::Stateless => {
                let (address, repeated) = client.is_told(&provider, "write", "accept");
                Browser::default().follow(&address).unwrap();
                client.send("tools/call", repeated);
            }
        }
        let called = client.next().response();
        let expected = number + 1;
        assert_eq!(told(&called).unwrap(), format!("written {expected}"), "{era:?}");
    }
}

#[test]
fn a_person_who_declines_is_not_asked_again_by_the_same_call() {
    let Some(provider) = provider(&[]) else { return };
    let url = provider.server("/mcp");
    for era in ERAS {
        let home = Home::new();
        let mut client = Client::without_browser(&home, &url, era, shows_urls());
        let refused = match era {
            Era::Sessions => {
                client.open();
                client.send("tools/list", json!({}));
                client.is_asked(&provider, "decline");
                client.next().response()
            }
            Era::Stateless => {
                let (_, repeated) = client.is_told(&provider, "whoami", "decline");
                client.request("tools/call", repeated)
            }
        };
        let message = told(&refused).unwrap_err();
        assert!(message.contains("declined"), "{era:?}: {refused}");
        assert!(message.contains(&format!("run: creole login {url}")), "{era:?}: {refused}");
    }
    assert_eq!(provider.visits("/token"), 0);
}

#[test]
fn a_client_that_cannot_be_asked_is_told_what_to_run_and_then_goes_on() {
    let Some(provider) = provider(&[]) else { return };
    let url = provider.server("/mcp");
    for era in ERAS {
        let home = Home::new();
        let mut client = Client::without_browser(&home, &url, era, json!({"elicitation": {}}));
        names_the_command(&client.open(), &url);
        if era == Era::Stateless {
            names_the_command(&client.request("tools/list", json!({})), &url);
            let params = json!({"name": "whoami", "arguments": {}});
            names_the_command(&client.request("tools/call", params), &url);
        }
        home.run(&["login", &url]).succeeded();
        if era == Era::Sessions {
            let opened = client.open();
            assert_eq!(opened["result"]["serverInfo"]["name"], "protected", "{opened}");
        }
        client.calls_whoami();
        client.lists_tools();
    }
    assert_eq!(provider.token_requests("authorization_code", 200), 2);
}

#[test]
fn a_browser_is_opened_while_the_first_request_waits_and_no_other_person_is_asked() {
    let Some(provider) = provider(&[]) else { return };
    let url = provider.server("/mcp");
    for era in ERAS {
        for capabilities in [json!({}), shows_urls()] {
            let home = Home::new();
            let mut client = Client::start(home.command(&["connect", &url]), era, capabilities);
            let opened = client.open();
            assert!(opened["error"].is_null(), "{era:?}: {opened}");
            client.lists_tools();
            client.calls_whoami();
            assert_eq!(home.browser_log().lines().count(), 1, "{}", home.browser_log());
        }
    }
    // A list may be the first request of a stateless client.
    let home = Home::new();
    let mut client = Client::start(home.command(&["connect", &url]), Era::Stateless, shows_urls());
    client.lists_tools();
    assert_eq!(home.browser_log().lines().count(), 1, "{}", home.browser_log());
    assert_eq!(provider.token_requests("authorization_code", 200), 5);
}
