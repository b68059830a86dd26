//! Checks every shape that the machine can write, in every revision, with the referee.

mod fixtures;
mod tasks;

use std::sync::Arc;
use std::time::Duration;

use creole::proto::dialect::builtin;
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::model::{
    Annotations, CacheHints, Completion, Content, Contents, Definition, Implementation,
    InputRequest, KeyedInputRequest, Level, ListKind, Prompt, PromptArgument, PromptMessage,
    PromptResult, Resource, ResourceTemplate, Role, ServerCapabilities, Skill, SkillFile,
    TaskSupport, Tool, ToolAnnotations, ToolResult,
};
use creole::proto::operation::{
    Change, Event, Outcome, Page, Payload, ServerInfo, SubscriptionFilter,
};
use creole::proto::revision::{ElicitationSupport, Era, InputRequestStyle, Revision};
use creole::proto::server::{Action, CallKey, Machine, Outbox, Profile, ServerLimits};
use creole::proto::wire::Raw;
use creole::proto::wire::meta;
use creole_acceptance::referee::Referee;
use creole_acceptance::transcript::Direction;
use serde_json::{Value, json};

use fixtures::{blocks, identity, input_requests, items, server_info, skill};

#[test]
fn every_list_and_every_definition_matches_each_revision() {
    for mut stage in Stage::of_each_revision() {
        for (method, kind) in [
            ("tools/list", ListKind::Tools),
            ("resources/list", ListKind::Resources),
            ("resources/templates/list", ListKind::Templates),
            ("prompts/list", ListKind::Prompts),
        ] {
            stage.answer(method, json!({}), Outcome::Complete(Payload::Page(page(kind))));
        }
    }
}

const CACHE: CacheHints = CacheHints { ttl_ms: 1000, public: true };

fn page(kind: ListKind) -> Page {
    let items = items(kind).into_iter().map(Arc::new).collect();
    Page { kind, items, excluded: Box::default(), next: Some("next".to_owned()), cache: CACHE }
}

#[test]
fn skills_and_directories_match_their_extension() {
    let stages = Stage::of_each_revision().into_iter();
    for mut stage in stages.filter(|stage| stage.era() == Era::Stateless) {
        let list = Payload::Page(page(ListKind::Skills));
        stage.answer("skills/list", json!({}), Outcome::Complete(list));
        let one = Payload::Skill(Arc::new((&skill()).into()), CACHE);
        stage.answer("skills/get", json!({"uri": "skill://a/b/SKILL.md"}), Outcome::Complete(one));
        let directory = Payload::Directory(page(ListKind::Resources));
        stage.answer(
            "resources/directory/read",
            json!({"uri": "skill://a/b"}),
            Outcome::Complete(directory),
        );
    }
}

#[test]
fn every_tool_result_matches_each_revision() {
    for mut stage in Stage::of_each_revision() {
        let list = Raw::from_value(&json!([1, 2]));
        let full = ToolResult {
            content: blocks(),
            structured: Some(Raw::from_value(&json!({"a": 1}))),
            is_error: false,
            meta: Some(Raw::from_value(&json!({"example.org/x": 1}))),
        };
        let results = [
            full,
            ToolResult::text("done"),
            ToolResult::error("failed"),
            ToolResult::structured(list),
            ToolResult::default(),
        ];
        for result in results {
            stage.answer(
                "tools/call",
                json!({"name": "t"}),
                Outcome::Complete(Payload::Tool(result)),
            );
        }
    }
}

#[test]
fn every_other_result_matches_each_revision() {
    for mut stage in Stage::of_each_revision() {
        let contents = vec![
            Contents::text("test://a", "text/plain", "text"),
            Contents::blob("test://b", "image/png", "AAAA"),
            Contents { uri: "test://c".into(), text: Some(String::new()), ..Contents::default() },
        ];
        let read = Payload::Contents(contents, CacheHints::NONE);
        stage.answer("resources/read", json!({"uri": "test://a"}), Outcome::Complete(read));
        let messages = blocks().into_iter().zip([Role::User, Role::Assistant].into_iter().cycle());
        let messages = messages.map(|(content, role)| PromptMessage { role, content }).collect();
        let prompt = PromptResult { description: Some("d".into()), messages };
        stage.answer(
            "prompts/get",
            json!({"name": "p"}),
            Outcome::Complete(Payload::Prompt(prompt)),
        );
        let values = (0..200).map(|number| number.to_string()).collect();
        let completion = Payload::Completion(Completion::from_values(values));
        let request = json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}});
        stage.answer("completion/complete", request, Outcome::Complete(completion));
        if stage.era() == Era::Handshake {
            let empty = || Outcome::Complete(Payload::Empty);
            stage.answer("resources/subscribe", json!({"uri": "test://a"}), empty());
            stage.announce(&Change::Resource("test://a".into()));
            stage.answer("resources/unsubscribe", json!({"uri": "test://a"}), empty());
            stage.say("ping", json!({}));
            stage.say("logging/setLevel", json!({"level": "debug"}));
        } else {
            stage.answer(
                "server/discover",
                json!({}),
                Outcome::Complete(Payload::Server(server_info())),
            );
        }
    }
}

