//! A call on its way to the server behind: passed on, followed to its end, and told in the caller's words.

use std::sync::Arc;

use creole::call::{Call, Context};
use creole::client::Connection;
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::http::MirroredHeader;
use creole::proto::model::{ClientCapabilities, Task, TaskPreference, TaskSupport};
use creole::proto::operation::{Operation, Outcome, Payload};
use creole::proto::revision::{Era, InputRequestStyle, TaskModel};
use creole::proto::wire::Raw;

use super::callers::Callers;
use super::catalogue::Callable;
use super::kept::{Kept, Parked};
use super::park::{self, Beginning, Resumed};
use super::pool::{Key, Lease};
use super::{Affinity, Upstream, affinity, broken, kept, relay, tasks, terms};

impl Upstream {
    /// Answers a call. What is rare waits on the heap: a future of less than a kilobyte is one that the allocator has
    /// at hand.
    pub(super) async fn answer(&self, call: &Call) -> Outcome {
        if let Err(fault) = self.check_session(&call.context) {
            return fault.into();
        }
        let is_new = call.context.request_state().is_none();
        match &call.operation {
            Operation::Subscribe { uri } => Box::pin(self.subscribe(uri, &call.context)).await,
            _ if is_new => self.try_twice(call, None).await,
            _ => Box::pin(self.answer_again(call)).await,
        }
    }

    /// Answers a call that was made before, and left to be made again.
    async fn answer_again(&self, call: &Call) -> Outcome {
        let kept = call.context.request_state().and_then(Kept::read);
        match &kept {
            Some(Kept::Park(parked)) => match self.resume(parked, call).await {
                Resumed::Outcome(outcome) => return outcome,
                Resumed::Gone => {
                    if let Some(outcome) = self.take_over(parked, call).await {
                        return outcome;
                    }
                    if !self.may_repeat(&call.operation) {
                        return park::lost(&call.operation).into();
                    }
                }
            },
            Some(Kept::Again) => {
                if let Some(fault) = declined(&call.context) {
                    return fault.into();
                }
            }
            _ => {}
        }
        self.try_twice(call, kept.as_ref()).await
    }

    /// Passes a call on, and once more if the server would not look at it and it is known what to do about that.
    async fn try_twice(&self, call: &Call, kept: Option<&Kept>) -> Outcome {
        for attempt in 0..2 {
            let untouched = match self.pass_on(call, kept).await {
                Ok(Passed::Answered(outcome)) => return outcome,
                Ok(Passed::Untouched(why)) => why,
                Err(fault) => return fault.into(),
            };
            if let Err(fault) = Box::pin(self.mend(untouched, attempt > 0)).await {
                return fault.for_caller().into();
            }
        }
        broken("the server forgets its sessions").into()
    }

    /// Does something about it that a server would not look at a call, if that is possible and was not done before.
    async fn mend(&self, why: Untouched, is_mended: bool) -> Result<(), Fault> {
        match why {
            Untouched::Forgotten => Ok(()),
            Untouched::Changed(fault, _) | Untouched::Mismatched(fault, _) if is_mended => {
                Err(fault)
            }
            Untouched::Changed(_, was) => {
                if self.pool.leave(was) {
                    self.changed.send_replace(());
                }
                Ok(())
            }
            Untouched::Mismatched(fault, known) => match self.learn_again(&known).await {
                true => Ok(()),
                false => Err(fault),
            },
        }
    }

    async fn pass_on(&self, call: &Call, kept: Option<&Kept>) -> Result<Passed, Fault> {
        if let Some(Kept::Task { id, lane }) = kept {
            let followed = self.go_on_with_task(call, id, *lane);
            return Ok(Passed::Answered(Box::pin(followed).await?));
        }
        let capabilities = terms::capabilities(&call.context);
        let (outcome, carried) = self.carry(call, &capabilities).await?;
        let rare = match Rare::of(outcome) {
            Ok(rare) => rare,
            Err(outcome) => {
                return Ok(Passed::Answered(finish(outcome, call, &carried.connection)));
            }
        };
        Box::pin(async move {
            match rare {
                Rare::Failed(fault) => Ok(self.failed(fault, call, carried).await),
                Rare::Task(task) => self.adopt(&task, carried, call).await,
            }
        })
        .await
    }

