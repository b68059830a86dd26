//! What is kept between two rounds of a call: where the questions of the first came from.

use creole::call::Context;
use creole::proto::model::{InputRequest, KeyedInputRequest};
use creole::proto::wire::{Raw, hex};
use creole::seal;
use serde::{Deserialize, Serialize};

/// What is handed out with questions, sealed, and comes back with the answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RequestState {
    /// The server ended the call with its questions: it is called again with the answers and its own state.
    Relay(Option<String>),
    /// The server still waits for the answers, in a call that is parked here.
    Park(ParkedState),
    /// The server refused until a page is visited: it is called again once that was done.
    Again,
    /// The server made a task of the call.
    Task {
        /// Its name there.
        id: String,
        /// Which of its caller's conversations it belongs to.
        lane: usize,
    },
}

/// A call that is parked here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ParkedState {
    /// Which.
    pub(crate) id: String,
    /// How often it had asked before.
    pub(crate) round: u32,
    /// Which of its caller's conversations it is made in.
    pub(crate) lane: usize,
    /// The process in which it waits, where several share a state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) home: Option<String>,
    /// What is known of its questions, for a call that may be made again if that process is gone: the answers so far,
    /// and the questions that are open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) known: Option<Vec<AnsweredInput>>,
}

/// A question of a call, and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AnsweredInput {
    /// What tells it from other questions.
    pub(crate) digest: String,
    /// The key under which it was asked, while it has no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    /// Its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) answer: Option<Raw>,
}

impl AnsweredInput {
    /// A question and what was answered to it.
    pub(crate) fn with_response(question: &InputRequest, answer: &Raw) -> Self {
        Self { digest: input_request_digest(question), key: None, answer: Some(answer.clone()) }
    }

    /// A question that is open.
    pub(crate) fn without_response(ask: &KeyedInputRequest) -> Self {
        Self {
            digest: input_request_digest(&ask.question),
            key: Some(ask.key.clone()),
            answer: None,
        }
    }
}

/// What tells a question from others. The name of a visit is a new one each time.
pub(crate) fn input_request_digest(question: &InputRequest) -> String {
    let text = match question {
        InputRequest::Url { message, url, .. } => Raw::from_value(&(message, url)),
        other => Raw::from_value(other),
    };
    hex(&seal::digest(text.as_str().as_bytes())[..16])
}

/// What is known of the questions of a call that is made again: all that were answered, by what tells them apart.
pub(crate) fn known_responses(context: &Context) -> Vec<(String, Raw)> {
    let Some(RequestState::Park(parked)) = context.request_state().and_then(RequestState::decode)
    else {
        return Vec::new();
    };
    let given = |key: &str| context.input_responses().find(|(asked, _)| *asked == key);
    let answered = parked.known.unwrap_or_default().into_iter().filter_map(|known| {
        let now = known.key.as_deref().and_then(given).map(|(_, answer)| answer.clone());
        Some((known.digest, known.answer.or(now)?))
    });
    answered.collect()
}

impl RequestState {
    pub(crate) fn encode(&self) -> String {
        // Plain data cannot fail to serialise.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// What was kept; nothing where the text is not ours, which the seal makes impossible.
    pub(crate) fn decode(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_as_it_was_written() {
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
        for kept in all {
            assert_eq!(RequestState::decode(&kept.encode()), Some(kept));
        }
        assert_eq!(RequestState::decode("{}"), None);
    }
}
