//! Tests of many parked calls of one caller, and of their effect on other callers.

use std::fs;

use creole::internal::seal::digest;
use creole_acceptance::gateway::{ReceivedMessage, ScriptedHttpServer, StatelessClient};
use creole_acceptance::http::ListeningServer;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{A_MOMENT, ALICE, BOB, Bridge, asking, form, named, only_key, text};

/// The maximum number of parked calls of one caller.
const MOST: usize = 16;

/// A parked call, and the request state that its caller got.
struct Waiting {
    client: StatelessClient,
    number: usize,
    called: ReceivedMessage,
    asked: Value,
}

impl Waiting {
    #[track_caller]
    fn new(bridge: &Bridge, client: &StatelessClient, number: usize) -> Self {
        let mut call = client.begin_call("ask", json!({"number": number}));
        let received = bridge.puppets.hears("tools/call");
        received.by.asks(json!(number), "elicitation/create", form("Who?"));
        let request = call.answer()["result"].clone();
        Self { client: client.clone(), number, called: received, asked: request }
    }

    fn again(&self) -> Value {
        let responses = json!({only_key(&self.asked): named("Ann")});
        let arguments = json!({"number": self.number});
        self.client.again("ask", arguments, &self.asked["requestState"], responses)
    }

    /// The caller returns with the input responses and gets its result.
    #[track_caller]
    fn respond_and_finish(self, bridge: &Bridge) {
        let responses = json!({only_key(&self.asked): named("Ann")});
        let arguments = json!({"number": self.number});
        let state = &self.asked["requestState"];
        let mut retry = self.client.begin_again("ask", arguments, state, responses);
        let response = bridge.puppets.next();
        assert_eq!(response.by.pid, self.called.by.pid);
        assert_eq!(response.message["result"], named("Ann"));
        self.called.text("done");
        assert_eq!(text(&retry.answer()), "done");
    }

    /// The upstream gets `cancel` as the response to its input request, and ends its call.
    #[track_caller]
    fn is_given_up(&self, bridge: &Bridge) {
        let no = bridge.puppets.next();
        assert_eq!(no.by.pid, self.called.by.pid);
        assert_eq!(no.message["id"], self.number);
        assert_eq!(no.message["result"], json!({"action": "cancel"}));
        self.called.text("as you like");
    }
}

#[test]
fn the_oldest_abandoned_call_is_evicted_for_the_next() {
    let bridge = Bridge::new(asking());
    let client = bridge.modern().that_can(json!({"elicitation": {}}));
    let mut waiting: Vec<_> =
        (0..MOST).map(|number| Waiting::new(&bridge, &client, number)).collect();
    let mut call = client.begin_call("ask", json!({"number": MOST}));
    let oldest = waiting.remove(0);
    oldest.is_given_up(&bridge);
    let received = bridge.puppets.hears("tools/call");
    assert_eq!(received.by.pid, oldest.called.by.pid, "the slot is free again");
    received.by.asks(json!(MOST), "elicitation/create", form("Who?"));
    let request = call.answer()["result"].clone();
    let late = oldest.again();
    assert_eq!(late["error"]["code"], -32602, "{late}");
    assert_eq!(late["error"]["data"]["reason"], "state_expired", "{late}");
    Waiting { client: client.clone(), number: MOST, called: received, asked: request }
        .respond_and_finish(&bridge);
    waiting.into_iter().for_each(|it| it.respond_and_finish(&bridge));
}

#[test]
fn a_principal_never_evicts_the_calls_of_another() {
    let bridge = Bridge::with_keys(asking());
    let can = json!({"elicitation": {}});
    let alice = bridge.modern().with_key(ALICE).that_can(can.clone());
    let bob = bridge.modern().with_key(BOB).that_can(can);
    let bobs = Waiting::new(&bridge, &bob, 100);
    let mut waiting: Vec<_> =
        (0..MOST).map(|number| Waiting::new(&bridge, &alice, number)).collect();
    // Another parked call of Bob evicts none of Alice's.
    let bobs_second = Waiting::new(&bridge, &bob, 101);
    // Another call of Alice evicts her oldest one, and none of Bob's.
    let mut call = alice.begin_call("ask", json!({"number": MOST}));
    let oldest = waiting.remove(0);
    oldest.is_given_up(&bridge);
    bridge.puppets.hears("tools/call").text("at once");
    assert_eq!(text(&call.answer()), "at once");
    bobs.respond_and_finish(&bridge);
    bobs_second.respond_and_finish(&bridge);
    waiting.into_iter().for_each(|it| it.respond_and_finish(&bridge));
}