    /// Makes a call in a conversation that it belongs into, and follows it to its end.
    async fn carry(
        &self,
        call: &Call,
        capabilities: &Arc<ClientCapabilities>,
    ) -> Result<(Outcome, Carried), Fault> {
        let context = &call.context;
        let mut lease = self.lease(call, capabilities).await?;
        if self.affinity(context) == Affinity::Request {
            lease.spoil();
        }
        self.hear_logs(&lease, context);
        Box::pin(self.prepare(&mut lease, context)).await;
        affinity::set_level(&lease, context).await;
        if lease.new_key().is_some() {
            Box::pin(self.watch_in_new(&lease)).await;
        }
        let (connection, lane) = (lease.connection.clone(), lease.lane);
        // Not before: what the server has may have been learned while the conversation was opened.
        let known = self.callable();
        let mirrors = mirrors(&call.operation, &known);
        let tasking = tasking(&call.operation, &known, context, &connection);
        let rules = connection.greeting().rules;
        let operation = call.operation.clone();
        let request = terms::request(operation, context, capabilities, tasking, rules);
        if call.operation.may_require_input() && park::is_needed(context, &lease, capabilities) {
            let (answered, may_repeat) = (kept::answers(context), self.may_repeat(&call.operation));
            let beginning = Beginning { request, mirrors, answered, may_repeat };
            let outcome = Box::pin(self.parking.follow(beginning, lease, context)).await;
            return Ok((outcome, Carried { connection, lane, known }));
        }
        let mut calling = connection.start_call_with(request, mirrors);
        calling.set_cancel_reason(context.cancel_reason());
        let outcome = relay::follow(&mut calling, &mut lease, context).await;
        Ok((outcome, Carried { connection, lane, known }))
    }

    /// Follows the task that the server made of a call.
    async fn adopt(&self, task: &Task, carried: Carried, call: &Call) -> Result<Passed, Fault> {
        let era = carried.connection.greeting().rules.era;
        let is_bound = self.affinity(&call.context) == Affinity::Request && era == Era::Handshake;
        let conversation = call.context.session_name().cloned();
        let capabilities = terms::capabilities(&call.context);
        let lease = match is_bound {
            true => Lease::alone(carried.connection, Callers::default().join(conversation)),
            false => {
                let (key, asks) = self.key(call, &capabilities, era);
                let key = Key { lane: carried.lane, ..key };
                self.pool.lease_again(key, &asks, conversation).await?
            }
        };
        let follower = self.task(call, lease, &capabilities);
        let outcome = tasks::Follower { is_bound, ..follower }.adopt(task).await;
        Ok(Passed::Answered(outcome))
    }

    /// What is to be made of a call that failed.
    async fn failed(&self, fault: Fault, call: &Call, carried: Carried) -> Passed {
        let Carried { connection, known, .. } = carried;
        if connection.close_reason().is_some_and(|closed| closed.session_lost) {
            return Passed::Untouched(Untouched::Forgotten);
        }
        let era = connection.greeting().rules.era;
        if self.dialer.has_changed(&fault, era).await {
            return Passed::Untouched(Untouched::Changed(fault, era));
        }
        let is_call = matches!(call.operation, Operation::CallTool { .. });
        match is_call && fault.kind == FaultKind::HeaderMismatch {
            true => Passed::Untouched(Untouched::Mismatched(fault, known)),
            false => Passed::Answered(fault.for_caller().into()),
        }
    }

    /// Follows the task that a call became before.
    async fn go_on_with_task(&self, call: &Call, id: &str, lane: usize) -> Result<Outcome, Fault> {
        let capabilities = terms::capabilities(&call.context);
        let (key, asks) = self.key(call, &capabilities, self.era_of(&call.context));
        let conversation = call.context.session_name().cloned();
        let lease = self.pool.lease_again(Key { lane, ..key }, &asks, conversation).await?;
        Ok(self.task(call, lease, &capabilities).follow(id).await)
    }

    /// Goes on with a call that its caller had to leave.
    async fn resume(&self, parked: &Parked, call: &Call) -> Resumed {
        let resumed = self.parking.resume(parked, call).await;
        let Resumed::Outcome(Outcome::Complete(Payload::TaskCreated(task))) = &resumed else {
            return resumed;
        };
        let capabilities = terms::capabilities(&call.context);
        // Only sessions ask in the middle of a call.
        let (key, asks) = self.key(call, &capabilities, Era::Handshake);
        let conversation = call.context.session_name().cloned();
        let key = Key { lane: parked.lane, ..key };
        match self.pool.lease_again(key, &asks, conversation).await {
            Ok(lease) => Resumed::Outcome(self.task(call, lease, &capabilities).adopt(task).await),
            Err(fault) => fault.into(),
        }
    }

