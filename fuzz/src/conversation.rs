//! Checks the invariants of a whole exchange: a byte stream, a machine, and an endpoint that responds immediately.
//!
//! The first four bytes of an input choose the dialect, the outcomes and the split positions. The rest is the client's
//! byte stream.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use creole_proto::dialect::builtin;
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::framing::{FramedLine, LineDecoder};
use creole_proto::model::{
    CacheHints, Implementation, InputRequest, KeyedInputRequest, Level, ServerCapabilities,
    ToolResult,
};
use creole_proto::operation::{Event, Outcome, Payload, ServerInfo, SubscriptionFilter};
use creole_proto::server::{Action, CallKey, Machine, Outbox, Profile, ServerLimits};
use creole_proto::wire::Raw;
use serde_json::value::RawValue;

use crate::{cut, reference};

const DIALECTS: &[&str] = &["spec", "bossman", "bb-mcp-server", "fpf-governance", "mcp-chain"];

/// The output does not depend on how the stream is split: each message gets at most one response, with its own id, in
/// one line of JSON, and nothing is sent after the end.
pub fn conversation(bytes: &[u8]) {
    let (controls, stream) = bytes.split_at(bytes.len().min(4));
    let control = |index: usize| controls.get(index).copied().unwrap_or(0);
    let output = Exchange::new(control(0), control(1)).run(&[stream]);
    let pieces = cut(stream, controls.get(2..).unwrap_or_default());
    assert_eq!(Exchange::new(control(0), control(1)).run(&pieces), output);
}

struct Exchange {
    machine: Machine,
    out: Outbox,
    lines: LineDecoder,
    choice: u8,
    /// The client's bytes, in which ids are searched.
    input: Vec<u8>,
    /// The number of messages that may get a response, and the number of responses.
    messages: usize,
    responses: usize,
    waiting: Vec<CallKey>,
    output: Vec<u8>,
}

impl Exchange {
    fn new(dialect: u8, choice: u8) -> Self {
        let name = DIALECTS[usize::from(dialect) % DIALECTS.len()];
        let limits = ServerLimits { max_calls: 4, max_subscriptions: 2, ..ServerLimits::default() };
        let profile = Profile::new(builtin(name).expect("ships inside"), limits);
        Self {
            machine: Machine::new(profile.into()),
            out: Outbox::default(),
            lines: LineDecoder::new(1024),
            choice,
            input: Vec::new(),
            messages: 0,
            responses: 0,
            waiting: Vec::new(),
            output: Vec::new(),
        }
    }

    /// Feeds these pieces of a stream and returns the whole output.
    fn run(mut self, pieces: &[&[u8]]) -> Vec<u8> {
        for mut piece in pieces.iter().copied() {
            while let Some(line) = self.lines.next(&mut piece).map(owned) {
                self.receive(line);
            }
        }
        let last = self.lines.finish().map(owned);
        last.into_iter().for_each(|line| self.receive(line));
        self.end();
        self.output
    }

    fn receive(&mut self, line: Option<Vec<u8>>) {
        match line {
            Some(frame) => {
                self.messages += messages_in(&frame);
                self.input.extend_from_slice(&frame);
                self.machine.receive(&frame, Duration::ZERO, &mut self.out);
            }
            None => {
                self.messages += 1;
                self.machine.reject_overlong(&mut self.out);
            }
        }
        self.perform_actions();
    }

    fn perform_actions(&mut self) {
        while let Some(action) = self.out.next_action() {
            match action {
                Action::Start(call) => self.finish_or_park(call.key),
                Action::Cancel(key, _) => self.waiting.retain(|waiting| *waiting != key),
                Action::InputResponse(..)
                | Action::ReleaseSubscriptions(_)
                | Action::RootsChanged
                | Action::Observe(_) => {}
            }
        }
        assert_eq!(self.machine.in_flight(), self.waiting.len());
        self.note_frames();
    }

    /// Finishes a call immediately or leaves it open, as the input chooses.
    fn finish_or_park(&mut self, key: CallKey) {
        self.choice = self.choice.wrapping_mul(5).wrapping_add(1);
        let data = Raw::parse("{\"a\":\n1}").expect("valid");
        let log = Event::Log { level: Level::Error, logger: None, data };
        self.machine.send_event(key, &log, Duration::ZERO, &mut self.out);
        match outcome(self.choice) {
            Some(outcome) => self.machine.finish(key, outcome, Duration::ZERO, &mut self.out),
            None => self.waiting.push(key),
        }
    }