#[test]
fn an_upstream_that_exits_for_one_caller_is_restarted_for_the_others() {
    let bridge = Bridge::with_keys(asking());
    let alice = bridge.modern().with_key(ALICE);
    let bob = bridge.modern().with_key(BOB);
    // After at most two crashes, her upstream process is restarted only after a delay.
    while !is_refused(&dies_under(&bridge, &alice)) {}
    // His upstream process is started for the first time.
    let mut his = bob.begin_call("ask", json!({}));
    bridge.puppets.hears("tools/call").text("here");
    assert_eq!(text(&his.answer()), "here");
}

/// Calls the tool, and ends the upstream process if it receives the call.
#[track_caller]
fn dies_under(bridge: &Bridge, client: &StatelessClient) -> Value {
    let mut call = client.begin_call("ask", json!({}));
    loop {
        if let Some(message) = bridge.puppets.within(A_MOMENT / 10) {
            message.by.ends();
        }
        if let Some(text) = call.within(A_MOMENT / 10) {
            assert_eq!(text["error"]["code"], -32603, "{text}");
            return text;
        }
    }
}

fn is_refused(message: &Value) -> bool {
    message["error"]["message"]
        .as_str()
        .is_some_and(|words| words.contains("the next attempt is in"))
}

/// The number of callers with parked calls.
const CALLERS: usize = 8;

/// The API key of a caller.
fn key(number: usize) -> String {
    format!("the-key-of-caller-{number}-of-the-test")
}

/// A gateway in front of the site that admits these callers.
fn before(site: &ScriptedHttpServer) -> (ListeningServer, TempDir) {
    let keys = (0..CALLERS).map(|number| {
        let digest = digest(key(number).as_bytes()).map(|byte| format!("{byte:02x}")).concat();
        format!("{{ name = \"caller-{number}\", sha256 = \"{digest}\" }}")
    });
    let keys: Vec<_> = keys.collect();
    let head = format!("[server]\nname = \"gateway\"\n[auth]\nkeys = [{}]\n", keys.join(", "));
    let max = CALLERS * MOST;
    let upstream = format!("url = \"{}\"\nprefix = \"\"\nmax_parked_calls = {max}\n", site.url());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    fs::write(&file, format!("{head}[upstreams.site]\n{upstream}")).unwrap();
    (ListeningServer::start(&[&file.display().to_string()]).unwrap(), folder)
}

#[test]
fn many_calls_wait_for_answers_while_others_are_answered() {
    let site = ScriptedHttpServer::new(asking());
    let (gateway, _folder) = before(&site);
    let plain = StatelessClient::new(gateway.address());
    let client = plain.that_can(json!({"elicitation": {}}));
    let mut waiting = Vec::new();
    let before = gateway.weight();
    for number in 0..CALLERS * MOST {
        let client = client.with_key(&key(number / MOST));
        let mut call = client.begin_call("ask", json!({"number": number}));
        let mut request = site.hears("tools/call");
        request.stream();
        for question in [1, 2] {
            let (id, params) = (format!("{number}-{question}"), form("Who?"));
            let method = "elicitation/create";
            request.event(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        }
        let received = call.answer()["result"].clone();
        assert_eq!(received["inputRequests"].as_object().unwrap().len(), 2, "{received}");
        waiting.push((client, request, received));
    }
    let grown = gateway.weight().memory.saturating_sub(before.memory);
    assert!(grown < 64 * 1024 * 1024, "{grown} bytes for {} calls", waiting.len());
    // A call without input requests is served as usual.
    let mut call = plain.with_key(&key(0)).begin_call("ask", json!({}));
    site.hears("tools/call").text("plain");
    assert_eq!(text(&call.answer()), "plain");
    // The first and the last parked call still exist.
    for index in [0, CALLERS * MOST - 1] {
        let (client, request, received) = &mut waiting[index];
        let keys = received["inputRequests"].as_object().unwrap().keys();
        let responses: serde_json::Map<_, _> =
            keys.map(|key| (key.clone(), named("Ann"))).collect();
        let (arguments, state) = (json!({"number": index}), &received["requestState"]);
        let mut retry = client.begin_again("ask", arguments, state, json!(responses));
        for _ in 0..2 {
            let mut sent = site.next();
            assert_eq!(sent.message["result"], named("Ann"), "{}", sent.message);
            sent.respond("202 Accepted", "", "");
        }
        let result = json!({"content": [{"type": "text", "text": "done"}]});
        request.event(&json!({"jsonrpc": "2.0", "id": request.message["id"], "result": result}));
        assert_eq!(text(&retry.answer()), "done");
    }
}
