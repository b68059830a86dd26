//! Input requests from servers of the handshake era, which arrive as requests (2025-11-25 schema, `ServerRequest`).

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::calls::ExpectedResult;
use super::outbox::{
    ClientEvent, FrameKind, InputRequestError, InputRequestKey, Outbox, ProtocolViolation,
};
use super::receive::{MessageOrigin, shorten};
use super::{CallKey, Machine, OpenMode};
use crate::encode;
use crate::model::adapt::lower_sampling_result;
use crate::model::{ClientCapabilities, InputRequest, KeyedInputRequest};
use crate::revision::InputRequestStyle;
use crate::wire::meta;
use crate::wire::{FieldError, Id, Object, Raw};

/// Pending input requests.
#[derive(Debug, Default)]
pub(super) struct InputRequests {
    last: u64,
    open: BTreeMap<InputRequestKey, OpenInputRequest>,
}

#[derive(Debug)]
struct OpenInputRequest {
    id: Id,
    call: Option<CallKey>,
    /// Whether it is a sampling request.
    is_sampling: bool,
    /// The server's progress token, and the number of notifications sent for it.
    progress_token: Option<Id>,
    progress_count: u64,
}

impl InputRequests {
    fn find_by_id(&self, id: &Id) -> Option<InputRequestKey> {
        self.open.iter().find(|(_, open)| open.id == *id).map(|(key, _)| *key)
    }

    fn keys_of_call(&self, call: Option<CallKey>) -> Vec<InputRequestKey> {
        self.open.iter().filter(|(_, open)| open.call == call).map(|(key, _)| *key).collect()
    }
}

impl Machine {
    /// Responds to an input request: with the result as it is to be sent, or with an error.
    pub fn respond(
        &mut self,
        key: InputRequestKey,
        response: Result<Raw, InputRequestError>,
        out: &mut Outbox,
    ) {
        let Some(open) = self.remove_input_request(key) else { return };
        let response = match response {
            Ok(result) if open.is_sampling && !self.rules.sampling_details => {
                lower_sampling_result(&result).ok_or_else(unsupported_result_error)
            }
            response => response,
        };
        match response {
            Ok(result) => out.push_frame(FrameKind::Response, |bytes| {
                encode::write_response(bytes, &open.id, |bytes| {
                    bytes.extend_from_slice(result.as_str().as_bytes());
                });
            }),
            Err(refusal) => send_input_request_error(&open.id, &refusal, out),
        }
    }

    /// The server's id of an input request, if it is pending.
    pub fn input_request_id(&self, key: InputRequestKey) -> Option<&Id> {
        self.input_requests.open.get(&key).map(|open| &open.id)
    }

    /// Sends a progress notification for a pending input request, if the server requested it. Most servers stop waiting
    /// for requests without progress (every revision, progress).
    pub fn send_input_progress(&mut self, key: InputRequestKey, out: &mut Outbox) {
        let Some(open) = self.input_requests.open.get_mut(&key) else { return };
        let Some(token) = &open.progress_token else { return };
        open.progress_count += 1;
        let (token, beats) = (token.raw(), open.progress_count);
        out.push_frame(FrameKind::Notification { about: None }, |bytes| {
            encode::write_notification(bytes, "notifications/progress", |bytes| {
                encode::write_foreign_member(bytes, "progressToken", token);
                encode::write_key(bytes, "progress");
                bytes.extend_from_slice(beats.to_string().as_bytes());
            });
        });
    }

    /// Handles a request of the server.
    pub(super) fn take_input_request(
        &mut self,
        id: &str,
        method: &str,
        params: Object<'_>,
        arrival: MessageOrigin,
        out: &mut Outbox,
    ) {
        let Ok(id) = Id::parse_number(id) else {
            return self.report_violation(
                ProtocolViolation::NotAMessage("`id` is neither a string nor a number".into()),
                out,
            );
        };
        if self.rules.input_request_style == InputRequestStyle::MultiRoundTrip {
            // A client must not send a response in this revision (2026-07-28 basic/transports/stdio, sending messages).
            return self
                .report_violation(ProtocolViolation::UnexpectedRequest(shorten(method)), out);
        }
        if method == "ping" {
            return out.push_frame(FrameKind::Response, |bytes| {
                encode::write_response(bytes, &id, |bytes| bytes.extend_from_slice(b"{}"));
            });
        }
        match self.check_input_request(&id, method, params) {
            Ok(input_request) if self.is_offered(&input_request) => {
                self.open_input_request(id, input_request, params, arrival, out);
            }
            Ok(request) => {
                send_input_request_error(&id, &not_offered_error(method), out);
                let task = related_task(params);
                let call = self.owning_call(task.as_deref(), arrival.call);
                out.push_event(ClientEvent::InputNotOffered { call, request });
            }
            Err(refusal) => send_input_request_error(&id, &refusal, out),
        }
    }

