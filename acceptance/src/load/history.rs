//! What every caller sent and got, and whether that is a history that an honest server can produce.
//!
//! Every call carries a nonce that nobody else knows. An answer is right when it comes once, on the call's
//! own stream, with the call's own id and with the call's own nonce. All clients may use the same id: a
//! server that finds callers by id alone gives one the answer of another, and the nonce tells.

use std::collections::HashMap;
use std::fmt;

use serde_json::Value;

/// One call, and everything that came back for it.
#[derive(Clone, Debug)]
pub struct Call {
    /// Which of the clients called.
    pub tenant: usize,
    /// Which of its calls it was.
    pub number: usize,
    /// The JSON-RPC id that it carried.
    pub id: Value,
    /// The text that the right answer holds, a secret of this call.
    pub nonce: String,
    /// Every answer, also the second.
    pub answers: Vec<HistoryResponse>,
    /// Why there is none, where the client knows.
    pub failure: Option<String>,
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryResponse {
    /// The JSON-RPC id that it carries.
    pub id: Value,
    /// The text of the result, or the error.
    pub text: Result<String, String>,
}

impl HistoryResponse {
    /// Reads a message of the server; a notification is no answer.
    #[must_use]
    pub fn read(message: &Value) -> Option<Self> {
        if message.get("method").is_some() {
            return None;
        }
        let text = message["result"]["content"][0]["text"].as_str();
        let is_error = message["result"]["isError"] == true;
        let text = match text {
            Some(text) if !is_error => Ok(text.to_owned()),
            _ => Err(message.to_string()),
        };
        Some(Self { id: message["id"].clone(), text })
    }
}

/// A call that no honest server answers so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Breach {
    /// No answer came.
    Unanswered(String),
    /// More than one answer came.
    AnsweredTwice,
    /// The answer carries another id.
    WrongId(Value),
    /// The answer belongs to a call of another client.
    WrongTenant {
        /// Whose it was.
        of: usize,
    },
    /// The answer belongs to another call of the same client, or to nobody.
    WrongNonce(String),
    /// The call was refused.
    Refused(String),
    /// An answer came where nobody had asked.
    Stray(Value),
}

/// A breach, and where it happened.
#[derive(Clone, Debug)]
pub struct HistoryFinding {
    /// Which client noticed.
    pub tenant: usize,
    /// Which of its calls it was.
    pub number: usize,
    /// What is wrong.
    pub breach: Breach,
}

impl fmt::Display for HistoryFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "client {}, call {}: {:?}", self.tenant, self.number, self.breach)
    }
}

/// All calls of a run.
#[derive(Debug, Default)]
pub struct History {
    calls: Vec<Call>,
    strays: Vec<(usize, Value)>,
}

impl History {
    /// Adds the calls of a client.
    pub fn add(&mut self, calls: impl IntoIterator<Item = Call>) {
        self.calls.extend(calls);
    }

    /// Adds a message that came to a client outside of any call. A notification is no answer, and is let
    /// pass.
    pub fn add_stray(&mut self, tenant: usize, message: &Value) {
        if HistoryResponse::read(message).is_some() {
            self.strays.push((tenant, message.clone()));
        }
    }

    /// How many calls were made.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.calls.len()
    }

    /// Everything that an honest server would not have done.
    #[must_use]
    pub fn breaches(&self) -> Vec<HistoryFinding> {
        let owners: HashMap<&str, usize> =
            self.calls.iter().map(|call| (&*call.nonce, call.tenant)).collect();
        let mut findings = Vec::new();
        for call in &self.calls {
            let found = breaches_of(call, &owners).into_iter();
            findings.extend(found.map(|breach| HistoryFinding {
                tenant: call.tenant,
                number: call.number,
                breach,
            }));
        }
        for (tenant, message) in &self.strays {
            let breach = Breach::Stray(message.clone());
            findings.push(HistoryFinding { tenant: *tenant, number: 0, breach });
        }
        findings
    }

    /// Fails unless so many calls were made and each was answered rightly.
    ///
    /// # Panics
    ///
    /// When it was not so; the first of the breaches are shown.
    #[track_caller]
    pub fn assert_right(&self, calls: usize) {
        assert_eq!(self.calls(), calls, "calls made");
        let breaches = self.breaches();
        let shown: Vec<String> = breaches.iter().take(20).map(ToString::to_string).collect();
        assert!(
            breaches.is_empty(),
            "{} breaches in {calls} calls, the first:\n{}",
            breaches.len(),
            shown.join("\n")
        );
    }
}

