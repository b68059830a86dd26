//! Tests with two replicas on one state.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};

use creole_test_wait::delay;
use tokio::sync::mpsc;
use tokio::time::{Instant, advance};

use super::*;

fn two() -> (Replicas, Replicas) {
    let state = State::default();
    (Replicas::new(state.clone()).unwrap(), Replicas::new(state).unwrap())
}

/// Handles each request with this function, in its own task.
fn run<F: Future<Output = ()> + Send + 'static>(
    work: impl Fn(ReplicaRequest) -> F + Send + Sync,
) -> impl Fn(ReplicaRequest) + Send + Sync {
    move |errand| drop(tokio::spawn(work(errand)))
}

async fn echo(errand: ReplicaRequest) {
    let said = errand.payload.clone();
    errand.responder.send(&said).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_replica_request_is_executed_once_at_its_target() {
    let (here, there) = two();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let _kept = there
        .register("a", move |errand| {
            counted.fetch_add(1, Ordering::Relaxed);
            drop(tokio::spawn(echo(errand)));
        })
        .await;
    let mut replies = here.send(there.name(), "a", Bytes::from_static(b"hello")).await.unwrap();
    // Announced twice, as happens to a request that is not noticed.
    replies.notify_replica().await.unwrap();
    assert_eq!(replies.next().await.unwrap(), "hello");
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_long_request_arrives_complete_and_in_order_and_one_that_is_too_long_is_refused() {
    let (here, there) = two();
    let long: Bytes = (0..1_000_000_u32).flat_map(u32::to_be_bytes).collect();
    let said = long.clone();
    let _kept = there
        .register(
            "a",
            run(move |errand| {
                let said = said.clone();
                async move {
                    for text in [&b"first"[..], b"", &said[..256 * 1024], &said, b"last"] {
                        errand.responder.send(text).await.unwrap();
                    }
                    let refused = errand.responder.send(&vec![0; 17 * 1024 * 1024]).await;
                    assert!(matches!(refused, Err(StateError::TooLong { .. })), "{refused:?}");
                }
            }),
        )
        .await;
    let mut replies = here.send(there.name(), "a", Bytes::new()).await.unwrap();
    for text in [&b"first"[..], b"", &long[..256 * 1024], &long, b"last"] {
        assert_eq!(replies.next().await.unwrap(), text);
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_target_or_replica_is_reported_at_once() {
    let (here, there) = two();
    let never = here.send(there.name(), "a", Bytes::new()).await;
    assert_eq!(never.err(), Some(ReplicaError::Gone));
    let kept = there.register("a", run(echo)).await;
    let other = there.register("b", run(echo)).await;
    drop(kept);
    let mut unknown = here.send(there.name(), "a", Bytes::new()).await.unwrap();
    assert_eq!(unknown.next().await, Err(ReplicaError::Unknown));
    drop(other);
    there.leave().await;
    let left = here.send(there.name(), "b", Bytes::new()).await;
    assert_eq!(left.err(), Some(ReplicaError::Gone));
    let invented = here.send("../../seal/x", "b", Bytes::new()).await;
    assert_eq!(invented.err(), Some(ReplicaError::Gone));
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_exits_during_a_request_is_detected_soon() {
    let (here, there) = two();
    let _kept = there.register("a", std::mem::forget).await;
    let mut replies = here.send(there.name(), "a", Bytes::new()).await.unwrap();
    // A living replica never removes its own presence, so the test does.
    let taken = tokio::time::timeout(HEARTBEAT * 3, replies.next()).await;
    assert!(taken.is_err(), "the replica is alive");
    there.shared.registrations().handlers.clear();
    let began = Instant::now();
    assert_eq!(replies.next().await, Err(ReplicaError::Gone));
    assert!(began.elapsed() <= HEARTBEAT_TTL + HEARTBEAT * 2);
}

#[tokio::test(start_paused = true)]
async fn a_requester_that_leaves_is_noticed_by_the_executing_replica() {
    let (here, there) = two();
    let (noticed, mut left) = mpsc::channel(1);
    let _kept = there
        .register(
            "a",
            run(move |errand| {
                let noticed = noticed.clone();
                async move {
                    errand.requester.disconnected().await;
                    noticed.send(()).await.unwrap();
                }
            }),
        )
        .await;
    let mut replies = here.send(there.name(), "a", Bytes::new()).await.unwrap();
    _ = tokio::time::timeout(HEARTBEAT_TTL * 3, replies.next()).await;
    assert!(left.try_recv().is_err(), "the requester still waits");
    drop(replies);
    left.recv().await.unwrap();
    // A replica that dies sends nothing.
    let silent = here.send(there.name(), "a", Bytes::new()).await.unwrap();
    std::mem::forget(silent);
    left.recv().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn no_records_are_left() {
    let (here, there) = two();
    let kept = there.register("a", run(echo)).await;
    let mut replies = here.send(there.name(), "a", Bytes::new()).await.unwrap();
    replies.next().await.unwrap();
    let id = replies.id.clone();
    drop((replies, kept));
    advance(HEARTBEAT * 2).await;
    delay(HEARTBEAT).await;
    let state = &here.shared.state;
    for key in [presence_path(there.name()), request_path(&id), waiter_path(&id)] {
        assert_eq!(state.get(&key).await.unwrap(), None, "{key}");
    }
    assert_eq!(state.read_after(&responses_path(&id), 0, 1).await.unwrap(), []);
    assert!(!there.shared.registrations().is_heartbeat_running);
    // It can be present again.
    let _kept = there.register("a", run(echo)).await;
    let mut again = here.send(there.name(), "a", Bytes::from_static(b"x")).await.unwrap();
    assert_eq!(again.next().await.unwrap(), "x");
}
