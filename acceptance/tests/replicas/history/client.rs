//! A client of the history: it calls any replica, repeats nothing that it must not, and records what it sees.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use creole_acceptance::gateway::{HandshakeClient, StatelessClient};
use creole_acceptance::http::Request;
use creole_acceptance::load::{Call, ExecutedCall, HistoryResponse, SeededRandom};
use creole_acceptance::replicas::tenant_key;
use creole_test_wait::blocking::delay;
use serde_json::{Value, json};

use super::Run;
use super::tasks::AcknowledgedTask;

/// The longest work of a call, in milliseconds.
const LONGEST_WORK: u64 = 300;

/// How long a client waits before it tries again.
const RETRY_MILLISECONDS: u64 = 400;

/// What a replica may answer while something fails: the call was lost, the store is away, it has too many tasks, or the
/// upstream cannot be reached. Any other error is a violation.
const ALLOWED_REFUSALS: [&str; 5] = [
    "Its effects are unknown",
    "cannot store tasks",
    "tasks per principal is reached",
    "\"upstream\":\"handshake\"",
    "\"upstream\":\"stateless\"",
];

/// A client and all that it saw.
pub(super) struct HistoryClient<'a> {
    pub(super) run: &'a Run,
    pub(super) tenant: usize,
    pub(super) random: SeededRandom,
    pub(super) answered: Vec<Call>,
    pub(super) executed: Vec<ExecutedCall>,
    pub(super) tasks: Vec<AcknowledgedTask>,
    pub(super) refused: usize,
}

/// A call that was begun.
pub(super) struct BegunCall {
    pub(super) id: Value,
    pub(super) tool: String,
    pub(super) arguments: Value,
    pub(super) nonce: String,
    may_repeat: bool,
}

impl<'a> HistoryClient<'a> {
    pub(super) fn new(run: &'a Run, tenant: usize, random: SeededRandom) -> Self {
        let (answered, executed, tasks) = (Vec::new(), Vec::new(), Vec::new());
        Self { run, tenant, random, answered, executed, tasks, refused: 0 }
    }

    pub(super) fn key(&self) -> String {
        tenant_key(self.tenant)
    }

    /// Any replica.
    pub(super) fn address(&mut self) -> SocketAddr {
        let count = self.run.addresses.len() as u64;
        self.run.addresses[self.random.below(count) as usize]
    }

    /// A client of the stateless era with these capabilities. It may send to any replica.
    pub(super) fn stateless(&self, capabilities: Value) -> StatelessClient {
        StatelessClient::new(self.run.addresses[0]).that_can(capabilities).with_key(&self.key())
    }

    /// Begins a call of a tool. Tools that may be repeated have a name that says so.
    pub(super) fn begin(&mut self, tool: &str) -> BegunCall {
        let nonce = self.random.nonce();
        let arguments = json!({"nonce": nonce, "milliseconds": self.random.below(LONGEST_WORK)});
        // All clients use the same ids.
        let id = json!(self.executed.len() % 3);
        let may_repeat = tool.ends_with("_again");
        BegunCall { id, tool: tool.to_owned(), arguments, nonce, may_repeat }
    }

    /// Sends a request. `None` without a whole response, or from a replica that cannot answer now.
    pub(super) fn send(&mut self, request: &Request) -> Option<Vec<Value>> {
        let response = request.send(self.address()).ok()?;
        assert_ne!(response.head.status, 404, "a session or task is lost: {}", response.text());
        let messages = response.messages();
        let is_message = |message: &Value| message["jsonrpc"] == "2.0";
        (!messages.is_empty() && messages.iter().all(is_message)).then_some(messages)
    }

    /// Sends an input response in a session. `None` unless a replica accepts it.
    pub(super) fn send_answer(&mut self, session: &HandshakeClient, answer: &Value) -> Option<()> {
        let response = session.written(answer).send(self.address()).ok()?;
        assert_ne!(response.head.status, 404, "the session is lost: {}", response.text());
        (response.head.status == 202).then_some(())
    }

    /// Pauses between two calls. Returns whether the run continues.
    pub(super) fn pause(&mut self) -> bool {
        delay(self.random.milliseconds(RETRY_MILLISECONDS));
        !self.run.is_over()
    }

    /// Records the acknowledgement of a task.
    pub(super) fn end_task(&mut self, call: BegunCall, task: AcknowledgedTask) {
        let BegunCall { nonce, may_repeat, .. } = call;
        // Whether it was executed is known when it has ended.
        self.executed.push(ExecutedCall { nonce, may_repeat, has_result: false });
        self.tasks.push(task);
    }

    /// Records the end of a call: the responses, and the text of the right one.
    pub(super) fn end(&mut self, call: BegunCall, messages: &[Value], expected: String) {
        let answers: Vec<_> = messages.iter().filter_map(HistoryResponse::read).collect();
        let has_result = answers.iter().any(|answer| answer.text.is_ok());
        self.executed.push(ExecutedCall {
            nonce: call.nonce,
            may_repeat: call.may_repeat,
            has_result,
        });
        let is_refused = matches!(&answers[..], [answer] if is_allowed_refusal(answer));
        if answers.is_empty() || is_refused {
            self.refused += 1;
            return;
        }
        let (tenant, number) = (self.tenant, self.answered.len());
        let (id, nonce) = (call.id, expected);
        self.answered.push(Call { tenant, number, id, nonce, answers, failure: None });
        self.run.answered.fetch_add(1, Ordering::Relaxed);
    }
}

fn is_allowed_refusal(answer: &HistoryResponse) -> bool {
    answer.text.as_ref().is_err_and(|text| may_fail_with(text))
}

/// Whether a call or a task may fail in this way while something fails.
pub(super) fn may_fail_with(text: &str) -> bool {
    ALLOWED_REFUSALS.iter().any(|allowed| text.contains(allowed))
}

/// Whether this is the refusal of a replica that is busy, or that does not reach the store: the call still waits.
pub(super) fn is_temporary(message: &Value) -> bool {
    let text = message.to_string();
    text.contains("busy") || text.contains("unavailable")
}
