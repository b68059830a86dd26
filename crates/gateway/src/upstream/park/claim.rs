//! The claim of a replica to continue a parked call whose replica has stopped. It replaces the checkpoint in the state.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use creole::internal::sync::Mutex;
use creole::state::StateError;

use super::ParkedCalls;
use super::checkpoint::{Checkpoint, StoredClaim, checkpoint_path, stored_claim};
use crate::upstream::park::request_state::ParkedState;

/// How long a claim is kept: the call has ended, or is reported as lost.
const CLAIM_TTL: Duration = Duration::from_secs(60);

/// What a replica finds that wants to continue a call.
pub(crate) enum CheckpointClaim {
    /// It continues the call.
    Claimed(Checkpoint),
    /// Another replica does.
    Taken,
    /// There is no checkpoint of this round.
    Missing,
}

/// The claims of this process whose end is not known.
///
/// A store that fails may have stored a claim without an answer. No other replica continues the call then: this one
/// claims it again when its caller returns.
#[derive(Debug, Default)]
pub(super) struct UncertainClaims(Mutex<HashMap<String, UncertainClaim>>);

#[derive(Debug)]
struct UncertainClaim {
    since: Instant,
    /// Whether this process continues the call, after another attempt.
    is_settled: bool,
}

impl UncertainClaims {
    /// Whether this process made a claim of the call, and does not know whether it was stored.
    fn contains(&self, id: &str) -> bool {
        self.0.lock().get(id).is_some_and(|claim| !claim.is_settled)
    }

    /// Remembers that a claim was not answered.
    fn add(&self, id: &str) {
        let (mut claims, since) = (self.0.lock(), Instant::now());
        // The claim has expired by then, whenever it was stored.
        claims.retain(|_, claim| claim.since.elapsed() < CLAIM_TTL * 2);
        let claim = UncertainClaim { since, is_settled: false };
        claims.entry(id.to_owned()).or_insert(claim).since = since;
    }

    /// Remembers that this process continues the call. A later attempt must not.
    fn settle(&self, id: &str) {
        if let Some(claim) = self.0.lock().get_mut(id) {
            claim.is_settled = true;
        }
    }
}

impl ParkedCalls {
    /// Takes the checkpoint of a call whose replica has stopped. If several replicas try, one gets it. Its claim tells the
    /// others.
    ///
    /// # Errors
    /// When the state fails, or this version cannot read the checkpoint. Then the call is not lost.
    pub(crate) async fn claim_checkpoint(
        &self,
        parked: &ParkedState,
        principal: &str,
    ) -> Result<CheckpointClaim, StateError> {
        let Some(replicas) = &self.replicas else { return Ok(CheckpointClaim::Missing) };
        let (state, path) = (replicas.state(), checkpoint_path(&parked.id));
        let Some(entry) = state.get(&path).await? else { return Ok(CheckpointClaim::Missing) };
        let claimant = replicas.name().to_owned();
        let checkpoint: Option<Checkpoint> = match stored_claim(&entry.value) {
            None => serde_json::from_slice(&entry.value).ok(),
            Some(claim) if claim.claimant == claimant && self.claims.contains(&parked.id) => {
                Some(claim.checkpoint)
            }
            Some(_) => return Ok(CheckpointClaim::Taken),
        };
        let is_of_round = |it: &Checkpoint| it.principal == principal && it.round == parked.round;
        let Some(checkpoint) = checkpoint.filter(is_of_round) else {
            return Ok(CheckpointClaim::Missing);
        };
        let claim = StoredClaim { claimant, checkpoint };
        let Ok(text) = serde_json::to_vec(&claim) else { return Ok(CheckpointClaim::Missing) };
        match state.swap(&path, Some(entry.version), text.into(), Some(CLAIM_TTL)).await {
            Ok(Some(_)) => {
                self.claims.settle(&parked.id);
                Ok(CheckpointClaim::Claimed(claim.checkpoint))
            }
            // Another replica was faster, or the call's own is alive after all and has renewed the checkpoint.
            Ok(None) => Ok(CheckpointClaim::Taken),
            Err(error) => {
                if error.is_unknown() {
                    self.claims.add(&parked.id);
                }
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::checkpoint::is_claim;
    use super::*;

    #[test]
    fn a_claim_without_an_answer_may_be_made_again_until_the_call_is_continued() {
        let claims = UncertainClaims::default();
        assert!(!claims.contains("a"), "another replica's");
        claims.add("a");
        assert!(claims.contains("a") && !claims.contains("b"));
        claims.settle("a");
        assert!(!claims.contains("a"), "this process continues it");
        // An attempt that began before, and was not answered either.
        claims.add("a");
        assert!(!claims.contains("a"));
        // A claim that was answered at once was never uncertain.
        claims.settle("b");
        assert!(!claims.contains("b"));
    }

    #[test]
    fn a_claim_is_told_apart_from_a_checkpoint() {
        let checkpoint = r#"{"principal":"p","round":1,"version":"2025-11-25","session":null,"last_event":"e",
            "number":1,"questions":[]}"#;
        assert!(!is_claim(checkpoint.as_bytes()) && !is_claim(b""));
        let claim = format!(r#"{{"claimant":"r","checkpoint":{checkpoint}}}"#);
        assert!(is_claim(claim.as_bytes()));
    }
}
