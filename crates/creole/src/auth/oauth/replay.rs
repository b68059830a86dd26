//! Proofs that were used, and the secret of nonces. Both are in the state, so that all processes that share it agree.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use creole_oauth::resource::nonce::NonceKey;
use creole_oauth::resource::proof::{CheckedProof, PROOF_SECONDS};
use creole_proto::wire::hex;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::auth::random;
use crate::state::{self, State, StateLimits};
use crate::sync::Mutex;

/// The maximum number of remembered proofs: of this process, of this process in a shared state, and of one principal.
const MAX_PROOFS: usize = 100_000;
const MAX_SHARED_PROOFS: usize = 50_000;
const MAX_PROOFS_OF_PRINCIPAL: usize = 10_000;

/// Where the secret of nonces is.
const NONCE_SECRET: &str = "auth/dpop-nonce";

/// Remembers used proofs.
#[derive(Debug)]
pub(super) struct UsedProofs {
    state: State,
    max: usize,
    counts: Mutex<Counts>,
    nonces: OnceCell<NonceKey>,
}

/// What is known about a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProofUse {
    /// It was not used before.
    First,
    /// It was used before.
    Repeated,
    /// Too many proofs are remembered.
    TooMany,
}

/// The proofs of this process that are remembered, in the order of their use.
#[derive(Debug, Default)]
struct Counts {
    uses: VecDeque<(Instant, Arc<str>)>,
    by_principal: HashMap<Arc<str>, usize>,
}

impl UsedProofs {
    /// Uses a state that other processes share, or else an own one: proofs must not take the room of sessions.
    pub(super) fn new(state: &State) -> Self {
        let (state, max) = match state.is_shared() {
            true => (state.clone(), MAX_SHARED_PROOFS),
            false => {
                let limits = StateLimits { entries: MAX_PROOFS + 1, ..StateLimits::default() };
                (State::memory(limits), MAX_PROOFS)
            }
        };
        Self { state, max, counts: Mutex::default(), nonces: OnceCell::new() }
    }

    /// Records the use of a proof.
    pub(super) async fn record(
        &self,
        proof: &CheckedProof,
        identity: &Arc<str>,
        now: u64,
    ) -> state::Result<ProofUse> {
        // A second more than the proof can be used.
        let end = proof.issued_at.saturating_add(PROOF_SECONDS + 1);
        let life = Duration::from_secs(end.saturating_sub(now).max(1));
        if !self.counts.lock().admit(identity, self.max, Instant::now() + life) {
            return Ok(ProofUse::TooMany);
        }
        let key = format!("auth/dpop/{}", hex(&proof.fingerprint));
        let written = self.state.swap(&key, None, Bytes::new(), Some(life)).await?;
        Ok(if written.is_some() { ProofUse::First } else { ProofUse::Repeated })
    }

    /// The key of nonces, which all processes that share the state have.
    pub(super) async fn nonces(&self) -> state::Result<&NonceKey> {
        let make = || async {
            let own = random();
            let secret = Bytes::copy_from_slice(&own);
            let is_own = self.state.swap(NONCE_SECRET, None, secret, None).await?.is_some();
            let stored = match is_own {
                true => None,
                false => self.state.get(NONCE_SECRET).await?,
            };
            let stored = stored.and_then(|entry| <[u8; 32]>::try_from(&*entry.value).ok());
            Ok(NonceKey::new(&stored.unwrap_or(own)))
        };
        self.nonces.get_or_try_init(make).await
    }
}

impl Counts {
    /// Counts a use until it expires. Returns whether there is room.
    fn admit(&mut self, identity: &Arc<str>, max: usize, until: Instant) -> bool {
        let now = Instant::now();
        while let Some((_, oldest)) = self.uses.pop_front_if(|(end, _)| *end <= now) {
            if let Some(count) = self.by_principal.get_mut(&oldest) {
                *count -= 1;
                if *count == 0 {
                    self.by_principal.remove(&oldest);
                }
            }
        }
        let count = self.by_principal.get(identity).copied().unwrap_or(0);
        if self.uses.len() >= max || count >= MAX_PROOFS_OF_PRINCIPAL {
            return false;
        }
        self.by_principal.insert(Arc::clone(identity), count + 1);
        self.uses.push_back((until, Arc::clone(identity)));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proof(number: u32) -> CheckedProof {
        let mut fingerprint = [0; 32];
        fingerprint[..4].copy_from_slice(&number.to_be_bytes());
        CheckedProof { fingerprint, issued_at: 1_000, nonce: None }
    }

    #[tokio::test(start_paused = true)]
    async fn a_proof_is_used_once_while_it_could_be_valid() {
        let proofs = UsedProofs::new(&State::default());
        let alice: Arc<str> = "alice".into();
        let record = async |number| proofs.record(&proof(number), &alice, 1_000).await;
        assert_eq!(record(1).await.unwrap(), ProofUse::First);
        assert_eq!(record(1).await.unwrap(), ProofUse::Repeated);
        assert_eq!(record(2).await.unwrap(), ProofUse::First);
        tokio::time::advance(Duration::from_secs(PROOF_SECONDS)).await;
        assert_eq!(record(1).await.unwrap(), ProofUse::Repeated);
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(record(1).await.unwrap(), ProofUse::First);
    }

    #[tokio::test(start_paused = true)]
    async fn one_principal_cannot_take_all_places() {
        let proofs = UsedProofs::new(&State::default());
        let (alice, bob): (Arc<str>, Arc<str>) = ("alice".into(), "bob".into());
        let max = u32::try_from(MAX_PROOFS_OF_PRINCIPAL).unwrap();
        for number in 0..max {
            assert_eq!(
                proofs.record(&proof(number), &alice, 1_000).await.unwrap(),
                ProofUse::First
            );
        }
        let next = proofs.record(&proof(max), &alice, 1_000).await.unwrap();
        assert_eq!(next, ProofUse::TooMany);
        assert_eq!(proofs.record(&proof(max), &bob, 1_000).await.unwrap(), ProofUse::First);
        tokio::time::advance(Duration::from_secs(PROOF_SECONDS + 2)).await;
        assert_eq!(proofs.record(&proof(max), &alice, 1_000).await.unwrap(), ProofUse::First);
        assert_eq!(proofs.counts.lock().by_principal.len(), 1);
    }

    #[tokio::test]
    async fn nonces_are_those_of_the_state() {
        let state = State::default();
        let (one, other) = (UsedProofs::new(&state), UsedProofs::new(&state));
        let nonce = one.nonces().await.unwrap().nonce(7);
        assert!(one.nonces().await.unwrap().accepts(&nonce, 7));
        // A state in memory is not shared, so the other has its own secret.
        assert!(!other.nonces().await.unwrap().accepts(&nonce, 7));
    }
}
