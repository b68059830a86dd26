//! The policy as a layer of a chain: refuses calls, and hides items from lists.

use std::sync::Arc;

use creole::internal::chain::ViewerClass;
use creole::{BoxFuture, Call, Middleware, Next, Principal};
use creole_gateway::layers::item_of;
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::{Definition, ListKind};
use creole_proto::operation::{Operation, Outcome};
use serde_json::{Map, Value};

use crate::cel::Moment;
use crate::class::{KnownCaller, PolicyCore};
use crate::decision::{Decision, Verdict};
use crate::policy::{Policy, Request};
use crate::refusal;
use crate::strict_json::parse_arguments;
use crate::target::TargetKind;

/// A layer that applies a policy to the calls and the lists of one server. Names in rules are the names that clients
/// use, so no layer outside of it may rename items.
#[derive(Debug)]
pub struct PolicyLayer {
    core: Arc<PolicyCore>,
}

/// A layer that decides again about calls that a layer outside of it changed. It leaves lists alone.
#[derive(Debug)]
pub struct PolicyRecheck {
    core: Arc<PolicyCore>,
}

impl PolicyLayer {
    /// A layer of the server of this name.
    pub fn new(policy: Policy, server: &str) -> Self {
        Self { core: Arc::new(PolicyCore::new(policy, server)) }
    }

    /// A layer of the same policy for the place behind a layer that changes calls.
    pub fn recheck(&self) -> PolicyRecheck {
        PolicyRecheck { core: Arc::clone(&self.core) }
    }
}

impl Middleware for PolicyLayer {
    fn kind(&self) -> &'static str {
        "policy"
    }

    fn handle<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        handle(&self.core, call, next)
    }

    fn rewrite_definition(&self, kind: ListKind, item: Arc<Definition>) -> Option<Arc<Definition>> {
        self.core.record_definition(kind, &item);
        Some(item)
    }

    fn viewer_class(&self, principal: &Principal) -> Option<Arc<dyn ViewerClass>> {
        let known = self.core.known_caller(principal);
        Some(Arc::clone(&known.class) as Arc<dyn ViewerClass>)
    }
}

impl Middleware for PolicyRecheck {
    fn kind(&self) -> &'static str {
        "policy"
    }

    fn handle<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        handle(&self.core, call, next)
    }
}

fn handle<'a>(core: &'a Arc<PolicyCore>, mut call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
    let known = core.known_caller(call.context.principal());
    if let Operation::Listen(filter) = &mut call.operation {
        filter.uris.retain(|uri| {
            let verdict =
                known.class.verdict(core, "resources/subscribe", TargetKind::Resource, uri);
            let is_allowed = || {
                let subscribe = Operation::Subscribe { uri: uri.clone() };
                matches!(decide(core, &known, &subscribe, uri), Decision::Allowed(_))
            };
            verdict == Verdict::Yes || (verdict == Verdict::Depends && is_allowed())
        });
    }
    match refusal_of(core, &known, &call) {
        None if core.denies_input_requests && call.operation.may_require_input() => {
            Box::pin(call_without_denied_input(core, known, call, next))
        }
        None => next.call(call),
        Some((rule, outcome)) => {
            call.context.set_denied_by(rule);
            Box::pin(std::future::ready(outcome))
        }
    }
}

/// Passes a call on. An input request whose method a rule denies is refused, and does not reach the client.
async fn call_without_denied_input(
    core: &Arc<PolicyCore>,
    known: Arc<KnownCaller>,
    mut call: Call,
    next: Next<'_>,
) -> Outcome {
    let (shared, caller, context) = (Arc::clone(core), Arc::clone(&known), call.context.clone());
    let check = move |method: &str| {
        let rule = shared.policy.denies_method(&caller.subject, &shared.server, method);
        let refuse = |rule: Arc<str>| {
            context.set_denied_by(Arc::clone(&rule));
            Err(format!("not allowed: {rule}"))
        };
        rule.map_or(Ok(()), refuse)
    };
    let check = Arc::new(check);
    let inline = Arc::clone(&check);
    call.context = call.context.check_input_requests(move |request| inline(request.method()));
    match next.call(call).await {
        Outcome::InputRequired { requests, request_state } => {
            let mut refusals = requests.iter().map(|request| check(request.question.method()));
            match refusals.find_map(Result::err) {
                Some(reason) => Fault::new(FaultKind::InputRefused, reason).into(),
                None => Outcome::InputRequired { requests, request_state },
            }
        }
        outcome => outcome,
    }
}

/// The rule that refuses a call, with the outcome; `None` if the call may pass.
fn refusal_of(core: &PolicyCore, known: &KnownCaller, call: &Call) -> Option<(Arc<str>, Outcome)> {
    let operation = &call.operation;
    let Some((kind, name)) = item_of(operation) else {
        return method_refusal(core, known, operation);
    };
    // A caller may always end a subscription.
    if matches!(operation, Operation::Unsubscribe { .. }) {
        return None;
    }
    let kind = item_kind(kind);
    match known.class.verdict(core, operation.method(), kind, name) {
        Verdict::Yes => None,
        Verdict::No(rule) => Some((rule, refusal::hidden(operation))),
        Verdict::Depends => match decide(core, known, operation, name) {
            Decision::Allowed(_) => None,
            Decision::Denied(denial) => {
                Some((Arc::clone(&denial.rule), refusal::denied(operation, denial)))
            }
            Decision::Challenge { rule, required } => {
                let is_task = call.context.is_task();
                Some((rule, refusal::challenged(operation, is_task, &required)))
            }
        },
    }
}

/// The decision about a call of an item that the caller sees.
fn decide(core: &PolicyCore, known: &KnownCaller, operation: &Operation, name: &str) -> Decision {
    let arguments = match operation.arguments() {
        Some(arguments) => parse_arguments(arguments.as_str()).ok(),
        None => Some(Value::Object(Map::new())),
    };
    let annotations = core.annotations(name);
    let kind = item_of(operation).map(|(kind, _)| item_kind(kind));
    let request = Request {
        server: &core.server,
        method: operation.method(),
        item: kind.map(|kind| (kind, name)),
        annotations: annotations.as_deref(),
        arguments: arguments.as_ref(),
        now: Moment::now(),
    };
    core.policy.decide_call(&known.class.applies, &known.subject, &request)
}

/// The refusal of a method without an item. Requests about tasks are decided where the tool of the task is known.
fn method_refusal(
    core: &PolicyCore,
    known: &KnownCaller,
    operation: &Operation,
) -> Option<(Arc<str>, Outcome)> {
    let is_decided =
        matches!(operation, Operation::List(..) | Operation::Listen(_) | Operation::ListTasks(_));
    if !is_decided {
        return None;
    }
    let rule = core.policy.denies_method(&known.subject, &core.server, operation.method())?;
    Some((rule, refusal::denied_method(operation)))
}

fn item_kind(kind: ListKind) -> TargetKind {
    match kind {
        ListKind::Tools => TargetKind::Tool,
        ListKind::Prompts => TargetKind::Prompt,
        ListKind::Resources | ListKind::Templates | ListKind::Skills => TargetKind::Resource,
    }
}

#[cfg(test)]
mod tests;
