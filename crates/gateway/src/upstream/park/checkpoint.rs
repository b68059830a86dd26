//! Where a call that waits could be gone on with, written down for the case that its process is killed.

use std::time::Duration;

use creole::call::Context;
use creole::client::ResumePoint;
use creole::proto::model::InputRequest;
use creole::proto::wire::Raw;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::runtime::Handle;

use super::parked_call::check_response;
use super::{ParkSlotGuard, ParkedCalls};
use crate::upstream::park::request_state::{ParkedState, input_request_digest};

/// How much longer than the call itself what is written down of it is kept.
const RETENTION_MARGIN: Duration = Duration::from_secs(60);

/// A call at a server whose streams can be taken up again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    /// Whose it is.
    pub(super) principal: String,
    /// How often it had asked.
    pub(super) round: u32,
    /// The revision that its session speaks.
    pub(crate) version: String,
    /// The session.
    pub(super) session: Option<String>,
    /// The last event that came of it.
    pub(super) last_event: String,
    /// The number that the server knows it by.
    pub(crate) number: u64,
    /// What it asks.
    pub(super) questions: Vec<CheckpointRequest>,
}

/// A question that is open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct CheckpointRequest {
    /// The key that its answer comes back with.
    pub(super) key: String,
    /// The id that the server gave it.
    pub(super) id: Raw,
    pub(super) question: InputRequest,
}

impl Checkpoint {
    /// Where the call is.
    pub(crate) fn resume_point(&self) -> ResumePoint {
        ResumePoint { session: self.session.clone(), last_event: self.last_event.clone() }
    }

    /// Its questions, as the server asked them.
    pub(crate) fn request_messages(&self) -> Vec<String> {
        let message = |asked: &CheckpointRequest| {
            let (id, method) = (&asked.id, asked.question.method());
            let params = request_params(&asked.question);
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
        };
        self.questions.iter().map(message).collect()
    }

    /// The answers that the caller came back with, by what tells the questions apart. What is no answer is asked again.
    pub(crate) fn caller_responses(&self, context: &Context) -> Vec<(String, Raw)> {
        let answered = self.questions.iter().filter_map(|asked| {
            let (_, answer) = context.input_responses().find(|(key, _)| *key == asked.key)?;
            check_response(&asked.question, answer).ok()?;
            Some((input_request_digest(&asked.question), answer.clone()))
        });
        answered.collect()
    }
}

fn request_params(question: &InputRequest) -> Raw {
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

impl ParkedCalls {
    /// Takes what was written down of a call whose process is gone. Of several that want it, one gets it.
    pub(crate) async fn claim_checkpoint(
        &self,
        parked: &ParkedState,
        principal: &str,
    ) -> Option<Checkpoint> {
        let state = self.replicas.as_ref()?.state();
        let path = checkpoint_path(&parked.id);
        let found = state.get(&path).await.ok()??;
        let trace: Checkpoint = serde_json::from_slice(&found.value).ok()?;
        if trace.principal != principal || trace.round != parked.round {
            return None;
        }
        // Not if the process is there after all and has made sure of it meanwhile.
        state
            .swap(&path, Some(found.version), Vec::new().into(), Some(RETENTION_MARGIN))
            .await
            .ok()??;
        // What cannot be removed goes by its age.
        _ = state.remove(&path).await;
        Some(trace)
    }
}

impl ParkSlotGuard {
    /// Writes down where the call is, for as long as its answers may take.
    pub(super) async fn save_checkpoint(&mut self, trace: &Checkpoint) {
        let Some(peers) = &self.parked_calls.replicas else { return };
        let Ok(text) = serde_json::to_vec(trace) else { return };
        match peers
            .state()
            .put(&checkpoint_path(&self.id), text.into(), self.checkpoint_ttl())
            .await
        {
            Ok(version) => self.checkpoint_version = Some(version),
            Err(error) => {
                tracing::debug!(%error, "a call that waits would be lost with its process");
            }
        }
    }

    /// Longer than the call waits, so that what is gone was taken.
    fn checkpoint_ttl(&self) -> Option<Duration> {
        Some(self.parked_calls.input_timeout + RETENTION_MARGIN)
    }

    /// Whether another process has taken the call over, as this one was not there for a while.
    pub(super) async fn is_taken_over(&self) -> bool {
        let (Some(peers), Some(version)) = (&self.parked_calls.replicas, self.checkpoint_version)
        else {
            return false;
        };
        let found = peers.state().get(&checkpoint_path(&self.id)).await;
        // Of a state that fails nobody could have taken it.
        found.is_ok_and(|found| found.is_none_or(|found| found.version != version))
    }

    /// Makes sure that no other process can take the call over that has not done so; tells whether none has.
    pub(super) async fn hold_checkpoint(&mut self) -> bool {
        let (Some(peers), Some(version)) = (&self.parked_calls.replicas, self.checkpoint_version)
        else {
            return true;
        };
        let (state, path) = (peers.state(), checkpoint_path(&self.id));
        let found = match state.get(&path).await {
            Ok(Some(found)) if found.version == version => found.value,
            Ok(_) => return false,
            Err(_) => return true,
        };
        match state.swap(&path, Some(version), found, self.checkpoint_ttl()).await {
            Ok(Some(newer)) => self.checkpoint_version = Some(newer),
            Ok(None) => return false,
            Err(_) => {}
        }
        true
    }

    /// Forgets what was written down, as it is another's.
    pub(super) fn forget_checkpoint(&mut self) {
        self.checkpoint_version = None;
    }

    /// Forgets what was written down, now that the call is over.
    pub(super) fn delete_checkpoint(&self) {
        let Some(peers) =
            self.parked_calls.replicas.clone().filter(|_| self.checkpoint_version.is_some())
        else {
            return;
        };
        let (Ok(runtime), path) = (Handle::try_current(), checkpoint_path(&self.id)) else {
            return;
        };
        // What cannot be removed goes by its age.
        runtime.spawn(async move { peers.state().remove(&path).await });
    }
}

fn checkpoint_path(id: &str) -> String {
    format!("call/{id}")
}