fn breaches_of(call: &Call, owners: &HashMap<&str, usize>) -> Vec<Breach> {
    let mut breaches = Vec::new();
    if call.answers.is_empty() {
        breaches.push(Breach::Unanswered(call.failure.clone().unwrap_or_default()));
    } else if let Some(failure) = &call.failure {
        // An answer came, and then something that must not follow an answer.
        breaches.push(Breach::Refused(failure.clone()));
    }
    if call.answers.len() > 1 {
        breaches.push(Breach::AnsweredTwice);
    }
    for answer in &call.answers {
        if answer.id != call.id {
            breaches.push(Breach::WrongId(answer.id.clone()));
        }
        match &answer.text {
            Err(error) => breaches.push(Breach::Refused(error.clone())),
            Ok(text) if *text == call.nonce => {}
            Ok(text) => breaches.push(match owners.get(&**text) {
                Some(owner) if *owner != call.tenant => Breach::WrongTenant { of: *owner },
                _ => Breach::WrongNonce(text.clone()),
            }),
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Breach, Call, History, HistoryResponse};

    /// A call with the id 1 that got these texts.
    fn call(tenant: usize, nonce: &str, texts: &[&str]) -> Call {
        let answer = |text: &&str| HistoryResponse { id: json!(1), text: Ok((*text).to_owned()) };
        Call {
            tenant,
            number: 1,
            id: json!(1),
            nonce: nonce.to_owned(),
            answers: texts.iter().map(answer).collect(),
            failure: None,
        }
    }

    fn breaches(calls: impl IntoIterator<Item = Call>) -> Vec<Breach> {
        let mut history = History::default();
        history.add(calls);
        history.breaches().into_iter().map(|finding| finding.breach).collect()
    }

    #[test]
    fn right_answers_are_no_breach() {
        assert_eq!(breaches([call(1, "a", &["a"]), call(2, "b", &["b"])]), []);
    }

    #[test]
    fn answers_that_were_swapped_name_their_owners() {
        let swapped = [call(1, "a", &["b"]), call(2, "b", &["a"])];
        let expected = [Breach::WrongTenant { of: 2 }, Breach::WrongTenant { of: 1 }];
        assert_eq!(breaches(swapped), expected);
    }

    #[test]
    fn an_answer_of_another_call_of_the_same_client_is_wrong() {
        let stale = [call(1, "a", &["a"]), call(1, "b", &["a"])];
        assert_eq!(breaches(stale), [Breach::WrongNonce("a".to_owned())]);
    }

    #[test]
    fn none_and_two_are_not_one() {
        assert_eq!(breaches([call(1, "a", &[])]), [Breach::Unanswered(String::new())]);
        assert_eq!(breaches([call(1, "a", &["a", "a"])]), [Breach::AnsweredTwice]);
    }

    #[test]
    fn an_error_a_wrong_id_and_an_answer_out_of_nowhere_are_breaches() {
        let mut history = History::default();
        let failed = json!({"id": 2, "result": {"content": [{"text": "a"}], "isError": true}});
        history.add([Call {
            answers: HistoryResponse::read(&failed).into_iter().collect(),
            ..call(1, "a", &[])
        }]);
        history.add_stray(3, &json!({"method": "notifications/tools/list_changed"}));
        history.add_stray(3, &failed);
        let found: Vec<Breach> = history.breaches().into_iter().map(|it| it.breach).collect();
        let expected =
            [Breach::WrongId(json!(2)), Breach::Refused(failed.to_string()), Breach::Stray(failed)];
        assert_eq!(found, expected);
    }
}
