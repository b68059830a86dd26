//! The record of a task, and its possible changes.
//!
//! Each change is a function of the record alone and returns whether it changed anything. The store applies it under
//! compare-and-set, so of two changes that exclude each other (such as an end and a cancellation) the first one wins
//! and the second one has no effect.

use std::collections::BTreeMap;

use creole_proto::model::{KeyedInputRequest, Task, TaskOutcome, TaskState};
use creole_proto::wire::Raw;
use serde::{Deserialize, Serialize};

/// Maximum length of a status message, in characters.
const MAX_STATUS_MESSAGE: usize = 256;

/// The client's input responses by the keys of the input requests.
pub(crate) type ResponsesByKey = BTreeMap<String, Raw>;

/// The stored form of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TaskRecord {
    /// The part that clients see.
    pub(crate) task: Task,
    /// All input responses so far.
    pub(crate) answers: ResponsesByKey,
    /// Why an input request was declined.
    pub(crate) refused: Option<String>,
    /// The process that works on it.
    pub(crate) worker: String,
    /// The tool whose call became the task, under the name that its caller used.
    #[serde(default)]
    pub(crate) tool: String,
}

impl TaskRecord {
    /// Makes the task wait for input.
    pub(crate) fn await_input(
        &mut self,
        input_requests: Vec<KeyedInputRequest>,
        now_ms: u64,
    ) -> bool {
        let works = self.task.state == TaskState::Working;
        works && self.transition_to(TaskState::InputRequired(input_requests), None, now_ms)
    }

    /// Accepts the responses to open input requests and ignores others (SEP-2663, task update requests). The last one
    /// lets the task continue.
    pub(crate) fn accept_responses(&mut self, mut arguments: ResponsesByKey, now_ms: u64) -> bool {
        let TaskState::InputRequired(input_requests) = &mut self.task.state else { return false };
        let open = input_requests.len();
        let responses = &mut self.answers;
        input_requests.retain(|ask| match arguments.remove(&ask.key) {
            Some(response) => {
                responses.insert(ask.key.clone(), response);
                false
            }
            None => true,
        });
        match input_requests.len() {
            0 => self.transition_to(TaskState::Working, None, now_ms),
            remaining => {
                self.task.updated_ms = now_ms;
                remaining < open
            }
        }
    }

    /// Records that an input request is declined, which lets the task continue to its end.
    pub(crate) fn decline_input(&mut self, reason: &str, now_ms: u64) -> bool {
        let waits = matches!(self.task.state, TaskState::InputRequired(_));
        if waits {
            self.refused = Some(reason.to_owned());
        }
        waits && self.transition_to(TaskState::Working, None, now_ms)
    }

    /// Ends the task with the outcome of its call.
    pub(crate) fn end(&mut self, end: TaskOutcome, now_ms: u64) -> bool {
        let message = match &end {
            TaskOutcome::Result(result) if !result.is_error => None,
            TaskOutcome::Relayed(relayed) if !relayed.is_error() => None,
            TaskOutcome::Result(_) | TaskOutcome::Relayed(_) => Some("The tool reported an error."),
            TaskOutcome::Fault(fault) => Some(fault.detail.as_str()),
        };
        let message = message.filter(|text| !text.is_empty()).map(truncate);
        !self.task.state.is_terminal() && self.transition_to(TaskState::Ended(end), message, now_ms)
    }

    /// Ends the task at the client's request.
    pub(crate) fn cancel(&mut self, now_ms: u64) -> bool {
        let message = Some("The task was cancelled by request.".to_owned());
        !self.task.state.is_terminal() && self.transition_to(TaskState::Cancelled, message, now_ms)
    }

    fn transition_to(&mut self, state: TaskState, message: Option<String>, now_ms: u64) -> bool {
        self.task.state = state;
        self.task.message = message;
        self.task.updated_ms = now_ms;
        true
    }
}

fn truncate(text: &str) -> String {
    text.chars().take(MAX_STATUS_MESSAGE).collect()
}

#[cfg(test)]
mod tests {
    use creole_proto::fault::{Fault, FaultKind};
    use creole_proto::model::{InputRequest, ToolResult};

    use super::*;

    fn record() -> TaskRecord {
        let task = Task {
            id: "t".into(),
            state: TaskState::Working,
            message: None,
            created_ms: 1,
            updated_ms: 1,
            ttl_ms: 10,
            poll_ms: 1,
        };
        TaskRecord {
            task,
            answers: ResponsesByKey::new(),
            refused: None,
            worker: "w".into(),
            tool: "t".into(),
        }
    }

    fn parked(keys: &[&str]) -> TaskRecord {
        let input_requests = keys
            .iter()
            .map(|key| KeyedInputRequest { key: (*key).into(), question: InputRequest::Roots });
        let mut record = record();
        assert!(record.await_input(input_requests.collect(), 2));
        record
    }

    fn answers(keys: &[&str]) -> ResponsesByKey {
        keys.iter().map(|key| ((*key).to_owned(), Raw::parse("{}").unwrap())).collect()
    }

    fn result() -> TaskOutcome {
        TaskOutcome::Result(ToolResult::text("done"))
    }

    #[test]
    fn partial_input_responses_leave_the_rest_open() {
        let mut record = parked(&["a", "b"]);
        assert!(record.accept_responses(answers(&["a", "unknown"]), 3));
        let TaskState::InputRequired(open) = &record.task.state else { panic!("{record:?}") };
        assert_eq!(open.iter().map(|ask| &ask.key).collect::<Vec<_>>(), ["b"]);
        assert!(!record.accept_responses(answers(&["a"]), 4), "a response counts once");
        assert!(record.accept_responses(answers(&["b"]), 5));
        assert_eq!((record.task.state, record.answers.len()), (TaskState::Working, 2));
    }

    #[test]
    fn a_finished_task_does_not_change() {
        let mut cancelled = parked(&["a"]);
        assert!(cancelled.cancel(3));
        let mut ended = record();
        assert!(ended.end(result(), 3));
        for mut over in [cancelled, ended] {
            let before = over.clone();
            assert!(!over.cancel(4) && !over.end(result(), 4) && !over.await_input(Vec::new(), 4));
            assert!(!over.accept_responses(answers(&["a"]), 4) && !over.decline_input("no", 4));
            assert_eq!(over, before);
        }
    }

    #[test]
    fn a_declined_input_request_lets_the_task_continue_to_its_end() {
        let mut record = parked(&["a"]);
        assert!(record.decline_input("no", 3));
        assert_eq!(
            (record.task.state, record.refused.as_deref()),
            (TaskState::Working, Some("no"))
        );
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let mut record = parked(&["a"]);
        let text = serde_json::to_vec(&record).unwrap();
        assert_eq!(serde_json::from_slice::<TaskRecord>(&text).unwrap(), record);
        let fault = Fault::new(FaultKind::ToolFailed, "no").with_subject("t");
        assert!(record.end(TaskOutcome::Fault(fault), 3));
        let text = serde_json::to_vec(&record).unwrap();
        assert_eq!(serde_json::from_slice::<TaskRecord>(&text).unwrap(), record);
    }
}
