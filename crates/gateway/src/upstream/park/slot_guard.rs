//! The slot of one call among the parked calls, which its task holds.

use std::sync::{Arc, Weak};
use std::time::Duration;

use creole::internal::replicas::Registration;
use creole::proto::fault::Fault;
use tokio::sync::{Notify, oneshot, watch};

use crate::upstream::connections::pool::too_many_parked_calls;
use crate::upstream::park::{ParkedCalls, replica};

/// The slot of one call, freed on drop.
pub(super) struct ParkSlotGuard {
    pub(super) parked_calls: Arc<ParkedCalls>,
    pub(super) id: String,
    evicted: Arc<Notify>,
    /// The registration by which other replicas find the call.
    registration: Option<Registration>,
    /// Whether a checkpoint is stored.
    pub(super) has_checkpoint: bool,
    /// Whether this process stops. `None` once the call has decided what to do then.
    is_stopping: Option<watch::Receiver<bool>>,
    _released: oneshot::Sender<()>,
}

impl ParkSlotGuard {
    pub(super) fn new(
        parked_calls: Arc<ParkedCalls>,
        id: String,
        evicted: Arc<Notify>,
        released: oneshot::Sender<()>,
    ) -> Self {
        Self {
            is_stopping: Some(parked_calls.is_stopping.subscribe()),
            parked_calls,
            id,
            evicted,
            registration: None,
            has_checkpoint: false,
            _released: released,
        }
    }

    /// How long the input responses may take.
    pub(super) fn input_timeout(&self) -> Duration {
        self.parked_calls.input_timeout
    }

    /// Parks the call with input requests of this many bytes. If its caller has too many parked calls, the oldest is
    /// evicted. If all callers together have too many, the call is refused.
    pub(super) fn park(&self, bytes: usize) -> Result<(), Fault> {
        if self.parked_calls.lock().park(&self.id, bytes) {
            Ok(())
        } else {
            Err(too_many_parked_calls())
        }
    }

    /// Registers the call for other replicas, if there may be any: its caller may return to one of them.
    pub(super) async fn register(&mut self) {
        let Some(peers) =
            self.parked_calls.replicas.as_ref().filter(|_| self.registration.is_none())
        else {
            return;
        };
        let (parking, id) = (Arc::downgrade(&self.parked_calls), self.id.clone());
        let target = replica::call_target(&self.id);
        let registration = peers.register(&target, move |request| {
            tokio::spawn(replica::serve_replica_request(
                Weak::clone(&parking),
                id.clone(),
                request,
            ));
        });
        self.registration = Some(registration.await);
    }

    /// Whether another replica may repeat the call when this one has stopped.
    pub(super) fn has_replicas(&self) -> bool {
        self.parked_calls.replicas.is_some()
    }

    /// Records that a caller returned. Returns false if the call was evicted meanwhile.
    pub(super) fn unpark(&self) -> bool {
        self.parked_calls.lock().unpark(&self.id)
    }

    /// Counts the end of the time that it was parked.
    pub(super) fn count_end(&self, end: &'static str) {
        self.parked_calls.count_end(end);
    }

    /// Whether the outcome of the call may be kept for a while.
    pub(super) fn keep_outcome(&self) -> bool {
        self.parked_calls.lock().finish(&self.id)
    }

    /// Resolves once when this process stops.
    pub(super) async fn wait_for_stop(&self) {
        match self.is_stopping.clone() {
            Some(mut is_stopping) => _ = is_stopping.wait_for(|is_stopping| *is_stopping).await,
            None => std::future::pending().await,
        }
    }

    /// Decides whether another replica continues the call when this process stops.
    pub(super) fn decide_handover(&mut self) -> bool {
        self.is_stopping = None;
        self.has_checkpoint
    }

    /// Resolves when the call is evicted.
    pub(super) async fn wait_for_eviction(&self) {
        self.evicted.notified().await;
    }
}

