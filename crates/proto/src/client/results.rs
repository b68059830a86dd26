//! Results read for what they are; what is only passed on stays as the server wrote it.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Machine;
use super::calls::{Expect, Pending};
use super::items::{read_directory, read_page, read_skill};
use super::open::read_discovery;
use super::questions::read_asks;
use super::receive::shorten;
use super::tasks::{read_created, read_task, read_tasks};
use crate::encode::is_whole;
use crate::fault::{Fault, FaultKind};
use crate::model::Tasking;
use crate::op::{Filter, Outcome, Payload, Relayed, RelayedKind};
use crate::revision::Tasks;
use crate::wire::{Object, Raw, Told, unquote};

impl Machine {
    /// Reads what a call came to.
    pub(super) fn read_result(&self, pending: &Pending, result: Object<'_>, told: Told) -> Outcome {
        match self.read_kind(pending, result, told) {
            Ok(outcome) => outcome,
            Err(detail) => Fault::new(FaultKind::Internal, detail).about(&pending.subject).into(),
        }
    }

    /// A result says what kind it is of; one that does not is complete, and a kind that is unknown is invalid
    /// (2026-07-28 basic, results).
    fn read_kind(
        &self,
        pending: &Pending,
        result: Object<'_>,
        told: Told,
    ) -> Result<Outcome, String> {
        if !self.rules.result_type || !told.kind {
            return self.read_complete(pending, result, told);
        }
        let kind = result.string("resultType").ok().flatten().unwrap_or(Cow::Borrowed("complete"));
        match kind.as_ref() {
            "complete" => self.read_complete(pending, result, told),
            "input_required" if pending.expect.may_ask() => self.read_need(pending, result),
            "task" if pending.expect == Expect::Tool && pending.capabilities.tasks => {
                self.read_created(result)
            }
            other => Err(format!("the server answered with the result type `{}`", shorten(other))),
        }
    }

    fn read_complete(
        &self,
        pending: &Pending,
        result: Object<'_>,
        told: Told,
    ) -> Result<Outcome, String> {
        let task = || {
            let (rules, dialect) = (self.rules, &self.profile.dialect);
            let task = read_task(result, rules, dialect, self.profile.limits.questions);
            task.map(|task| Payload::Task(Arc::new(task)))
                .ok_or_else(|| String::from("the server told of a task without its id or status"))
        };
        let payload = match pending.expect {
            Expect::Opening | Expect::Nothing | Expect::Listen => Payload::Empty,
            Expect::Server => Payload::Server(read_discovery(result, self.rules).card),
            Expect::Page(kind) => Payload::Page(read_page(kind, result, self.rules)?),
            Expect::Directory => Payload::Directory(read_directory(result, self.rules)?),
            Expect::Skill => read_skill(result, self.rules)?,
            Expect::Tool if self.is_task(pending, result) => return self.read_created(result),
            Expect::Tool | Expect::TaskResult => self.relayed(RelayedKind::Tool, result, told),
            Expect::Contents => self.relayed(RelayedKind::Contents, result, told),
            Expect::Prompt => self.relayed(RelayedKind::Prompt, result, told),
            Expect::Other => self.relayed(RelayedKind::Other, result, told),
            Expect::Task => task()?,
            Expect::CancelledTask => task().unwrap_or(Payload::Empty),
            Expect::Tasks => Payload::Tasks(read_tasks(result, self.rules, &self.profile.dialect)),
        };
        Ok(Outcome::Complete(payload))
    }

    fn relayed(&self, kind: RelayedKind, result: Object<'_>, told: Told) -> Payload {
        let result = match &self.shared {
            Some(message) => Raw::within(message, result.text()),
            None => Raw::trusted(result.text()),
        };
        let is_whole = is_whole(kind, told, self.rules);
        Payload::Relayed(Relayed::new(result, self.rules, kind).known(is_whole))
    }

    /// Whether the answer is the task that was asked for (2025-11-25 basic/utilities/tasks, creating tasks).
    fn is_task(&self, pending: &Pending, result: Object<'_>) -> bool {
        self.rules.tasks == Tasks::Wanted
            && matches!(pending.tasking, Tasking::Wanted { .. })
            && result.get("task").is_some_and(|task| Object::new(task).is_some())
    }

    fn read_created(&self, result: Object<'_>) -> Result<Outcome, String> {
        let most = self.profile.limits.questions;
        let task = read_created(result, self.rules, &self.profile.dialect, most);
        let task = task.ok_or("the server made a task without an id or status")?;
        Ok(Outcome::Complete(Payload::TaskCreated(Arc::new(task))))
    }

    fn read_need(&self, pending: &Pending, result: Object<'_>) -> Result<Outcome, String> {
        let requests = result.object("inputRequests").map_err(|error| format!("{error}"))?;
        let limits = &self.profile.limits;
        let requests = requests.unwrap_or(Object::EMPTY);
        if requests.text().len() > limits.question_bytes {
            return Err("the server's questions are too long".into());
        }
        let asks = read_asks(requests, Some(&pending.capabilities), limits.questions)?;
        let state = result.string("requestState").map_err(|error| format!("{error}"))?;
        if asks.is_empty() && state.is_none() {
            return Err("the server wants to be called again, without a question or state".into());
        }
        Ok(Outcome::NeedInput { asks, state: state.map(Cow::into_owned) })
    }
}

/// The part of a filter that the server honours.
pub(super) fn read_filter(params: Object<'_>) -> Filter {
    let honoured = params.get("notifications").and_then(Object::new).unwrap_or(Object::EMPTY);
    let is = |name: &str| honoured.get(name) == Some("true");
    let texts = |name: &str| -> Vec<String> {
        let elements = honoured.array(name).ok().flatten().unwrap_or_default();
        elements.into_iter().filter_map(unquote).map(Cow::into_owned).collect()
    };
    Filter {
        tools: is("toolsListChanged"),
        prompts: is("promptsListChanged"),
        resources: is("resourcesListChanged"),
        uris: texts("resourceSubscriptions"),
        tasks: texts("taskIds"),
    }
}
