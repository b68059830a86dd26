//! Counts the replicas that share a state, for the metrics: each replica appends its name to a log from time to time,
//! and reads the names of the others there.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::sleep;

use super::{HEARTBEAT, ReplicaShared};
use crate::state::{LogRetention, State, StateError};
use crate::telemetry::metrics::{Metrics, table};

/// The log of names.
const LOG: &str = "replicas";

/// How much of the log is kept: more than one reads.
const RETENTION: LogRetention = LogRetention { entries: 4096, ttl: Duration::from_secs(60) };

/// The time between two entries of a replica.
const INTERVAL: Duration = Duration::from_secs(2 * HEARTBEAT.as_secs());

/// A replica counts while it appended its name within this number of intervals.
const INTERVALS: usize = 2;

/// What precedes the name of a replica that leaves.
const LEFT: u8 = b'-';

/// Counts the replicas until the last handle of this one is dropped. Must be called within a tokio runtime.
pub(super) fn start(shared: &Arc<ReplicaShared>, metrics: &Metrics) {
    let (shared, gauge) = (Arc::downgrade(shared), metrics.gauge(&table::REPLICAS, &[]));
    gauge.set(1);
    tokio::spawn(async move {
        let mut own_entries = VecDeque::new();
        while let Some(shared) = shared.upgrade() {
            // While the state fails, the last number stays. The failure has metrics of its own.
            if let Ok(count) = count(&shared.state, &shared.name, &mut own_entries).await {
                gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
            }
            drop(shared);
            sleep(INTERVAL).await;
        }
    });
}

/// Announces this replica, and counts the names since its own entry some intervals ago.
async fn count(
    state: &State,
    name: &str,
    own_entries: &mut VecDeque<u64>,
) -> Result<usize, StateError> {
    own_entries
        .push_back(state.append(LOG, Bytes::copy_from_slice(name.as_bytes()), RETENTION).await?);
    if own_entries.len() > INTERVALS + 1 {
        own_entries.pop_front();
    }
    let first = own_entries.front().copied().unwrap_or(1);
    let read = state.read_after(LOG, first.saturating_sub(1), RETENTION.entries).await;
    let entries = read.inspect_err(|_| own_entries.clear())?;
    let mut names = BTreeSet::new();
    for (_, entry) in entries {
        match entry.split_first() {
            Some((&LEFT, name)) => _ = names.remove(name),
            _ => _ = names.insert(entry.to_vec()),
        }
    }
    Ok(names.len().max(1))
}

/// Tells the other replicas that this one leaves.
pub(super) async fn leave(shared: &ReplicaShared) -> Result<(), StateError> {
    let entry = [&[LEFT], shared.name.as_bytes()].concat();
    shared.state.append(LOG, entry.into(), RETENTION).await.map(drop)
}
