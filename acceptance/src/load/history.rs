//! The history of all requests and responses, and the check that a correct server can produce it.
//!
//! Every call carries a unique secret nonce. A response is correct if it arrives once, on the call's own stream, with
//! the call's own id and nonce. All clients may use the same id: a server that finds callers by id alone sends one the
//! response of another, and the nonce shows it.

use std::collections::HashMap;
use std::fmt;

use serde_json::Value;

/// One call, and all its responses.
#[derive(Clone, Debug)]
pub struct Call {
    /// The index of its client.
    pub tenant: usize,
    /// The index of the call.
    pub number: usize,
    /// The JSON-RPC id of the request.
    pub id: Value,
    /// The text of the correct response, a secret of this call.
    pub nonce: String,
    /// Every response, including duplicates.
    pub answers: Vec<HistoryResponse>,
    /// Why there is none, if the client knows.
    pub failure: Option<String>,
}

/// One response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryResponse {
    /// Its JSON-RPC id.
    pub id: Value,
    /// The text of the result, or the error.
    pub text: Result<String, String>,
}

impl HistoryResponse {
    /// Reads a message of the server. A notification is not a response.
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

/// A violation by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Breach {
    /// No response arrived.
    Unanswered(String),
    /// More than one response arrived.
    AnsweredTwice,
    /// The response carries another id.
    WrongId(Value),
    /// The response belongs to a call of another client.
    WrongTenant {
        /// The client that it belongs to.
        of: usize,
    },
    /// The response belongs to another call of the same client, or to no call.
    WrongNonce(String),
    /// The call got an error response.
    Refused(String),
    /// A response arrived without a request.
    Stray(Value),
}

/// A violation, and where it happened.
#[derive(Clone, Debug)]
pub struct HistoryFinding {
    /// The client that noticed it.
    pub tenant: usize,
    /// The index of its call.
    pub number: usize,
    /// The violation.
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

    /// Adds a message that reached a client outside of any call. Notifications are ignored.
    pub fn add_stray(&mut self, tenant: usize, message: &Value) {
        if HistoryResponse::read(message).is_some() {
            self.strays.push((tenant, message.clone()));
        }
    }

    /// The number of calls.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.calls.len()
    }

    /// All violations.
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

    /// Fails unless there were this many calls and each got its correct response.
    ///
    /// # Panics
    ///
    /// When that is not the case. Shows the first violations.
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
        // A response arrived, and then something that must not follow a response.
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

    /// A call with the id 1 and these response texts.
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
    fn a_response_to_another_call_of_the_same_client_is_wrong() {
        let stale = [call(1, "a", &["a"]), call(1, "b", &["a"])];
        assert_eq!(breaches(stale), [Breach::WrongNonce("a".to_owned())]);
    }

    #[test]
    fn none_and_two_are_not_one() {
        assert_eq!(breaches([call(1, "a", &[])]), [Breach::Unanswered(String::new())]);
        assert_eq!(breaches([call(1, "a", &["a", "a"])]), [Breach::AnsweredTwice]);
    }

    #[test]
    fn an_error_a_wrong_id_and_an_unexpected_response_are_violations() {
        let mut history = History::default();
        let failed = json!({"id": 2, "result": {"content": [{"text": "a"}], "isError": true}});
        history.add([Call {
            answers: HistoryResponse::read(&failed).into_iter().collect(),
            ..call(1, "a", &[])
        }]);
        history.add_stray(3, &json!({"method": "notifications/tools/list_changed"}));
        history.add_stray(3, &failed);
        let found: Vec<Breach> =
            history.breaches().into_iter().map(|history_finding| history_finding.breach).collect();
        let expected =
            [Breach::WrongId(json!(2)), Breach::Refused(failed.to_string()), Breach::Stray(failed)];
        assert_eq!(found, expected);
    }
}
