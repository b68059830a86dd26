//! Concurrent refusals, and sources that fail.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use creole_test_wait::delay;
use tokio::task::JoinSet;
use tokio::time::advance;

use super::*;
use crate::chain::BoxFuture;

/// Returns the configured values, after a second each, and counts the fetches.
#[derive(Default)]
struct CountingCredentials {
    given: Mutex<String>,
    fetched: AtomicUsize,
    can_retry: AtomicBool,
}

impl CountingCredentials {
    fn gives(&self, token: &str) {
        *self.given.lock() = token.to_owned();
    }

    fn fetched(&self) -> usize {
        self.fetched.load(Ordering::Relaxed)
    }
}

impl Credentials for CountingCredentials {
    fn fetch(&self, _: Option<Refusal>) -> BoxFuture<'static, FetchResult> {
        self.fetched.fetch_add(1, Ordering::Relaxed);
        let text = self.given.lock().clone();
        Box::pin(async move {
            delay(Duration::from_secs(1)).await;
            match &*text {
                "" => Err(token::missing_token("site", "the source has none")),
                "never" => std::future::pending().await,
                "panic" => panic!("as a source may"),
                text => Ok(Some(bearer(text))),
            }
        })
    }

    fn can_retry_now(&self) -> bool {
        self.can_retry.load(Ordering::Relaxed)
    }
}

fn bearer(token: &str) -> Authorization {
    Authorization::bearer(token).unwrap()
}

fn refusal(refused: Authorization) -> Refusal {
    Refusal { authorization: Some(refused), ..Refusal::default() }
}

fn keyring(token: &str) -> (TokenCache, Arc<CountingCredentials>) {
    let source = Arc::new(CountingCredentials::default());
    source.gives(token);
    (TokenCache::new("site".into(), Arc::<CountingCredentials>::clone(&source)), source)
}

/// The replacements that this many concurrent requests get for a refused value.
async fn instead(keyring: &TokenCache, refused: &str, many: usize) -> Vec<Option<Authorization>> {
    let mut waiting = JoinSet::new();
    for _ in 0..many {
        let (keyring, refused) = (keyring.clone(), bearer(refused));
        waiting.spawn(async move { keyring.replace_refused(refusal(refused)).await.unwrap() });
    }
    waiting.join_all().await
}