#[test]
fn every_fault_is_told_as_each_revision_asks() {
    for mut stage in Stage::of_each_revision() {
        for (kind, name) in FaultKind::ALL {
            let data = match kind {
                FaultKind::MissingCapability | FaultKind::TaskRequired => {
                    json!({"requiredCapabilities": {"roots": {}}})
                }
                FaultKind::UnsupportedVersion => {
                    json!({"supported": ["2026-07-28"], "requested": "1"})
                }
                _ => json!({"uri": "test://a"}),
            };
            let fault =
                || Fault::new(kind, name).with_subject("it").with_data(Raw::from_value(&data));
            stage.answer("tools/call", json!({"name": "t"}), fault().into());
            stage.answer("resources/read", json!({"uri": "test://a"}), fault().into());
        }
        stage.say("no/such/method", json!({}));
        stage.say("tools/call", json!({}));
        stage.send("{", 1);
        stage.send("[]", 1);
        stage.send("7", 1);
        stage.send(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, 1);
        stage.send(r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, 1);
        let mut claimed = stage.request("tools/list", json!({}));
        claimed["params"]["_meta"][meta::PROTOCOL_VERSION] = json!("1999-01-01");
        claimed["params"]["_meta"][meta::CLIENT_CAPABILITIES] = json!({});
        stage.send(&claimed.to_string(), 1);
    }
}

#[test]
fn everything_told_during_a_call_is_as_each_revision_asks() {
    for mut stage in Stage::of_each_revision() {
        let call = stage.start("tools/call", json!({"name": "t", "_meta": {"progressToken": "p"}}));
        let (total, message) = (Some(2.0), Some("half".to_owned()));
        stage.event(call, &Event::Progress { progress: 1.0, total, message });
        stage.event(call, &Event::Progress { progress: 1.5, total: None, message: None });
        for level in [Level::Info, Level::Emergency] {
            let data = Raw::from_value(&json!({"what": "it"}));
            stage.event(call, &Event::Log { level, logger: Some("l".into()), data });
        }
        stage.finish(call, Outcome::Complete(Payload::Tool(ToolResult::text("done"))));
    }
}

#[test]
fn every_question_is_asked_as_each_revision_asks() {
    for mut stage in Stage::of_each_revision() {
        let params = json!({"name": "t"});
        if stage.revision.rules().input_request_style == InputRequestStyle::MultiRoundTrip {
            let asks = input_requests(stage.revision).into_iter().enumerate();
            let input_requests = asks
                .map(|(offset, input_request)| KeyedInputRequest {
                    key: format!("q{offset}"),
                    question: input_request,
                })
                .collect();
            stage.answer(
                "tools/call",
                params.clone(),
                Outcome::InputRequired {
                    requests: input_requests,
                    request_state: Some("s".into()),
                },
            );
            stage.answer(
                "tools/call",
                params,
                Outcome::InputRequired { requests: vec![], request_state: Some("s".into()) },
            );
            continue;
        }
        let call = stage.start("tools/call", params);
        for input_request in input_requests(stage.revision) {
            stage
                .machine
                .request_input(call, &input_request, None, Duration::ZERO, &mut stage.out)
                .unwrap();
            stage.assert_frames(1);
        }
        // Input requests without a response are cancelled.
        let open = input_requests(stage.revision).len();
        let done = Outcome::Complete(Payload::Tool(ToolResult::text("done")));
        stage.machine.finish(call, done, Duration::ZERO, &mut stage.out);
        stage.assert_frames(open + 1);
    }
}