impl Drop for ParkSlotGuard {
    fn drop(&mut self) {
        self.delete_checkpoint();
        self.parked_calls.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use creole::internal::telemetry::Telemetry;
    use creole::proto::fault::FaultKind;
    use tokio::sync::mpsc;

    use super::*;
    use crate::upstream::connections::pool::EvictParkedCall;
    use crate::upstream::park::MAX_PARKED_PER_CALLER;
    use crate::upstream::park::slots::ParkSlotLookup;

    fn parked(parking: &Arc<ParkedCalls>, principal: &str) -> (ParkSlotGuard, Result<(), Fault>) {
        let (commands, _) = mpsc::channel(1);
        let slot = parking.add(principal, commands).unwrap();
        let parked = slot.park(1);
        (slot, parked)
    }

    #[tokio::test]
    async fn the_oldest_call_of_a_caller_makes_room_and_those_of_others_stay() {
        let parking = ParkedCalls::new(Duration::from_secs(600), 64, None, &Telemetry::default());
        let (bobs, is_parked) = parked(&parking, "bob");
        is_parked.unwrap();
        let mut spots: Vec<_> =
            (0..=MAX_PARKED_PER_CALLER).map(|_| parked(&parking, "alice")).collect();
        assert!(spots.iter().all(|(_, parked)| parked.is_ok()));
        let oldest = spots.remove(0).0;
        oldest.wait_for_eviction().await;
        assert!(!oldest.unpark(), "too late");
        assert!(matches!(parking.lock().find(&oldest.id, "alice"), ParkSlotLookup::Evicted));
        let id = oldest.id.clone();
        drop(oldest);
        assert!(
            matches!(parking.lock().find(&id, "alice"), ParkSlotLookup::Evicted),
            "also afterwards"
        );
        assert!(matches!(parking.lock().find(&id, "bob"), ParkSlotLookup::Unknown));
        assert!(spots.iter().all(|(slot, _)| slot.unpark()) && bobs.unpark());
    }

    #[tokio::test]
    async fn an_awaited_call_is_never_evicted() {
        let parking = ParkedCalls::new(Duration::from_secs(600), 64, None, &Telemetry::default());
        let slots: Vec<_> =
            (0..MAX_PARKED_PER_CALLER).map(|_| parked(&parking, "alice").0).collect();
        assert!(slots.iter().all(ParkSlotGuard::unpark));
        assert!(parking.evict_oldest("alice").is_none());
        assert!(slots[0].park(1).is_ok());
        assert!(parking.evict_oldest("bob").is_none());
    }

    #[tokio::test]
    async fn a_principal_without_calls_to_evict_is_refused_when_the_table_is_full() {
        let parking = ParkedCalls::new(Duration::from_secs(600), 64, None, &Telemetry::default());
        let all: Vec<_> = (0..64)
            .map(|number| parked(&parking, &format!("{}", number / MAX_PARKED_PER_CALLER)))
            .collect();
        assert!(all.iter().all(|(_, parked)| parked.is_ok()));
        let (_late, refused) = parked(&parking, "late");
        assert_eq!(refused.unwrap_err().kind, FaultKind::Busy);
        assert!(parked(&parking, "0").1.is_ok(), "the caller's oldest call is evicted");
    }

    #[tokio::test]
    async fn ten_thousand_parked_calls_stay_within_the_limit_and_leak_nothing() {
        let parking =
            ParkedCalls::new(Duration::from_secs(600), 10_000, None, &Telemetry::default());
        let principal = |number: usize| format!("{}", number / MAX_PARKED_PER_CALLER);
        let all: Vec<_> = (0..10_000).map(|number| parked(&parking, &principal(number))).collect();
        assert!(all.iter().all(|(_, parked)| parked.is_ok()));
        assert_eq!(parking.lock().usage(), (10_000, 10_000));
        let (late, refused) = parked(&parking, "late");
        assert_eq!(refused.unwrap_err().kind, FaultKind::Busy);
        // A caller that returns frees a slot.
        assert!(all[17].0.unpark());
        assert!(late.park(1).is_ok());
        let (_more, is_parked) = parked(&parking, &principal(0));
        assert!(is_parked.is_ok(), "the caller's oldest call is evicted");
        all[0].0.wait_for_eviction().await;
        drop((all, late, _more));
        let slots = parking.lock();
        assert_eq!(slots.usage(), (0, 0));
    }

    #[tokio::test]
    async fn input_requests_that_are_too_long_together_are_refused() {
        let parking = ParkedCalls::new(Duration::from_secs(600), 64, None, &Telemetry::default());
        let half = 40 * 1024 * 1024;
        let spot = |name: &str| parking.add(name, mpsc::channel(1).0).unwrap();
        let (first, second) = (spot("alice"), spot("bob"));
        assert!(first.park(half).is_ok());
        assert_eq!(second.park(half).unwrap_err().kind, FaultKind::Busy);
        assert!(first.unpark() && second.park(half).is_ok());
    }
}
