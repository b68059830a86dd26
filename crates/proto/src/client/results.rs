//! Decodes results. Relayed parts keep the text of the server.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Machine;
use super::calls::{ExpectedResult, InFlightCall};
use super::input_requests::read_input_requests;
use super::items::{read_directory, read_page, read_skill};
use super::negotiation::read_discovery;
use super::receive::shorten;
use super::tasks::{read_created, read_task, read_tasks};
use crate::encode::is_verbatim;
use crate::fault::{Fault, FaultKind};
use crate::model::TaskPreference;
use crate::operation::{Outcome, Payload, RelayedKind, RelayedResult, SubscriptionFilter};
use crate::revision::TaskModel;
use crate::wire::{Object, Raw, ResultMembers, unquote};

impl Machine {
    /// Reads the outcome of a call.
    pub(super) fn read_result(
        &self,
        pending: &InFlightCall,
        result: Object<'_>,
        members: ResultMembers,
    ) -> Outcome {
        match self.read_by_result_type(pending, result, members) {
            Ok(outcome) => outcome,
            Err(detail) => {
                Fault::new(FaultKind::Internal, detail).with_subject(&pending.subject).into()
            }
        }
    }

    /// Reads a result by its `resultType`. A result without one is complete, and an unknown one is invalid
    /// (2026-07-28 basic, `ResultType`).
    fn read_by_result_type(
        &self,
        pending: &InFlightCall,
        result: Object<'_>,
        members: ResultMembers,
    ) -> Result<Outcome, String> {
        if !self.rules.result_type || !members.result_type {
            return self.read_complete(pending, result, members);
        }
        let kind = result.string("resultType").ok().flatten().unwrap_or(Cow::Borrowed("complete"));
        match kind.as_ref() {
            "complete" => self.read_complete(pending, result, members),
            "input_required" if pending.expected.may_require_input() => {
                self.read_input_required(pending, result)
            }
            "task" if pending.expected == ExpectedResult::Tool && pending.capabilities.tasks => {
                self.read_created_task(result)
            }
            other => Err(format!(
                "the server's response has the unknown result type `{}`",
                shorten(other)
            )),
        }
    }

    fn read_complete(
        &self,
        pending: &InFlightCall,
        result: Object<'_>,
        members: ResultMembers,
    ) -> Result<Outcome, String> {
        let task = || {
            let (rules, dialect) = (self.rules, &self.profile.dialect);
            let task = read_task(result, rules, dialect, self.profile.limits.max_input_requests);
            task.map(|task| Payload::Task(Arc::new(task)))
                .ok_or_else(|| String::from("the server's task has no id or status"))
        };
        let payload = match pending.expected {
            ExpectedResult::Opening | ExpectedResult::Nothing | ExpectedResult::Listen => {
                Payload::Empty
            }
            ExpectedResult::Server => {
                Payload::Server(read_discovery(result, self.rules).server_info)
            }
            ExpectedResult::Page(kind) => Payload::Page(read_page(kind, result, self.rules)?),
            ExpectedResult::Directory => Payload::Directory(read_directory(result, self.rules)?),
            ExpectedResult::Skill => read_skill(result, self.rules)?,
            ExpectedResult::Tool if self.is_task(pending, result) => {
                return self.read_created_task(result);
            }
            ExpectedResult::Tool | ExpectedResult::TaskResult => {
                self.relayed_payload(RelayedKind::Tool, result, members)
            }
            ExpectedResult::Contents => {
                self.relayed_payload(RelayedKind::Contents, result, members)
            }
            ExpectedResult::Prompt => self.relayed_payload(RelayedKind::Prompt, result, members),
            ExpectedResult::Other => self.relayed_payload(RelayedKind::Other, result, members),
            ExpectedResult::Task => task()?,
            ExpectedResult::CancelledTask => task().unwrap_or(Payload::Empty),
            ExpectedResult::Tasks => {
                Payload::Tasks(read_tasks(result, self.rules, &self.profile.dialect))
            }
        };
        Ok(Outcome::Complete(payload))
    }

    fn relayed_payload(
        &self,
        kind: RelayedKind,
        result: Object<'_>,
        members: ResultMembers,
    ) -> Payload {
        let result = match &self.shared_message {
            Some(message) => Raw::from_message_part(message, result.text()),
            None => Raw::from_validated(result.text()),
        };
        let is_whole = is_verbatim(kind, members, self.rules);
        Payload::Relayed(RelayedResult::new(result, self.rules, kind).with_verbatim(is_whole))
    }

    /// Whether the result is the requested task (2025-11-25 basic/utilities/tasks, creating tasks).
    fn is_task(&self, pending: &InFlightCall, result: Object<'_>) -> bool {
        self.rules.tasks == TaskModel::ClientRequested
            && matches!(pending.task_preference, TaskPreference::Requested { .. })
            && result.get("task").is_some_and(|task| Object::new(task).is_some())
    }

    fn read_created_task(&self, result: Object<'_>) -> Result<Outcome, String> {
        let max = self.profile.limits.max_input_requests;
        let task = read_created(result, self.rules, &self.profile.dialect, max);
        let task = task.ok_or("the server created a task without an id or status")?;
        Ok(Outcome::Complete(Payload::TaskCreated(Arc::new(task))))
    }

    fn read_input_required(
        &self,
        pending: &InFlightCall,
        result: Object<'_>,
    ) -> Result<Outcome, String> {
        let requests = result.object("inputRequests").map_err(|error| format!("{error}"))?;
        let limits = &self.profile.limits;
        let requests = requests.unwrap_or(Object::EMPTY);
        if requests.text().len() > limits.max_input_request_bytes {
            return Err("the server's input requests are too long".into());
        }
        let input_requests =
            read_input_requests(requests, Some(&pending.capabilities), limits.max_input_requests)?;
        let state = result.string("requestState").map_err(|error| format!("{error}"))?;
        if input_requests.is_empty() && state.is_none() {
            return Err("the server's `input_required` result has neither input requests nor a \
                request state"
                .into());
        }
        Ok(Outcome::InputRequired {
            requests: input_requests,
            request_state: state.map(Cow::into_owned),
        })
    }
}

/// Reads the part of a filter that the server honours (2026-07-28 schema, `SubscriptionFilter`).
pub(super) fn read_filter(params: Object<'_>) -> SubscriptionFilter {
    let granted = params.get("notifications").and_then(Object::new).unwrap_or(Object::EMPTY);
    let is = |name: &str| granted.get(name) == Some("true");
    let texts = |name: &str| -> Vec<String> {
        let elements = granted.array(name).ok().flatten().unwrap_or_default();
        elements.into_iter().filter_map(unquote).map(Cow::into_owned).collect()
    };
    SubscriptionFilter {
        tools: is("toolsListChanged"),
        prompts: is("promptsListChanged"),
        resources: is("resourcesListChanged"),
        uris: texts("resourceSubscriptions"),
        tasks: texts("taskIds"),
    }
}
