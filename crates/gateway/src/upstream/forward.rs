//! Forwards calls to an upstream, follows each to its end and translates its outcome for the caller.

mod takeover;
mod tasks;
mod upstream_request;

use std::sync::Arc;

use creole::internal::client::Connection;
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::http::MirroredHeader;
use creole::proto::model::{ClientCapabilities, Task, TaskPreference, TaskSupport};
use creole::proto::operation::{Operation, Outcome, Payload};
use creole::proto::revision::{Era, InputRequestStyle, TaskModel};
use creole::proto::wire::Raw;
use creole::{Call, Context};

use crate::layers::NamePatterns;
use crate::upstream::connections::UpstreamSessions;
use crate::upstream::connections::active_calls::ActiveCalls;
use crate::upstream::connections::affinity;
use crate::upstream::connections::capabilities::caller_capabilities;
use crate::upstream::connections::pool::UpstreamLease;
use crate::upstream::connections::session_key::{SESSION_ERA, SessionKey};
use crate::upstream::lists::UpstreamLists;
use crate::upstream::lists::list_fetch::ToolIndex;
use crate::upstream::observed_request::ObservedRequest;
use crate::upstream::observed_start::record_starts;
use crate::upstream::park::request_state::{ParkedState, RequestState};
use crate::upstream::park::{self, ParkedCalls, PreparedCall, ResumeOutcome, request_state};
use crate::upstream::relay;
use crate::upstream::settings::{Affinity, UpstreamSettings};
use crate::upstream::upstream_metrics::RequestMeter;

/// Forwards the calls of one upstream.
pub(super) struct CallForwarder {
    settings: Arc<UpstreamSettings>,
    sessions: Arc<UpstreamSessions>,
    lists: Arc<UpstreamLists>,
    pub(super) parked_calls: Arc<ParkedCalls>,
}

impl CallForwarder {
    /// Forwards calls in these sessions.
    pub(super) fn new(
        sessions: Arc<UpstreamSessions>,
        lists: Arc<UpstreamLists>,
        parked_calls: Arc<ParkedCalls>,
    ) -> Self {
        Self { settings: Arc::clone(&sessions.settings), sessions, lists, parked_calls }
    }

    /// Handles a call. Rare paths are boxed: the allocator has a free block at hand for a future below one kilobyte.
    pub(super) async fn answer_call(&self, call: &Call) -> Outcome {
        if let Err(fault) = self.sessions.check_session_name(&call.context) {
            return fault.into();
        }
        let is_new = call.context.request_state().is_none();
        match &call.operation {
            Operation::Subscribe { uri } => {
                Box::pin(self.lists.subscribe(uri, &call.context)).await
            }
            _ if is_new => self.forward_with_retry(call, None).await,
            _ => Box::pin(self.answer_next_round(call)).await,
        }
    }

    /// Handles the next round of a multi-round-trip request.
    async fn answer_next_round(&self, call: &Call) -> Outcome {
        let request_state = call.context.request_state().and_then(RequestState::decode);
        match &request_state {
            Some(RequestState::Park(parked)) => match self.resume_parked(parked, call).await {
                ResumeOutcome::Outcome(outcome) => return outcome,
                ResumeOutcome::ReplicaGone => {
                    let may_repeat = self.may_repeat(&call.operation);
                    if let Some(outcome) = self.take_over(parked, call, may_repeat).await {
                        return outcome;
                    }
                    if !may_repeat {
                        return park::lost_call(&call.operation).into();
                    }
                }
            },
            Some(RequestState::Again) => {
                if let Some(fault) = url_elicitation_declined(&call.context) {
                    return fault.into();
                }
            }
            _ => {}
        }
        self.forward_with_retry(call, request_state.as_ref()).await
    }

    /// Forwards a call, and a second time if the upstream did not process it and [`Self::recover`] removed the cause.
    async fn forward_with_retry(
        &self,
        call: &Call,
        request_state: Option<&RequestState>,
    ) -> Outcome {
        for attempt in 0..2 {
            let untouched = match self.forward(call, request_state).await {
                Ok(Forwarded::Answered(outcome)) => return outcome,
                Ok(Forwarded::NotProcessed(reason)) => reason,
                Err(fault) => return fault.into(),
            };
            if let Err(fault) = Box::pin(self.recover(untouched, attempt > 0)).await {
                return fault.for_caller().into();
            }
        }
        Fault::new(FaultKind::Internal, "the upstream lost its session twice in a row").into()
    }

