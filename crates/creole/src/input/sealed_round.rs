//! The state of a call between two rounds, which its client keeps.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::KeyedInputRequest;
use creole_proto::operation::{Operation, Outcome};
use creole_proto::wire::{Object, Raw, canonical};
use serde_json::json;

use crate::call::{Call, Round};
use crate::seal::{Purpose, SealError, Sealer};
use crate::secrets::digest;

/// The round that a client's retry carries: the sealed state of earlier rounds and the new responses.
pub(crate) fn open_round(call: &Call, sealer: &Sealer) -> Result<Round, Fault> {
    let mut round = Round::default();
    let Some(reentry) = &call.context.caller().input_responses else { return Ok(round) };
    if let Some(state) = &reentry.request_state {
        let plain = with_binding(call, |binding| {
            sealer.open(Purpose::State, binding, now_ms(), state).map_err(request_state_fault)
        })?;
        round = serde_json::from_slice(&plain).unwrap_or_default();
        if let (Some(earlier), Some(record)) = (round.earlier.take(), call.context.record()) {
            record.set_earlier(earlier);
        }
    }
    let given = reentry.responses.as_ref().and_then(Raw::as_object);
    for (key, value) in given.map(Object::members).into_iter().flatten() {
        if let Ok(response) = Raw::parse(value) {
            round.answers.insert(key.into_owned(), response);
        }
    }
    Ok(round)
}

pub(super) fn seal_round(
    call: &Call,
    input_requests: Vec<KeyedInputRequest>,
    round: &Round,
    sealer: &Sealer,
    timeout: Duration,
) -> Outcome {
    // The steps end at once: the client has the input requests when it has the response.
    for input_request in &input_requests {
        drop(call.context.start_input_request(&input_request.question));
        call.context.count_input_request(input_request.question.method(), "deferred");
    }
    let earlier = call.context.record().map(|record| record.as_earlier());
    let plain = serde_json::to_vec(&Round { earlier, ..round.clone() }).unwrap_or_default();
    let expires = now_ms() + u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
    let state = with_binding(call, |binding| sealer.seal(Purpose::State, binding, expires, &plain));
    if state.len() > crate::seal::MAX_TEXT {
        return Fault::new(
            FaultKind::InputRefused,
            "the input responses of this call are too long for the request state",
        )
        .into();
    }
    Outcome::InputRequired { requests: input_requests, request_state: Some(state) }
}

fn request_state_fault(error: SealError) -> Fault {
    let reason = match error {
        SealError::Invalid => "state_invalid",
        SealError::Expired => "state_expired",
    };
    let detail = "`requestState` is not valid for this request";
    Fault::new(FaultKind::StateRefused, detail)
        .with_data(Raw::from_value(&json!({"reason": reason})))
}

/// Binds state to the principal and the request, so that it is invalid for any other (2026-07-28 basic/patterns/mrtr,
/// server requirements).
fn with_binding<T>(call: &Call, use_it: impl FnOnce(&[&[u8]]) -> T) -> T {
    let operation: &Operation = &call.operation;
    let arguments = operation.arguments().map_or("{}", Raw::as_str);
    let arguments = digest(canonical(arguments).as_bytes());
    use_it(&[
        call.context.principal().binding().as_bytes(),
        operation.method().as_bytes(),
        operation.target().as_bytes(),
        &arguments,
    ])
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
