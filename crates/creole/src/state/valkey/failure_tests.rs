//! Failures of a real server while it is used.

use std::time::Duration;

use bytes::Bytes;
use creole_test_wait::{eventually, eventually_async};
use tokio::task::JoinSet;

use super::super::{LogRetention, State, StateError, StateLimits, Subscription, TopicEvent};
use super::test_server::TestServer;

fn text(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

async fn open_hasty(server: &TestServer) -> State {
    let settings = server.settings().timeout(Duration::from_millis(500));
    State::valkey(settings, StateLimits::default()).await.unwrap()
}

fn is_not_sent(error: &StateError) -> bool {
    matches!(error, StateError::Unavailable { is_unknown: false, .. })
}

/// Waits until the state works again.
async fn wait_until_it_works(state: &State) {
    eventually_async("it works again", async || state.put("probe", text(""), None).await.is_ok())
        .await;
}

/// Waits for the event that messages were missed; others may come before.
async fn wait_until_missed(subscription: &mut Subscription) {
    while subscription.next().await != Some(TopicEvent::Missed) {}
}

#[tokio::test]
async fn a_server_that_stops_answering_leaves_changes_unknown_and_is_used_again_later() {
    if !TestServer::is_installed() {
        return;
    }
    let server = TestServer::start(&[]);
    let state = open_hasty(&server).await;
    let version = state.put("a", text("1"), None).await.unwrap();
    server.signal("-STOP");
    let error = state.put("a", text("2"), None).await.unwrap_err();
    assert!(error.is_unknown(), "{error}");
    assert!(error.to_string().contains("no response within"), "{error}");
    server.signal("-CONT");
    wait_until_it_works(&state).await;
    assert!(state.get("a").await.unwrap().unwrap().version >= version);
}

#[tokio::test]
async fn after_a_restart_of_the_server_subscribers_learn_that_they_missed_messages() {
    if !TestServer::is_installed() {
        return;
    }
    let mut server = TestServer::start(&[]);
    let (state, other) = (open_hasty(&server).await, open_hasty(&server).await);
    let mut subscription = state.subscribe("t").await.unwrap();
    let before = state.put("a", text("1"), None).await.unwrap();
    server.kill();
    let error = eventually_async("operations fail without being sent", async || {
        state.get("a").await.err().filter(is_not_sent)
    })
    .await;
    assert!(error.to_string().contains("try again"), "{error}");
    assert!(is_not_sent(&state.subscribe("another").await.unwrap_err()));
    server.restart();
    wait_until_missed(&mut subscription).await;
    wait_until_it_works(&state).await;
    wait_until_it_works(&other).await;
    other.publish("t", text("hello")).await.unwrap();
    assert_eq!(subscription.next().await, Some(TopicEvent::Message(text("hello"))));
    assert_eq!(state.get("a").await.unwrap(), None);
    assert!(state.put("a", text("2"), None).await.unwrap() > before);
}

#[tokio::test]
async fn a_lost_connection_for_messages_is_opened_again() {
    if !TestServer::is_installed() {
        return;
    }
    let server = TestServer::start(&[]);
    let (state, other) = (open_hasty(&server).await, open_hasty(&server).await);
    let mut subscription = state.subscribe("t").await.unwrap();
    for round in 0..5 {
        assert_ne!(server.run(&["CLIENT", "KILL", "TYPE", "pubsub"]).trim(), "0", "{round}");
        wait_until_missed(&mut subscription).await;
        other.publish("t", text("hello")).await.unwrap();
        assert_eq!(subscription.next().await, Some(TopicEvent::Message(text("hello"))));
    }
}

#[tokio::test]
async fn messages_of_one_publisher_arrive_once_and_in_order() {
    if !TestServer::is_installed() {
        return;
    }
    let server = TestServer::start(&[]);
    let (here, there) = (open_hasty(&server).await, open_hasty(&server).await);
    let mut own = here.subscribe("t").await.unwrap();
    let mut other = there.subscribe("t").await.unwrap();
    for number in 0..40 {
        here.publish("t", text(&number.to_string())).await.unwrap();
    }
    for subscription in [&mut own, &mut other] {
        for number in 0..40 {
            let expected = TopicEvent::Message(text(&number.to_string()));
            assert_eq!(subscription.next().await, Some(expected));
        }
    }
}

#[tokio::test]
async fn a_topic_without_subscribers_is_given_up() {
    if !TestServer::is_installed() {
        return;
    }
    let server = TestServer::start(&[]);
    let state = server.state().await;
    let subscription = state.subscribe("t").await.unwrap();
    assert!(!server.run(&["PUBSUB", "CHANNELS"]).trim().is_empty());
    drop(subscription);
    eventually("the topic is given up", || server.run(&["PUBSUB", "CHANNELS"]).trim().is_empty())
        .await;
}

#[tokio::test]
async fn versions_grow_when_all_data_of_the_server_is_deleted() {
    if !TestServer::is_installed() {
        return;
    }
    let server = TestServer::start(&[]);
    let state = server.state().await;
    let mut last = 0;
    for round in 0..5 {
        let version = state.put("a", text("1"), None).await.unwrap();
        assert!(version > last, "round {round}: {version} after {last}");
        last = version;
        let lease = state.lease("l", Duration::from_secs(60)).await.unwrap().unwrap();
        assert!(lease.fence() > last);
        last = lease.fence();
        server.run(&["FLUSHALL"]);
        assert!(!lease.renew(Duration::from_secs(60)).await.unwrap());
    }
}

#[tokio::test]
async fn a_server_without_memory_refuses_changes_and_reads_go_on() {
    if !TestServer::is_installed() {
        return;
    }
    let server = TestServer::start(&[]);
    let state = server.state().await;
    state.put("a", text("1"), None).await.unwrap();
    server.run(&["CONFIG", "SET", "maxmemory", "1mb"]);
    let error = eventually_async("the server has no memory", async || {
        let value = Bytes::from(vec![1; 100_000]);
        state
            .append("l", value, LogRetention { entries: 99, ttl: Duration::from_secs(60) })
            .await
            .err()
    })
    .await;
    assert!(is_not_sent(&error), "{error}");
    assert!(error.to_string().contains("OOM"), "{error}");
    assert_eq!(state.get("a").await.unwrap().unwrap().value, "1");
    server.run(&["CONFIG", "SET", "maxmemory", "0"]);
    state.put("a", text("2"), None).await.unwrap();
}

#[tokio::test]
async fn names_on_one_server_do_not_meet() {
    if !TestServer::is_installed() {
        return;
    }
    let server = TestServer::start(&[]);
    let (one, two) = (server.state().await, server.state().await);
    one.put("a", text("1"), None).await.unwrap();
    let _lease = one.lease("l", Duration::from_secs(60)).await.unwrap().unwrap();
    assert_eq!(two.get("a").await.unwrap(), None);
    assert!(two.lease("l", Duration::from_secs(60)).await.unwrap().is_some());
    let mut subscription = two.subscribe("t").await.unwrap();
    one.publish("t", text("1")).await.unwrap();
    two.publish("t", text("2")).await.unwrap();
    assert_eq!(subscription.next().await, Some(TopicEvent::Message(text("2"))));
}

#[tokio::test]
async fn the_operations_that_wait_are_bounded() {
    if !TestServer::is_installed() {
        return;
    }
    let server = TestServer::start(&[]);
    let state = server.state().await;
    server.signal("-STOP");
    let mut waiting = JoinSet::new();
    for _ in 0..300 {
        let state = state.clone();
        waiting.spawn(async move { state.get("a").await });
    }
    for _ in 0..300 - 256 {
        let error = waiting.join_next().await.unwrap().unwrap().unwrap_err();
        assert!(is_not_sent(&error) && error.to_string().contains("256"), "{error}");
    }
    server.signal("-CONT");
    while let Some(result) = waiting.join_next().await {
        assert_eq!(result.unwrap().unwrap(), None);
    }
}

#[tokio::test]
async fn data_expires_by_the_clock_of_the_server() {
    if !TestServer::is_installed() {
        return;
    }
    let server = TestServer::start(&[]);
    let state = server.state().await;
    let ttl = Duration::from_millis(200);
    state.put("a", text("1"), Some(ttl)).await.unwrap();
    state.append("l", text("1"), LogRetention { entries: 9, ttl }).await.unwrap();
    eventually_async("both expire", async || {
        let has_entry = state.read_after("l", 0, 9).await.is_ok();
        state.get("a").await.unwrap().is_none() && !has_entry
    })
    .await;
    eventually("the server deletes them by itself", || {
        let keys = server.run(&["KEYS", "*"]);
        !keys.contains(":ve:a") && !keys.contains(":g:l")
    })
    .await;
    assert_eq!(state.append("l", text("2"), LogRetention { entries: 9, ttl }).await.unwrap(), 2);
}

#[tokio::test]
async fn a_write_that_no_replica_acknowledged_is_undone() {
    if !TestServer::is_installed() {
        return;
    }
    let server = TestServer::start(&[]);
    let settings = server.settings().wait_replicas(1);
    let state = State::valkey(settings, StateLimits::default()).await.unwrap();
    let version = state.put("a", text("1"), None).await.unwrap();
    let error = state.swap("a", Some(version), text("2"), None).await.unwrap_err();
    assert!(error.is_unknown() && error.to_string().contains("0 of 1 replicas"), "{error}");
    assert_eq!(state.get("a").await.unwrap().unwrap().value, "1");
    assert!(state.lease("l", Duration::from_secs(60)).await.unwrap_err().is_unknown());
    assert_eq!(server.run(&["EXISTS", "creole:{creole}:vl:l"]).trim(), "0");
}
