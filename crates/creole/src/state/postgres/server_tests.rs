//! The guarantees of a database that several processes, clusters and versions use.

use std::time::Duration;

use bytes::Bytes;
use creole_oauth::secret::SecretText;
use creole_test_wait::eventually_async;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::task::JoinSet;

use super::super::conformance::count_to;
use super::super::{LogRetention, State, StateError, StateLimits, TopicEvent};
use super::PostgresSettings;
use super::test_server::{TestServer, shared};

const MINUTE: Duration = Duration::from_secs(60);
const KEEP: LogRetention = LogRetention { entries: 100, ttl: MINUTE };

async fn open(server: &TestServer, database: &str, cluster: &str) -> State {
    let settings = server.settings(database, cluster).timeout(MINUTE / 2);
    State::postgres(settings, StateLimits::default()).await.unwrap()
}

fn text(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

async fn refusal(settings: PostgresSettings) -> String {
    match State::postgres(settings, StateLimits::default()).await {
        Err(error @ StateError::Misconfigured { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn processes_that_start_at_once_create_the_schema_once() {
    let Some(server) = shared() else { return };
    let database = server.create_database();
    let mut starts = JoinSet::new();
    for _ in 0..8 {
        let settings = server.settings(&database, "team").timeout(MINUTE / 2);
        starts.spawn(State::postgres(settings, StateLimits::default()));
    }
    for state in starts.join_all().await {
        state.unwrap().put("a", text("x"), None).await.unwrap();
    }
    assert_eq!(server.run_sql(&database, "SELECT version FROM creole.schema_version"), "1");
}

#[tokio::test]
async fn everything_is_there_for_another_process() {
    let Some(server) = shared() else { return };
    let database = server.create_database();
    let (one, two) = (open(server, &database, "team").await, open(server, &database, "team").await);
    let version = one.put("a", text("x"), None).await.unwrap();
    assert_eq!(one.append("l", text("y"), KEEP).await.unwrap(), 1);
    let lease = one.lease("l", MINUTE).await.unwrap().unwrap();
    assert_eq!(two.get("a").await.unwrap().unwrap().version, version);
    assert_eq!(two.append("l", text("z"), KEEP).await.unwrap(), 2);
    assert!(two.lease("l", MINUTE).await.unwrap().is_none());
    assert!(two.put("a", text("x"), None).await.unwrap() > lease.fence().max(version));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_counters_of_two_processes_lose_nothing() {
    let Some(server) = shared() else { return };
    let database = server.create_database();
    let (one, two) = (open(server, &database, "team").await, open(server, &database, "team").await);
    one.put("n", text("0"), None).await.unwrap();
    let mut counters = JoinSet::new();
    for state in [one.clone(), two.clone(), one.clone(), two] {
        counters.spawn(count_to(state, 25));
    }
    counters.join_all().await;
    assert_eq!(one.get("n").await.unwrap().unwrap().value, "100");
}

#[tokio::test]
async fn two_clusters_in_one_database_do_not_meet() {
    let Some(server) = shared() else { return };
    let database = server.create_database();
    let (blue, green) =
        (open(server, &database, "blue").await, open(server, &database, "green").await);
    let mut heard = green.subscribe("t").await.unwrap();
    let _lease = blue.lease("l", MINUTE).await.unwrap().unwrap();
    blue.put("a", text("x"), None).await.unwrap();
    blue.append("l", text("x"), KEEP).await.unwrap();
    blue.publish("t", text("of blue")).await.unwrap();
    assert_eq!(green.get("a").await.unwrap(), None);
    assert!(!green.remove("a").await.unwrap());
    assert!(!green.touch("a", None).await.unwrap());
    assert_eq!(green.read_after("l", 0, 9).await.unwrap(), []);
    assert!(!green.remove_log("l").await.unwrap());
    assert!(green.lease("l", MINUTE).await.unwrap().is_some());
    open(server, &database, "green").await.publish("t", text("of green")).await.unwrap();
    assert_eq!(heard.next().await, Some(TopicEvent::Message(text("of green"))));
    assert!(blue.get("a").await.unwrap().is_some());
}

#[tokio::test]
async fn messages_of_other_processes_arrive_in_order_and_own_ones_once() {
    let Some(server) = shared() else { return };
    let database = server.create_database();
    let (one, two) = (open(server, &database, "team").await, open(server, &database, "team").await);
    let mut heard = one.subscribe("t").await.unwrap();
    one.publish("t", text("own")).await.unwrap();
    for number in 0..50 {
        two.publish("t", text(&number.to_string())).await.unwrap();
    }
    assert_eq!(heard.next().await, Some(TopicEvent::Message(text("own"))));
    for number in 0..50 {
        assert_eq!(heard.next().await, Some(TopicEvent::Message(text(&number.to_string()))));
    }
    one.publish("t", text("end")).await.unwrap();
    assert_eq!(heard.next().await, Some(TopicEvent::Message(text("end"))));
}

#[tokio::test]
async fn a_subscriber_that_missed_deleted_messages_is_notified() {
    let Some(server) = shared() else { return };
    let database = server.create_database();
    let (one, two) = (open(server, &database, "team").await, open(server, &database, "team").await);
    let mut heard = one.subscribe("t").await.unwrap();
    let rows = "UPDATE creole.message_heads SET last = last + 5000";
    server.run_sql(&database, rows);
    two.publish("t", text("late")).await.unwrap();
    assert_eq!(heard.next().await, Some(TopicEvent::Missed));
    let mut events = vec![];
    while events.last() != Some(&Some(TopicEvent::Message(text("late")))) {
        events.push(heard.next().await);
        assert!(events.len() < 3, "{events:?}");
    }
}

#[tokio::test]
async fn values_expire_by_the_clock_of_the_server() {
    let Some(server) = shared() else { return };
    let database = server.create_database();
    let state = open(server, &database, "team").await;
    state.put("brief", text("x"), Some(Duration::from_millis(20))).await.unwrap();
    state.put("long", text("x"), Some(MINUTE)).await.unwrap();
    eventually_async("it expires", async || state.get("brief").await.unwrap().is_none()).await;
    assert!(state.get("long").await.unwrap().is_some());
    state.put("other", text("x"), None).await.unwrap();
    let rows = "SELECT count(*) FROM creole.entries";
    assert_eq!(server.run_sql(&database, rows), "2", "a later write deletes expired rows");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_counts_match_the_rows_after_concurrent_changes() {
    let Some(server) = shared() else { return };
    let database = server.create_database();
    let states = [open(server, &database, "team").await, open(server, &database, "team").await];
    let mut writers = JoinSet::new();
    for writer in 0..8usize {
        let state = states[writer % 2].clone();
        writers.spawn(async move {
            for round in 0..40usize {
                let key = format!("key {}", (writer * 7 + round * 3) % 11);
                let value = Bytes::from(vec![7; round * 5]);
                let ttl = if round % 2 == 0 { Duration::from_millis(3) } else { MINUTE };
                let keep = LogRetention { entries: 2 + round % 3, ttl };
                match round % 5 {
                    0 | 1 => drop(state.put(&key, value, Some(ttl)).await.unwrap()),
                    2 => drop(state.append(&key, value, keep).await.unwrap()),
                    3 => drop(state.remove(&key).await.unwrap()),
                    _ => drop(state.remove_log(&key).await.unwrap()),
                }
            }
        });
    }
    writers.join_all().await;
    let counted = "SELECT sum(entries), sum(logs), sum(bytes) FROM creole.counts";
    let stored = "SELECT (SELECT count(*) FROM creole.entries), (SELECT count(*) FROM creole.logs),
        (SELECT coalesce(sum(octet_length(key) + octet_length(value) + 128), 0) FROM creole.entries)
        + (SELECT coalesce(sum(octet_length(entry) + 128), 0) FROM creole.log_entries)";
    assert_eq!(server.run_sql(&database, counted), server.run_sql(&database, stored));
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_alone() {
    let Some(server) = shared() else { return };
    let database = server.create_database();
    drop(open(server, &database, "team").await);
    server.run_sql(&database, "UPDATE creole.schema_version SET version = 99");
    let content =
        "SELECT s.version, v.last_value FROM creole.schema_version s, creole.entry_versions v";
    let before = server.run_sql(&database, content);
    let error = refusal(server.settings(&database, "team")).await;
    assert!(error.contains("has version 99, this program supports 1"), "{error}");
    assert_eq!(server.run_sql(&database, content), before);
}

#[tokio::test]
async fn a_schema_of_another_program_is_refused_and_left_alone() {
    let Some(server) = shared() else { return };
    let database = server.create_database();
    server.run_sql(&database, "CREATE SCHEMA creole CREATE TABLE entries (other integer)");
    let error = refusal(server.settings(&database, "team")).await;
    assert!(error.contains("SQLSTATE 42"), "{error}");
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'creole'";
    assert_eq!(server.run_sql(&database, tables), "1");
}

#[tokio::test]
async fn a_wrong_configuration_is_refused_without_its_secrets() {
    let Some(server) = shared() else { return };
    let wrong = server.settings("state", "team").password(SecretText::new("hunter2000"));
    let error = refusal(wrong).await;
    assert!(error.contains("password authentication failed for user \"creole\""), "{error}");
    assert!(!error.contains("hunter2000"), "{error}");
    let error = refusal(PostgresSettings::new(server.address("state"))).await;
    assert!(error.contains("password missing"), "{error}");
    let error = refusal(server.settings("none", "team")).await;
    assert!(error.contains("database \"none\" does not exist"), "{error}");
    let error = refusal(server.settings("state", "Team")).await;
    assert!(error.contains("the name of the cluster is \"Team\""), "{error}");
}

#[tokio::test]
async fn an_encrypted_server_is_verified() {
    let Some(mut server) = TestServer::start() else { return };
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let address = server.encrypt(&cert.pem(), &signing_key.serialize_pem());
    let settings = TestServer::encrypted_settings(&address).timeout(MINUTE / 2);
    let trusting = settings.clone().ca_certificates(cert.pem());
    let state = State::postgres(trusting, StateLimits::default()).await.unwrap();
    state.put("a", text("x"), None).await.unwrap();
    let encrypted = "SELECT bool_and(s.ssl) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid)
        WHERE a.usename = 'creole'";
    assert_eq!(server.run_sql("state", encrypted), "t");
    let error = refusal(settings.clone()).await;
    assert!(error.contains("error performing TLS handshake"), "{error}");
    let other = generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let error = refusal(settings.ca_certificates(other.cert.pem())).await;
    assert!(error.contains("error performing TLS handshake"), "{error}");
}

#[tokio::test]
async fn an_address_of_a_pooler_uses_no_prepared_statements() {
    let Some(server) = shared() else { return };
    let database = server.create_database();
    let pooled = server.settings(&database, "team").listen_address(server.address(&database));
    let state = State::postgres(pooled, StateLimits::default()).await.unwrap();
    let version = state.put("a", text("x"), Some(MINUTE)).await.unwrap();
    assert!(state.swap("a", Some(version), text("y"), None).await.unwrap().is_some());
    assert!(state.touch("a", Some(MINUTE)).await.unwrap());
    state.append("l", text("x"), KEEP).await.unwrap();
    assert_eq!(state.read_after("l", 0, 9).await.unwrap().len(), 1);
    let mut heard = state.subscribe("t").await.unwrap();
    open(server, &database, "team").await.publish("t", text("x")).await.unwrap();
    assert_eq!(heard.next().await, Some(TopicEvent::Message(text("x"))));
    assert!(state.remove_log("l").await.unwrap() && state.remove("a").await.unwrap());
}
