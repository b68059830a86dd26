//! Two people with two roles in front of two upstreams: whatever they do, in whatever order, and with each other's ids,
//! nothing of one reaches the other.

use std::fmt::Write as _;

use creole_acceptance::gateway::{HandshakeClient, StatelessClient};
use creole_acceptance::http::{ListeningServer, Request};
use creole_acceptance::load::SeededRandom;
use serde_json::{Value, json};

use crate::upstream::RememberingServer;

/// The extension of tasks.
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// How many steps one run has.
const STEPS: usize = 300;

/// Somebody who calls the gateway.
pub(crate) struct Participant {
    /// Every text of this caller begins with it.
    pub(crate) name: &'static str,
    pub(crate) token: String,
    /// The tools that do not exist for this caller.
    pub(crate) hidden: &'static [&'static str],
}

/// Something that belongs to the caller with this number.
struct Owned<T> {
    owner: usize,
    value: T,
}

/// A gateway with two upstreams, its callers, and what they hold.
pub(crate) struct Crossing<'a> {
    gateway: &'a ListeningServer,
    upstreams: &'a [RememberingServer; 2],
    callers: &'a [Participant],
    random: SeededRandom,
    texts: usize,
    sessions: Vec<Owned<HandshakeClient>>,
    states: Vec<Owned<(Value, String)>>,
    cursors: Vec<Owned<Value>>,
    tasks: Vec<Owned<(Value, String)>>,
    /// What was done, for the message of a failure.
    history: String,
}

/// A random number below an end.
fn below(random: &mut SeededRandom, end: usize) -> usize {
    usize::try_from(random.below(end as u64)).unwrap()
}

/// The configuration of the gateway without its callers. `affinity` says which calls share a session of an upstream.
pub(crate) fn configuration(upstreams: &[RememberingServer; 2], affinity: &str) -> String {
    let mut text = "[server]\nname = \"gateway\"\npacks = [\"everything\"]\npage_size = 3\n\n\
                    [[server.chain]]\nkind = \"cache\"\nttl_seconds = 600\nnames = [\"*recall\"]\n"
        .to_owned();
    for (name, upstream) in ["first", "second"].iter().zip(upstreams) {
        let _ = write!(text, "\n[upstreams.{name}]\nurl = \"{}\"\n", upstream.url());
        let _ = writeln!(text, "affinity = \"{affinity}\"");
    }
    text
}

impl<'a> Crossing<'a> {
    /// Does random steps with this seed, and checks after each that nothing crossed.
    pub(crate) fn run(
        seed: u64,
        gateway: &'a ListeningServer,
        upstreams: &'a [RememberingServer; 2],
        callers: &'a [Participant],
    ) {
        let mut crossing = Self {
            gateway,
            upstreams,
            callers,
            random: SeededRandom::new(seed, 0),
            texts: 0,
            sessions: Vec::new(),
            states: Vec::new(),
            cursors: Vec::new(),
            tasks: Vec::new(),
            history: format!("seed {seed}\n"),
        };
        for _ in 0..STEPS {
            crossing.step();
        }
        crossing.check_upstreams();
        for caller in 0..callers.len() {
            crossing.check_lists(caller);
        }
    }

    fn step(&mut self) {
        let caller = self.below(self.callers.len());
        match self.below(11) {
            0 => self.open_session(caller),
            1 => self.use_session(caller),
            2 => self.end_or_listen(caller),
            3 => self.list_tools(caller),
            4 => self.use_cursor(caller),
            5 => self.begin_round(caller),
            6 => self.end_round(caller),
            7 => self.start_task(caller),
            8 => self.read_task(caller),
            9 => self.ask_in_session(caller),
            _ => self.call_upstream(caller),
        }
    }

    fn below(&mut self, end: usize) -> usize {
        below(&mut self.random, end)
    }

    /// A new text of a caller.
    fn text(&mut self, caller: usize) -> String {
        self.texts += 1;
        format!("{}-{}", self.callers[caller].name, self.texts)
    }

    fn stateless(&self, caller: usize) -> StatelessClient {
        let capabilities = json!({"elicitation": {}, "extensions": {TASKS: {}}});
        let client = StatelessClient::new(self.gateway.address()).that_can(capabilities);
        client.with_key(&self.callers[caller].token)
    }

    /// Notes what happened, and checks that the response has no text of anybody else.
    #[track_caller]
    fn check(&mut self, caller: usize, what: &str, response: &Value) {
        let text = response.to_string();
        let _ = writeln!(self.history, "{}: {what}: {text}", self.callers[caller].name);
        for other in self.callers.iter().filter(|it| it.name != self.callers[caller].name) {
            let foreign = format!("{}-", other.name);
            assert!(!text.contains(&foreign), "it has a text of another:\n{}", self.history);
        }
    }