    /// Removes the cause why an upstream did not process a call, if that is possible and was not tried before.
    async fn recover(&self, reason: NotProcessed, is_mended: bool) -> Result<(), Fault> {
        match reason {
            NotProcessed::SessionLost => Ok(()),
            NotProcessed::EraChanged(fault, _) | NotProcessed::HeadersMismatched(fault, _)
                if is_mended =>
            {
                Err(fault)
            }
            NotProcessed::EraChanged(_, was) => {
                self.sessions.retire_era(was);
                Ok(())
            }
            NotProcessed::HeadersMismatched(fault, known) => {
                match self.lists.refresh_tool_index(&known).await {
                    true => Ok(()),
                    false => Err(fault),
                }
            }
        }
    }

    async fn forward(
        &self,
        call: &Call,
        request_state: Option<&RequestState>,
    ) -> Result<Forwarded, Fault> {
        if let Some(RequestState::Task { id, lane }) = request_state {
            let followed = self.resume_task(call, id, *lane);
            return Ok(Forwarded::Answered(Box::pin(followed).await?));
        }
        let capabilities = caller_capabilities(&call.context);
        let (outcome, carried) = self.dispatch(call, &capabilities).await?;
        let rare = match SlowPath::of(outcome) {
            Ok(rare) => rare,
            Err(outcome) => {
                return Ok(Forwarded::Answered(finish_outcome(outcome, call, &carried.connection)));
            }
        };
        Box::pin(async move {
            match rare {
                SlowPath::Failed(fault) => Ok(self.on_failure(fault, call, carried).await),
                SlowPath::Task(task) => self.follow_new_task(&task, carried, call).await,
            }
        })
        .await
    }

    /// Makes a call in the session that it belongs to and follows it to its end.
    async fn dispatch(
        &self,
        call: &Call,
        capabilities: &Arc<ClientCapabilities>,
    ) -> Result<(Outcome, Dispatched), Fault> {
        let context = &call.context;
        let leasing = self.sessions.lease(call, capabilities);
        let mut lease = match context.recorded_step() {
            None => leasing.await?,
            // That the upstream was started for the call is a step of it.
            Some((record, parent)) => Box::pin(record_starts(record, parent, leasing)).await?,
        };
        if self.sessions.affinity(context) == Affinity::Request {
            lease.retire_connection();
        }
        self.sessions.route_logs(&lease, context);
        relay::prepare_session(&self.settings, &mut lease, context).await;
        affinity::set_level(&lease, context).await;
        if lease.opened_key().is_some() {
            Box::pin(self.lists.resubscribe_in_new(&lease)).await;
        }
        let (connection, lane) = (lease.connection.clone(), lease.lane);
        // Not before: opening the connection may have fetched the tools.
        let known = self.lists.tool_index();
        let mirrors = mirrored_headers(&call.operation, &known);
        let tasking = task_mode(&call.operation, &known, context, &connection);
        let rules = connection.greeting().rules;
        let observed = ObservedRequest::for_call(&self.settings, context, &call.operation, rules);
        let operation = call.operation.clone();
        let trace = observed.trace(&self.settings, context);
        let request = upstream_request::upstream_request(
            operation,
            context,
            trace,
            capabilities,
            tasking,
            rules,
        );
        let needs_parking = call.operation.may_require_input()
            && park::needs_parking(context, &lease, capabilities);
        let metrics = self.sessions.metrics.as_ref();
        // Boxed, as is what is observed: the future of a call stays small.
        let meter =
            metrics.map(|metrics| Box::new(RequestMeter::start(metrics, rules, &call.operation)));
        if needs_parking {
            let (answered, may_repeat) =
                (request_state::known_responses(context), self.may_repeat(&call.operation));
            let beginning = PreparedCall {
                request,
                mirrored_headers: mirrors,
                known_responses: answered,
                may_repeat,
                tap: observed.frame_tap(),
            };
            let outcome = Box::pin(self.parked_calls.run(beginning, lease, context)).await;
            if let Some(meter) = meter {
                meter.end(&outcome, context.caller().rules);
            }
            observed.end(&outcome);
            return Ok((outcome, Dispatched { connection, lane, tool_index: known }));
        }
        let mut received = connection.start_recorded_call(request, mirrors, observed.frame_tap());
        received.set_cancel_reason(context.cancel_reason());
        let outcome = relay::relay_call(&mut received, &mut lease, context).await;
        if let Some(meter) = meter {
            meter.end(&outcome, context.caller().rules);
        }
        observed.end(&outcome);
        Ok((outcome, Dispatched { connection, lane, tool_index: known }))
    }

