//! Relays the messages of an upstream session to a caller that accepts input requests while it waits, or accepts none at
//! all.

pub(crate) mod declined_input;

use std::collections::HashMap;

use creole::Context;
use creole::internal::client::{
    CallEvent, CallStep, PendingCall, ServerInputRequest, ServerNotification,
};
use creole::proto::client::{InputRequestError, InputRequestKey};
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::model::InputRequest;
use creole::proto::operation::{Event, Outcome};
use creole::proto::revision::InputRequestStyle;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::{AbortHandle, JoinSet};

use crate::upstream::connections::active_calls::{ActiveCalls, OutOfBand, OutOfBandQueue};
use crate::upstream::connections::pool::UpstreamLease;
use crate::upstream::connections::session_client::{RootsRequestGuard, SessionClient, apply_roots};
use crate::upstream::settings::{Affinity, UpstreamSettings};
use declined_input::DeclinedInput;

/// The next event of a call.
enum RelayEvent {
    Step(CallStep),
    OutOfBand(OutOfBand),
    /// An input request got its response.
    InputAnswered,
    /// A URL elicitation is completed.
    UrlElicitationDone(String),
}

/// Follows a call to its end, and relays its events and input requests to the caller. Dropping the future cancels the
/// call.
pub(crate) async fn relay_call(
    call: &mut PendingCall,
    lease: &mut UpstreamLease,
    context: &Context,
) -> Outcome {
    // Boxed, since most calls have neither events nor input requests.
    let mut asking: Option<Box<PendingInput>> = None;
    let mut unmet = DeclinedInput::default();
    loop {
        let turn = match &mut asking {
            None => next_call_event(call, &mut lease.active_call.out_of_band).await,
            Some(asking) => {
                Box::pin(asking.next_event(call, &mut lease.active_call.out_of_band)).await
            }
        };
        match turn {
            RelayEvent::Step(CallStep::Event(CallEvent::Event(event)))
            | RelayEvent::OutOfBand(OutOfBand::Log(event)) => {
                Box::pin(context.send_event(event)).await;
            }
            RelayEvent::Step(CallStep::Event(CallEvent::InputRequested(input_request)))
            | RelayEvent::OutOfBand(OutOfBand::InputRequest(input_request)) => {
                asking.get_or_insert_default().add(input_request, context, lease, &mut unmet);
            }
            RelayEvent::Step(CallStep::Event(CallEvent::InputNotOffered(request))) => {
                unmet.record(request)
            }
            RelayEvent::Step(CallStep::Event(CallEvent::InputWithdrawn(key))) => {
                asking.get_or_insert_default().withdraw(key);
            }
            RelayEvent::Step(CallStep::Done(outcome)) => {
                lease.active_call.set_answered();
                return match lease.active_call.out_of_band.try_recv() {
                    None => unmet.explain(outcome, context),
                    Some(out_of_band) => {
                        Box::pin(finish_call(outcome, out_of_band, unmet, lease, context)).await
                    }
                };
            }
            RelayEvent::Step(CallStep::Ended(_)) => {
                return Fault::new(
                    FaultKind::Internal,
                    "the upstream ended the call without a \
                    response",
                )
                .into();
            }
            RelayEvent::InputAnswered => {}
            RelayEvent::UrlElicitationDone(id) => {
                Box::pin(context.send_event(Event::ElicitationCompleted(id))).await
            }
        }
    }
}

/// Records the client that alone owns a session, if that client accepts input requests outside of calls.
fn attach_client(settings: &UpstreamSettings, lease: &UpstreamLease, context: &Context) {
    let is_own = match settings.affinity {
        Affinity::Single => true,
        _ => context.session_name().is_some_and(|name| lease.belongs_to(name)),
    };
    if is_own && settings.interactive && !lease.active_call.has_client() {
        let session = context.client_session();
        let client = session
            .map(|client_session| SessionClient::new(client_session, settings, lease.weak_slot()));
        client.into_iter().for_each(|client| lease.active_call.set_client(client));
    }
}

/// Prepares a session for a caller that accepts input requests while it waits. Input requests that the upstream sends
/// before the call get their responses before the call. Only a caller with roots waits, so only its future is boxed.
pub(crate) async fn prepare_session(
    settings: &UpstreamSettings,
    lease: &mut UpstreamLease,
    context: &Context,
) {
    attach_client(settings, lease, context);
    let caller = context.caller();
    if caller.capabilities.roots && caller.rules.input_request_style == InputRequestStyle::Inline {
        Box::pin(answer_early_requests(lease, context)).await;
    }
}

async fn answer_early_requests(lease: &mut UpstreamLease, context: &Context) {
    if let Some(client) = lease.active_call.client() {
        client.wait_for_roots().await;
    }
    if lease.may_request_input_first() {
        answer_initial_requests(lease, context).await;
    }
}