    #[track_caller]
    fn assert(&self, is_right: bool) {
        assert!(is_right, "{}", self.history);
    }

    /// One of the things that somebody holds, and whether it is the caller's.
    fn pick<T>(
        random: &mut SeededRandom,
        held: &[Owned<T>],
        caller: usize,
    ) -> Option<(usize, bool)> {
        let at = (!held.is_empty()).then(|| below(random, held.len()))?;
        Some((at, held[at].owner == caller))
    }

    fn call_upstream(&mut self, caller: usize) {
        let text = self.text(caller);
        let upstream = ["first", "second"][self.below(2)];
        let is_noted = self.below(2) == 0;
        let (tool, arguments) = match is_noted {
            true => (format!("{upstream}__note"), json!({"text": text})),
            false => (format!("{upstream}__recall"), json!({})),
        };
        let response = self.stateless(caller).call(&tool, arguments);
        self.check(caller, &tool, &response);
        if self.callers[caller].hidden.contains(&&*tool) {
            return self.assert(!response["error"].is_null());
        }
        self.assert(response["error"].is_null());
        self.assert(!is_noted || response.to_string().contains(&text));
    }

    fn open_session(&mut self, caller: usize) {
        let token = &self.callers[caller].token;
        let address = self.gateway.address();
        let client =
            HandshakeClient::open(address, "2025-11-25", json!({"elicitation": {}}), Some(token));
        self.check(caller, "initialize", &client.welcome.clone());
        self.sessions.push(Owned { owner: caller, value: client });
    }

    /// Sends a call in a session, which may be that of somebody else.
    fn use_session(&mut self, caller: usize) {
        let Some((at, is_own)) = Self::pick(&mut self.random, &self.sessions, caller) else {
            return;
        };
        let text = self.text(caller);
        let call = json!({
            "jsonrpc": "2.0", "id": 7, "method": "tools/call",
            "params": {"name": "first__note", "arguments": {"text": text}},
        });
        let session = self.sessions[at].value.session().to_owned();
        let request = self
            .in_session(Request::post(call.to_string()), caller)
            .with("Mcp-Session-Id", &session);
        let response = request.send(self.gateway.address()).unwrap();
        let status = response.head.status;
        self.check(caller, "call in a session", &json!([status, response.text()]));
        self.assert(if is_own { status == 200 } else { status == 404 });
    }

    fn in_session(&self, request: Request, caller: usize) -> Request {
        let token = format!("Bearer {}", self.callers[caller].token);
        request.with("MCP-Protocol-Version", "2025-11-25").with("Authorization", &token)
    }

    /// Ends the session of somebody else, or listens to it: both are refused.
    fn end_or_listen(&mut self, caller: usize) {
        let Some((at, false)) = Self::pick(&mut self.random, &self.sessions, caller) else {
            return;
        };
        let session = self.sessions[at].value.session().to_owned();
        let request = match self.below(2) {
            0 => Request::delete(&session),
            _ => Request::get(&session),
        };
        let response = self.in_session(request, caller).send(self.gateway.address()).unwrap();
        let status = response.head.status;
        self.check(caller, "another session", &json!([status, response.text()]));
        self.assert(status == 404);
    }

    /// Calls a tool that asks on the stream of its call. Somebody else's answer is refused, and the caller's is accepted.
    fn ask_in_session(&mut self, caller: usize) {
        let Some((at, true)) = Self::pick(&mut self.random, &self.sessions, caller) else {
            return;
        };
        let text = self.text(caller);
        let params = json!({"name": "confirm_delete", "arguments": {"filename": text}});
        let session = self.sessions[at].value.clone();
        let mut call = session.begin(&json!("ask"), "tools/call", &params);
        let asked = call.message();
        self.check(caller, "asked", &asked);
        self.assert(asked["method"] == "elicitation/create");
        let accepted = json!({"action": "accept", "content": {"confirm": true}});
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": accepted});
        let other = (caller + 1) % self.callers.len();
        let request = self.in_session(Request::post(answer.to_string()), other);
        let request = request.with("Mcp-Session-Id", session.session());
        let refused = request.send(self.gateway.address()).unwrap();
        self.check(other, "another's answer", &json!([refused.head.status, refused.text()]));
        self.assert(refused.head.status == 404);
        session.tell(&answer);
        let response = call.answer();
        self.check(caller, "answered", &response);
        self.assert(response.to_string().contains(&text));
    }

