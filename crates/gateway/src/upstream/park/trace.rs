//! Where a call that waits could be gone on with, written down for the case that its process is killed.

use std::time::Duration;

use creole::call::Context;
use creole::client::ResumePoint;
use creole::proto::model::InputRequest;
use creole::proto::wire::Raw;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::runtime::Handle;

use super::super::kept::{Parked, digest};
use super::attendant::is_answer;
use super::{Parking, Spot};

/// How much longer than the call itself what is written down of it is kept.
const SPARE: Duration = Duration::from_secs(60);

/// A call at a server whose streams can be taken up again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in super::super) struct Trace {
    /// Whose it is.
    pub(super) principal: String,
    /// How often it had asked.
    pub(super) round: u32,
    /// The revision that its session speaks.
    pub(in super::super) version: String,
    /// The session.
    pub(super) session: Option<String>,
    /// The last event that came of it.
    pub(super) last_event: String,
    /// The number that the server knows it by.
    pub(in super::super) number: u64,
    /// What it asks.
    pub(super) questions: Vec<Asked>,
}

/// A question that is open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Asked {
    /// The key that its answer comes back with.
    pub(super) key: String,
    /// The id that the server gave it.
    pub(super) id: Raw,
    pub(super) question: InputRequest,
}

impl Trace {
    /// Where the call is.
    pub(in super::super) fn whereabouts(&self) -> ResumePoint {
        ResumePoint { session: self.session.clone(), last_event: self.last_event.clone() }
    }

    /// Its questions, as the server asked them.
    pub(in super::super) fn messages(&self) -> Vec<String> {
        let message = |asked: &Asked| {
            let (id, method) = (&asked.id, asked.question.method());
            let params = params(&asked.question);
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
        };
        self.questions.iter().map(message).collect()
    }

    /// The answers that the caller came back with, by what tells the questions apart. What is no answer is asked again.
    pub(in super::super) fn answers(&self, context: &Context) -> Vec<(String, Raw)> {
        let answered = self.questions.iter().filter_map(|asked| {
            let (_, answer) = context.input_responses().find(|(key, _)| *key == asked.key)?;
            is_answer(&asked.question, answer).ok()?;
            Some((digest(&asked.question), answer.clone()))
        });
        answered.collect()
    }
}

fn params(question: &InputRequest) -> Raw {
    match question {
        InputRequest::Form { message, schema } => {
            Raw::from_value(&json!({"message": message, "requestedSchema": schema}))
        }
        InputRequest::Url { message, url, id } => Raw::from_value(
            &json!({"mode": "url", "message": message, "url": url, "elicitationId": id}),
        ),
        InputRequest::Sample { params } => params.clone(),
        InputRequest::Roots => Raw::from_value(&json!({})),
    }
}

impl Parking {
    /// Takes what was written down of a call whose process is gone. Of several that want it, one gets it.
    pub(in super::super) async fn claim(&self, parked: &Parked, principal: &str) -> Option<Trace> {
        let state = self.peers.as_ref()?.state();
        let path = path(&parked.id);
        let found = state.get(&path).await.ok()??;
        let trace: Trace = serde_json::from_slice(&found.value).ok()?;
        if trace.principal != principal || trace.round != parked.round {
            return None;
        }
        // Not if the process is there after all and has made sure of it meanwhile.
        state.swap(&path, Some(found.version), Vec::new().into(), Some(SPARE)).await.ok()??;
        // What cannot be removed goes by its age.
        _ = state.remove(&path).await;
        Some(trace)
    }
}

impl Spot {
    /// Writes down where the call is, for as long as its answers may take.
    pub(super) async fn write_down(&mut self, trace: &Trace) {
        let Some(peers) = &self.parking.peers else { return };
        let Ok(text) = serde_json::to_vec(trace) else { return };
        match peers.state().put(&path(&self.id), text.into(), self.age()).await {
            Ok(version) => self.written = Some(version),
            Err(error) => {
                tracing::debug!(%error, "a call that waits would be lost with its process");
            }
        }
    }

    /// Longer than the call waits, so that what is gone was taken.
    fn age(&self) -> Option<Duration> {
        Some(self.parking.patience + SPARE)
    }

    /// Whether another process has taken the call over, as this one was not there for a while.
    pub(super) async fn is_taken(&self) -> bool {
        let (Some(peers), Some(version)) = (&self.parking.peers, self.written) else {
            return false;
        };
        let found = peers.state().get(&path(&self.id)).await;
        // Of a state that fails nobody could have taken it.
        found.is_ok_and(|found| found.is_none_or(|found| found.version != version))
    }

    /// Makes sure that no other process can take the call over that has not done so; tells whether none has.
    pub(super) async fn is_held(&mut self) -> bool {
        let (Some(peers), Some(version)) = (&self.parking.peers, self.written) else {
            return true;
        };
        let (state, path) = (peers.state(), path(&self.id));
        let found = match state.get(&path).await {
            Ok(Some(found)) if found.version == version => found.value,
            Ok(_) => return false,
            Err(_) => return true,
        };
        match state.swap(&path, Some(version), found, self.age()).await {
            Ok(Some(newer)) => self.written = Some(newer),
            Ok(None) => return false,
            Err(_) => {}
        }
        true
    }

    /// Forgets what was written down, as it is another's.
    pub(super) fn is_gone(&mut self) {
        self.written = None;
    }

    /// Forgets what was written down, now that the call is over.
    pub(super) fn cross_out(&self) {
        let Some(peers) = self.parking.peers.clone().filter(|_| self.written.is_some()) else {
            return;
        };
        let (Ok(runtime), path) = (Handle::try_current(), path(&self.id)) else { return };
        // What cannot be removed goes by its age.
        runtime.spawn(async move { peers.state().remove(&path).await });
    }
}

fn path(id: &str) -> String {
    format!("call/{id}")
}
