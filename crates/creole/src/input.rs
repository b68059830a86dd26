//! Input requests to the client during a call, with one handler for both eras.
//!
//! A handler requests input under a key. It gets the response, or `?` ends it if there is none yet. It runs again once
//! the client has responded. In 2026-07-28 the client itself retries the call. In older revisions this module sends the
//! input requests over the session and runs the handler again. So everything that a handler does before an input
//! request must be safe to run twice.
//!
//! ```
//! use creole::{Context, ToolError};
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct You {
//!     /// Your name
//!     name: Option<String>,
//! }
//!
//! async fn greet(context: Context) -> Result<String, ToolError> {
//!     let you = context.elicit::<You>("Who are you?")?;
//!     Ok(format!("Hello, {}!", you.name.as_deref().unwrap_or("stranger")))
//! }
//! # drop(creole::Tool::new("greet", "Greets the user", greet));
//! ```

mod elicitation;
mod form_schema;
mod round_limit;
mod sealed_round;
mod url_elicitations;

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::adapt::{LoweredForm, lower_form};
use creole_proto::model::{InputRequest, KeyedInputRequest};
use creole_proto::operation::{Caller, Outcome};
use creole_proto::revision::{ElicitationSupport, InputRequestStyle, Rules};
use creole_proto::server::InputResponse;
use creole_proto::wire::{Raw, hex};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::call::{Call, ClientSession, Context, Round};
use crate::chain::{BoxFuture, Next};
use crate::item::tool::ToolError;
use crate::random;
use crate::random::NoRandomBytes;
use crate::seal::Sealer;
pub use elicitation::{ElicitAction, ElicitResult};
use round_limit::RoundLimit;
pub(crate) use sealed_round::open_round;
use sealed_round::seal_round;
use url_elicitations::UrlElicitations;

/// The maximum number of input rounds of one call over a session.
pub(crate) const MAX_ROUNDS: usize = 8;

/// A form elicitation. The message names what is requested and the reason, and the schema is one flat object.
pub fn form(message: &str, schema: &impl Serialize) -> InputRequest {
    InputRequest::Form { message: message.to_owned(), schema: Raw::from_value(schema) }
}

/// A URL elicitation. The message names what to do on the page and the reason.
///
/// The elicitation id is random. It is empty if the system has no random bytes. A client that needs an id then gets no
/// request, and the call fails.
pub fn url_elicitation(message: &str, url: &str) -> InputRequest {
    let id = random_uuid().unwrap_or_default();
    InputRequest::Url { message: message.to_owned(), url: url.to_owned(), id }
}

/// A version 4 UUID, which cannot be guessed.
fn random_uuid() -> Result<String, NoRandomBytes> {
    let mut bytes = random::random_bytes::<16>()?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = hex(&bytes);
    Ok([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"))
}

/// A sampling request with one message for the client's model.
pub fn sample(prompt: &str, max_tokens: u64) -> InputRequest {
    InputRequest::Sample {
        params: Raw::from_value(&json!({
            "messages": [{"role": "user", "content": {"type": "text", "text": prompt}}],
            "maxTokens": max_tokens,
        })),
    }
}

/// The response of a client's model.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct SamplingResult {
    /// The role of the message.
    pub role: String,
    /// One content block or several.
    pub content: Value,
    /// The name of the model.
    #[serde(default)]
    pub model: Option<String>,
}

impl SamplingResult {
    /// The text of the response.
    pub fn text(&self) -> String {
        let blocks = match &self.content {
            Value::Array(blocks) => blocks.as_slice(),
            block => std::slice::from_ref(block),
        };
        let texts = blocks.iter().filter_map(|block| block.get("text")?.as_str());
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// A root that the client offers, such as a folder.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct Root {
    /// Its uri.
    pub uri: String,
    /// Its display name.
    #[serde(default)]
    pub name: Option<String>,
}

impl ClientSession {
    /// Sends an input request. It fails if the client did not declare the capability.
    ///
    /// # Errors
    /// When the client declines, does not respond in time, or has disconnected.
    pub async fn request_input(&self, input_request: InputRequest) -> InputResponse {
        let (input_request, form) = lower_input_request(input_request, self.rules);
        // Waiting does not keep the session alive.
        let waiting =
            self.channel.upgrade().map(|channel| channel.request_session_input(input_request));
        let answered = match waiting {
            Some(waiting) => waiting.await.ok(),
            None => None,
        };
        let response =
            answered.unwrap_or_else(|| Err("the client's connection is closed".to_owned()))?;
        Ok(form.map_or_else(|| response.clone(), |form| form.raise_response(&response)))
    }
}

impl Context {
    /// The fault for an unusable input response: of the call that carries it, or of the input request.
    fn unusable_response(&self, key: &str, reason: &str) -> ToolError {
        let kind = match self.caller().rules.input_request_style {
            InputRequestStyle::MultiRoundTrip if !self.is_task() => FaultKind::InvalidParams,
            // The request that carried the response is not the one that fails.
            InputRequestStyle::MultiRoundTrip | InputRequestStyle::Inline => {
                FaultKind::InputRefused
            }
        };
        ToolError::Fault(Box::new(Fault::new(
            kind,
            format!("the input response `{key}` is not valid: {reason}"),
        )))
    }

    /// Requests a sample from the client's model.
    pub fn sample(
        &self,
        key: &str,
        input_request: InputRequest,
    ) -> Result<SamplingResult, ToolError> {
        self.typed_response(key, input_request)
    }

    /// Requests the client's roots.
    pub fn roots(&self, key: &str) -> Result<Vec<Root>, ToolError> {
        #[derive(Deserialize)]
        struct Roots {
            roots: Vec<Root>,
        }
        self.typed_response::<Roots>(key, InputRequest::Roots).map(|answer| answer.roots)
    }

    /// Sends an inline input request in the form of the client's revision and waits for the response.
    pub async fn request_input(&self, input_request: InputRequest) -> InputResponse {
        let (input_request, form) = lower_input_request(input_request, self.caller().rules);
        let response = self.send_input_request(input_request).await?;
        Ok(form.map_or_else(|| response.clone(), |form| form.raise_response(&response)))
    }

    /// Makes several input requests. Those without a response are sent together.
    pub fn request_inputs(&self, input_requests: Vec<KeyedInputRequest>) -> Result<(), ToolError> {
        let missing: Vec<_> = input_requests
            .into_iter()
            .filter(|ask| self.input_response(&ask.key).is_none())
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        if let Some(fault) = unsupported_input_fault(&missing, self.caller()) {
            return Err(ToolError::Fault(Box::new(fault)));
        }
        Err(ToolError::InputRequired(missing))
    }

    fn typed_response<T: serde::de::DeserializeOwned>(
        &self,
        key: &str,
        question: InputRequest,
    ) -> Result<T, ToolError> {
        self.request_inputs(vec![KeyedInputRequest { key: key.to_owned(), question }])?;
        let answer = self.input_response(key).map(|raw| serde_json::from_str(raw.as_str()));
        match answer {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(_)) => Err(self.unusable_response(key, "it does not have the requested form")),
            None => Err(ToolError::failed("an input request has no response")),
        }
    }
}

/// The fault for input requests that the client does not support. It names all missing capabilities at once.
#[doc(hidden)]
pub fn unsupported_input_fault(
    input_requests: &[KeyedInputRequest],
    caller: &Caller,
) -> Option<Fault> {
    let is_missing = |input_request: &&InputRequest| {
        !input_request.is_allowed_by(&caller.capabilities)
            || !input_request.is_supported_by(caller.rules)
    };
    let missing: Vec<_> =
        input_requests.iter().map(|ask| &ask.question).filter(is_missing).collect();
    if missing.is_empty() {
        return None;
    }
    let fault = missing_capability(&missing);
    Some(match caller.rules.input_request_style {
        InputRequestStyle::Inline => with_elicitation_urls(fault, &missing),
        InputRequestStyle::MultiRoundTrip => fault,
    })
}

/// Adds the URLs to the fault: the user can still open them by hand if the client cannot.
fn with_elicitation_urls(mut fault: Fault, missing: &[&InputRequest]) -> Fault {
    for input_request in missing {
        if let InputRequest::Url { message, url, .. } = input_request {
            fault.detail.push_str(&format!("\n{message}\n{url}"));
        }
    }
    fault
}

/// The fault of a call whose input requests the client does not support. Its data names the capabilities that the
/// client would have to declare (2026-07-28 basic, missing required client capability).
#[doc(hidden)]
pub fn missing_capability(input_requests: &[&InputRequest]) -> Fault {
    let mut words: Vec<_> = input_requests
        .iter()
        .map(|input_request| input_request.required_capability_text())
        .collect();
    words.sort_unstable();
    words.dedup();
    let mut needed = json!({});
    for input_request in input_requests {
        if let Ok(capability) = serde_json::from_str(input_request.required_capability()) {
            merge_json(&mut needed, capability);
        }
    }
    let detail = format!("This needs a client that supports {}.", words.join(" and "));
    let data = Raw::from_value(&json!({"requiredCapabilities": needed}));
    Fault::new(FaultKind::MissingCapability, detail).with_data(data)
}

fn merge_json(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge_json(into.entry(key).or_insert_with(|| json!({})), value);
            }
        }
        (into, from) => *into = from,
    }
}

