//! The conformance tests of state backends: each property is a test that runs on all of them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use super::clock::{Clock, ManualClock};
use super::memory::MemoryState;
#[cfg(feature = "postgres")]
use super::postgres::test_server;
#[cfg(feature = "sqlite")]
use super::sqlite::SqliteState;
#[cfg(feature = "valkey")]
use super::valkey::test_server::TestServer;
use super::{Backend, LogRetention, State, StateError, StateLimits, TopicEvent};

const SECOND: Duration = Duration::from_secs(1);
const KEEP: LogRetention = LogRetention { entries: 100, ttl: SECOND };

/// Runs a property on each backend, with a clock that only the property moves.
fn on_each(limits: StateLimits, property: impl AsyncFn(State, ManualClock)) {
    for name in BACKENDS {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        run(&runtime, name, limits, &property);
    }
}

/// The same on several threads.
fn on_each_with_threads(limits: StateLimits, property: impl AsyncFn(State, ManualClock)) {
    for name in BACKENDS {
        let runtime = Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
        run(&runtime, name, limits, &property);
    }
}

/// The backends of this build.
const BACKENDS: &[&str] = &[
    "memory",
    #[cfg(feature = "postgres")]
    "postgres",
    #[cfg(feature = "sqlite")]
    "sqlite",
    #[cfg(feature = "valkey")]
    "valkey",
];

fn run(
    runtime: &Runtime,
    name: &str,
    limits: StateLimits,
    property: &impl AsyncFn(State, ManualClock),
) {
    println!("on {name}");
    let folder = tempfile::tempdir().unwrap();
    runtime.block_on(async {
        let clock = ManualClock::start();
        let Some(backend) = open(name, &folder, limits).await else { return };
        property(State::new(backend, limits, Clock::Manual(clock.clone())), clock).await;
    });
}

/// None when a server is not installed. Its helper reports that.
async fn open(name: &str, folder: &TempDir, limits: StateLimits) -> Option<Backend> {
    let backend = match name {
        #[cfg(feature = "sqlite")]
        "sqlite" => {
            let file = folder.path().join("state.sqlite3");
            Backend::Sqlite(SqliteState::open(file, limits).await.unwrap())
        }
        #[cfg(feature = "valkey")]
        "valkey" => Backend::Valkey(TestServer::open_namespace(limits).await?),
        #[cfg(feature = "postgres")]
        "postgres" => Backend::Postgres(test_server::open_in_new_cluster(limits).await?),
        "memory" => Backend::Memory(Arc::new(MemoryState::new(limits))),
        _ => panic!("no backend {name} for {}", folder.path().display()),
    };
    Some(backend)
}