    fn list_tools(&mut self, caller: usize) {
        let response = self.stateless(caller).request("tools/list", json!({}));
        self.check(caller, "tools/list", &response);
        let cursor = response["result"]["nextCursor"].clone();
        self.assert(cursor.is_string());
        self.cursors.push(Owned { owner: caller, value: cursor });
    }

    /// Checks that the whole list has what exists for the caller, and nothing else.
    fn check_lists(&mut self, caller: usize) {
        let (mut names, mut params) = (Vec::new(), json!({}));
        loop {
            let page = self.stateless(caller).request("tools/list", params)["result"].clone();
            let tools = page["tools"].as_array().cloned().unwrap_or_default();
            names.extend(tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
            if page["nextCursor"].is_null() {
                break;
            }
            params = json!({"cursor": page["nextCursor"]});
        }
        for tool in ["first__note", "first__recall", "second__note", "second__recall"] {
            let is_listed = names.iter().any(|name| name == tool);
            let is_hidden = self.callers[caller].hidden.contains(&tool);
            assert_eq!(
                is_listed, !is_hidden,
                "{tool} for {}: {names:?}",
                self.callers[caller].name
            );
        }
    }

    fn use_cursor(&mut self, caller: usize) {
        let Some((at, is_own)) = Self::pick(&mut self.random, &self.cursors, caller) else {
            return;
        };
        let params = json!({"cursor": self.cursors[at].value});
        let response = self.stateless(caller).request("tools/list", params);
        self.check(caller, "a cursor", &response);
        self.assert(response["error"].is_null() == is_own);
    }

    /// Calls a tool that asks, and keeps the state of the round.
    fn begin_round(&mut self, caller: usize) {
        let text = self.text(caller);
        let arguments = json!({"filename": text});
        let client = self.stateless(caller).that_can(json!({"elicitation": {}}));
        let response = client.call("confirm_delete", arguments);
        self.check(caller, "confirm_delete", &response);
        self.assert(response["result"]["resultType"] == "input_required");
        let owned = Owned { owner: caller, value: (response["result"].clone(), text) };
        self.states.push(owned);
    }

    fn end_round(&mut self, caller: usize) {
        let Some((at, is_own)) = Self::pick(&mut self.random, &self.states, caller) else {
            return;
        };
        let (asked, text) = &self.states[at].value;
        let keys = asked["inputRequests"].as_object().unwrap().keys();
        let accepted = json!({"action": "accept", "content": {"confirm": true}});
        let responses: serde_json::Map<_, _> =
            keys.map(|key| (key.clone(), accepted.clone())).collect();
        let client = self.stateless(caller).that_can(json!({"elicitation": {}}));
        let arguments = json!({"filename": text});
        let state = asked["requestState"].clone();
        let response = client.again("confirm_delete", arguments, &state, Value::Object(responses));
        let (is_refused, owner) = (!response["error"].is_null(), self.states[at].owner);
        // The file name in the arguments is that of the owner, so only the owner may see it in the result.
        self.check(if is_refused { owner } else { caller }, "answer", &response);
        self.assert(is_refused != is_own);
        if is_own {
            self.states.swap_remove(at);
        }
    }

    fn start_task(&mut self, caller: usize) {
        let text = self.text(caller);
        let arguments = json!({"seconds": 0, "label": text});
        let response = self.stateless(caller).call("slow_compute", arguments);
        self.check(caller, "slow_compute", &response);
        let task = response["result"]["taskId"].clone();
        self.assert(task.is_string());
        self.tasks.push(Owned { owner: caller, value: (task, text) });
    }

    fn read_task(&mut self, caller: usize) {
        let Some((at, is_own)) = Self::pick(&mut self.random, &self.tasks, caller) else {
            return;
        };
        let method = ["tasks/get", "tasks/cancel"][usize::from(!is_own && self.below(2) == 0)];
        let params = json!({"taskId": self.tasks[at].value.0});
        let response = self.stateless(caller).request(method, params);
        self.check(caller, method, &response);
        self.assert(response["error"].is_null() == is_own);
    }

    /// Checks that no session of an upstream served two callers, and that no credentials reached an upstream.
    fn check_upstreams(&self) {
        for upstream in self.upstreams {
            for texts in upstream.heard() {
                let is_of = |caller: &&Participant| {
                    texts.iter().any(|text| text.starts_with(&format!("{}-", caller.name)))
                };
                let callers = self.callers.iter().filter(is_of).count();
                assert!(callers <= 1, "one session heard {texts:?}\n{}", self.history);
            }
            assert_eq!(upstream.credentials(), Vec::<String>::new());
        }
    }
}
