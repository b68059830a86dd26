//! Pages that somebody agreed to visit during a call, and is not asked to visit again.
//!
//! A server of the stateless era asks for the same page in every round until the visit is over; a person who
//! was sent there once is still busy with it.

use std::collections::BTreeMap;

use creole_proto::model::{InputRequest, KeyedInputRequest};
use creole_proto::operation::Event;
use creole_proto::wire::Raw;

use super::{Answers, random_name};
use crate::call::Context;
use crate::random::NoRandomBytes;

/// The pages of one call.
#[derive(Default)]
pub(super) struct Visits {
    /// The visits that were agreed to, by page.
    agreed: BTreeMap<String, Visit>,
    /// The pages of the questions that are being asked and the names of the visits, by key.
    asked: BTreeMap<String, (String, String)>,
}

/// A visit that was agreed to.
struct Visit {
    id: String,
    answer: Raw,
    /// Whether the server said that it was not over.
    is_awaited: bool,
}

impl Visits {
    /// Takes the questions out that were agreed to before, and gives their answers. The others get a name for the
    /// visit where the server has none.
    ///
    /// # Errors
    /// When there is no random name for a visit.
    pub(super) fn take_known(
        &mut self,
        asks: &mut Vec<KeyedInputRequest>,
    ) -> Result<Answers, NoRandomBytes> {
        let (mut known, mut named) = (Answers::new(), Ok(()));
        self.asked.clear();
        asks.retain_mut(|KeyedInputRequest { key, question }| {
            let InputRequest::Url { url, id, .. } = question else { return true };
            if let Some(visit) = self.agreed.get_mut(url) {
                visit.is_awaited = true;
                known.insert(key.clone(), visit.answer.clone());
                return false;
            }
            if id.is_empty() {
                match random_name() {
                    Ok(name) => *id = name,
                    Err(error) => named = Err(error),
                }
            }
            self.asked.insert(key.clone(), (url.clone(), id.clone()));
            true
        });
        named.map(|()| known)
    }

    /// Tells the client which visits are over, when the call is: those that the server had waited for. To agree to
    /// a visit is not to make it, so nothing is known of the others.
    pub(super) async fn tell_over(self, context: &Context) {
        for visit in self.agreed.into_values().filter(|visit| visit.is_awaited) {
            context.event(Event::ElicitationCompleted(visit.id)).await;
        }
    }

    /// Notes which of the pages were agreed to.
    pub(super) fn note(&mut self, answers: &Answers) {
        for (key, answer) in answers {
            let is_agreed = answer.as_object().and_then(|it| it.string("action").ok().flatten());
            if is_agreed.is_some_and(|action| action == "accept")
                && let Some((url, id)) = self.asked.remove(key)
            {
                let visit = Visit { id, answer: answer.clone(), is_awaited: false };
                self.agreed.insert(url, visit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ask::page;
    use crate::random::failure;

    fn asks() -> Vec<KeyedInputRequest> {
        vec![KeyedInputRequest {
            key: "k".to_owned(),
            question: page("Sign in", "https://a.example/"),
        }]
    }

    #[test]
    fn without_random_bytes_no_client_is_sent_a_constant_id() {
        let (mut asked, known) = failure::during(|| {
            let mut asked = asks();
            let known = Visits::default().take_known(&mut asked);
            (asked, known)
        });
        assert_eq!(known, Err(NoRandomBytes));
        let Some(KeyedInputRequest { question: InputRequest::Url { id, .. }, .. }) = asked.pop()
        else {
            panic!("the question is gone")
        };
        assert_eq!(id, "", "an id that every such call would have");
    }

    #[test]
    fn a_page_is_asked_for_until_somebody_agrees() {
        let mut visits = Visits::default();
        for (action, is_asked_again) in [("decline", true), ("accept", false)] {
            let mut asked = asks();
            assert!(visits.take_known(&mut asked).unwrap().is_empty());
            let answer = Raw::from_value(&json!({"action": action}));
            visits.note(&Answers::from([("k".to_owned(), answer.clone())]));
            let mut again = asks();
            let known = visits.take_known(&mut again).unwrap();
            assert_eq!(again.is_empty(), !is_asked_again, "{action}");
            assert_eq!(known.get("k"), (!is_asked_again).then_some(&answer));
        }
    }
}
