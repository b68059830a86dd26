//! The request state between two rounds of a call: where the input requests came from.

use creole::Context;
use creole::internal::seal;
use creole::proto::model::{InputRequest, KeyedInputRequest};
use creole::proto::wire::{Raw, hex};
use serde::{Deserialize, Serialize};

/// The sealed state that accompanies input requests and returns with the input responses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RequestState {
    /// The upstream ended the call with input requests. It is called again with the input responses and its own state.
    Relay(Option<String>),
    /// The upstream waits for the input responses, in a call that is parked here.
    Park(ParkedState),
    /// The upstream requires a URL elicitation. It is called again when that is completed.
    Again,
    /// The upstream created a task for the call.
    Task {
        /// Its id at the upstream.
        id: String,
        /// The index among its caller's exclusive sessions.
        lane: usize,
    },
}

/// A call that is parked here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ParkedState {
    /// Its id.
    pub(crate) id: String,
    /// The number of earlier rounds.
    pub(crate) round: u32,
    /// The index among its caller's exclusive sessions.
    pub(crate) lane: usize,
    /// The replica that holds it, if several share a state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) home: Option<String>,
    /// Its input requests, for a call that may be repeated if that replica has stopped: those with responses, and the
    /// open ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) known: Option<Vec<AnsweredInput>>,
}

/// An input request of a call, and its response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AnsweredInput {
    /// The digest of the input request.
    pub(crate) digest: String,
    /// The key of the input request, while it has no response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    /// Its response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) answer: Option<Raw>,
}

impl AnsweredInput {
    /// An input request with its response.
    pub(crate) fn with_response(input_request: &InputRequest, response: &Raw) -> Self {
        Self {
            digest: input_request_digest(input_request),
            key: None,
            answer: Some(response.clone()),
        }
    }

    /// An open input request.
    pub(crate) fn without_response(ask: &KeyedInputRequest) -> Self {
        Self {
            digest: input_request_digest(&ask.question),
            key: Some(ask.key.clone()),
            answer: None,
        }
    }
}

/// The digest of an input request. It ignores the id of a URL elicitation, which is new each time.
pub(crate) fn input_request_digest(input_request: &InputRequest) -> String {
    let text = match input_request {
        InputRequest::Url { message, url, .. } => Raw::from_value(&(message, url)),
        other => Raw::from_value(other),
    };
    hex(&seal::digest(text.as_str().as_bytes())[..16])
}

/// The input responses for a call that is repeated, by the digest of their input request.
pub(crate) fn known_responses(context: &Context) -> Vec<(String, Raw)> {
    let Some(RequestState::Park(parked)) = context.request_state().and_then(RequestState::decode)
    else {
        return Vec::new();
    };
    let given = |key: &str| context.input_responses().find(|(asked, _)| *asked == key);
    let answered = parked.known.unwrap_or_default().into_iter().filter_map(|known| {
        let now = known.key.as_deref().and_then(given).map(|(_, response)| response.clone());
        Some((known.digest, known.answer.or(now)?))
    });
    answered.collect()
}

impl RequestState {
    pub(crate) fn encode(&self) -> String {
        // Plain data cannot fail to serialise.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Decodes the state. `None` if the text is not ours, which the seal prevents.
    pub(crate) fn decode(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_state_is_read_back() {
        let known = AnsweredInput::with_response(&InputRequest::Roots, &Raw::from_value(&"yes"));
        let parked =
            |home, known| ParkedState { id: "x".to_owned(), round: 3, lane: 1, home, known };
        let all = [
            RequestState::Relay(None),
            RequestState::Relay(Some("a\u{e9}\"b".to_owned())),
            RequestState::Park(parked(None, None)),
            RequestState::Park(parked(Some("home".to_owned()), Some(vec![known.clone()]))),
            RequestState::Again,
            RequestState::Task { id: "t".to_owned(), lane: 2 },
        ];
        for request_state in all {
            assert_eq!(RequestState::decode(&request_state.encode()), Some(request_state));
        }
        assert_eq!(RequestState::decode("{}"), None);
    }
}
