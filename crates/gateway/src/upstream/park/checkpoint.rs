//! The checkpoint of a parked call, from which another replica continues it if its own is killed.

use std::time::Duration;

use creole::Context;
use creole::internal::client::ResumePoint;
use creole::internal::replicas::Replicas;
use creole::proto::model::InputRequest;
use creole::proto::wire::Raw;
use creole::state::StateError;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::runtime::Handle;

use super::slot_guard::ParkSlotGuard;
use crate::upstream::park::request_state::input_request_digest;

/// How much longer than the call itself the checkpoint is kept.
const RETENTION_MARGIN: Duration = Duration::from_secs(60);

/// A call at an upstream with resumable streams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    /// Its principal.
    pub(super) principal: String,
    /// The number of rounds so far.
    pub(super) round: u32,
    /// The protocol version of its session.
    pub(crate) version: String,
    /// The session.
    pub(super) session: Option<String>,
    /// The id of its last event.
    pub(super) last_event: String,
    /// Its request id at the upstream.
    pub(crate) number: u64,
    /// Its open input requests.
    pub(super) questions: Vec<CheckpointRequest>,
}

/// An open input request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct CheckpointRequest {
    /// The key that identifies its response.
    pub(super) key: String,
    /// The request id that the upstream assigned.
    pub(super) id: Raw,
    pub(super) question: InputRequest,
}

/// The claim of a replica to continue a call, which replaces its checkpoint.
#[derive(Deserialize, Serialize)]
pub(super) struct StoredClaim {
    /// The replica that continues the call.
    pub(super) claimant: String,
    pub(super) checkpoint: Checkpoint,
}

impl Checkpoint {
    /// The point at which the stream resumes.
    pub(crate) fn resume_point(&self) -> ResumePoint {
        ResumePoint { session: self.session.clone(), last_event: self.last_event.clone() }
    }

    /// Its input requests, as the upstream sent them.
    pub(crate) fn request_messages(&self) -> Vec<String> {
        let message = |request: &CheckpointRequest| {
            let (id, method) = (&request.id, request.question.method());
            let params = request_params(&request.question);
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
        };
        self.questions.iter().map(message).collect()
    }

    /// The caller's input responses, by the digest of their input request. Invalid responses are dropped, so that the
    /// input is requested again.
    pub(crate) fn caller_responses(&self, context: &Context) -> Vec<(String, Raw)> {
        let answered = self.questions.iter().filter_map(|request| {
            let (_, response) = context.input_responses().find(|(key, _)| *key == request.key)?;
            check_response(&request.question, response).ok()?;
            Some((input_request_digest(&request.question), response.clone()))
        });
        answered.collect()
    }
}

fn request_params(input_request: &InputRequest) -> Raw {
    match input_request {
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

impl ParkSlotGuard {
    /// Stores the checkpoint for as long as the input responses may take.
    pub(super) async fn save_checkpoint(&mut self, trace: &Checkpoint) {
        let Some(peers) = &self.parked_calls.replicas else { return };
        let Ok(text) = serde_json::to_vec(trace) else { return };
        match peers
            .state()
            .put(&checkpoint_path(&self.id), text.into(), self.checkpoint_ttl())
            .await
        {
            Ok(_) => self.has_checkpoint = true,
            Err(error) => {
                tracing::debug!(%error, "cannot store the checkpoint of a parked call; the call \
                    is lost if this process ends");
            }
        }
    }

    /// Longer than the call waits, so that a missing checkpoint means a takeover.
    fn checkpoint_ttl(&self) -> Option<Duration> {
        Some(self.parked_calls.input_timeout + RETENTION_MARGIN)
    }

    /// Whether another replica has taken over the call because this one was unresponsive. A claim that was taken back is
    /// the checkpoint again, with another version.
    pub(super) async fn is_taken_over(&self) -> bool {
        let Some(replicas) = self.checkpoint_replicas() else { return false };
        match replicas.state().get(&checkpoint_path(&self.id)).await {
            Ok(entry) => entry.is_none_or(|entry| is_claim(&entry.value)),
            Err(error) => is_of_another_version(&error),
        }
    }

    /// Prevents other replicas from taking over the call. Returns whether none has done so.
    pub(super) async fn hold_checkpoint(&mut self) -> bool {
        let Some(replicas) = self.checkpoint_replicas() else { return true };
        let (state, path) = (replicas.state(), checkpoint_path(&self.id));
        let found = match state.get(&path).await {
            Ok(Some(entry)) if !is_claim(&entry.value) => entry,
            Ok(_) => return false,
            Err(error) => return !is_of_another_version(&error),
        };
        let held = state.swap(&path, Some(found.version), found.value, self.checkpoint_ttl()).await;
        !matches!(held, Ok(None))
    }

    /// The replicas, if the call has a checkpoint.
    fn checkpoint_replicas(&self) -> Option<&Replicas> {
        self.parked_calls.replicas.as_ref().filter(|_| self.has_checkpoint)
    }

    /// Forgets the checkpoint, which belongs to another replica now.
    pub(super) fn forget_checkpoint(&mut self) {
        self.has_checkpoint = false;
    }

    /// Deletes the checkpoint after the call has ended.
    pub(super) fn delete_checkpoint(&self) {
        let Some(peers) = self.checkpoint_replicas().cloned() else { return };
        let (Ok(runtime), path) = (Handle::try_current(), checkpoint_path(&self.id)) else {
            return;
        };
        // A checkpoint that cannot be removed expires.
        runtime.spawn(async move { peers.state().remove(&path).await });
    }
}

/// The claim, if what is stored about a call is one.
pub(super) fn stored_claim(value: &[u8]) -> Option<StoredClaim> {
    serde_json::from_slice(value).ok()
}

/// Whether a replica has claimed the call.
pub(super) fn is_claim(value: &[u8]) -> bool {
    stored_claim(value).is_some()
}

/// Whether a checkpoint cannot be read because a replica of another version wrote it. If the state fails, no replica
/// could have taken it.
fn is_of_another_version(error: &StateError) -> bool {
    matches!(error, StateError::UnknownFormat { .. })
}

pub(super) fn checkpoint_path(id: &str) -> String {
    format!("call/{id}")
}

/// Whether this is a valid response to the input request. The error gives the reason.
pub(super) fn check_response(question: &InputRequest, answer: &Raw) -> Result<(), &'static str> {
    answer.as_object().ok_or("it must be an object").and_then(|it| question.check_response(it))
}