    /// Follows a task that the upstream created for a call.
    async fn follow_new_task(
        &self,
        task: &Task,
        carried: Dispatched,
        call: &Call,
    ) -> Result<Forwarded, Fault> {
        let rules = carried.connection.greeting().rules;
        let is_bound =
            self.sessions.affinity(&call.context) == Affinity::Request && rules.has_sessions;
        let session = call.context.session_name().cloned();
        let capabilities = caller_capabilities(&call.context);
        let lease = match is_bound {
            true => UpstreamLease::unpooled(
                carried.connection,
                ActiveCalls::default().add_call(session),
            ),
            false => {
                let (key, asks) = self.sessions.call_session_key(call, &capabilities, rules.era);
                let key = SessionKey { lane: carried.lane, ..key };
                self.sessions.pool.lease_for_task(key, &asks, session).await?
            }
        };
        let follower = self.task_follower(call, lease, &capabilities);
        let outcome =
            tasks::TaskFollower { ends_with_call: is_bound, ..follower }.start(task).await;
        Ok(Forwarded::Answered(outcome))
    }

    /// Decides what to do about a failed call.
    async fn on_failure(&self, fault: Fault, call: &Call, carried: Dispatched) -> Forwarded {
        let Dispatched { connection, tool_index: known, .. } = carried;
        let is_lost = connection.close_reason().is_some_and(|closed| closed.session_lost);
        if is_lost && !fault.may_be_processed() {
            return Forwarded::NotProcessed(NotProcessed::SessionLost);
        }
        let era = connection.greeting().rules.era;
        if self.sessions.connector.detect_era_change(&fault, era).await {
            return Forwarded::NotProcessed(NotProcessed::EraChanged(fault, era));
        }
        let is_call = matches!(call.operation, Operation::CallTool { .. });
        match is_call && fault.kind == FaultKind::HeaderMismatch {
            true => Forwarded::NotProcessed(NotProcessed::HeadersMismatched(fault, known)),
            false => Forwarded::Answered(fault.for_caller().into()),
        }
    }

    /// Follows the task that an earlier round created.
    async fn resume_task(&self, call: &Call, id: &str, lane: usize) -> Result<Outcome, Fault> {
        let capabilities = caller_capabilities(&call.context);
        let (key, asks) = self.sessions.call_session_key(
            call,
            &capabilities,
            self.sessions.serving_era(&call.context),
        );
        let session = call.context.session_name().cloned();
        let lease =
            self.sessions.pool.lease_for_task(SessionKey { lane, ..key }, &asks, session).await?;
        Ok(self.task_follower(call, lease, &capabilities).resume(id).await)
    }

    /// Resumes a parked call.
    async fn resume_parked(&self, parked: &ParkedState, call: &Call) -> ResumeOutcome {
        let context = &call.context;
        let observed = ObservedRequest::for_parked_call(&self.settings, context, &call.operation);
        let resumed = self.parked_calls.resume(parked, call, observed.place()).await;
        match &resumed {
            ResumeOutcome::Outcome(outcome) => observed.end(outcome),
            ResumeOutcome::ReplicaGone => {
                observed.end(&park::lost_call(&call.operation).into());
            }
        }
        let ResumeOutcome::Outcome(Outcome::Complete(Payload::TaskCreated(task))) = &resumed else {
            return resumed;
        };
        let capabilities = caller_capabilities(&call.context);
        // Only upstreams with sessions send input requests during a call.
        let (key, asks) = self.sessions.call_session_key(call, &capabilities, SESSION_ERA);
        let session = call.context.session_name().cloned();
        let key = SessionKey { lane: parked.lane, ..key };
        match self.sessions.pool.lease_for_task(key, &asks, session).await {
            Ok(lease) => ResumeOutcome::Outcome(
                self.task_follower(call, lease, &capabilities).start(task).await,
            ),
            Err(fault) => fault.into(),
        }
    }