#[test]
fn every_change_is_announced_as_each_revision_asks() {
    let changes = [
        Change::List(ListKind::Tools),
        Change::List(ListKind::Resources),
        Change::List(ListKind::Templates),
        Change::List(ListKind::Prompts),
        Change::List(ListKind::Skills),
    ];
    for mut stage in Stage::of_each_revision() {
        if stage.era() == Era::Stateless {
            let expected = json!({"toolsListChanged": true, "promptsListChanged": true,
                "resourcesListChanged": true, "resourceSubscriptions": ["test://a"]});
            let uris = vec!["test://a".to_owned()];
            let filter = SubscriptionFilter {
                tools: true,
                prompts: true,
                resources: true,
                uris,
                ..SubscriptionFilter::default()
            };
            let listening = Outcome::Complete(Payload::Listening(filter));
            stage.answer("subscriptions/listen", json!({"notifications": expected}), listening);
            stage.announce(&Change::Resource("test://a/part".into()));
        }
        changes.iter().for_each(|change| stage.announce(change));
        stage.close();
    }
}

/// A machine with one revision, and its referee.
struct Stage {
    revision: Revision,
    machine: Machine,
    out: Outbox,
    referee: Referee,
    last_id: u64,
}

impl Stage {
    /// One stage for each revision, after the handshake if there is one.
    fn of_each_revision() -> Vec<Self> {
        Revision::ALL.into_iter().map(Self::new).collect()
    }

    fn new(revision: Revision) -> Self {
        let dialect = builtin("spec").unwrap();
        let referee = Referee::new(&dialect);
        let profile = Profile::new(dialect, ServerLimits::default()).identity(&identity());
        let machine = Machine::new(profile.into());
        let mut stage = Self { revision, machine, out: Outbox::default(), referee, last_id: 0 };
        if stage.era() == Era::Handshake {
            let client =
                json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}});
            let params = json!({"protocolVersion": revision.rules().name, "capabilities": client,
                "clientInfo": {"name": "c", "version": "1"}});
            stage.answer("initialize", params, Outcome::Complete(Payload::Server(server_info())));
            stage.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, 0);
        }
        stage
    }

    fn era(&self) -> Era {
        self.revision.rules().era
    }

    fn request(&mut self, method: &str, mut params: Value) -> Value {
        self.last_id += 1;
        if self.era() == Era::Stateless {
            params["_meta"][meta::PROTOCOL_VERSION] = json!(self.revision.rules().name);
            params["_meta"][meta::CLIENT_CAPABILITIES] =
                json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
            params["_meta"][meta::LOG_LEVEL] = json!("info");
        }
        json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params})
    }

    /// Sends a request to which the machine responds without an endpoint.
    fn say(&mut self, method: &str, params: Value) {
        let request = self.request(method, params);
        self.send(&request.to_string(), 1);
    }

    fn start(&mut self, method: &str, params: Value) -> CallKey {
        let request = self.request(method, params);
        self.send(&request.to_string(), 0);
        match self.out.next_action() {
            Some(Action::Start(call)) => call.key,
            other => panic!("{method} in {:?}: {other:?}", self.revision),
        }
    }

    fn answer(&mut self, method: &str, params: Value, outcome: Outcome) {
        let call = self.start(method, params);
        self.finish(call, outcome);
    }

    fn finish(&mut self, call: CallKey, outcome: Outcome) {
        self.machine.finish(call, outcome, Duration::ZERO, &mut self.out);
        self.assert_frames(1);
    }

    fn event(&mut self, call: CallKey, event: &Event) {
        self.machine.send_event(call, event, Duration::ZERO, &mut self.out);
        self.assert_frames(1);
    }

    fn announce(&mut self, change: &Change) {
        self.machine.announce(change, &mut self.out);
        self.assert_frames(1);
    }

    /// Ends the connection. Listeners get a notification.
    fn close(&mut self) {
        self.machine.close(Duration::ZERO, &mut self.out);
        self.assert_frames(usize::from(self.era() == Era::Stateless));
    }

    fn send(&mut self, line: &str, answers: usize) {
        self.referee.observe(Direction::ToServer, &format!("{line}\n")).unwrap();
        self.machine.receive(line.as_bytes(), Duration::ZERO, &mut self.out);
        self.assert_frames(answers);
    }

    /// Asserts that there are this many frames, and that the referee accepts each.
    fn assert_frames(&mut self, expected: usize) {
        let bytes = self.out.take_bytes();
        let lines: Vec<&str> = std::str::from_utf8(&bytes).unwrap().lines().collect();
        for line in &lines {
            if let Err(reason) = self.referee.observe(Direction::ToClient, line) {
                panic!("{:?}\n{reason}", self.revision);
            }
        }
        assert_eq!(lines.len(), expected, "{:?}\n{lines:#?}", self.revision);
    }
}
