//! Tests of cached and uncached requests.

use super::*;
use crate::layers::testing::{FlakyTools, call, fault, text};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::operation::{RelayedKind, RelayedResult};
use creole_proto::revision::Rules;

fn serve(max_bytes: usize, public: bool) -> (creole::Service, Arc<FlakyTools>) {
    let ttl = Duration::from_secs(60);
    let names = NamePatterns::default();
    let cache = Cache::new(CacheSettings { ttl, max_bytes, names, public });
    FlakyTools::serve(cache, Fault::new(FaultKind::ToolFailed, "no"), 0)
}

#[tokio::test(start_paused = true)]
async fn a_read_only_call_is_cached_for_each_caller() {
    let (service, flaky) = serve(100_000, false);
    for arguments in [r#"{"a":1,"b":2}"#, r#"{ "b": 2.0, "a": 1 }"#] {
        assert_eq!(text(&call(&service, "a", "read", arguments).await), "done");
    }
    assert_eq!(flaky.calls(), 1);
    call(&service, "b", "read", r#"{"a":1,"b":2}"#).await;
    call(&service, "a", "read", r#"{"a":2}"#).await;
    assert_eq!(flaky.calls(), 3);
    tokio::time::advance(Duration::from_secs(61)).await;
    call(&service, "a", "read", r#"{"a":1,"b":2}"#).await;
    assert_eq!(flaky.calls(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_public_result_is_shared() {
    let (service, flaky) = serve(100_000, true);
    call(&service, "a", "read", "{}").await;
    call(&service, "b", "read", "{}").await;
    assert_eq!(flaky.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn failures_and_results_of_writes_are_not_cached() {
    let (service, flaky) = serve(100_000, false);
    flaky.fail(1);
    fault(call(&service, "a", "read", "{}").await);
    assert_eq!(text(&call(&service, "a", "read", "{}").await), "done");
    call(&service, "a", "write", "{}").await;
    call(&service, "a", "write", "{}").await;
    assert_eq!(flaky.calls(), 4);
}

#[tokio::test(start_paused = true)]
async fn the_oldest_entries_are_evicted() {
    let (service, flaky) = serve(2 * ENTRY_OVERHEAD + 50, false);
    for arguments in [r#"{"a":1}"#, r#"{"a":2}"#, r#"{"a":3}"#, r#"{"a":3}"#, r#"{"a":1}"#] {
        call(&service, "a", "read", arguments).await;
    }
    assert_eq!(flaky.calls(), 4);
}

fn relayed(result: &str) -> Payload {
    let rules = Rules::CANONICAL;
    Payload::Relayed(RelayedResult::new(Raw::parse(result).unwrap(), rules, RelayedKind::Contents))
}

fn cache(public: bool) -> Cache {
    let ttl = Duration::from_secs(60);
    Cache::new(CacheSettings { ttl, max_bytes: 100_000, names: NamePatterns::default(), public })
}

#[test]
fn nothing_is_kept_longer_or_for_more_callers_than_its_server_says() {
    let ttl = |public, result: &str| cache(public).ttl(&relayed(result)).map(|ttl| ttl.as_secs());
    assert_eq!(ttl(false, r#"{"contents":[]}"#), Some(60));
    assert_eq!(ttl(false, r#"{"contents":[],"ttlMs":5000,"cacheScope":"private"}"#), Some(5));
    assert_eq!(ttl(false, r#"{"contents":[],"ttlMs":0}"#), None);
    assert_eq!(ttl(true, r#"{"contents":[],"ttlMs":90000,"cacheScope":"public"}"#), Some(60));
    assert_eq!(ttl(true, r#"{"contents":[],"ttlMs":90000,"cacheScope":"private"}"#), None);
}

#[tokio::test]
async fn a_cached_resource_is_removed_by_its_update_notification() {
    let cache = cache(false);
    let keys = [[1; 32], [2; 32]];
    for (key, uri) in keys.into_iter().zip(["file:///a", "file:///b"]) {
        cache.store(key, uri.to_owned(), &relayed(r#"{"contents":[]}"#));
    }
    cache.resource_updated("file:///a");
    assert_eq!(keys.map(|key| cache.entries().get(&key).is_some()), [false, true]);
}
