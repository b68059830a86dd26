//! A call on its way to the server behind: passed on, followed to its end, and told in the caller's words.

use std::sync::Arc;

use creole::call::{Call, Context};
use creole::client::Connection;
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::http::Mirror;
use creole::proto::model::{ClientCapabilities, TaskSupport, Tasking};
use creole::proto::op::{Operation, Outcome, Payload};
use creole::proto::revision::{Asking, Era, Tasks};
use creole::proto::wire::Raw;

use super::callers::Callers;
use super::kept::{Kept, Parked};
use super::park::{self, Beginning, Resumed};
use super::pool::{Key, Lease};
use super::{Affinity, Upstream, affinity, broken, kept, relay, tasks, terms};

impl Upstream {
    /// Answers a call. What is rare waits on the heap, so that this future is small.
    pub(super) async fn answer(&self, call: Call) -> Outcome {
        let kept = call.context.state().and_then(Kept::read);
        match &kept {
            Some(Kept::Park(parked)) => match Box::pin(self.resume(parked, &call)).await {
                Resumed::Outcome(outcome) => return outcome,
                Resumed::Gone => {
                    if let Some(outcome) = Box::pin(self.take_over(parked, &call)).await {
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
        if let Operation::Subscribe { uri } = &call.operation {
            return match self.main().await {
                Ok(connection) => Box::pin(self.watching.subscribe(uri, &connection)).await,
                Err(fault) => fault.into(),
            };
        }
        for attempt in 0..2 {
            let known = self.callable();
            match self.pass_on(&call, kept.as_ref()).await {
                Ok(Passed::Answered(outcome)) => return outcome,
                // The server had forgotten the session before it looked at the call.
                Ok(Passed::Forgotten) => {}
                // So had one that turned out to be of another era.
                Ok(Passed::Changed(fault, was)) => {
                    if attempt > 0 {
                        return fault.for_caller().into();
                    }
                    if self.pool.leave(was) {
                        self.changed.send_replace(());
                    }
                }
                // It was refused before it was carried out (2026-07-28 basic/transports/streamable-http, client behavior).
                Ok(Passed::Mismatched(fault)) => {
                    if attempt > 0 || !Box::pin(self.learn_again(&known)).await {
                        return fault.for_caller().into();
                    }
                }
                Err(fault) => return fault.into(),
            }
        }
        broken("the server forgets its sessions").into()
    }

    async fn pass_on(&self, call: &Call, kept: Option<&Kept>) -> Result<Passed, Fault> {
        let is_stateless = match self.dialer.is_stateless() {
            Some(known) => known,
            None => self.main().await?.greeting().rules.era == Era::Stateless,
        };
        let capabilities = terms::capabilities(&call.context);
        let (key, asks) = self.key(call, &capabilities, is_stateless);
        let conversation = call.context.conversation().cloned();
        if let Some(Kept::Task { id, lane }) = kept {
            let key = Key { lane: *lane, ..key };
            let lease = self.pool.lease_again(key, &asks, conversation).await?;
            let followed = self.task(call, lease, &capabilities).follow(id);
            return Ok(Passed::Answered(Box::pin(followed).await));
        }
        let pool = &self.pool;
        let lease = pool.lease(key.clone(), &asks, conversation.clone(), &self.parking).await?;
        let (connection, lane) = (lease.connection.clone(), lease.lane);
        if self.settings.affinity == Affinity::Request {
            lease.spoil();
        }
        let outcome = self.follow(call, lease, &capabilities).await;
        let is_lost = matches!(&outcome, Outcome::Fail(_))
            && connection.is_closed().is_some_and(|closed| closed.session_lost);
        if is_lost {
            return Ok(Passed::Forgotten);
        }
        let era = connection.greeting().rules.era;
        let outcome = match outcome {
            Outcome::Fail(fault) if Box::pin(self.dialer.has_changed(&fault, era)).await => {
                return Ok(Passed::Changed(fault, era));
            }
            outcome => outcome,
        };
        let is_call = matches!(call.operation, Operation::CallTool { .. });
        let outcome = match outcome {
            Outcome::Fail(fault) if is_call && fault.kind == FaultKind::HeaderMismatch => {
                return Ok(Passed::Mismatched(fault));
            }
            outcome => outcome,
        };
        if let Outcome::Complete(Payload::TaskCreated(task)) = &outcome {
            let is_bound = self.settings.affinity == Affinity::Request && !is_stateless;
            let lease = match is_bound {
                true => Lease::alone(connection, Callers::default().join(conversation)),
                false => pool.lease_again(Key { lane, ..key }, &asks, conversation).await?,
            };
            let follower = self.task(call, lease, &capabilities);
            let adopted = tasks::Follower { is_bound, ..follower }.adopt(task);
            return Ok(Passed::Answered(Box::pin(adopted).await));
        }
        Ok(Passed::Answered(finish(outcome, call, &connection)))
    }

    /// Goes on with a call that its caller had to leave.
    async fn resume(&self, parked: &Parked, call: &Call) -> Resumed {
        let resumed = self.parking.resume(parked, call).await;
        let Resumed::Outcome(Outcome::Complete(Payload::TaskCreated(task))) = &resumed else {
            return resumed;
        };
        let capabilities = terms::capabilities(&call.context);
        // Only sessions ask in the middle of a call.
        let (key, asks) = self.key(call, &capabilities, false);
        let conversation = call.context.conversation().cloned();
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

    async fn follow(
        &self,
        call: &Call,
        mut lease: Lease,
        capabilities: &Arc<ClientCapabilities>,
    ) -> Outcome {
        let (operation, context) = (call.operation.clone(), &call.context);
        affinity::set_level(&lease, context).await;
        let mirrors = self.mirrors(&operation);
        let tasking = self.tasking(&operation, context, &lease.connection);
        let rules = lease.connection.greeting().rules;
        let request = terms::request(operation, context, capabilities, tasking, rules);
        if call.operation.may_ask() && park::is_needed(context, &lease, capabilities) {
            let (answered, may_repeat) = (kept::answers(context), self.may_repeat(&call.operation));
            let beginning = Beginning { request, mirrors, answered, may_repeat };
            return Box::pin(self.parking.follow(beginning, lease, context)).await;
        }
        let calling = lease.connection.begin_with(request, mirrors);
        relay::follow(calling, &mut lease, context).await
    }

    /// The arguments that are repeated in headers, where a server wants that.
    fn mirrors(&self, operation: &Operation) -> Arc<[Mirror]> {
        let Operation::CallTool { name, .. } = operation else { return Arc::default() };
        self.callable().mirrors(name).cloned().unwrap_or_default()
    }

    /// Whether the server may make a task of the call, which is then followed here.
    fn tasking(
        &self,
        operation: &Operation,
        context: &Context,
        connection: &Connection,
    ) -> Tasking {
        let Operation::CallTool { name, .. } = operation else { return Tasking::Never };
        let greeting = connection.greeting();
        if !greeting.card.capabilities.tasks {
            return Tasking::Never;
        }
        match (greeting.rules.tasks, self.callable().support(name)) {
            // Whoever could have allowed it and did not is told that it has to.
            (Tasks::Extension, _) if context.caller().rules.tasks == Tasks::Extension => {
                context.caller().tasking
            }
            (Tasks::Extension, _) => Tasking::Allowed,
            (Tasks::Wanted, TaskSupport::Required) => Tasking::Wanted { ttl_ms: None },
            (Tasks::Wanted, TaskSupport::Optional) if context.is_task() => {
                Tasking::Wanted { ttl_ms: None }
            }
            _ => Tasking::Never,
        }
    }
}

/// What came of passing a call on.
enum Passed {
    Answered(Outcome),
    /// The session was gone before the call was looked at.
    Forgotten,
    /// The server is not of this era any more, and has not looked at the call.
    Changed(Fault, Era),
    /// The headers of the call were not those that the tool's schema wants.
    Mismatched(Fault),
}

/// What the caller is told, given what the server did.
pub(super) fn finish(outcome: Outcome, call: &Call, connection: &Connection) -> Outcome {
    match outcome {
        // Questions of calls that were parked carry their own state already.
        Outcome::NeedInput { asks, state } => {
            if let Some(fault) = creole::ask::lacking(&asks, call.context.caller()) {
                return fault.into();
            }
            let parked = state.as_deref().and_then(Kept::read).is_some();
            let state = match connection.greeting().rules.asking {
                Asking::Inline if parked => state,
                Asking::Inline => Some(Kept::Again.text()),
                Asking::Reentrant => Some(Kept::Relay(state).text()),
            };
            Outcome::NeedInput { asks, state }
        }
        Outcome::Fail(fault) => fault.for_caller().into(),
        other => other,
    }
}

/// The fault of a caller that did not visit the page without which the server refuses.
fn declined(context: &Context) -> Option<Fault> {
    let accepted = |answer: &Raw| {
        answer.object().and_then(|answer| answer.get("action")) == Some("\"accept\"")
    };
    let is_declined = context.answers().any(|(_, answer)| !accepted(answer));
    is_declined.then(|| Fault::new(FaultKind::InputRefused, "the page was not visited"))
}
