//! Encodes one response without a connection.

use alloc::string::String;
use alloc::sync::Arc;

use super::calls::{CallPurpose, InFlightCall};
use super::outbox::{FrameRole, Outbox};
use super::{Machine, Now, Profile};
use crate::operation::{Operation, Outcome};
use crate::revision::Rules;

/// The response to an operation as a client with these rules gets it: a JSON-RPC message. `id` is JSON. An invalid id
/// becomes 0.
pub fn encode_response(
    profile: &Arc<Profile>,
    id: &str,
    operation: &Operation,
    outcome: Outcome,
    rules: &'static Rules,
) -> String {
    let id = profile.dialect.parse_id(id).or_else(|_| profile.dialect.parse_id("0"));
    let Ok(id) = id else { return String::new() };
    let purpose = match operation {
        Operation::CallTool { .. } => CallPurpose::Tool,
        _ => CallPurpose::Plain,
    };
    let (mut machine, mut outbox) = (Machine::new(Arc::clone(profile)), Outbox::default());
    let call = machine.calls.insert(InFlightCall {
        id,
        batch: None,
        rules,
        purpose,
        progress_token: None,
        last_progress: f64::NEG_INFINITY,
        log: None,
        is_cancellable: true,
        method: operation.method(),
        started: Now::ZERO,
        idle_deadline: Now::ZERO,
        total_deadline: Now::ZERO,
        open_input_requests: 0,
    });
    machine.finish(call, outcome, Now::ZERO, &mut outbox);
    let mut responses =
        outbox.frames().filter(|frame| matches!(frame.role, FrameRole::Response(_)));
    let text = responses.next().map(|frame| frame.text).unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}
