//! Pages that somebody agreed to visit during a call, and is not asked to visit again.
//!
//! A server of the stateless era asks for the same page in every round until the visit is over; a person who
//! was sent there once is still busy with it.

use std::collections::BTreeMap;

use creole_proto::model::{Ask, Question};
use creole_proto::wire::Raw;

use super::Answers;

/// The pages of one call.
#[derive(Default)]
pub(super) struct Visits {
    /// The answers that agreed, by page.
    agreed: BTreeMap<String, Raw>,
    /// The pages of the questions that are being asked, by key.
    asked: BTreeMap<String, String>,
}

impl Visits {
    /// Takes the questions out that were agreed to before, and gives their answers.
    pub(super) fn take_known(&mut self, asks: &mut Vec<Ask>) -> Answers {
        let mut known = Answers::new();
        self.asked.clear();
        asks.retain(|Ask { key, question }| {
            let Question::Url { url, .. } = question else { return true };
            match self.agreed.get(url) {
                Some(answer) => _ = known.insert(key.clone(), answer.clone()),
                None => _ = self.asked.insert(key.clone(), url.clone()),
            }
            !known.contains_key(key)
        });
        known
    }

    /// Notes which of the pages were agreed to.
    pub(super) fn note(&mut self, answers: &Answers) {
        for (key, answer) in answers {
            let is_agreed = answer.object().and_then(|it| it.string("action").ok().flatten());
            if is_agreed.is_some_and(|action| action == "accept")
                && let Some(url) = self.asked.remove(key)
            {
                self.agreed.insert(url, answer.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ask::page;

    fn asks() -> Vec<Ask> {
        vec![Ask { key: "k".to_owned(), question: page("Sign in", "https://a.example/") }]
    }

    #[test]
    fn a_page_is_asked_for_until_somebody_agrees() {
        let mut visits = Visits::default();
        for (action, is_asked_again) in [("decline", true), ("accept", false)] {
            let mut asked = asks();
            assert!(visits.take_known(&mut asked).is_empty());
            let answer = Raw::of(&json!({"action": action}));
            visits.note(&Answers::from([("k".to_owned(), answer.clone())]));
            let mut again = asks();
            let known = visits.take_known(&mut again);
            assert_eq!(again.is_empty(), !is_asked_again, "{action}");
            assert_eq!(known.get("k"), (!is_asked_again).then_some(&answer));
        }
    }
}
