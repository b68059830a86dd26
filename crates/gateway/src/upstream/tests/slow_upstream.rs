//! Tests of slow, silent and dead servers beside a working one. They are in this process, and the clock is simulated.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use creole::client::Program;
use creole::proto::model::{CacheHints, ListKind};
use creole::proto::operation::{Operation, Payload};
use creole::proto::revision::{Era, Revision, Rules};
use creole::stream::MemoryConnection;
use creole::{Server, Service, Tool};
use creole_test_wait::delay;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::*;
use crate::federation::{Federation, LIST_WAIT};
use crate::layers::testing::{ask, call, listed_names};
use crate::upstream::connections::connector;
use crate::upstream::lists::list_sync;

/// Responds to each message of a client, except where `answers` returns nothing.
async fn serve(mut client: MemoryConnection, answers: impl Fn(&str) -> Option<Value>) {
    let mut rest = Vec::new();
    while let Some(bytes) = client.receive().await {
        rest.extend_from_slice(&bytes);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            let message: Value = serde_json::from_slice(&line).unwrap();
            let response = message["method"].as_str().and_then(&answers);
            let Some(result) = response else { continue };
            let text = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            if client.send(format!("{text}\n").as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

/// The responses of a server with one tool.
fn usual(method: &str) -> Option<Value> {
    match method {
        "initialize" => Some(json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "neighbour", "version": "1"},
        })),
        "tools/list" => {
            Some(json!({"tools": [{"name": "work", "inputSchema": {"type": "object"}}]}))
        }
        "tools/call" => Some(json!({"content": [{"type": "text", "text": "worked"}]})),
        "ping" => Some(json!({})),
        _ => None,
    }
}

async fn living(client: MemoryConnection) {
    serve(client, usual).await;
}

async fn silent(client: MemoryConnection) {
    serve(client, |_| None).await;
}

async fn dead(client: MemoryConnection) {
    drop(client);
}

/// Like a server that compiles before it starts.
async fn brisk(client: MemoryConnection) {
    delay(Duration::from_secs(1)).await;
    serve(client, usual).await;
}

static STARTING: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

/// Takes a second to start, and counts concurrent starts.
async fn counted(client: MemoryConnection) {
    let now = STARTING.fetch_add(1, Ordering::Relaxed) + 1;
    MOST.fetch_max(now, Ordering::Relaxed);
    delay(Duration::from_secs(1)).await;
    STARTING.fetch_sub(1, Ordering::Relaxed);
    serve(client, usual).await;
}

async fn slow(client: MemoryConnection) {
    delay(Duration::from_secs(20)).await;
    serve(client, usual).await;
}

/// Returns its list once, and then hangs.
async fn hanging(client: MemoryConnection) {
    let was_shown = AtomicBool::new(false);
    let once = |method: &str| match method {
        "tools/list" if was_shown.swap(true, Ordering::Relaxed) => None,
        other => usual(other),
    };
    serve(client, once).await;
}

async fn own(_: Value) -> String {
    "own".to_owned()
}

fn settings(name: &str) -> UpstreamSettings {
    UpstreamSettings {
        naming: Naming { prefix: format!("{name}__") },
        ..UpstreamSettings::new(Address::Child(Program::new(name, "none")))
    }
}

/// A server with its own tool and these upstreams, each with its name as prefix.
fn front(federation: &Federation, names: &[&str]) -> Service {
    let tool = Tool::new("own", "", own);
    let service = Server::new("front").tool(tool).with(federation.layer()).start();
    let servers = names.iter().map(|name| settings(name)).collect();
    federation.start_upstreams(servers, &service.registry(), true);
    service
}