type ResponsesByKey = BTreeMap<String, Raw>;

/// Runs the rest of the chain until the call ends or the client must respond first, which may take up to `patience`. A
/// call whose client accepts no input requests, the common case, is passed on directly.
pub(crate) fn run_rounds<'a>(
    call: Call,
    next: Next<'a>,
    sealer: &'a Sealer,
    timeout: Duration,
) -> BoxFuture<'a, Outcome> {
    if call.operation.may_require_input() && can_receive_input_requests(call.context.caller()) {
        Box::pin(run_multi_round_trip(call, next, sealer, timeout))
    } else {
        next.start(call)
    }
}

async fn run_multi_round_trip(
    call: Call,
    next: Next<'_>,
    sealer: &Sealer,
    timeout: Duration,
) -> Outcome {
    let caller = call.context.caller();
    let mut round = match open_round(&call, sealer) {
        Ok(round) => round,
        Err(fault) => return fault.into(),
    };
    let mut limit = RoundLimit::new(timeout);
    let mut elicitations = UrlElicitations::default();
    while limit.has_rounds_left() {
        let mut repeated = call.clone();
        if round != Round::default() {
            repeated.context = call.context.with_round(round.clone());
        }
        let (mut input_requests, state) = match next.start(repeated).await {
            Outcome::InputRequired { requests: input_requests, request_state: state } => {
                (input_requests, state)
            }
            done => {
                if matches!(done, Outcome::Complete(_)) {
                    elicitations.notify_completed(&call.context).await;
                }
                return done;
            }
        };
        round = round.into_next_round(state);
        if caller.rules.input_request_style == InputRequestStyle::MultiRoundTrip {
            return seal_round(&call, input_requests, &round, sealer, timeout);
        }
        let known = match elicitations.take_accepted(&mut input_requests) {
            Ok(known) => known,
            Err(error) => return Fault::from(error).into(),
        };
        let asked = match (input_requests.is_empty(), known.is_empty()) {
            (false, _) => {
                request_each(&call.context, input_requests).await.inspect(|_| limit.record_input())
            }
            (true, false) => {
                limit.wait_before_url_poll(&call.context).await.map(|()| ResponsesByKey::new())
            }
            (true, true) => {
                limit.wait_before_retry().await;
                Ok(ResponsesByKey::new())
            }
        };
        match asked {
            Ok(arguments) => {
                elicitations.record_accepted(&arguments);
                round.answers.extend(known);
                round.answers.extend(arguments);
            }
            Err(fault) => return fault.into(),
        }
    }
    let detail = format!("the handler requested input in more than {MAX_ROUNDS} rounds");
    Fault::new(FaultKind::InputRefused, detail).into()
}

