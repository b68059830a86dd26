//! Failures of the server and of connections to it.

use std::time::Duration;

use bytes::Bytes;
use creole_test_wait::{delay, eventually_async};
use rustix::process::Signal;
use tokio::task::JoinSet;

use super::super::{LogRetention, State, StateError, StateLimits, Subscription, TopicEvent};
use super::lock_number;
use super::test_server::{TestServer, shared};

/// The time limit of operations, where a test waits for its end.
const TIMEOUT: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const KEEP: LogRetention = LogRetention { entries: 9, ttl: MINUTE };

/// A state whose operations end after [`TIMEOUT`].
async fn open(server: &TestServer, database: &str) -> State {
    let settings = server.settings(database, "team").timeout(TIMEOUT);
    State::postgres(settings, StateLimits::default()).await.unwrap()
}

/// A state that waits for a slow machine.
async fn open_patient(server: &TestServer, database: &str) -> State {
    let settings = server.settings(database, "team").timeout(MINUTE);
    State::postgres(settings, StateLimits::default()).await.unwrap()
}

fn text(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// Writes as soon as that works again, and returns the version.
async fn write_eventually(state: &State) -> u64 {
    eventually_async("a write works", async || state.put("a", text("x"), None).await.ok()).await
}

/// Publishes with this state until the subscriber receives a message; returns whether it was told before that it missed
/// some.
async fn is_told_missed(state: &State, heard: &mut Subscription) -> bool {
    let mut has_missed = false;
    loop {
        tokio::select! {
            event = heard.next() => match event {
                Some(TopicEvent::Message(_)) => return has_missed,
                Some(TopicEvent::Missed) => has_missed = true,
                None => panic!("the state ended"),
            },
            () = delay(Duration::from_millis(20)) => {
                // It fails as long as the server does.
                let _ = state.publish("t", text("x")).await;
            }
        }
    }
}

#[tokio::test]
async fn operations_on_a_stopped_server_end_and_their_changes_are_unknown() {
    let Some(server) = TestServer::start() else { return };
    let state = open(&server, "state").await;
    let version = write_eventually(&state).await;
    server.signal(Signal::STOP);
    let error = state.put("a", text("y"), None).await.unwrap_err();
    assert!(error.is_unknown(), "{error}");
    assert!(error.to_string().contains("did not answer within 1s"), "{error}");
    // There is no open connection left, so nothing is sent.
    let error = state.put("a", text("z"), None).await.unwrap_err();
    assert!(matches!(error, StateError::Unavailable { is_unknown: false, .. }), "{error}");
    server.signal(Signal::CONT);
    assert!(write_eventually(&state).await > version);
}

#[tokio::test]
async fn further_operations_fail_at_once_when_many_wait() {
    let Some(server) = TestServer::start() else { return };
    let state = open(&server, "state").await;
    write_eventually(&state).await;
    server.signal(Signal::STOP);
    let mut operations = JoinSet::new();
    for _ in 0..300 {
        let state = state.clone();
        operations.spawn(async move { state.get("a").await.unwrap_err().to_string() });
    }
    let errors = operations.join_all().await;
    server.signal(Signal::CONT);
    let refused = errors.iter().filter(|error| error.contains("256 operations wait already"));
    assert_eq!(refused.count(), 300 - 256, "{errors:?}");
    write_eventually(&state).await;
}

#[tokio::test]
async fn a_server_that_starts_later_is_found() {
    let Some(mut server) = TestServer::start() else { return };
    server.end();
    let state = open(&server, "state").await;
    let error = state.get("a").await.unwrap_err();
    assert!(matches!(error, StateError::Unavailable { is_unknown: false, .. }), "{error}");
    server.resume();
    write_eventually(&state).await;
}

#[tokio::test]
async fn a_server_that_crashes_and_restarts_is_connected_again() {
    let Some(mut server) = TestServer::start() else { return };
    let (one, two) = (open(&server, "state").await, open(&server, "state").await);
    let mut heard = one.subscribe("t").await.unwrap();
    two.publish("t", text("before")).await.unwrap();
    assert_eq!(heard.next().await, Some(TopicEvent::Message(text("before"))));
    let mut last = one.put("a", text("x"), None).await.unwrap();
    for round in 0..2 {
        server.end();
        let error = one.put("a", text("y"), None).await.unwrap_err();
        assert!(matches!(error, StateError::Unavailable { .. }), "{error}");
        server.resume();
        let version = write_eventually(&one).await;
        assert!(version > last, "round {round}: {version} after {last}");
        last = version;
        assert!(is_told_missed(&two, &mut heard).await, "round {round}: the crash lost messages");
    }
}

#[tokio::test]
async fn versions_grow_when_a_failover_lost_the_last_ones() {
    let Some(server) = shared() else { return };
    let database = server.create_database();
    let state = open_patient(server, &database).await;
    let version = write_eventually(&state).await;
    // A standby that becomes the primary may lack the last writes, and all connections break.
    server.run_sql(&database, "ALTER SEQUENCE creole.entry_versions RESTART WITH 5");
    let connections = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE datname = current_database() AND usename = 'creole'";
    assert_eq!(server.run_sql(&database, connections), "1");
    let is_written = async || state.put("b", text("x"), None).await.ok();
    let later = eventually_async("a write works", is_written).await;
    assert!(later > version, "{later} after {version}");
}

#[tokio::test]
async fn a_read_only_server_is_read_and_refuses_changes() {
    let Some(server) = TestServer::start() else { return };
    let state = open(&server, "state").await;
    let version = write_eventually(&state).await;
    let set_read_only = |value: &str| {
        server.run_sql(
            "postgres",
            &format!("ALTER DATABASE state SET default_transaction_read_only = {value}"),
        );
        // The setting is that of new connections.
        server.run_sql(
            "postgres",
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'state'",
        );
    };
    set_read_only("on");
    let is_read = async || state.get("a").await.ok().flatten();
    assert_eq!(eventually_async("a read works", is_read).await.version, version);
    for _ in 0..3 {
        let refusal = eventually_async("a change is refused", async || {
            let error = state.put("a", text("y"), None).await.unwrap_err();
            error.to_string().contains("read-only transaction").then_some(error)
        });
        assert!(!refusal.await.is_unknown());
    }
    eventually_async("a read still works", is_read).await;
    set_read_only("off");
    assert!(write_eventually(&state).await > version);
}

#[tokio::test]
async fn a_server_without_free_connections_changes_nothing() {
    let Some(server) = TestServer::start() else { return };
    let state = open(&server, "state").await;
    write_eventually(&state).await;
    server.run_sql("postgres", "ALTER ROLE creole CONNECTION LIMIT 0");
    server.run_sql(
        "postgres",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'state'",
    );
    let refusal = eventually_async("a connection is refused", async || {
        let error = state.put("a", text("y"), None).await.unwrap_err();
        error.to_string().contains("SQLSTATE 53300").then_some(error)
    });
    assert!(!refusal.await.is_unknown());
    server.run_sql("postgres", "ALTER ROLE creole CONNECTION LIMIT -1");
    write_eventually(&state).await;
}

#[tokio::test]
async fn a_statement_that_was_not_answered_is_not_sent_again() {
    let Some(server) = shared() else { return };
    let database = server.create_database();
    let (patient, state) = (open_patient(server, &database).await, open(server, &database).await);
    assert_eq!(patient.append("l", text("x"), KEEP).await.unwrap(), 1);
    // The lock keeps the statement waiting: the server cancels it, or the state stops waiting.
    let hold = format!("SELECT pg_advisory_lock({}), pg_sleep(4)", lock_number("team", b"l", "l"));
    let holder = database.clone();
    let holder = std::thread::spawn(move || shared().map(|server| server.run_sql(&holder, &hold)));
    let locks = "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
        WHERE l.locktype = 'advisory' AND l.granted AND d.datname = current_database()";
    eventually_async("it is locked", async || server.run_sql(&database, locks) == "1").await;
    let error = state.append("l", text("y"), KEEP).await.unwrap_err();
    assert!(matches!(error, StateError::Unavailable { .. }), "{error}");
    holder.join().unwrap();
    assert_eq!(patient.append("l", text("z"), KEEP).await.unwrap(), 2);
    let entries = patient.read_after("l", 0, 9).await.unwrap();
    assert_eq!(entries, [(1, text("x")), (2, text("z"))]);
}

#[tokio::test]
async fn messages_arrive_without_notifications() {
    let Some(server) = shared() else { return };
    let database = server.create_database();
    let (one, two) = (open_patient(server, &database).await, open_patient(server, &database).await);
    let mut heard = one.subscribe("t").await.unwrap();
    for number in 0..20 {
        let listeners = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
            WHERE datname = current_database() AND query LIKE 'LISTEN%'";
        server.run_sql(&database, listeners);
        two.publish("t", text(&number.to_string())).await.unwrap();
        assert_eq!(heard.next().await, Some(TopicEvent::Message(text(&number.to_string()))));
    }
}

#[tokio::test]
async fn while_notifications_arrive_messages_are_polled_rarely() {
    let Some(server) = shared() else { return };
    let database = server.create_database();
    let (mut states, mut listeners) = (Vec::new(), Vec::new());
    for _ in 0..10 {
        let state = open_patient(server, &database).await;
        listeners.push(state.subscribe("t").await.unwrap());
        states.push(state);
    }
    let transactions = || -> u64 {
        let sql = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()";
        server.run_sql(&database, sql).parse().unwrap()
    };
    // A connection reports its transactions a moment later.
    let is_idle = async || {
        let before = transactions();
        delay(Duration::from_secs(5)).await;
        // Four times a second, they would make 200.
        transactions() - before <= 20
    };
    eventually_async("ten idle listeners make at most four operations a second", is_idle).await;
    states[0].publish("t", text("x")).await.unwrap();
    for listener in &mut listeners {
        assert_eq!(listener.next().await, Some(TopicEvent::Message(text("x"))));
    }
}
