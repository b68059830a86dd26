//! What a hundred idle replicas cost their store.

use std::sync::Arc;
use std::time::Duration;

use creole::internal::replicas::Replicas;
use creole::internal::telemetry::metrics::{Metrics, SeriesValue, table};
use creole::state::{State, StateLimits, ValkeySettings};
use creole_acceptance::replicas::{ReplicaStore, StoreServer};
use creole_test_wait::{delay, eventually};

use crate::store_operations::round_trips;

const REPLICAS: i64 = 100;

/// How long the operations are counted.
const PERIOD: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_hundred_idle_replicas_make_at_most_fifty_operations_a_second() {
    let Some(store) = ReplicaStore::valkey() else { return };
    let StoreServer::Valkey(server) = &store.server else { unreachable!("it is a Redis server") };
    let (metrics, mut replicas) = (Arc::new(Metrics::default()), Vec::new());
    metrics.enable();
    for _ in 0..REPLICAS {
        let settings = ValkeySettings::new(server.url());
        let state = State::valkey(settings, StateLimits::default()).await.unwrap();
        let replica = Replicas::new(state).unwrap();
        replica.announce(&metrics);
        // It has something that others may ask for, so it sends heartbeats.
        let registration = replica.register("a", |_| {}).await;
        replicas.push((replica, registration));
    }
    let all = SeriesValue::Integer(REPLICAS);
    let count = || metrics.collect().value(&table::REPLICAS, &[]).cloned();
    eventually("all know each other", || count() == Some(all.clone())).await;
    // The last announcements at the pace of few replicas.
    delay(Duration::from_secs(5)).await;
    let before = round_trips(server);
    delay(PERIOD).await;
    let made = round_trips(server) - before;
    let most = 50 * PERIOD.as_secs();
    assert!(made <= most, "{made} operations in {PERIOD:?}; at most {most}");
    assert!(made > 10 * PERIOD.as_secs(), "{made} operations: they send no heartbeats");
}