impl Round {
    /// The round to keep until the input responses arrive. An endpoint with its own state needs only the next
    /// responses. Others need all responses so far.
    pub(crate) fn into_next_round(self, state: Option<String>) -> Self {
        match state {
            None => Self { state: None, ..self },
            state => Self { state, ..Self::default() },
        }
    }
}

fn can_receive_input_requests(caller: &Caller) -> bool {
    caller.capabilities.accepts_input_requests() || caller.input_responses.is_some()
}

/// Sends the input requests of one round together, in order, and waits for all responses. The first fault ends the
/// round.
async fn request_each(
    context: &Context,
    input_requests: Vec<KeyedInputRequest>,
) -> Result<ResponsesByKey, Fault> {
    let asking = input_requests.into_iter().map(|KeyedInputRequest { key, question }| {
        Box::pin(async move {
            let refused = |reason| Fault::new(FaultKind::InputRefused, reason);
            Ok((key, context.request_input(question).await.map_err(refused)?))
        })
    });
    try_join_all(asking.collect()).await.map(ResponsesByKey::from_iter)
}

/// Runs all futures concurrently, started in order. The first error ends it.
pub(crate) async fn try_join_all<F, T, E>(mut in_flight: Vec<Pin<Box<F>>>) -> Result<Vec<T>, E>
where
    F: Future<Output = Result<T, E>>,
{
    let mut done = Vec::new();
    poll_fn(|waker| {
        let mut index = 0;
        while let Some(next) = in_flight.get_mut(index) {
            match next.as_mut().poll(waker) {
                Poll::Pending => index += 1,
                Poll::Ready(outcome) => {
                    drop(in_flight.remove(index));
                    match outcome {
                        Ok(one) => done.push(one),
                        Err(error) => return Poll::Ready(Err(error)),
                    }
                }
            }
        }
        if in_flight.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await?;
    Ok(done)
}

/// An input request in a form that the client's revision supports.
pub(crate) fn lower_input_request(
    input_request: InputRequest,
    rules: &Rules,
) -> (InputRequest, Option<LoweredForm>) {
    match input_request {
        InputRequest::Form { message, schema } if rules.elicitation == ElicitationSupport::Form => {
            let form = lower_form(&schema);
            (InputRequest::Form { message, schema: form.schema.clone() }, Some(form))
        }
        other => (other, None),
    }
}
