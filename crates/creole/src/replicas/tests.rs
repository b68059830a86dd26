//! Tests with two replicas on one state.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};

use creole_test_wait::{delay, eventually, never_within};
use tokio::sync::mpsc;
use tokio::time::{Instant, advance};

use super::*;
use crate::state::RecordFormats;
use crate::telemetry::metrics::SeriesValue;

fn two() -> (Replicas, Replicas) {
    let state = State::default();
    (Replicas::new(state.clone()).unwrap(), Replicas::new(state).unwrap())
}

/// Handles each request with this function, in its own task.
fn run<F: Future<Output = ()> + Send + 'static>(
    work: impl Fn(ReplicaRequest) -> F + Send + Sync,
) -> impl Fn(ReplicaRequest) + Send + Sync {
    move |request| drop(tokio::spawn(work(request)))
}

async fn echo(request: ReplicaRequest) {
    let bytes = request.payload.clone();
    request.responder.send(&bytes).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_replica_request_is_executed_once_at_its_target() {
    let (first, second) = two();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let _registration = second
        .register("a", move |request| {
            counted.fetch_add(1, Ordering::Relaxed);
            drop(tokio::spawn(echo(request)));
        })
        .await;
    let mut responses = first.send(second.name(), "a", Bytes::from_static(b"hello")).await.unwrap();
    // Announced twice, as happens to a request that is not noticed.
    responses.notify_replica().await.unwrap();
    assert_eq!(responses.next().await.unwrap(), "hello");
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_long_request_arrives_complete_and_in_order_and_one_that_is_too_long_is_refused() {
    let (first, second) = two();
    let long: Bytes = (0..1_000_000_u32).flat_map(u32::to_be_bytes).collect();
    let bytes = long.clone();
    let _registration = second
        .register(
            "a",
            run(move |request| {
                let bytes = bytes.clone();
                async move {
                    for text in [&b"first"[..], b"", &bytes[..256 * 1024], &bytes, b"last"] {
                        request.responder.send(text).await.unwrap();
                    }
                    let refused = request.responder.send(&vec![0; 17 * 1024 * 1024]).await;
                    assert!(matches!(refused, Err(StateError::TooLong { .. })), "{refused:?}");
                }
            }),
        )
        .await;
    let mut responses = first.send(second.name(), "a", Bytes::new()).await.unwrap();
    for text in [&b"first"[..], b"", &long[..256 * 1024], &long, b"last"] {
        assert_eq!(responses.next().await.unwrap(), text);
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_target_or_replica_is_reported_at_once() {
    let (first, second) = two();
    let never = first.send(second.name(), "a", Bytes::new()).await;
    assert_eq!(never.err(), Some(ReplicaError::Gone));
    let registration = second.register("a", run(echo)).await;
    let other = second.register("b", run(echo)).await;
    drop(registration);
    let mut unknown = first.send(second.name(), "a", Bytes::new()).await.unwrap();
    assert_eq!(unknown.next().await, Err(ReplicaError::Unknown));
    drop(other);
    second.leave().await;
    let left = first.send(second.name(), "b", Bytes::new()).await;
    assert_eq!(left.err(), Some(ReplicaError::Gone));
    let invented = first.send("../../seal/x", "b", Bytes::new()).await;
    assert_eq!(invented.err(), Some(ReplicaError::Gone));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_not_accepted_in_time_is_never_executed() {
    let (first, second) = two();
    let _registration = second.register("a", run(echo)).await;
    let max = u32::try_from(MAX_CONCURRENT_REQUESTS).unwrap();
    let slots = Arc::clone(&second.shared.slots).acquire_many_owned(max).await.unwrap();
    let mut responses = first.send(second.name(), "a", Bytes::new()).await.unwrap();
    let started = Instant::now();
    assert_eq!(responses.next().await, Err(ReplicaError::Busy));
    assert!(started.elapsed() >= ACCEPT_TIMEOUT);
    drop(slots);
    responses.notify_replica().await.unwrap();
    let late = tokio::time::timeout(HEARTBEAT, responses.next()).await;
    assert!(late.is_err(), "{late:?}");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_takes_long_is_waited_for() {
    let (first, second) = two();
    let slow = |request: ReplicaRequest| async move {
        delay(ACCEPT_TIMEOUT * 2).await;
        echo(request).await;
    };
    let _registration = second.register("a", run(slow)).await;
    let mut responses = first.send(second.name(), "a", Bytes::from_static(b"x")).await.unwrap();
    assert_eq!(responses.next().await.unwrap(), "x");
    responses.finish();
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_exits_during_a_request_is_detected_soon() {
    let (first, second) = two();
    let _registration = second.register("a", std::mem::forget).await;
    let mut responses = first.send(second.name(), "a", Bytes::new()).await.unwrap();
    // A living replica never removes its own presence, so the test does.
    let taken = tokio::time::timeout(HEARTBEAT * 3, responses.next()).await;
    assert!(taken.is_err(), "the replica is alive");
    second.shared.registrations().handlers.clear();
    let started = Instant::now();
    assert_eq!(responses.next().await, Err(ReplicaError::Gone));
    assert!(started.elapsed() <= HEARTBEAT_TTL + HEARTBEAT * 2);
}

#[tokio::test(start_paused = true)]
async fn a_requester_that_leaves_is_noticed_by_the_executing_replica() {
    let (first, second) = two();
    let (noticed, mut left) = mpsc::channel(1);
    let _registration = second
        .register(
            "a",
            run(move |request| {
                let noticed = noticed.clone();
                async move {
                    request.requester.disconnected().await;
                    noticed.send(()).await.unwrap();
                }
            }),
        )
        .await;
    let mut responses = first.send(second.name(), "a", Bytes::new()).await.unwrap();
    _ = tokio::time::timeout(HEARTBEAT_TTL * 3, responses.next()).await;
    assert!(left.try_recv().is_err(), "the requester still waits");
    drop(responses);
    left.recv().await.unwrap();
    // A replica that dies sends nothing.
    let silent = first.send(second.name(), "a", Bytes::new()).await.unwrap();
    std::mem::forget(silent);
    left.recv().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn no_records_are_left() {
    let (first, second) = two();
    let registration = second.register("a", run(echo)).await;
    let mut responses = first.send(second.name(), "a", Bytes::new()).await.unwrap();
    responses.next().await.unwrap();
    let id = responses.id.clone();
    drop((responses, registration));
    advance(HEARTBEAT * 2).await;
    delay(HEARTBEAT).await;
    let state = &first.shared.state;
    for key in [presence_path(second.name()), request_path(&id), waiter_path(&id)] {
        assert_eq!(state.get(&key).await.unwrap(), None, "{key}");
    }
    assert_eq!(state.read_after(&responses_path(&id), 0, 1).await.unwrap(), []);
    assert!(!second.shared.registrations().is_heartbeat_running);
    // It can be present again.
    let _registration = second.register("a", run(echo)).await;
    let mut again = first.send(second.name(), "a", Bytes::from_static(b"x")).await.unwrap();
    assert_eq!(again.next().await.unwrap(), "x");
}

#[tokio::test(start_paused = true)]
async fn replicas_count_each_other() {
    let state = State::default();
    let counted = || {
        let (replica, metrics) =
            (Replicas::new(state.clone()).unwrap(), Arc::new(Metrics::default()));
        metrics.enable();
        replica.announce(&metrics);
        (replica, metrics)
    };
    let count = |metrics: &Arc<Metrics>| metrics.collect().value(&table::REPLICAS, &[]).cloned();
    let [(_first, one), (second, two), (third, _three)] = [counted(), counted(), counted()];
    let is = |number| Some(SeriesValue::Integer(number));
    for metrics in [&one, &two] {
        eventually("three replicas", || count(metrics) == is(3)).await;
    }
    second.leave().await;
    drop(second);
    eventually("one has left", || count(&one) == is(2)).await;
    drop(third);
    eventually("one has ended", || count(&one) == is(1)).await;
}

#[tokio::test(start_paused = true)]
async fn replicas_know_each_others_configuration_and_since_when() {
    let state = State::default();
    let replica = |config: &str| {
        let replica = Replicas::new(state.clone()).unwrap();
        replica.describe("1.2.3", config.to_owned());
        replica.announce(&Arc::default());
        replica
    };
    let (one, two) = (replica("old"), replica("old"));
    let seen = || one.others().into_iter().next();
    eventually("the other replica", || seen().is_some()).await;
    let known = seen().unwrap();
    assert_eq!(known.name, two.name());
    assert_eq!((&*known.description.version, &*known.description.config), ("1.2.3", "old"));
    // Further announcements of the same configuration change nothing.
    advance(HEARTBEAT_TTL * 4).await;
    delay(HEARTBEAT_TTL).await;
    assert_eq!(seen().unwrap().config_since, known.config_since);
    two.describe("1.2.3", "new".to_owned());
    eventually("the new one", || seen().is_some_and(|it| it.description.config == "new")).await;
    assert!(seen().unwrap().config_since > known.config_since);
}

const OLD: RecordFormats = RecordFormats { oldest: 1, newest: 1 };
const NEW: RecordFormats = RecordFormats { oldest: 1, newest: 2 };

/// A replica of a version that reads these formats, and its use of the state.
fn version(state: &State, formats: RecordFormats) -> (Replicas, State) {
    let state = state.clone().with_formats(formats);
    let replica = Replicas::new(state.clone()).unwrap();
    replica.announce(&Arc::default());
    (replica, state)
}

#[tokio::test(start_paused = true)]
async fn a_new_format_is_written_while_all_replicas_read_it() {
    let state = State::default();
    let (old, before) = version(&state, OLD);
    let (_new, after) = version(&state, NEW);
    never_within(10 * HEARTBEAT_TTL, "the new format", || after.written_format() != 1).await;
    old.leave().await;
    drop(old);
    eventually("all read the new format", || after.written_format() == 2).await;
    after.put("a", Bytes::from_static(b"x"), None).await.unwrap();
    let unknown = StateError::UnknownFormat { found: 2, oldest: 1, newest: 1 };
    assert_eq!(before.get("a").await, Err(unknown));

    let (back, _before) = version(&state, OLD);
    eventually("the old format", || after.written_format() == 1).await;
    // The record stays as it is, until somebody writes it again.
    assert_eq!(after.get("a").await.unwrap().map(|entry| entry.format), Some(2));
    drop(back);
    eventually("the old replica ended without a word", || after.written_format() == 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_replica_request_in_an_unknown_format_is_busy_and_succeeds_later() {
    let state = State::default();
    let (old, new) = (state.clone().with_formats(OLD), state.clone().with_formats(NEW));
    let (holder, requester) = (Replicas::new(old).unwrap(), Replicas::new(new.clone()).unwrap());
    let _registration = holder.register("a", run(echo)).await;
    let request = async || {
        let mut responses = requester.send(holder.name(), "a", Bytes::from_static(b"x")).await?;
        responses.next().await
    };
    new.write_format(2);
    assert_eq!(request().await, Err(ReplicaError::Busy));
    new.write_format(1);
    assert_eq!(request().await, Ok(Bytes::from_static(b"x")));
}