    fn check_input_request(
        &self,
        id: &Id,
        method: &str,
        params: Object<'_>,
    ) -> Result<InputRequest, InputRequestError> {
        let refused = |code, message: String| Err(InputRequestError { code, message });
        if self.input_requests.find_by_id(id).is_some() {
            return refused(-32600, "a request with this id is in flight".into());
        }
        if params.text().len() > self.profile.limits.max_input_request_bytes {
            return refused(-32602, "the input request is too long".into());
        }
        match read_input_request(method, params) {
            Ok(Some(input_request)) => Ok(input_request),
            Ok(None) => Err(not_offered_error(method)),
            Err(error) => refused(-32602, format!("Invalid params: {error}")),
        }
    }

    /// Whether the client declared the capability for this input request.
    fn is_offered(&self, input_request: &InputRequest) -> bool {
        match &self.open_mode {
            OpenMode::Handshake { capabilities, .. } => {
                input_request.is_allowed_by(capabilities)
                    && input_request.is_supported_by(self.rules)
            }
            OpenMode::Stateless { .. } => false,
        }
    }

    fn open_input_request(
        &mut self,
        id: Id,
        input_request: InputRequest,
        params: Object<'_>,
        arrival: MessageOrigin,
        out: &mut Outbox,
    ) {
        let task = related_task(params);
        let call = self.owning_call(task.as_deref(), arrival.call);
        if self.input_requests.keys_of_call(call).len() >= self.profile.limits.max_input_requests {
            let message = "too many input requests are open".to_string();
            return send_input_request_error(
                &id,
                &InputRequestError { code: -32603, message },
                out,
            );
        }
        if let Some(pending) = call.and_then(|call| self.calls.get_mut(call)) {
            pending.open_input_requests += 1;
            pending.reset_idle_deadline(arrival.now);
        }
        self.input_requests.last += 1;
        let key = InputRequestKey(self.input_requests.last);
        let (is_sample, token) =
            (matches!(input_request, InputRequest::Sample { .. }), read_progress_token(params));
        self.input_requests.open.insert(
            key,
            OpenInputRequest {
                id,
                call,
                is_sampling: is_sample,
                progress_token: token,
                progress_count: 0,
            },
        );
        out.push_event(ClientEvent::InputRequested { call, key, request: input_request, task });
    }

    /// The call that an input request belongs to. Without a channel per call, this is known only if exactly one call in
    /// flight may send input requests, because the message does not name its call.
    fn owning_call(&self, task: Option<&str>, origin: Option<CallKey>) -> Option<CallKey> {
        let origin = origin.filter(|call| self.is_open(*call));
        origin
            .or_else(|| {
                self.calls.single_matching(|pending| {
                    pending.expected == ExpectedResult::TaskResult
                        && Some(pending.subject.as_str()) == task
                })
            })
            .or_else(|| {
                let asks = |pending: &super::calls::InFlightCall| {
                    pending.is_sent && pending.expected.may_send_input_requests()
                };
                self.calls.single_matching(asks).filter(|_| task.is_none())
            })
    }

    /// Handles the server's cancellation of an input request.
    pub(super) fn withdraw_input_request(&mut self, id: &Id, out: &mut Outbox) {
        if let Some(key) = self.input_requests.find_by_id(id) {
            self.remove_input_request(key);
            out.push_event(ClientEvent::InputWithdrawn(key));
        }
    }

    /// Withdraws the input requests of a finished call, and sends an error to the waiting server.
    pub(super) fn reject_input_requests(&mut self, call: CallKey, out: &mut Outbox) {
        for key in self.input_requests.keys_of_call(Some(call)) {
            let Some(open) = self.remove_input_request(key) else { continue };
            let message = "the call of this input request has ended".to_string();
            send_input_request_error(&open.id, &InputRequestError { code: -32603, message }, out);
            out.push_event(ClientEvent::InputWithdrawn(key));
        }
    }

    /// Withdraws the input requests of a call, which another connection responds to.
    pub(super) fn release_input_requests(&mut self, call: CallKey, out: &mut Outbox) {
        for key in self.input_requests.keys_of_call(Some(call)) {
            if self.remove_input_request(key).is_some() {
                out.push_event(ClientEvent::InputWithdrawn(key));
            }
        }
    }

    /// Withdraws every input request, because the connection has ended.
    pub(super) fn withdraw_all_input_requests(&mut self, out: &mut Outbox) {
        for key in core::mem::take(&mut self.input_requests.open).into_keys() {
            out.push_event(ClientEvent::InputWithdrawn(key));
        }
    }

    fn remove_input_request(&mut self, key: InputRequestKey) -> Option<OpenInputRequest> {
        let open = self.input_requests.open.remove(&key)?;
        if let Some(pending) = open.call.and_then(|call| self.calls.get_mut(call)) {
            pending.open_input_requests -= 1;
        }
        Some(open)
    }
}

