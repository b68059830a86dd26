//! Tests of input requests of a session outside of any call.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use core::time::Duration;
use std::sync::Arc;

use creole_proto::dialect::builtin;
use creole_proto::model::InputRequest;
use creole_proto::server::{Action, FrameRoute, Machine, Outbox, Profile, ServerLimits};

const NOW: Duration = Duration::ZERO;

struct ServerSide {
    machine: Machine,
    out: Outbox,
}

impl ServerSide {
    fn new() -> Self {
        let profile = Profile::new(builtin("spec").unwrap(), ServerLimits::default());
        Self { machine: Machine::new(Arc::new(profile)), out: Outbox::default() }
    }

    fn say(&mut self, message: &str) {
        self.machine.receive(message.as_bytes(), NOW, &mut self.out);
    }

    fn initialize(&mut self, capabilities: &str) {
        self.say(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"clientInfo":{{"name":"c","version":"1"}}}}}}"#
        ));
        self.take_actions();
    }

    fn confirm(&mut self) {
        self.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }

    fn take_actions(&mut self) -> Vec<Action> {
        std::iter::from_fn(|| self.out.next_action()).collect()
    }

    /// The frames to the session since the last call.
    fn sent(&mut self) -> Vec<String> {
        let frames = self.out.frames().filter(|frame| frame.route == FrameRoute::Session);
        let sent = frames.map(|frame| String::from_utf8(frame.text.to_vec()).unwrap()).collect();
        self.out.clear_frames();
        sent
    }
}

#[test]
fn an_input_request_of_the_session_waits_for_the_end_of_the_handshake_and_is_answered() {
    let mut side = ServerSide::new();
    assert!(side.machine.request_session_input(&InputRequest::Roots, NOW, &mut side.out).is_none());
    side.initialize(r#"{"roots":{}}"#);
    let ask = side.machine.request_session_input(&InputRequest::Roots, NOW, &mut side.out).unwrap();
    assert_eq!(side.sent(), [""; 0]);
    side.confirm();
    assert_eq!(side.sent(), [r#"{"jsonrpc":"2.0","id":"creole-1","method":"roots/list"}"#]);
    side.confirm();
    assert_eq!(side.sent(), [""; 0]);
    side.say(r#"{"jsonrpc":"2.0","id":"creole-1","result":{"roots":[]}}"#);
    let answers = side.take_actions();
    let [Action::InputResponse(key, Ok(response))] = &answers[..] else { panic!("{answers:?}") };
    assert!(*key == ask && response.as_str() == r#"{"roots":[]}"#);
}

#[test]
fn a_session_gets_only_declared_input_requests_up_to_a_limit() {
    let mut side = ServerSide::new();
    side.initialize(r#"{"sampling":{}}"#);
    side.confirm();
    assert!(side.machine.request_session_input(&InputRequest::Roots, NOW, &mut side.out).is_none());
    let mut side = ServerSide::new();
    side.initialize(r#"{"roots":{}}"#);
    let mut ask =
        || side.machine.request_session_input(&InputRequest::Roots, NOW, &mut side.out).is_some();
    assert_eq!((0..40).filter(|_| ask()).count(), 16);
}

#[test]
fn an_unanswered_input_request_of_the_session_ends() {
    let mut side = ServerSide::new();
    side.initialize(r#"{"roots":{}}"#);
    let early =
        side.machine.request_session_input(&InputRequest::Roots, NOW, &mut side.out).unwrap();
    side.machine.tick(ServerLimits::default().input_timeout, &mut side.out);
    let ended =
        |action: &Action| matches!(action, Action::InputResponse(key, Err(_)) if *key == early);
    assert!(side.take_actions().iter().any(ended));
    side.confirm();
    assert_eq!(side.sent(), [""; 0], "the input request is withdrawn");
}

#[test]
fn a_change_of_roots_is_sent_once_the_session_is_open() {
    let mut side = ServerSide::new();
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#;
    side.initialize(r#"{"roots":{"listChanged":true}}"#);
    side.say(changed);
    assert!(side.take_actions().is_empty());
    side.confirm();
    side.say(changed);
    assert!(matches!(side.take_actions()[..], [Action::RootsChanged]));
}
