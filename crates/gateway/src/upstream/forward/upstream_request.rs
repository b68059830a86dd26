//! Builds the upstream request of a call: its declared capabilities, log level and progress token.

use std::sync::Arc;

use creole::Context;
use creole::internal::telemetry::trace::OutgoingTrace;
use creole::proto::client::{CallOptions, CallRequest};
use creole::proto::model::{ClientCapabilities, TaskPreference};
use creole::proto::operation::{InputResponses, Operation};
use creole::proto::revision::Rules;
use creole::proto::wire::Raw;

use crate::upstream::park::request_state::RequestState;

/// The call as a request to the upstream, with this trace context.
pub(crate) fn upstream_request(
    operation: Operation,
    context: &Context,
    trace: OutgoingTrace,
    capabilities: &Arc<ClientCapabilities>,
    tasking: TaskPreference,
    rules: &Rules,
) -> CallRequest {
    let caller = context.caller();
    // A session received the client information at the handshake.
    let client = caller.client.as_ref().filter(|_| rules.request_meta);
    let extra = caller.extra.as_deref();
    let options = CallOptions {
        capabilities: Arc::clone(capabilities),
        client_info: client.cloned(),
        log_level: caller.log,
        progress: caller.progress,
        input_responses: input_responses(context),
        task_preference: tasking,
        idle_timeout: None,
        total_timeout: None,
        meta: trace.meta,
        trace_headers: trace.headers,
        params: extra.and_then(|extra| extra.params.clone()),
    };
    CallRequest { operation, options }
}

/// The input responses and the state for an upstream of the stateless era. Responses may come without state: the
/// upstream may have sent none, and a client may know the input requests beforehand.
fn input_responses(context: &Context) -> Option<InputResponses> {
    let state = match context.request_state() {
        None if context.input_responses().next().is_none() => return None,
        None => None,
        Some(stored) => match RequestState::decode(stored)? {
            RequestState::Relay(state) => state,
            _ => return None,
        },
    };
    let responses: std::collections::BTreeMap<_, _> = context.input_responses().collect();
    let responses = (!responses.is_empty()).then(|| Raw::from_value(&responses));
    Some(InputResponses { responses, request_state: state })
}