#[track_caller]
fn assert_said(outcome: &Outcome, text: &str) {
    assert!(matches!(outcome, Outcome::Complete(_)), "{outcome:?}");
    assert!(format!("{outcome:?}").contains(text), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_and_a_dead_one_delay_no_call_of_a_living_one() {
    let federation = Federation::default();
    connector::in_process::register("near_silent", silent);
    connector::in_process::register("near_dead", dead);
    connector::in_process::register("near_living", living);
    let service = front(&federation, &["near_silent", "near_dead", "near_living"]);
    federation.upstreams()[2].startup().wait_until_tried().await;
    let started = Instant::now();
    assert_said(&call(&service, "a", "near_living__work", "{}").await, "worked");
    assert_said(&call(&service, "a", "own", "{}").await, "own");
    assert_eq!(
        started.elapsed(),
        Duration::ZERO,
        "these calls do not wait for the silent upstream"
    );

    let tools = ["own", "near_living__work"];
    assert_eq!(listed_names(&service, ListKind::Tools).await, tools);
    assert!(started.elapsed() <= LIST_WAIT, "lists wait for the silent upstream for a short time");
    let again = Instant::now();
    assert_eq!(listed_names(&service, ListKind::Tools).await, tools);
    assert_eq!(again.elapsed(), Duration::ZERO, "the second list does not wait");

    // It may be a tool of the silent one, so the call waits for its startup timeout.
    let unknown = call(&service, "a", "near_silent__work", "{}").await;
    assert!(
        matches!(&unknown, Outcome::Fail(fault) if fault.kind == FaultKind::UnknownTool),
        "{unknown:?}"
    );
    assert!(started.elapsed() <= settings("near_silent").startup_timeout);
}

#[tokio::test(start_paused = true)]
async fn upstreams_that_need_a_second_to_start_are_in_the_first_list() {
    let federation = Federation::default();
    connector::in_process::register("some_living", living);
    connector::in_process::register("some_brisk", brisk);
    let service = front(&federation, &["some_brisk", "some_living"]);
    let tools = ["own", "some_brisk__work", "some_living__work"];
    assert_eq!(listed_names(&service, ListKind::Tools).await, tools);
}

#[tokio::test(start_paused = true)]
async fn a_slow_upstream_is_announced_when_it_is_ready() {
    let federation = Federation::default();
    connector::in_process::register("late_living", living);
    connector::in_process::register("late_slow", slow);
    let service = front(&federation, &["late_slow", "late_living"]);
    let mut changes = service.registry().changes();
    let welcome = ask(&service, "a", Operation::Discover).await;
    let Outcome::Complete(Payload::Server(card)) = welcome else { panic!("{welcome:?}") };
    assert!(card.capabilities.prompts, "the slow upstream's capabilities are unknown");
    assert_eq!(listed_names(&service, ListKind::Tools).await, ["own", "late_living__work"]);
    // The working one was ready in time, so no notification is needed.
    assert!(changes.try_recv().is_err());
    // A call of a known prefix waits only for its own upstream.
    assert_said(&call(&service, "a", "late_slow__work", "{}").await, "worked");
    federation.upstreams()[0].startup().wait_until_tried().await;
    let result =
        timeout(Duration::from_secs(60), changes.recv()).await.expect("a change notification");
    assert_eq!(result.unwrap().change, Change::List(ListKind::Tools));
    let tools = ["own", "late_slow__work", "late_living__work"];
    assert_eq!(listed_names(&service, ListKind::Tools).await, tools);
}

/// The tool names that a client of the handshake era sees. It receives change notifications.
async fn listed_by_a_session(service: &Service) -> Vec<String> {
    use creole::internal::call::Origin;
    use creole::proto::operation::Caller;
    use creole::proto::server::{Call as Started, CallKey};

    use crate::layers::testing::{SilentChannel, plain_caller};
    let caller = Caller { rules: Revision::newest(Era::Handshake).rules(), ..plain_caller() };
    let operation = Operation::List(ListKind::Tools, None);
    let started = Started { key: CallKey(1), operation, caller };
    let run = service.start_call(started, Arc::new(SilentChannel), Origin::new("a".into())).0.await;
    let Outcome::Complete(Payload::Page(page)) = run else { panic!("{run:?}") };
    page.items.iter().map(|item| item.name().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_caller_with_notifications_waits_less_for_a_hanging_upstream() {
    connector::in_process::register("wait_living", living);
    connector::in_process::register("wait_silent", silent);
    for (is_listening, wait) in [(true, LIST_WAIT / 4), (false, LIST_WAIT)] {
        let federation = Federation::default();
        let service = front(&federation, &["wait_silent", "wait_living"]);
        let started = Instant::now();
        let tools = match is_listening {
            true => listed_by_a_session(&service).await,
            false => listed_names(&service, ListKind::Tools).await,
        };
        assert_eq!(tools, ["own", "wait_living__work"]);
        assert_eq!(started.elapsed(), wait);
        let states: Vec<_> = federation.status().into_iter().map(|status| status.state).collect();
        assert_eq!(states, [UpstreamState::Starting, UpstreamState::Ready]);
    }
    let federation = Federation::default().with_list_wait(Duration::from_secs(5));
    let service = front(&federation, &["wait_silent", "wait_living"]);
    let started = Instant::now();
    listed_names(&service, ListKind::Tools).await;
    assert_eq!(started.elapsed(), Duration::from_secs(5), "the configured timeout applies");
}

#[tokio::test(start_paused = true)]
async fn many_upstreams_start_a_few_at_a_time_in_their_order() {
    let federation = Federation::default();
    let names: Vec<String> = (0..40).map(|number| format!("many_{number}")).collect();
    names.iter().for_each(|name| connector::in_process::register(name, counted));
    let _service = front(&federation, &names.iter().map(String::as_str).collect::<Vec<_>>());
    let at_once = crate::federation::max_concurrent_starts();
    let states = |wanted: UpstreamState| {
        let status = federation.status();
        status.iter().filter(|it| it.state == wanted).map(|it| it.name.clone()).collect::<Vec<_>>()
    };
    delay(Duration::from_millis(500)).await;
    assert_eq!(states(UpstreamState::Starting), names[..at_once]);
    assert_eq!(states(UpstreamState::Waiting), names[at_once..]);
    delay(Duration::from_secs(1)).await;
    assert_eq!(states(UpstreamState::Ready), names[..at_once]);
    assert_eq!(states(UpstreamState::Starting), names[at_once..2 * at_once]);
    delay(Duration::from_secs(40)).await;
    assert_eq!(states(UpstreamState::Ready), names);
    assert_eq!(MOST.load(Ordering::Relaxed), at_once);
}

#[tokio::test(start_paused = true)]
async fn a_hanging_upstream_delays_lists_once_and_then_backs_off() {
    let federation = Federation::default();
    connector::in_process::register("hung_living", living);
    connector::in_process::register("hung_hanging", hanging);
    let service = front(&federation, &["hung_hanging", "hung_living"]);
    let tools = ["own", "hung_hanging__work", "hung_living__work"];
    assert_eq!(listed_names(&service, ListKind::Tools).await, tools);
    delay(Duration::from_secs(5)).await;
    let took = async || {
        let started = Instant::now();
        assert_eq!(
            listed_names(&service, ListKind::Tools).await,
            tools,
            "the old list stays in use"
        );
        started.elapsed()
    };
    assert_eq!(took().await, list_sync::REFRESH_TIMEOUT);
    for _ in 0..5 {
        assert_eq!(took().await, Duration::ZERO);
        delay(Duration::from_secs(1)).await;
    }
    delay(Duration::from_secs(10)).await;
    assert_eq!(took().await, list_sync::REFRESH_TIMEOUT, "the fetch is retried after a pause");
}

/// A server whose lists have a time to live.
fn dated(method: &str) -> Option<Value> {
    let mut result = match method {
        "server/discover" => {
            json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
        }
        other => usual(other)?,
    };
    result["resultType"] = json!("complete");
    (result["ttlMs"], result["cacheScope"]) = (json!(60_000), json!("public"));
    Some(result)
}

async fn aged(client: MemoryConnection) {
    serve(client, dated).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_has_the_shortest_freshness_of_its_parts_and_is_private_to_its_caller() {
    connector::in_process::register("aged_dated", aged);
    connector::in_process::register("aged_living", living);
    let choice = RevisionChoice::Revision(Rules::CANONICAL);
    let dated = UpstreamSettings { revisions: choice, ..settings("aged_dated") };
    for (servers, expected) in [
        (vec![dated.clone()], [60_000, 50_000, 60_000]),
        (vec![dated, settings("aged_living")], [0, 0, 0]),
    ] {
        let (federation, count) = (Federation::default(), servers.len());
        let service = Server::new("front").with(federation.layer()).start();
        federation.start_upstreams(servers, &service.registry(), false);
        for (wait, left) in [0, 10, 60].into_iter().zip(expected) {
            delay(Duration::from_secs(wait)).await;
            let list = Operation::List(ListKind::Tools, None);
            let Outcome::Complete(Payload::Page(page)) = ask(&service, "a", list).await else {
                panic!("no list")
            };
            assert_eq!(page.items.iter().count(), count);
            assert_eq!(page.cache, CacheHints { ttl_ms: left, public: false });
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_is_dropped_before_it_starts_is_freed() {
    let service: Service = Server::new("front").start();
    let upstream = Upstream::new(service.registry().add_source(), settings("not_started"), true);
    // Its task waits for the start now.
    delay(Duration::from_secs(1)).await;
    let lists = Arc::downgrade(upstream.lists());
    drop(upstream);
    assert!(lists.upgrade().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_session_is_opened_despite_a_failed_upstream_if_this_is_allowed() {
    connector::in_process::register("only_dead", dead);
    for is_allowed in [false, true] {
        let federation = Federation::default().opening_despite(move |_, _| is_allowed);
        let service = Server::new("front").with(federation.layer()).start();
        federation.start_upstreams(vec![settings("only_dead")], &service.registry(), false);
        let welcome = ask(&service, "a", Operation::Discover).await;
        match &welcome {
            Outcome::Complete(Payload::Server(card)) => {
                assert!(is_allowed && card.capabilities.tools, "{welcome:?}");
            }
            other => assert!(!is_allowed && matches!(other, Outcome::Fail(_)), "{other:?}"),
        }
    }
}

static ATTEMPTS: AtomicUsize = AtomicUsize::new(0);

/// Counts the attempts to start it, and ends.
async fn dead_and_counted(client: MemoryConnection) {
    ATTEMPTS.fetch_add(1, Ordering::Relaxed);
    drop(client);
}

#[tokio::test(start_paused = true)]
async fn an_upstream_whose_backoff_is_ended_is_tried_again_soon() {
    connector::in_process::register("counted_dead", dead_and_counted);
    let federation = Federation::default();
    let _service = front(&federation, &["counted_dead"]);
    let attempts_in_ten_seconds = async |ends_backoff: bool| {
        let before = ATTEMPTS.load(Ordering::Relaxed);
        for _ in 0..50 {
            if ends_backoff {
                federation.upstreams()[0].end_backoff();
            }
            delay(Duration::from_millis(200)).await;
        }
        ATTEMPTS.load(Ordering::Relaxed) - before
    };
    delay(Duration::from_secs(60)).await;
    assert!(attempts_in_ten_seconds(false).await <= 2);
    assert!(attempts_in_ten_seconds(true).await >= 8);
}
