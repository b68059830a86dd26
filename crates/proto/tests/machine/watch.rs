//! A machine with a record of its open requests, which checks that each gets exactly one response.

use core::time::Duration;
use std::collections::BTreeMap;

use creole_proto::dialect::{Dialect, MissingIdPolicy};
use creole_proto::operation::{Operation, Outcome, Payload, SubscriptionFilter};
use creole_proto::revision::InputRequestStyle;
use creole_proto::server::{Action, Call, CallKey, Machine, Outbox, Profile, ServerLimits};
use creole_proto::wire::Id;
use serde_json::Value;
use serde_json::value::RawValue;

use super::random_input::{ClientLine, MachineStep};

/// A machine whose output is checked.
pub(crate) struct MachineAudit {
    dialect: Dialect,
    machine: Machine,
    out: Outbox,
    now: Duration,
    calls: Vec<StartedCall>,
    /// Per id, as it is written: requests sent, minus responses received.
    owed: BTreeMap<String, i64>,
    /// Cancelled requests, which get no response.
    forgiven: i64,
    asked: Vec<String>,
    last: StepOutput,
}

/// A call that was started.
struct StartedCall {
    key: CallKey,
    /// As it is written; unknown when several requests came at once.
    id: Option<&'static str>,
    running: bool,
    listening: bool,
    batched: bool,
    is_listen: bool,
    is_initialize: bool,
    asks_inline: bool,
}

/// The output of one step.
#[derive(Debug, Default)]
struct StepOutput {
    /// The ids of the responses, as they are written; `None` for a response without an id.
    answers: Vec<Option<String>>,
    /// The number of responses that are batches.
    batches: usize,
    /// The server's own requests.
    requests: Vec<String>,
    notifications: usize,
    started: usize,
    cancelled: i64,
    /// Whether the handshake was cancelled.
    broke_handshake: bool,
}

impl StepOutput {
    fn is_nothing(&self) -> bool {
        self.answers.is_empty()
            && self.requests.is_empty()
            && self.notifications == 0
            && self.started == 0
    }
}

impl MachineAudit {
    /// A machine in its initial state.
    pub(crate) fn new(dialect: Dialect) -> Self {
        let limits = ServerLimits { max_calls: 8, max_subscriptions: 3, ..ServerLimits::default() };
        Self {
            machine: Machine::new(Profile::new(dialect.clone(), limits).into()),
            dialect,
            out: Outbox::default(),
            now: Duration::ZERO,
            calls: Vec::new(),
            owed: BTreeMap::new(),
            forgiven: 0,
            asked: Vec::new(),
            last: StepOutput::default(),
        }
    }

    /// Whether no call runs.
    pub(crate) fn is_idle(&self) -> bool {
        self.machine.in_flight() == 0
    }

    /// Whether the last step had no output.
    pub(crate) fn was_last_step_silent(&self) -> bool {
        self.last.is_nothing()
    }

    /// Performs one step and checks the output.
    pub(crate) fn take(&mut self, step: &MachineStep) {
        self.last = StepOutput::default();
        self.last = match step {
            MachineStep::Say(message) => self.say(message),
            MachineStep::Finish(call, outcome) => self.finish(*call, outcome),
            MachineStep::Event(call, event) => {
                let Some(call) = self.known(*call) else { return };
                let (key, running) = (call.key, call.running);
                self.machine.send_event(key, event, self.now, &mut self.out);
                let output = self.take_output();
                assert!(output.answers.is_empty() && output.notifications <= usize::from(running));
                output
            }
            MachineStep::Ask(call, input_request) => {
                let Some(call) = self.known(*call) else { return };
                let (key, running) = (call.key, call.running);
                // A call of the stateless era requests input by its outcome.
                if !call.asks_inline {
                    return;
                }
                let ask =
                    self.machine.request_input(key, input_request, None, self.now, &mut self.out);
                assert_eq!(ask.is_some(), running, "only a running call may request input");
                let output = self.take_output();
                assert_eq!(
                    (output.requests.len(), output.answers.len()),
                    (usize::from(running), 0)
                );
                output
            }
            MachineStep::Wait(by) => {
                self.now += *by;
                self.machine.tick(self.now, &mut self.out);
                let late = self.machine.deadline().is_some_and(|deadline| deadline <= self.now);
                assert!(!late, "a passed deadline is still set");
                self.take_output()
            }
            MachineStep::EndOfInput => {
                self.machine.handle_end_of_stream(self.now, &mut self.out);
                let output = self.take_output();
                assert!(output.answers.is_empty() && output.requests.is_empty());
                output
            }
            MachineStep::Announce(change) => {
                self.machine.announce(change, &mut self.out);
                let output = self.take_output();
                assert!(output.answers.is_empty() && output.requests.is_empty());
                output
            }
        };
        let running = self.calls.iter().filter(|call| call.running).count();
        assert_eq!(self.machine.in_flight(), running);
    }