#[tokio::test(start_paused = true)]
async fn fifty_that_are_refused_at_once_have_it_fetched_once() {
    let (keyring, source) = keyring("old");
    let mut first = JoinSet::new();
    for _ in 0..50 {
        let keyring = keyring.clone();
        first.spawn(async move { keyring.current().await.unwrap() });
    }
    assert_eq!(first.join_all().await, vec![Some(bearer("old")); 50]);
    assert_eq!(source.fetched(), 1);
    source.gives("new");
    assert_eq!(instead(&keyring, "old", 50).await, vec![Some(bearer("new")); 50]);
    assert_eq!(source.fetched(), 2);
    // A late request that was refused with the old value finds the new one.
    assert_eq!(instead(&keyring, "old", 1).await, [Some(bearer("new"))]);
    assert_eq!(keyring.current().await.unwrap(), Some(bearer("new")));
    assert_eq!(source.fetched(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_equal_token_is_not_new_and_a_token_that_is_refused_again_is_not_fetched_for_a_while() {
    let (keyring, source) = keyring("old");
    keyring.current().await.unwrap();
    assert_eq!(instead(&keyring, "old", 3).await, [None, None, None]);
    source.gives("new");
    assert_eq!(instead(&keyring, "old", 3).await, [None, None, None]);
    assert_eq!(source.fetched(), 2);
    advance(RETRY_PAUSE).await;
    assert_eq!(instead(&keyring, "old", 1).await, [Some(bearer("new"))]);
    source.gives("newer");
    assert_eq!(instead(&keyring, "new", 1).await, [None]);
    assert_eq!(source.fetched(), 3);
    advance(RETRY_PAUSE).await;
    assert_eq!(instead(&keyring, "new", 1).await, [Some(bearer("newer"))]);
}

#[tokio::test(start_paused = true)]
async fn a_source_that_may_succeed_now_is_asked_at_once_after_a_failure() {
    let (keyring, source) = keyring("");
    assert!(keyring.current().await.is_err());
    source.gives("new");
    assert!(keyring.current().await.is_err());
    source.can_retry.store(true, Ordering::Relaxed);
    assert_eq!(keyring.current().await.unwrap(), Some(bearer("new")));
    assert_eq!(source.fetched(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_shared_for_a_while_and_then_the_fetch_is_retried() {
    let (keyring, source) = keyring("");
    let failed = keyring.current().await.unwrap_err();
    assert_eq!(keyring.current().await.unwrap_err().detail, failed.detail);
    assert_eq!(
        keyring.replace_refused(refusal(bearer("old"))).await.unwrap_err().detail,
        failed.detail
    );
    assert_eq!(source.fetched(), 1);
    advance(RETRY_PAUSE).await;
    source.gives("old");
    assert_eq!(keyring.current().await.unwrap(), Some(bearer("old")));
    source.gives("");
    assert!(keyring.replace_refused(refusal(bearer("old"))).await.is_err());
    assert!(keyring.replace_refused(refusal(bearer("old"))).await.is_err());
    assert_eq!(source.fetched(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_first_caller_may_leave_and_a_source_may_be_slow_or_panic() {
    let (keyring, source) = keyring("old");
    keyring.current().await.unwrap();
    source.gives("new");
    let refused = bearer("old");
    let left = timeout(Duration::from_millis(500), keyring.replace_refused(refusal(refused))).await;
    assert!(left.is_err(), "the new token is not available yet");
    assert_eq!(instead(&keyring, "old", 2).await, vec![Some(bearer("new")); 2]);
    assert_eq!(source.fetched(), 2);
    for (text, reason) in [("never", "within 10 s"), ("panic", "was aborted")] {
        advance(RETRY_PAUSE).await;
        source.gives(text);
        let fault = keyring.replace_refused(refusal(bearer("new"))).await.unwrap_err();
        assert!(fault.detail.contains(reason), "{}", fault.detail);
    }
    source.gives("newer");
    assert_eq!(instead(&keyring, "new", 1).await, [Some(bearer("newer"))]);
}

/// Gives tokens that are due a minute after they were fetched.
struct ShortLived(AtomicUsize);

impl Credentials for ShortLived {
    fn fetch(&self, _: Option<Refusal>) -> BoxFuture<'static, FetchResult> {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        let due = Instant::now() + Duration::from_secs(60);
        Box::pin(async move { Ok(Some(bearer(&number.to_string()).renewed_at(due))) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_due_is_fetched_once_before_the_next_request() {
    let tokens = TokenCache::new("site".into(), Arc::new(ShortLived(AtomicUsize::new(0))));
    assert_eq!(tokens.current().await.unwrap(), Some(bearer("0")));
    advance(Duration::from_secs(59)).await;
    assert_eq!(tokens.current().await.unwrap(), Some(bearer("0")));
    advance(Duration::from_secs(1)).await;
    let both = tokio::join!(tokens.current(), tokens.current());
    assert_eq!((both.0.unwrap(), both.1.unwrap()), (Some(bearer("1")), Some(bearer("1"))));
}

/// Credentials of a person who takes a minute. Requests do not wait so long.
#[derive(Default)]
struct SlowPerson {
    fetched: AtomicUsize,
}

impl Credentials for SlowPerson {
    fn fetch(&self, _: Option<Refusal>) -> BoxFuture<'static, FetchResult> {
        self.fetched.fetch_add(1, Ordering::Relaxed);
        Box::pin(async {
            delay(Duration::from_secs(60)).await;
            Ok(Some(bearer("late")))
        })
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(600)
    }

    fn until_released(&self) -> BoxFuture<'static, Fault> {
        Box::pin(async {
            delay(Duration::from_secs(1)).await;
            token::missing_token("site", "the person is asked")
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_released_request_fails_and_the_fetch_goes_on() {
    let source = Arc::new(SlowPerson::default());
    let keyring = TokenCache::new("site".into(), Arc::<SlowPerson>::clone(&source));
    for _ in 0..3 {
        let fault = keyring.current().await.unwrap_err();
        assert!(fault.detail.contains("the person is asked"), "{}", fault.detail);
    }
    delay(Duration::from_secs(60)).await;
    assert_eq!(keyring.current().await.unwrap(), Some(bearer("late")));
    assert_eq!(source.fetched.load(Ordering::Relaxed), 1);
}

/// Has nothing before a refusal, and a token after it.
struct AfterRefusal;

impl Credentials for AfterRefusal {
    fn fetch(&self, refusal: Option<Refusal>) -> BoxFuture<'static, FetchResult> {
        Box::pin(async move { Ok(refusal.map(|_| bearer("new"))) })
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(600)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_never_joins_the_fetch_before_it() {
    for _ in 0..2_000 {
        let keyring = TokenCache::new("site".into(), Arc::new(AfterRefusal));
        assert_eq!(keyring.current().await.unwrap(), None);
        let replaced = keyring.replace_refused(Refusal::default()).await.unwrap();
        assert_eq!(replaced, Some(bearer("new")));
    }
}