/// Relays the input requests that an upstream sends before the call to the caller.
async fn answer_initial_requests(lease: &mut UpstreamLease, context: &Context) {
    lease.wait_until_processed().await;
    let mut was_asked = false;
    while let Some(out_of_band) = lease.active_call.out_of_band.try_recv() {
        match out_of_band {
            OutOfBand::Log(event) => context.send_event(event).await,
            OutOfBand::InputRequest(input_request) => {
                was_asked = true;
                let Some(input_request) =
                    DeclinedInput::default().decline_unsupported(input_request, context)
                else {
                    continue;
                };
                answer_request(input_request, lease.active_call.active_calls(), context).await;
            }
        }
    }
    if was_asked {
        apply_roots().await;
    }
}

/// Relays an input request to the caller, and the response to the upstream.
fn answer_request(
    input_request: ServerInputRequest,
    callers: ActiveCalls,
    context: &Context,
) -> impl Future<Output = ()> + Send + use<> {
    let (ServerInputRequest { request, responder, .. }, context) = (input_request, context.clone());
    let roots = RootsRequestGuard::of(&request, callers);
    async move {
        let response = context.request_input(request).await;
        roots.into_iter().for_each(|roots| roots.resolve(&responder));
        responder.respond(response.map_err(InputRequestError::declined));
    }
}

/// The next step of the call, or the next out-of-band message.
async fn next_call_event(
    call: &mut PendingCall,
    out_of_band_queue: &mut OutOfBandQueue,
) -> RelayEvent {
    tokio::select! {
        biased;
        step = call.next() => RelayEvent::Step(step),
        Some(out_of_band) = out_of_band_queue.recv() => RelayEvent::OutOfBand(out_of_band),
    }
}

/// Ends a call after its queued out-of-band messages were relayed.
async fn finish_call(
    outcome: Outcome,
    first: OutOfBand,
    unmet: DeclinedInput,
    lease: &mut UpstreamLease,
    context: &Context,
) -> Outcome {
    let mut next = Some(first);
    while let Some(OutOfBand::Log(event)) = next {
        context.send_event(event).await;
        next = lease.active_call.out_of_band.try_recv();
    }
    unmet.explain(outcome, context)
}

/// The input requests that the caller is answering.
#[derive(Default)]
struct PendingInput {
    running: JoinSet<()>,
    by_key: HashMap<InputRequestKey, AbortHandle>,
    /// The ids of open URL elicitations, and the channel that reports their completion.
    url_elicitations: Vec<String>,
    notifications: Option<broadcast::Receiver<ServerNotification>>,
}

impl PendingInput {
    /// Like [`next_call_event`], while input requests are open.
    async fn next_event(
        &mut self,
        call: &mut PendingCall,
        out_of_band_queue: &mut OutOfBandQueue,
    ) -> RelayEvent {
        let Self { running, url_elicitations: urls, notifications: notices, .. } = self;
        tokio::select! {
            biased;
            turn = next_call_event(call, out_of_band_queue) => turn,
            Some(_) = running.join_next() => RelayEvent::InputAnswered,
            id = next_completed_elicitation(notices) => match urls.iter().position(|asked| *asked == id) {
                Some(index) => RelayEvent::UrlElicitationDone(urls.swap_remove(index)),
                None => RelayEvent::InputAnswered,
            },
        }
    }

    fn add(
        &mut self,
        input_request: ServerInputRequest,
        context: &Context,
        lease: &UpstreamLease,
        unmet: &mut DeclinedInput,
    ) {
        let Some(input_request) = unmet.decline_unsupported(input_request, context) else { return };
        if let InputRequest::Url { id, .. } = &input_request.request {
            self.notifications.get_or_insert_with(|| lease.connection.notifications());
            self.url_elicitations.push(id.clone());
        }
        let key = input_request.responder.key();
        let handle = self.running.spawn(answer_request(
            input_request,
            lease.active_call.active_calls(),
            context,
        ));
        self.by_key.insert(key, handle);
    }

    fn withdraw(&mut self, key: InputRequestKey) {
        if let Some(asking) = self.by_key.remove(&key) {
            asking.abort();
        }
    }
}

/// The id of the next completed URL elicitation.
async fn next_completed_elicitation(
    notices: &mut Option<broadcast::Receiver<ServerNotification>>,
) -> String {
    let Some(notices) = notices else { return std::future::pending().await };
    loop {
        match notices.recv().await {
            Ok(ServerNotification::ElicitationComplete(id)) => return id,
            // A lost completion is harmless: it is only reported if it is known.
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return std::future::pending().await,
        }
    }
}