fn not_offered_error(method: &str) -> InputRequestError {
    let method = shorten(method);
    InputRequestError::unsupported(format!(
        "Method not found: {method}: the client did not declare this capability"
    ))
}

/// The error for a sampling result that the server's revision cannot express.
fn unsupported_result_error() -> InputRequestError {
    let message = "the sampling result has several content blocks that are not text, or a tool use, which \
            this revision cannot express";
    InputRequestError { code: -32603, message: message.to_string() }
}

fn send_input_request_error(id: &Id, refusal: &InputRequestError, out: &mut Outbox) {
    out.push_frame(FrameKind::Response, |bytes| {
        encode::write_input_request_error(bytes, id, refusal.code, &refusal.message);
    });
}

/// The progress token of an input request: a string or an integer (2025-11-25 schema, `ProgressToken`). Other numbers
/// are accepted too.
fn read_progress_token(params: Object<'_>) -> Option<Id> {
    let token = params.get("_meta").and_then(Object::new)?.get("progressToken")?;
    Id::parse_number(token).ok()
}

/// The task that a message belongs to (2025-11-25 schema, `RelatedTaskMetadata`).
fn related_task(params: Object<'_>) -> Option<String> {
    let about = params.get("_meta").and_then(Object::new)?;
    let task = about.get(meta::RELATED_TASK).and_then(Object::new)?;
    task.string("taskId").ok().flatten().map(Cow::into_owned)
}

/// Reads the input requests of an `input_required` result or of a task, and checks each against the client's
/// capabilities if these are known (2026-07-28 schema, `InputRequests`).
pub(super) fn read_input_requests(
    requests: Object<'_>,
    client: Option<&Arc<ClientCapabilities>>,
    max: usize,
) -> Result<Vec<KeyedInputRequest>, String> {
    let mut input_requests = Vec::new();
    for (key, request) in requests.members() {
        if input_requests.len() == max {
            return Err(format!("the server sent more than {max} input requests at once"));
        }
        let request = Object::new(request).unwrap_or(Object::EMPTY);
        let method = request.string("method").ok().flatten().unwrap_or_default();
        let params = request.get("params").and_then(Object::new).unwrap_or(Object::EMPTY);
        let input_request = match read_input_request(&method, params) {
            Ok(Some(input_request)) => input_request,
            Ok(None) => {
                return Err(format!(
                    "the server sent an unknown input request `{}`",
                    shorten(&method)
                ));
            }
            Err(error) => return Err(format!("the server sent an invalid input request: {error}")),
        };
        if client.is_some_and(|client| !input_request.is_allowed_by(client)) {
            let needed = input_request.required_capability_text();
            return Err(format!("the server requested {needed}, which the client did not declare"));
        }
        input_requests.push(KeyedInputRequest { key: key.into_owned(), question: input_request });
    }
    Ok(input_requests)
}

/// Reads an input request; `None` for an unknown method.
fn read_input_request(
    method: &str,
    params: Object<'_>,
) -> Result<Option<InputRequest>, FieldError> {
    Ok(Some(match method {
        "roots/list" => InputRequest::Roots,
        "sampling/createMessage" => InputRequest::Sample { params: strip_reserved_meta(params) },
        "elicitation/create" => read_elicitation(params)?,
        _ => return Ok(None),
    }))
}

/// Reads an elicitation. Without a mode it is a form, the only kind in 2025-06-18
/// (2025-11-25 client/elicitation, elicitation requests).
fn read_elicitation(params: Object<'_>) -> Result<InputRequest, FieldError> {
    let message = params.required_string("message")?.into_owned();
    if params.string("mode")?.as_deref() != Some("url") {
        let schema = params.object("requestedSchema")?.unwrap_or(Object::EMPTY);
        return Ok(InputRequest::Form { message, schema: Raw::from_validated(schema.text()) });
    }
    let url = params.required_string("url")?.into_owned();
    let id = params.string("elicitationId")?.unwrap_or_default().into_owned();
    Ok(InputRequest::Url { message, url, id })
}

/// Reads a URL elicitation from an error that requires it
/// (2025-11-25 client/elicitation, URL elicitation required error).
pub(super) fn read_url_elicitation(elicitation: Object<'_>) -> Option<InputRequest> {
    let read = read_elicitation(elicitation).ok()?;
    matches!(read, InputRequest::Url { .. }).then_some(read)
}

/// The params without the `_meta` members that concern only this connection.
fn strip_reserved_meta(params: Object<'_>) -> Raw {
    let own = |name: &str| matches!(name, "_meta" | "task");
    if !params.members().any(|(name, _)| own(&name)) {
        return Raw::from_validated(params.text());
    }
    let mut out = Vec::new();
    out.push(b'{');
    for (name, value) in params.members().filter(|(name, _)| !own(name)) {
        encode::write_foreign_member(&mut out, &name, value);
    }
    out.push(b'}');
    Raw::from_validated(&String::from_utf8(out).unwrap_or_default())
}