    /// The follower of a task that the upstream created for a call.
    fn task_follower<'a>(
        &'a self,
        call: &'a Call,
        lease: UpstreamLease,
        capabilities: &'a Arc<ClientCapabilities>,
    ) -> tasks::TaskFollower<'a> {
        let (parking, context) = (&self.parked_calls, &call.context);
        tasks::TaskFollower {
            settings: &self.settings,
            metrics: self.sessions.metrics.as_deref(),
            parked_calls: parking,
            lease,
            context,
            capabilities,
            ends_with_call: false,
        }
    }

    /// Whether an operation may be repeated when the effect of the first attempt is unknown: it only reads, or a retry
    /// layer may repeat it too.
    fn may_repeat(&self, operation: &Operation) -> bool {
        match operation {
            Operation::ReadResource { .. } | Operation::GetPrompt { .. } => true,
            Operation::CallTool { name, .. } => self.is_retry_allowed(name),
            _ => false,
        }
    }

    /// Whether the configuration allows a tool to be repeated: by its name, or because its hints are trusted.
    fn is_retry_allowed(&self, tool: &str) -> bool {
        let is_idempotent = || self.lists.tool_index().is_idempotent(tool);
        let covers = |names: &NamePatterns| names.contains(tool) || is_idempotent();
        self.settings.retried_tools.iter().any(covers)
    }
}

/// The mirrored headers of a tool call, if the upstream requires them.
fn mirrored_headers(operation: &Operation, known: &ToolIndex) -> Arc<[MirroredHeader]> {
    let Operation::CallTool { name, .. } = operation else { return Arc::default() };
    known.mirrored_headers(name).cloned().unwrap_or_default()
}

/// Whether the upstream may create a task for the call, which the gateway then follows.
fn task_mode(
    operation: &Operation,
    known: &ToolIndex,
    context: &Context,
    connection: &Connection,
) -> TaskPreference {
    let Operation::CallTool { name, .. } = operation else { return TaskPreference::Never };
    let greeting = connection.greeting();
    if !greeting.server_info.capabilities.tasks {
        return TaskPreference::Never;
    }
    match (greeting.rules.tasks, known.task_support(name)) {
        // A caller that could have allowed a task and did not gets the upstream's error.
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

/// The connection and the context of a call that was made.
struct Dispatched {
    connection: Connection,
    lane: usize,
    /// The tool index at the time of the call.
    tool_index: Arc<ToolIndex>,
}

/// The rare outcomes of a call, which need further handling.
enum SlowPath {
    Failed(Fault),
    Task(Arc<Task>),
}

impl SlowPath {
    /// The rare form of an outcome, or else the outcome itself.
    fn of(outcome: Outcome) -> Result<Self, Outcome> {
        match outcome {
            Outcome::Fail(fault) => Ok(Self::Failed(fault)),
            Outcome::Complete(Payload::TaskCreated(task)) => Ok(Self::Task(task)),
            outcome => Err(outcome),
        }
    }
}

/// The result of forwarding a call.
enum Forwarded {
    Answered(Outcome),
    NotProcessed(NotProcessed),
}

/// Why an upstream did not process a call.
enum NotProcessed {
    /// It had lost the session before the call.
    SessionLost,
    /// It no longer uses this era.
    EraChanged(Fault, Era),
    /// The headers of the call did not match the tool's schema, as far as the schema was known. The upstream refused
    /// the call before it executed it (2026-07-28 basic/transports/streamable-http, client behavior).
    HeadersMismatched(Fault, Arc<ToolIndex>),
}

/// The outcome for the caller of an outcome of the upstream.
fn finish_outcome(outcome: Outcome, call: &Call, connection: &Connection) -> Outcome {
    match outcome {
        // Input requests of parked calls carry their own state already.
        Outcome::InputRequired { requests: input_requests, request_state: state } => {
            if let Some(fault) = creole::internal::input::unsupported_input_fault(
                &input_requests,
                call.context.caller(),
            ) {
                return fault.into();
            }
            let parked = state.as_deref().and_then(RequestState::decode).is_some();
            let state = match connection.greeting().rules.input_request_style {
                InputRequestStyle::Inline if parked => state,
                InputRequestStyle::Inline => Some(RequestState::Again.encode()),
                InputRequestStyle::MultiRoundTrip => Some(RequestState::Relay(state).encode()),
            };
            Outcome::InputRequired { requests: input_requests, request_state: state }
        }
        Outcome::Fail(fault) => fault.for_caller().into(),
        other => other,
    }
}

/// The fault of a caller that declined the URL elicitation that the upstream requires.
fn url_elicitation_declined(context: &Context) -> Option<Fault> {
    let accepted = |response: &Raw| {
        response.as_object().and_then(|response| response.get("action")) == Some("\"accept\"")
    };
    let is_declined = context.input_responses().any(|(_, response)| !accepted(response));
    is_declined
        .then(|| Fault::new(FaultKind::InputRefused, "the user declined the URL elicitation"))
}