fn text(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

async fn value(state: &State, key: &str) -> Option<Bytes> {
    state.get(key).await.unwrap().map(|entry| entry.value)
}

#[test]
fn a_value_is_stored_until_it_is_removed() {
    on_each(StateLimits::default(), async |state, _| {
        assert_eq!(state.get("a").await.unwrap(), None);
        let version = state.put("a", text("one"), None).await.unwrap();
        let entry = state.get("a").await.unwrap().unwrap();
        assert_eq!((entry.value, entry.version), (text("one"), version));
        state.put("a", text("two"), None).await.unwrap();
        assert_eq!(value(&state.clone(), "a").await, Some(text("two")));
        assert!(state.remove("a").await.unwrap());
        assert!(!state.remove("a").await.unwrap());
        assert_eq!(value(&state, "a").await, None);
    });
}

#[test]
fn any_key_and_any_bytes_survive() {
    on_each(StateLimits::default(), async |state, _| {
        let keys = ["", "a\0b", "a", "a\0", "'; DROP TABLE entries; --", "é\u{1f980}", "A"];
        let bytes = |index: usize| {
            Bytes::from((0..=255u8).cycle().skip(index).take(600).collect::<Vec<_>>())
        };
        for (index, key) in keys.iter().enumerate() {
            state.put(key, bytes(index), None).await.unwrap();
            state.append(key, bytes(index + 1), KEEP).await.unwrap();
        }
        for (index, key) in keys.iter().enumerate() {
            assert_eq!(value(&state, key).await, Some(bytes(index)), "{key:?}");
            let read = state.read_after(key, 0, 9).await.unwrap();
            assert_eq!(read, [(1, bytes(index + 1))], "{key:?}");
        }
    });
}

#[test]
fn a_value_expires_and_a_touch_extends_it() {
    on_each(StateLimits::default(), async |state, clock| {
        let version = state.put("a", text("x"), Some(SECOND)).await.unwrap();
        clock.advance(SECOND - Duration::from_millis(1));
        assert!(value(&state, "a").await.is_some());
        assert!(state.touch("a", Some(2 * SECOND)).await.unwrap());
        clock.advance(SECOND);
        assert_eq!(state.get("a").await.unwrap().map(|entry| entry.version), Some(version));
        clock.advance(SECOND);
        assert_eq!(value(&state, "a").await, None);
        assert!(!state.touch("a", None).await.unwrap(), "an expired value cannot be touched");
        assert!(!state.remove("a").await.unwrap(), "an expired value cannot be removed");

        state.put("a", text("y"), Some(SECOND)).await.unwrap();
        assert!(state.touch("a", None).await.unwrap());
        clock.advance(1000 * SECOND);
        assert_eq!(value(&state, "a").await, Some(text("y")), "no age at all");
        state.put("a", text("z"), Some(Duration::MAX)).await.unwrap();
        clock.advance(SECOND);
        assert_eq!(value(&state, "a").await, Some(text("z")), "an age beyond the clock");
        state.put("a", text("z"), Some(Duration::ZERO)).await.unwrap();
        assert_eq!(value(&state, "a").await, None, "no time at all");
    });
}

#[test]
fn a_swap_wins_only_with_the_version_that_is_there() {
    on_each(StateLimits::default(), async |state, clock| {
        assert_eq!(state.swap("a", Some(1), text("x"), None).await.unwrap(), None);
        let first = state.swap("a", None, text("x"), Some(SECOND)).await.unwrap().unwrap();
        assert_eq!(state.swap("a", None, text("y"), None).await.unwrap(), None);
        let second = state.swap("a", Some(first), text("y"), Some(SECOND)).await.unwrap().unwrap();
        assert_eq!(state.swap("a", Some(first), text("z"), None).await.unwrap(), None);
        assert_eq!(state.swap("a", Some(u64::MAX), text("z"), None).await.unwrap(), None);
        assert_eq!(value(&state, "a").await, Some(text("y")));
        clock.advance(SECOND);
        assert_eq!(state.swap("a", Some(second), text("z"), None).await.unwrap(), None);
        assert!(state.swap("a", None, text("z"), None).await.unwrap().is_some());
    });
}

#[test]
fn a_version_is_never_issued_twice() {
    on_each(StateLimits::default(), async |state, clock| {
        let mut last = 0;
        for round in 0..50 {
            let version = state.put("a", text("x"), Some(SECOND)).await.unwrap();
            assert!(version > last, "round {round}: {version} after {last}");
            last = version;
            match round % 3 {
                0 => assert!(state.remove("a").await.unwrap()),
                1 => clock.advance(SECOND),
                _ => {}
            }
        }
    });
}

#[test]
fn concurrent_counters_with_compare_and_set_lose_nothing() {
    on_each_with_threads(StateLimits::default(), async |state, _| {
        state.put("n", text("0"), None).await.unwrap();
        let tasks: Vec<_> = (0..16).map(|_| tokio::spawn(count_to(state.clone(), 25))).collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(value(&state, "n").await, Some(text("400")));
    });
}

/// Increments a value this many times, each time retrying until no other write interferes.
pub(super) async fn count_to(state: State, times: usize) {
    for _ in 0..times {
        loop {
            let entry = state.get("n").await.unwrap().unwrap();
            let number: u64 = std::str::from_utf8(&entry.value).unwrap().parse().unwrap();
            let next = Bytes::from((number + 1).to_string());
            if state.swap("n", Some(entry.version), next, None).await.unwrap().is_some() {
                break;
            }
        }
    }
}

#[test]
fn of_many_contenders_for_a_lease_one_gets_it() {
    on_each_with_threads(StateLimits::default(), async |state, _| {
        let mut fences = BTreeSet::new();
        for _ in 0..10 {
            let wanting: Vec<_> = (0..16)
                .map(|_| {
                    let state = state.clone();
                    tokio::spawn(async move { state.lease("l", 600 * SECOND).await.unwrap() })
                })
                .collect();
            let mut holders = vec![];
            for task in wanting {
                holders.extend(task.await.unwrap());
            }
            assert_eq!(holders.len(), 1);
            let lease = holders.remove(0);
            assert!(fences.last().is_none_or(|last| *last < lease.fence()), "{fences:?}");
            fences.insert(lease.fence());
            assert!(lease.release().await.unwrap());
        }
    });
}

#[test]
fn a_lease_ends_by_its_age_and_cannot_be_renewed_then() {
    on_each(StateLimits::default(), async |state, clock| {
        let first = state.lease("l", SECOND).await.unwrap().unwrap();
        assert!(state.lease("l", SECOND).await.unwrap().is_none());
        assert!(state.lease("another", SECOND).await.unwrap().is_some());
        assert_eq!(value(&state, "l").await, None, "a lease is not a value");
        clock.advance(SECOND / 2);
        assert!(first.renew(SECOND).await.unwrap());
        clock.advance(SECOND / 2);
        assert!(state.lease("l", SECOND).await.unwrap().is_none(), "the lease was renewed");
        clock.advance(SECOND / 2);
        assert!(!first.renew(SECOND).await.unwrap(), "the lease has expired");
        let second = state.lease("l", SECOND).await.unwrap().unwrap();
        assert!(second.fence() > first.fence());
        assert!(!first.renew(SECOND).await.unwrap(), "another holder has the lease");
        assert!(!first.release().await.unwrap());
        assert!(
            state.lease("l", SECOND).await.unwrap().is_none(),
            "the second holder still has the lease"
        );
        assert!(second.release().await.unwrap());
        let third = state.lease("l", SECOND).await.unwrap().unwrap();
        state.remove("l").await.unwrap();
        assert!(
            third.renew(SECOND).await.unwrap(),
            "removing a value of that name does not release the lease"
        );
    });
}

#[test]
fn a_log_is_read_on_from_where_one_was() {
    on_each(StateLimits::default(), async |state, _| {
        assert_eq!(state.read_after("l", 0, 10).await.unwrap(), []);
        for number in 1..=5u64 {
            let appended = state.append("l", text(&number.to_string()), KEEP).await.unwrap();
            assert_eq!(appended, number);
        }
        let read = state.read_after("l", 0, 2).await.unwrap();
        assert_eq!(read, [(1, text("1")), (2, text("2"))]);
        let read = state.read_after("l", 3, 100).await.unwrap();
        assert_eq!(read, [(4, text("4")), (5, text("5"))]);
        assert_eq!(state.read_after("l", 5, 100).await.unwrap(), []);
        assert_eq!(state.append("other", text("x"), KEEP).await.unwrap(), 1);
        assert!(state.remove_log("l").await.unwrap());
        assert!(!state.remove_log("l").await.unwrap());
        assert_eq!(state.read_after("l", 0, 10).await.unwrap(), []);
        assert_eq!(state.append("l", text("new"), KEEP).await.unwrap(), 1);
        assert_eq!(state.read_after("l", 0, 10).await.unwrap(), [(1, text("new"))]);
    });
}

async fn resume_after(state: &State, after: u64) -> u64 {
    match state.read_after("l", after, 10).await {
        Err(StateError::Trimmed { resume_after }) => resume_after,
        other => panic!("after {after}: {other:?}"),
    }
}

#[test]
fn a_reader_of_removed_entries_is_notified() {
    on_each(StateLimits::default(), async |state, clock| {
        let keep = LogRetention { entries: 3, ttl: SECOND };
        for number in 1..=5 {
            assert_eq!(state.append("l", text("x"), keep).await.unwrap(), number);
        }
        assert_eq!(resume_after(&state, 0).await, 2);
        assert_eq!(resume_after(&state, 1).await, 2);
        assert_eq!(state.read_after("l", 2, 10).await.unwrap().len(), 3);
        assert_eq!(resume_after(&state, 6).await, 2, "a number that was never assigned");
        clock.advance(SECOND / 2);
        // Shorter than the retention of the entry before it, and yet not expired before it.
        let brief = LogRetention { entries: 3, ttl: SECOND / 10 };
        assert_eq!(state.append("l", text("y"), brief).await.unwrap(), 6);
        clock.advance(SECOND / 4);
        assert_eq!(state.read_after("l", 3, 10).await.unwrap().len(), 3);
        clock.advance(SECOND);
        assert_eq!(resume_after(&state, 3).await, 6);
        assert_eq!(state.read_after("l", 6, 10).await.unwrap(), [], "no entry is missing");
        // Other writes delete the expired entries, and the log is still known.
        for number in 0..20 {
            state.put(&number.to_string(), text(""), None).await.unwrap();
        }
        assert_eq!(resume_after(&state, 3).await, 6);
        assert_eq!(state.append("l", text("z"), keep).await.unwrap(), 7);
        assert_eq!(state.read_after("l", 6, 10).await.unwrap(), [(7, text("z"))]);
        assert_eq!(resume_after(&state, 0).await, 6);
    });
}

#[test]
fn concurrent_appends_get_each_number_once() {
    on_each_with_threads(StateLimits::default(), async |state, _| {
        let keep = LogRetention { entries: 1000, ttl: 600 * SECOND };
        let tasks: Vec<_> = (0..200)
            .map(|number: u64| {
                let (state, entry) = (state.clone(), Bytes::from(number.to_string()));
                tokio::spawn(async move { state.append("l", entry, keep).await.unwrap() })
            })
            .collect();
        let mut numbers = BTreeSet::new();
        for task in tasks {
            numbers.insert(task.await.unwrap());
        }
        assert_eq!(numbers, (1..=200).collect());
        let read = state.read_after("l", 0, 1000).await.unwrap();
        assert!(read.iter().map(|(number, _)| *number).eq(1..=200));
        assert_eq!(read.iter().map(|(_, entry)| entry).collect::<BTreeSet<_>>().len(), 200);
    });
}

#[test]
fn a_message_reaches_the_subscribers_of_its_topic() {
    on_each(StateLimits::default(), async |state, _| {
        state.publish("t", text("before")).await.unwrap();
        let mut one = state.subscribe("t").await.unwrap();
        let mut two = state.clone().subscribe("t").await.unwrap();
        let mut other = state.subscribe("other").await.unwrap();
        for message in ["1", "2", "3"] {
            state.publish("t", text(message)).await.unwrap();
        }
        state.publish("other", text("4")).await.unwrap();
        for message in ["1", "2", "3"] {
            assert_eq!(one.next().await, Some(TopicEvent::Message(text(message))));
            assert_eq!(two.next().await, Some(TopicEvent::Message(text(message))));
        }
        assert_eq!(other.next().await, Some(TopicEvent::Message(text("4"))));
        drop(two);
        drop(state);
        assert_eq!(one.next().await, None, "the state was dropped");
    });
}

#[test]
fn a_slow_subscriber_is_notified_of_the_lag() {
    let limits = StateLimits { backlog: 4, ..StateLimits::default() };
    on_each(limits, async |state, _| {
        let mut slow = state.subscribe("t").await.unwrap();
        for number in 1..=10 {
            state.publish("t", text(&number.to_string())).await.unwrap();
        }
        assert_eq!(slow.next().await, Some(TopicEvent::Missed));
        for number in 7..=10 {
            assert_eq!(slow.next().await, Some(TopicEvent::Message(text(&number.to_string()))));
        }
    });
}

#[test]
fn messages_that_wait_are_bounded_over_all_topics() {
    let limits = StateLimits { pending_bytes: 11, ..StateLimits::default() };
    on_each(limits, async |state, _| {
        let mut slow = state.subscribe("slow").await.unwrap();
        let mut other = state.subscribe("other").await.unwrap();
        state.publish("slow", text("12345678")).await.unwrap();
        state.publish("other", text("123")).await.unwrap();
        assert_eq!(other.next().await, Some(TopicEvent::Missed));
        assert_eq!(slow.next().await, Some(TopicEvent::Message(text("12345678"))));
        state.publish("other", text("1234567890")).await.unwrap();
        assert_eq!(other.next().await, Some(TopicEvent::Message(text("1234567890"))));
        state.publish("slow", text("1234567890")).await.unwrap();
        drop(slow);
        state.publish("other", text("12")).await.unwrap();
        assert_eq!(
            other.next().await,
            Some(TopicEvent::Message(text("12"))),
            "who left holds nothing"
        );
    });
}

#[test]
fn a_value_that_is_too_long_is_refused_with_the_limit() {
    let limits =
        StateLimits { key_bytes: 3, value_bytes: 4, message_bytes: 5, ..StateLimits::default() };
    on_each(limits, async |state, _| {
        let told = |error: StateError| error.to_string();
        let error = told(state.put("four", text(""), None).await.unwrap_err());
        assert!(error.contains("4 bytes") && error.contains("the limit is 3"), "{error}");
        let error = told(state.put("key", text("five!"), None).await.unwrap_err());
        assert!(error.contains("5 bytes") && error.contains("the limit is 4"), "{error}");
        let error = told(state.publish("key", text("six...")).await.unwrap_err());
        assert!(error.contains("6 bytes") && error.contains("the limit is 5"), "{error}");
        state.put("key", text("four"), None).await.unwrap();
        state.append("key", text("four"), KEEP).await.unwrap();
        let keep = LogRetention { entries: limits.log_entries + 1, ttl: SECOND };
        let refusals = [
            state.get("four").await.map(drop),
            state.swap("four", None, text(""), None).await.map(drop),
            state.touch("four", None).await.map(drop),
            state.remove("four").await.map(drop),
            state.append("four", text(""), KEEP).await.map(drop),
            state.append("key", text("five!"), KEEP).await.map(drop),
            state.append("key", text(""), keep).await.map(drop),
            state.read_after("four", 0, 1).await.map(drop),
            state.remove_log("four").await.map(drop),
            state.subscribe("four").await.map(drop),
            state.publish("four", text("")).await,
            state.lease("four", SECOND).await.map(drop),
        ];
        assert!(refusals.iter().all(Result::is_err), "{refusals:?}");
    });
}

#[test]
fn a_full_store_refuses_new_values_and_keeps_the_old_ones() {
    let limits = StateLimits { entries: 3, logs: 2, subscriptions: 1, ..StateLimits::default() };
    on_each(limits, async |state, clock| {
        state.put("a", text("1"), None).await.unwrap();
        state.put("b", text("1"), Some(SECOND)).await.unwrap();
        let _lease = state.lease("l", 5 * SECOND).await.unwrap().unwrap();
        let full = |error| matches!(error, StateError::Full { max: 3, .. });
        assert!(full(state.put("c", text("1"), None).await.unwrap_err()));
        assert!(full(state.lease("m", SECOND).await.unwrap_err()));
        state.put("a", text("2"), None).await.unwrap();
        assert_eq!(value(&state, "a").await, Some(text("2")));
        clock.advance(SECOND);
        state.put("c", text("1"), None).await.unwrap();

        state.append("one", text(""), KEEP).await.unwrap();
        state.append("two", text(""), LogRetention { ttl: 9 * SECOND, ..KEEP }).await.unwrap();
        let error = state.append("three", text(""), KEEP).await.unwrap_err();
        assert!(matches!(error, StateError::Full { max: 2, .. }), "{error}");
        clock.advance(SECOND);
        state.append("three", text(""), KEEP).await.unwrap();
        let forgotten = state.read_after("one", 1, 9).await;
        assert_eq!(forgotten, Err(StateError::Trimmed { resume_after: 0 }));

        let listener = state.subscribe("t").await.unwrap();
        assert!(matches!(state.subscribe("t").await, Err(StateError::Full { max: 1, .. })));
        drop(listener);
        state.subscribe("t").await.unwrap();
    });
}

#[test]
fn the_bytes_of_everything_together_are_bounded() {
    let limits = StateLimits { bytes: 3 * (StateLimits::OVERHEAD + 102), ..StateLimits::default() };
    on_each(limits, async |state, clock| {
        let long = || Bytes::from(vec![7; 100]);
        let full = |error: StateError| matches!(error, StateError::Full { kind: "bytes", .. });
        state.put("a", long(), None).await.unwrap();
        state.put("b", long(), Some(SECOND)).await.unwrap();
        assert_eq!(state.append("l", long(), KEEP).await.unwrap(), 1);
        assert!(full(state.put("c", long(), None).await.unwrap_err()));
        assert!(full(state.append("l", long(), KEEP).await.unwrap_err()));
        assert!(full(state.put("a", Bytes::from(vec![7; 102]), None).await.unwrap_err()));
        state.put("a", Bytes::from(vec![8; 100]), None).await.unwrap();
        assert!(state.remove("a").await.unwrap());
        state.put("c", long(), None).await.unwrap();
        assert!(full(state.put("d", long(), None).await.unwrap_err()));
        clock.advance(SECOND);
        state.put("d", long(), None).await.unwrap();
        assert_eq!(state.append("l", long(), KEEP).await.unwrap(), 2);
        assert!(state.remove_log("l").await.unwrap());
        state.put("e", long(), None).await.unwrap();
    });
}