    /// Performs one step after the end: there must be no output.
    pub(crate) fn take_after_the_end(&mut self, step: &MachineStep) {
        match step {
            MachineStep::Say(message) => {
                self.machine.receive(&message.text(), self.now, &mut self.out);
                self.machine.reject_overlong(&mut self.out);
                self.last = self.take_output();
            }
            other => self.take(other),
        }
        assert!(self.last.is_nothing(), "{step:?} has output after the end");
        assert!(self.is_idle());
    }

    /// Advances the clock so far that every call has ended.
    pub(crate) fn wait_for_all(&mut self) {
        // A request may wait more than a day for the end of a task, and once more after an input request.
        for _ in 0..2 {
            self.take(&MachineStep::Wait(Duration::from_secs(26 * 3600)));
        }
        assert!(self.is_idle(), "a call never ends");
    }

    /// Ends the connection.
    pub(crate) fn close(&mut self) {
        self.machine.close(self.now, &mut self.out);
        self.take_output();
        assert_eq!(self.machine.in_flight(), 0);
        assert_eq!(self.machine.deadline(), None);
    }

    /// Asserts that every request got one response or was cancelled.
    pub(crate) fn settle_accounts(&self) {
        assert!(
            self.owed.values().all(|owed| *owed >= 0),
            "a request got two responses: {:?}",
            self.owed
        );
        let unanswered: i64 = self.owed.values().sum();
        assert_eq!(unanswered, self.forgiven, "a request got no response: {:?}", self.owed);
    }

    fn known(&mut self, offset: usize) -> Option<&mut StartedCall> {
        let count = self.calls.len();
        self.calls.get_mut(offset.checked_rem(count)?)
    }

    fn say(&mut self, message: &ClientLine) -> StepOutput {
        let taken = message.id().is_some_and(|id| self.is_taken(id));
        self.machine.receive(&message.text(), self.now, &mut self.out);
        let earlier = self.calls.len();
        let output = self.take_output();
        assert!(!taken || output.started == 0, "two calls have one id");
        for call in &mut self.calls[earlier..] {
            call.batched = matches!(message, ClientLine::Batch(_));
            call.id = message.id();
            call.is_initialize =
                matches!(message, ClientLine::Request { method, .. } if method == "initialize");
        }
        assert!(!output.broke_handshake, "a client must not cancel the handshake");
        self.forgive(output.cancelled);
        match message {
            ClientLine::Batch(elements)
                if output.batches > 0 || !output.answers.contains(&None) =>
            {
                elements.iter().for_each(|element| self.account_for(element));
            }
            // The batch is rejected as a whole.
            ClientLine::Batch(_) => assert_eq!((output.answers.len(), output.started), (1, 0)),
            single => self.check_single(single, &output),
        }
        output
    }

    fn check_single(&mut self, message: &ClientLine, output: &StepOutput) {
        self.account_for(message);
        let answers = output.answers.len();
        match message {
            ClientLine::Request { id, .. } if self.dialect.parse_id(id).is_ok() => {
                assert_eq!(
                    answers + output.started,
                    1,
                    "a request gets a response or starts a call"
                );
                assert!(output.answers.iter().all(|answer| answer.as_deref() == Some(*id)));
            }
            ClientLine::Notification { .. } | ClientLine::Cancel(_)
                if self.dialect.missing_id == MissingIdPolicy::Refuse =>
            {
                assert_eq!(output.answers, [None]);
            }
            // The cancelled request may have been the last one that a batch waited for.
            ClientLine::Cancel(_) => {
                assert!(output.started == 0 && (answers == 0 || output.batches == 1))
            }
            ClientLine::Notification { .. } | ClientLine::Answer { .. } => {
                assert_eq!(answers + output.started, 0)
            }
            _ => assert!((answers <= 1 || output.batches == 1) && output.started == 0),
        }
    }

    /// Counts the expected responses of a line: one for a valid request, and none for a subscription that is cancelled,
    /// alone or in an array.
    fn account_for(&mut self, message: &ClientLine) {
        match message {
            ClientLine::Request { id, .. } if self.dialect.parse_id(id).is_ok() => {
                *self.owed.entry((*id).to_owned()).or_default() += 1;
            }
            ClientLine::Cancel(id) => self.end_listener(id),
            _ => {}
        }
    }

    /// Counts cancelled requests, which get no response.
    fn forgive(&mut self, cancelled: i64) {
        self.forgiven += cancelled;
    }

    /// Whether a request or subscription with this id is open.
    fn is_taken(&self, id: &str) -> bool {
        let same = |own: &str| match (self.dialect.parse_id(own), self.dialect.parse_id(id)) {
            (Ok(own), Ok(id)) => own == id,
            _ => false,
        };
        self.calls.iter().any(|call| (call.running || call.listening) && call.id.is_some_and(same))
    }

