//! Builds the upstream request of a call: its declared capabilities, log level and progress token.

use std::sync::Arc;

use creole::Context;
use creole::proto::client::{CallOptions, CallRequest};
use creole::proto::model::{ClientCapabilities, TASKS_EXTENSION, TaskPreference};
use creole::proto::operation::{InputResponses, Operation};
use creole::proto::revision::{ElicitationSupport, Rules};
use creole::proto::wire::{Object, Raw};

use crate::upstream::park::request_state::RequestState;

/// The capabilities that the upstream may use for this caller, limited by the rules of the caller's revision.
pub(crate) fn caller_capabilities(context: &Context) -> Arc<ClientCapabilities> {
    let caller = context.caller();
    let given = &caller.capabilities;
    let has_forms = given.elicitation_form || given.elicitation_url;
    match caller.rules.elicitation {
        // A revision without forms cannot carry one, whatever its client declares.
        ElicitationSupport::Absent if has_forms => Arc::new(ClientCapabilities {
            elicitation_form: false,
            elicitation_url: false,
            ..ClientCapabilities::clone(given)
        }),
        _ => Arc::clone(given),
    }
}

/// What a caller that accepts no input requests declares: its extensions except tasks, which the gateway follows
/// itself. `None` if it declares no other extension.
pub(crate) fn extensions_only(
    capabilities: &ClientCapabilities,
) -> Option<Arc<ClientCapabilities>> {
    let said = capabilities.raw.as_ref().and_then(Raw::as_object)?;
    let named = said.get("extensions").and_then(Object::new)?;
    if named.members().all(|(name, _)| name == TASKS_EXTENSION) {
        return None;
    }
    let raw = Raw::parse(&format!(r#"{{"extensions":{}}}"#, named.text())).ok()?;
    Some(Arc::new(ClientCapabilities { raw: Some(raw), ..ClientCapabilities::default() }))
}

/// The call as a request to the upstream.
pub(crate) fn upstream_request(
    operation: Operation,
    context: &Context,
    capabilities: &Arc<ClientCapabilities>,
    tasking: TaskPreference,
    rules: &Rules,
) -> CallRequest {
    let caller = context.caller();
    // A session received the client information at the handshake.
    let client = caller.client.as_ref().filter(|_| rules.request_meta);
    let beyond = caller.extra.as_deref();
    let terms = CallOptions {
        capabilities: Arc::clone(capabilities),
        client_info: client.cloned(),
        log_level: caller.log,
        progress: caller.progress,
        input_responses: input_responses(context),
        task_preference: tasking,
        idle_timeout: None,
        total_timeout: None,
        meta: beyond.and_then(|beyond| beyond.meta.clone()),
        params: beyond.and_then(|beyond| beyond.params.clone()),
    };
    CallRequest { operation, options: terms }
}

/// The input responses and the state for an upstream of the stateless era. Responses may come without state: the
/// upstream may have sent none, and a client may know the input requests beforehand.
fn input_responses(context: &Context) -> Option<InputResponses> {
    let state = match context.request_state() {
        None if context.input_responses().next().is_none() => return None,
        None => None,
        Some(kept) => match RequestState::decode(kept)? {
            RequestState::Relay(state) => state,
            _ => return None,
        },
    };
    let answers: std::collections::BTreeMap<_, _> = context.input_responses().collect();
    let answers = (!answers.is_empty()).then(|| Raw::from_value(&answers));
    Some(InputResponses { responses: answers, request_state: state })
}