    /// The one who follows a task that the server made of a call.
    fn task<'a>(
        &'a self,
        call: &'a Call,
        lease: Lease,
        capabilities: &'a Arc<ClientCapabilities>,
    ) -> tasks::Follower<'a> {
        let (parking, context) = (&self.parking, &call.context);
        tasks::Follower { parking, lease, context, capabilities, is_bound: false }
    }
}

/// The arguments that are repeated in headers, where a server wants that.
fn mirrors(operation: &Operation, known: &Callable) -> Arc<[MirroredHeader]> {
    let Operation::CallTool { name, .. } = operation else { return Arc::default() };
    known.mirrors(name).cloned().unwrap_or_default()
}

/// Whether the server may make a task of the call, which is then followed here.
fn tasking(
    operation: &Operation,
    known: &Callable,
    context: &Context,
    connection: &Connection,
) -> TaskPreference {
    let Operation::CallTool { name, .. } = operation else { return TaskPreference::Never };
    let greeting = connection.greeting();
    if !greeting.server_info.capabilities.tasks {
        return TaskPreference::Never;
    }
    match (greeting.rules.tasks, known.support(name)) {
        // Whoever could have allowed it and did not is told that it has to.
        (TaskModel::Extension, _) if context.caller().rules.tasks == TaskModel::Extension => {
            context.caller().task_preference
        }
        (TaskModel::Extension, _) => TaskPreference::Allowed,
        (TaskModel::ClientRequested, TaskSupport::Required) => {
            TaskPreference::Requested { ttl_ms: None }
        }
        (TaskModel::ClientRequested, TaskSupport::Optional) if context.is_task() => {
            TaskPreference::Requested { ttl_ms: None }
        }
        _ => TaskPreference::Never,
    }
}

/// Where a call was made.
struct Carried {
    connection: Connection,
    lane: usize,
    /// What was known of the server's tools.
    known: Arc<Callable>,
}

/// What seldom comes of a call, and has to be looked into.
enum Rare {
    Failed(Fault),
    Task(Arc<Task>),
}

impl Rare {
    /// What is rare about an outcome, or else the outcome.
    fn of(outcome: Outcome) -> Result<Self, Outcome> {
        match outcome {
            Outcome::Fail(fault) => Ok(Self::Failed(fault)),
            Outcome::Complete(Payload::TaskCreated(task)) => Ok(Self::Task(task)),
            outcome => Err(outcome),
        }
    }
}

/// What came of passing a call on.
enum Passed {
    Answered(Outcome),
    Untouched(Untouched),
}

/// Why a server has not looked at a call.
enum Untouched {
    /// It had forgotten the session before that.
    Forgotten,
    /// It is not of this era any more.
    Changed(Fault, Era),
    /// The headers of the call were not those that the tool's schema wants, as far as that was known, so it was refused
    /// before it was carried out (2026-07-28 basic/transports/streamable-http, client behavior).
    Mismatched(Fault, Arc<Callable>),
}

/// What the caller is told, given what the server did.
pub(super) fn finish(outcome: Outcome, call: &Call, connection: &Connection) -> Outcome {
    match outcome {
        // Questions of calls that were parked carry their own state already.
        Outcome::InputRequired { requests: asks, request_state: state } => {
            if let Some(fault) =
                creole::input::unsupported_input_fault(&asks, call.context.caller())
            {
                return fault.into();
            }
            let parked = state.as_deref().and_then(Kept::read).is_some();
            let state = match connection.greeting().rules.input_request_style {
                InputRequestStyle::Inline if parked => state,
                InputRequestStyle::Inline => Some(Kept::Again.text()),
                InputRequestStyle::MultiRoundTrip => Some(Kept::Relay(state).text()),
            };
            Outcome::InputRequired { requests: asks, request_state: state }
        }
        Outcome::Fail(fault) => fault.for_caller().into(),
        other => other,
    }
}

/// The fault of a caller that did not visit the page without which the server refuses.
fn declined(context: &Context) -> Option<Fault> {
    let accepted = |answer: &Raw| {
        answer.as_object().and_then(|answer| answer.get("action")) == Some("\"accept\"")
    };
    let is_declined = context.input_responses().any(|(_, answer)| !accepted(answer));
    is_declined.then(|| Fault::new(FaultKind::InputRefused, "the page was not visited"))
}