    fn end_listener(&mut self, id: &str) {
        let same = |call: &&mut StartedCall| {
            call.listening && call.id.is_some_and(|own| Id::parse(own) == Id::parse(id))
        };
        if let Some(call) = self.calls.iter_mut().find(same) {
            call.listening = false;
            self.forgive(1);
        }
    }

    fn finish(&mut self, offset: usize, outcome: &Outcome) -> StepOutput {
        let Some(call) = self.known(offset) else { return StepOutput::default() };
        let (key, was_running, batched) = (call.key, call.running, call.batched);
        let id = call.id.map(str::to_owned);
        call.running = false;
        // A subscription that opens covers more code than one that fails.
        let opens = Outcome::Complete(Payload::Listening(SubscriptionFilter {
            tools: true,
            ..SubscriptionFilter::default()
        }));
        let outcome = match outcome {
            Outcome::Complete(_) if call.is_listen => &opens,
            other => other,
        };
        let listens = matches!(outcome, Outcome::Complete(Payload::Listening(_))) && call.is_listen;
        call.listening |= was_running && listens;
        self.machine.finish(key, outcome.clone(), self.now, &mut self.out);
        let output = self.take_output();
        match (was_running, listens, batched) {
            (false, ..) => {
                assert!(output.is_nothing(), "a call that is over is answered: {output:?}")
            }
            (true, true, _) => assert_eq!((output.answers.len(), output.notifications), (0, 1)),
            (true, false, true) => assert!(output.batches <= 1),
            (true, false, false) => assert_eq!(output.answers, [id]),
        }
        output
    }

    /// Reads all frames and actions, and updates the counts.
    fn take_output(&mut self) -> StepOutput {
        let mut output = StepOutput::default();
        let bytes = self.out.take_bytes();
        if let Some((last, lines)) = bytes.split_last() {
            assert_eq!(*last, b'\n');
            lines.split(|byte| *byte == b'\n').for_each(|line| self.hear_frame(line, &mut output));
        }
        while let Some(action) = self.out.next_action() {
            self.hear_action(action, &mut output);
        }
        output
    }

    fn hear_action(&mut self, action: Action, output: &mut StepOutput) {
        match action {
            Action::Start(call) => {
                output.started += 1;
                self.calls.push(StartedCall::of(&call));
            }
            Action::Cancel(key, _) => {
                output.cancelled += 1;
                let call = self.calls.iter_mut().find(|call| call.key == key);
                let call = call.expect("a known call");
                assert!(call.running, "a finished call is cancelled");
                output.broke_handshake |= call.is_initialize;
                call.running = false;
            }
            Action::InputResponse(..)
            | Action::ReleaseSubscriptions(_)
            | Action::RootsChanged
            | Action::Observe(_) => {}
        }
    }

    fn hear_frame(&mut self, frame: &[u8], output: &mut StepOutput) {
        assert!(!frame.contains(&b'\r'));
        let text = std::str::from_utf8(frame).expect("UTF-8");
        match serde_json::from_str::<Vec<&RawValue>>(text) {
            Ok(elements) => {
                assert!(!elements.is_empty(), "an empty batch");
                output.batches += 1;
                elements.iter().for_each(|element| self.hear_message(element.get(), output));
            }
            Err(_) => self.hear_message(text, output),
        }
    }

    fn hear_message(&mut self, text: &str, output: &mut StepOutput) {
        let message: Value = serde_json::from_str(text).expect("valid JSON");
        assert_eq!(message["jsonrpc"], "2.0");
        let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).unwrap();
        let id = members.get("id").map(|id| id.get()).filter(|id| *id != "null").map(str::to_owned);
        if message["method"].is_string() {
            match id {
                None => output.notifications += 1,
                Some(id) => {
                    assert!(!self.asked.contains(&id), "two input requests have the id {id}");
                    self.asked.push(id.clone());
                    output.requests.push(id);
                }
            }
            return;
        }
        assert_ne!(message.get("result").is_some(), message.get("error").is_some());
        assert!(id.is_some() || message["error"]["code"].is_i64());
        if let Some(id) = &id {
            match self.owed.get_mut(id) {
                Some(owed) => *owed -= 1,
                // The request of this response may be counted later in this step; garbage never is.
                None if id.starts_with("\"g") => {}
                None => _ = self.owed.insert(id.clone(), -1),
            }
        }
        output.answers.push(id);
    }
}

impl StartedCall {
    fn of(call: &Call) -> Self {
        Self {
            key: call.key,
            id: None,
            running: true,
            listening: false,
            batched: false,
            is_listen: matches!(call.operation, Operation::Listen(_)),
            is_initialize: false,
            asks_inline: call.caller.rules.input_request_style == InputRequestStyle::Inline,
        }
    }
}