    /// Finishes some calls late and the others never, then ends the connection.
    fn end(&mut self) {
        for key in std::mem::take(&mut self.waiting) {
            if key.0 % 2 == 0 {
                self.machine.finish(
                    key,
                    Outcome::Complete(Payload::Empty),
                    Duration::ZERO,
                    &mut self.out,
                );
            }
        }
        self.machine.close(Duration::ZERO, &mut self.out);
        assert_eq!(self.machine.in_flight(), 0);
        while self.out.next_action().is_some() {}
        self.note_frames();
        for key in (0..20).map(CallKey) {
            self.machine.finish(
                key,
                Outcome::Complete(Payload::Empty),
                Duration::ZERO,
                &mut self.out,
            );
        }
        self.machine.tick(Duration::from_secs(10_000), &mut self.out);
        let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        self.machine.receive(ping, Duration::ZERO, &mut self.out);
        self.machine.reject_overlong(&mut self.out);
        assert!(self.out.bytes().is_empty(), "there is output after the end");
    }

    fn note_frames(&mut self) {
        let bytes = self.out.take_bytes();
        for frame in bytes.split_inclusive(|&byte| byte == b'\n') {
            let frame = frame.strip_suffix(b"\n").expect("a whole line");
            match reference::read(frame) {
                Ok(shape) => assert!(!shape.repeated),
                Err(error) => assert!(reference::is_stricter(&error), "not JSON: {error}"),
            }
            match serde_json::from_slice::<Vec<&RawValue>>(frame) {
                Ok(elements) => elements.iter().for_each(|element| self.note(element.get())),
                Err(_) => self.note(std::str::from_utf8(frame).expect("UTF-8")),
            }
        }
        self.output.extend_from_slice(&bytes);
        assert!(self.responses <= self.messages, "more responses than messages");
    }

    fn note(&mut self, text: &str) {
        let members: BTreeMap<&str, &RawValue> = serde_json::from_str(text).expect("an object");
        if members.contains_key("method") {
            return;
        }
        assert_ne!(members.contains_key("result"), members.contains_key("error"));
        self.responses += 1;
        let id = members.get("id").map_or("null", |id| id.get());
        let echoed = self.input.windows(id.len()).any(|window| window == id.as_bytes());
        assert!(id == "null" || echoed, "the id {id} was never sent");
    }
}

/// The bytes of a line; `None` for a line that was too long.
fn owned(line: FramedLine<'_>) -> Option<Vec<u8>> {
    match line {
        FramedLine::Complete(frame) => Some(frame.to_vec()),
        FramedLine::TooLong(_) | FramedLine::TooLongEnd(_) => None,
    }
}

/// The maximum number of messages in a line.
fn messages_in(frame: &[u8]) -> usize {
    serde_json::from_slice::<Vec<&RawValue>>(frame).map_or(1, |elements| elements.len().max(1))
}

fn outcome(choice: u8) -> Option<Outcome> {
    let complete = |payload| Some(Outcome::Complete(payload));
    match choice % 7 {
        0 => None,
        1 => complete(Payload::Empty),
        2 => complete(Payload::Server(server_info())),
        3 => complete(Payload::Listening(SubscriptionFilter {
            tools: true,
            ..SubscriptionFilter::default()
        })),
        4 => complete(Payload::Tool(ToolResult::text("a\nb"))),
        5 => Some(Fault::new(FaultKind::ToolFailed, "no").with_subject("t").into()),
        _ => {
            let requests =
                vec![KeyedInputRequest { key: "q".to_owned(), question: InputRequest::Roots }];
            Some(Outcome::InputRequired { requests, request_state: None })
        }
    }
}

fn server_info() -> ServerInfo {
    ServerInfo {
        identity: Arc::new(Implementation::default()),
        capabilities: ServerCapabilities { tools: true, ..ServerCapabilities::default() },
        instructions: None,
        cache: CacheHints::NONE,
    }
}
