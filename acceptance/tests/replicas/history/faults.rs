//! The failures of the history: kills, pauses and partitions, one or two at a time.

use std::collections::BTreeMap;

use creole_acceptance::load::SeededRandom;
use creole_acceptance::replicas::{Link, NetworkedReplicas, ReplicaStore};
use creole_test_wait::blocking::delay;

use super::REPLICAS;

/// How long a failure usually lasts, in milliseconds.
const SHORT: u64 = 3_000;

/// How long some failures last, in milliseconds: longer than the heartbeat of a replica is valid.
const LONG: u64 = 12_000;

/// What fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    ReplicaKilled,
    ReplicaStopped,
    ReplicaSuspended,
    WithoutStore,
    WithoutClients,
    StoreSuspended,
    StoreKilled,
}

impl Fault {
    const ALL: [Self; 7] = [
        Self::ReplicaKilled,
        Self::ReplicaStopped,
        Self::ReplicaSuspended,
        Self::WithoutStore,
        Self::WithoutClients,
        Self::StoreSuspended,
        Self::StoreKilled,
    ];

    fn is_of_store(self) -> bool {
        matches!(self, Self::StoreSuspended | Self::StoreKilled)
    }
}

/// Makes replicas and their store fail.
pub(super) struct Faults {
    replicas: NetworkedReplicas,
    store: ReplicaStore,
    random: SeededRandom,
    counts: BTreeMap<Fault, usize>,
}

impl Faults {
    pub(super) fn new(
        replicas: NetworkedReplicas,
        store: ReplicaStore,
        random: SeededRandom,
    ) -> Self {
        Self { replicas, store, random, counts: BTreeMap::new() }
    }

    /// One or two things fail for a while, and are repaired.
    pub(super) fn fail_once(&mut self) {
        let replica = self.random.below(REPLICAS.into()) as u8;
        let other = (replica + 1) % REPLICAS;
        let first = Fault::ALL[self.random.below(Fault::ALL.len() as u64) as usize];
        let second = Fault::ALL[self.random.below(Fault::ALL.len() as u64) as usize];
        let has_second =
            self.random.below(3) == 0 && !(first.is_of_store() && second.is_of_store());
        let longest = if self.random.below(4) == 0 { LONG } else { SHORT };
        self.begin(first, replica);
        if has_second {
            self.begin(second, other);
        }
        delay(self.random.milliseconds(longest));
        self.repair(first, replica);
        if has_second {
            self.repair(second, other);
        }
    }

    fn begin(&mut self, fault: Fault, replica: u8) {
        *self.counts.entry(fault).or_default() += 1;
        match fault {
            Fault::ReplicaKilled => self.replicas.kill(replica),
            Fault::ReplicaStopped => self.replicas.stop(replica),
            Fault::ReplicaSuspended => self.replicas.signal(replica, "STOP"),
            Fault::WithoutStore => self.replicas.cut(replica, Link::Store),
            Fault::WithoutClients => self.replicas.cut(replica, Link::Clients),
            Fault::StoreSuspended => self.store.pause(),
            Fault::StoreKilled => self.store.end(),
        }
    }

    fn repair(&mut self, fault: Fault, replica: u8) {
        match fault {
            Fault::ReplicaKilled | Fault::ReplicaStopped => self.replicas.restart(replica),
            Fault::ReplicaSuspended => self.replicas.signal(replica, "CONT"),
            Fault::WithoutStore => self.replicas.repair(replica, Link::Store),
            Fault::WithoutClients => self.replicas.repair(replica, Link::Clients),
            Fault::StoreSuspended => self.store.unpause(),
            Fault::StoreKilled => self.store.resume(),
        }
    }

    /// What has failed, and how often.
    pub(super) fn summary(&self) -> String {
        format!("{:?}", self.counts)
    }
}
