//! URL elicitations that were accepted during a call, which are not sent to the client again.
//!
//! A server of the stateless era repeats the URL elicitation in every round until it is complete; the user is still
//! busy with the URL.

use std::collections::BTreeMap;

use creole_proto::model::{InputRequest, KeyedInputRequest};
use creole_proto::operation::Event;
use creole_proto::wire::Raw;

use super::{ResponsesByKey, random_uuid};
use crate::call::Context;
use crate::random::NoRandomBytes;

/// The URL elicitations of one call.
#[derive(Default)]
pub(super) struct UrlElicitations {
    /// The accepted elicitations, by URL.
    accepted: BTreeMap<String, AcceptedUrl>,
    /// The URLs and elicitation ids of the pending input requests, by key.
    pending: BTreeMap<String, (String, String)>,
}

/// An accepted URL elicitation.
struct AcceptedUrl {
    id: String,
    response: Raw,
    /// Whether the server repeated it, so it was not complete.
    is_awaited: bool,
}

impl UrlElicitations {
    /// Removes the elicitations that were accepted before, and returns their responses. The others get an elicitation
    /// id if the server gave none.
    ///
    /// # Errors
    /// When the system has no random bytes for an elicitation id.
    pub(super) fn take_accepted(
        &mut self,
        input_requests: &mut Vec<KeyedInputRequest>,
    ) -> Result<ResponsesByKey, NoRandomBytes> {
        let (mut known, mut named) = (ResponsesByKey::new(), Ok(()));
        self.pending.clear();
        input_requests.retain_mut(|KeyedInputRequest { key, question }| {
            let InputRequest::Url { url, id, .. } = question else { return true };
            if let Some(accepted) = self.accepted.get_mut(url) {
                accepted.is_awaited = true;
                known.insert(key.clone(), accepted.response.clone());
                return false;
            }
            if id.is_empty() {
                match random_uuid() {
                    Ok(name) => *id = name,
                    Err(error) => named = Err(error),
                }
            }
            self.pending.insert(key.clone(), (url.clone(), id.clone()));
            true
        });
        named.map(|()| known)
    }

    /// Notifies the client at the end of the call which elicitations are complete: those that the server waited for.
    /// Acceptance is not completion, so the others may still be pending.
    pub(super) async fn notify_completed(self, context: &Context) {
        for accepted in self.accepted.into_values().filter(|accepted| accepted.is_awaited) {
            context.send_event(Event::ElicitationCompleted(accepted.id)).await;
        }
    }

    /// Records which of the elicitations were accepted.
    pub(super) fn record_accepted(&mut self, responses: &ResponsesByKey) {
        for (key, response) in responses {
            let is_agreed =
                response.as_object().and_then(|value| value.string("action").ok().flatten());
            if is_agreed.is_some_and(|action| action == "accept")
                && let Some((url, id)) = self.pending.remove(key)
            {
                let accepted = AcceptedUrl { id, response: response.clone(), is_awaited: false };
                self.accepted.insert(url, accepted);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::input::url_elicitation;
    use crate::random::failure;

    fn input_requests() -> Vec<KeyedInputRequest> {
        vec![KeyedInputRequest {
            key: "k".to_owned(),
            question: url_elicitation("Sign in", "https://a.example/"),
        }]
    }

    #[test]
    fn without_random_bytes_no_client_is_sent_a_constant_id() {
        let (mut requests, known) = failure::during(|| {
            let mut requests = input_requests();
            let known = UrlElicitations::default().take_accepted(&mut requests);
            (requests, known)
        });
        assert_eq!(known, Err(NoRandomBytes));
        let Some(KeyedInputRequest { question: InputRequest::Url { id, .. }, .. }) = requests.pop()
        else {
            panic!("no URL elicitation")
        };
        assert_eq!(id, "", "without random bytes the id is empty");
    }

    #[test]
    fn a_page_is_asked_for_until_somebody_agrees() {
        let mut elicitations = UrlElicitations::default();
        for (action, is_asked_again) in [("decline", true), ("accept", false)] {
            let mut requests = input_requests();
            assert!(elicitations.take_accepted(&mut requests).unwrap().is_empty());
            let response = Raw::from_value(&json!({"action": action}));
            elicitations
                .record_accepted(&ResponsesByKey::from([("k".to_owned(), response.clone())]));
            let mut again = input_requests();
            let known = elicitations.take_accepted(&mut again).unwrap();
            assert_eq!(again.is_empty(), !is_asked_again, "{action}");
            assert_eq!(known.get("k"), (!is_asked_again).then_some(&response));
        }
    }
}
