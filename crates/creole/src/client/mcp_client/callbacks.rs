//! The callbacks that respond to a server's input requests.

use std::fmt;
use std::sync::Arc;

use creole_proto::client::InputRequestError;
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::{ClientCapabilities, InputRequest, KeyedInputRequest};
use creole_proto::operation::Event;
use creole_proto::wire::Raw;
use serde_json::{Map, Value, json};

use crate::chain::BoxFuture;
use crate::client::pending_call::ServerInputRequest;

/// Returns the result for an input request; `None` declines it.
pub(crate) type Callback =
    Arc<dyn Fn(InputRequest) -> BoxFuture<'static, Option<Raw>> + Send + Sync>;

/// The callback for each kind of input request.
#[derive(Clone, Default)]
pub(crate) struct Callbacks {
    pub(crate) form: Option<Callback>,
    pub(crate) url: Option<Callback>,
    pub(crate) sample: Option<Callback>,
    pub(crate) roots: Option<Callback>,
    pub(crate) event: Option<Arc<dyn Fn(Event) + Send + Sync>>,
}

impl Callbacks {
    /// The client capabilities that are sent to servers.
    pub(crate) fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities {
            elicitation_form: self.form.is_some(),
            elicitation_url: self.url.is_some(),
            sampling: self.sample.is_some(),
            roots: self.roots.is_some(),
            tasks: false,
            raw: None,
        }
    }

    /// Handles an input request.
    pub(crate) async fn handle(
        &self,
        input_request: InputRequest,
    ) -> Result<Raw, InputRequestError> {
        let (callback, may_decline) = match &input_request {
            InputRequest::Form { .. } => (&self.form, true),
            InputRequest::Url { .. } => (&self.url, true),
            InputRequest::Sample { .. } => (&self.sample, false),
            InputRequest::Roots => (&self.roots, false),
        };
        let Some(callback) = callback else {
            return Err(InputRequestError::unsupported(
                "the client does not support this input request",
            ));
        };
        match callback(input_request).await {
            Some(response) => Ok(response),
            None if may_decline => Ok(Raw::from_value(&json!({"action": "decline"}))),
            None => Err(InputRequestError::declined("the user declined")),
        }
    }

    /// Handles an input request and sends its response.
    pub(crate) async fn respond(self, input_request: ServerInputRequest) {
        let response = self.handle(input_request.request).await;
        input_request.responder.respond(response);
    }

    /// Handles all input requests of a round: returns an object with the responses by their keys.
    pub(crate) async fn handle_all(
        &self,
        input_requests: Vec<KeyedInputRequest>,
    ) -> Result<Raw, Fault> {
        let mut responses = Map::new();
        for KeyedInputRequest { key, question } in input_requests {
            let description = question.required_capability_text();
            let response = self.handle(question).await.map_err(|refusal| {
                let detail = format!("{description} was refused: {}", refusal.message);
                Fault::new(FaultKind::InputRefused, detail)
            })?;
            responses.insert(key, response.decode().unwrap_or(Value::Null));
        }
        Ok(Raw::from_value(&responses))
    }
}

impl fmt::Debug for Callbacks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Callbacks").field(&self.capabilities()).finish()
    }
}
