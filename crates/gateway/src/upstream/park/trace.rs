//! Where a call that waits could be gone on with, written down for the case that its process is killed.

use creole::call::Context;
use creole::client::Whereabouts;
use creole::proto::model::Question;
use creole::proto::wire::Raw;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::runtime::Handle;

use super::super::kept::{Parked, digest};
use super::{Parking, Spot};

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
    pub(super) question: Question,
}

impl Trace {
    /// Where the call is.
    pub(in super::super) fn whereabouts(&self) -> Whereabouts {
        Whereabouts { session: self.session.clone(), last_event: self.last_event.clone() }
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

    /// The answers that the caller came back with, by what tells the questions apart.
    pub(in super::super) fn answers(&self, context: &Context) -> Vec<(String, Raw)> {
        let answered = self.questions.iter().filter_map(|asked| {
            let (_, answer) = context.answers().find(|(key, _)| *key == asked.key)?;
            Some((digest(&asked.question), answer.clone()))
        });
        answered.collect()
    }
}

fn params(question: &Question) -> Raw {
    match question {
        Question::Form { message, schema } => {
            Raw::of(&json!({"message": message, "requestedSchema": schema}))
        }
        Question::Url { message, url, id } => {
            Raw::of(&json!({"mode": "url", "message": message, "url": url, "elicitationId": id}))
        }
        Question::Sample { params } => params.clone(),
        Question::Roots => Raw::of(&json!({})),
    }
}

impl Parking {
    /// Takes what was written down of a call whose process is gone. Of several that want it, one gets it.
    pub(in super::super) async fn claim(&self, parked: &Parked, principal: &str) -> Option<Trace> {
        let state = self.peers.as_ref()?.state();
        let path = path(&parked.id);
        let found = state.get(&path).await.ok()??;
        let trace: Trace = serde_json::from_slice(&found.value).ok()?;
        let is_theirs = trace.principal == principal && trace.round == parked.round;
        (is_theirs && state.remove(&path).await.ok()?).then_some(trace)
    }
}

impl Spot {
    /// Writes down where the call is, for as long as its answers may take.
    pub(super) async fn write_down(&mut self, trace: &Trace) {
        let Some(peers) = &self.parking.peers else { return };
        let Ok(text) = serde_json::to_vec(trace) else { return };
        let ttl = Some(self.parking.patience);
        match peers.state().put(&path(&self.id), text.into(), ttl).await {
            Ok(_) => self.is_written = true,
            Err(error) => {
                tracing::debug!(%error, "a call that waits would be lost with its process");
            }
        }
    }

    /// Forgets what was written down, now that the call is over.
    pub(super) fn cross_out(&self) {
        let Some(peers) = self.parking.peers.clone().filter(|_| self.is_written) else { return };
        let (Ok(runtime), path) = (Handle::try_current(), path(&self.id)) else { return };
        // What cannot be removed goes by its age.
        runtime.spawn(async move { peers.state().remove(&path).await });
    }
}

fn path(id: &str) -> String {
    format!("call/{id}")
}
