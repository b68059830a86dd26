//! The rate limit layer: bounds the number of calls per time window, of this process or of all replicas together.

use creole::internal::sync::Mutex;
use std::collections::HashMap;
use std::time::Duration;

use creole::state::{State, StateError};
use creole::{BoxFuture, Call, Middleware, Next};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::operation::Outcome;
use creole_proto::wire::Raw;
use serde_json::json;
use tokio::time::Instant;

use super::shared_rate::{BucketLimit, SharedBuckets};

/// The maximum number of remembered callers. The least recently active are forgotten first.
const MAX_CALLERS: usize = 10_000;

/// The settings of the rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSettings {
    /// The number of calls of each principal per window.
    pub principal_calls: Option<u32>,
    /// The number of calls of all principals together per window.
    pub overall_calls: Option<u32>,
    /// The length of the window.
    pub window: Duration,
    /// Whether the limit holds for all replicas together.
    pub is_shared: bool,
}

/// A layer that bounds the number of calls per time window. Token buckets refill evenly.
#[derive(Debug)]
pub struct RateLimit {
    settings: RateSettings,
    buckets: Mutex<TokenBuckets>,
    /// The buckets of all replicas together.
    shared: Option<SharedBuckets>,
}

/// Why a call is refused: how long there is no token, and whose tokens are used up.
type Refusal = (Duration, &'static str);

const OWN: &str = "this principal has";
const OVERALL: &str = "all principals together have";
/// The bucket of all principals. The names of those of single principals begin with another character.
const OVERALL_BUCKET: &str = "*";

#[derive(Debug, Default)]
struct TokenBuckets {
    callers: HashMap<String, TokenBucket>,
    overall: Option<TokenBucket>,
}

/// The remaining tokens, and the time of the last refill.
#[derive(Clone, Copy, Debug)]
struct TokenBucket {
    tokens: f64,
    updated: Instant,
}

impl TokenBucket {
    /// The bucket at this moment, for this many calls per window.
    fn refilled(found: Option<Self>, calls: u32, per: Duration, now: Instant) -> Self {
        let max = f64::from(calls);
        let left = found.map_or(max, |share| {
            let rate = max / per.as_secs_f64();
            (share.tokens + now.duration_since(share.updated).as_secs_f64() * rate).min(max)
        });
        Self { tokens: left, updated: now }
    }

    /// How long until the next token is available.
    fn time_to_token(&self, calls: u32, per: Duration) -> Option<Duration> {
        let missing = 1.0 - self.tokens;
        // A token that is missing only by rounding counts as available.
        (missing > 1e-9).then(|| per.mul_f64(missing / f64::from(calls)))
    }
}

impl RateLimit {
    /// A layer with these settings.
    pub fn new(settings: RateSettings) -> Self {
        Self { settings, buckets: Mutex::default(), shared: None }
    }

    /// The same layer, whose limit holds for all replicas of a state if the settings say so. `name` is what the limit
    /// is for.
    pub fn with_replicas(mut self, state: &State, name: &str) -> Self {
        let RateSettings { principal_calls, overall_calls, window, is_shared } = self.settings;
        let scope = format!("{name}\n{principal_calls:?}\n{overall_calls:?}\n{window:?}");
        self.shared = is_shared.then(|| SharedBuckets::new(state.clone(), &scope));
        self
    }

    /// Takes one token from each bucket of all replicas. While the state fails, those of this process count.
    async fn take_shared_token(
        &self,
        shared: &SharedBuckets,
        principal: &str,
    ) -> Result<(), Refusal> {
        let taken = self.try_take_shared_token(shared, principal).await;
        taken.unwrap_or_else(|error| {
            tracing::debug!(%error, "cannot share a rate limit; the limit of this process counts");
            self.take_token(principal)
        })
    }

    async fn try_take_shared_token(
        &self,
        shared: &SharedBuckets,
        principal: &str,
    ) -> Result<Result<(), Refusal>, StateError> {
        let limit = |calls| BucketLimit { calls, window: self.settings.window };
        let (own, bucket) = (self.settings.principal_calls.map(limit), format!("={principal}"));
        if let Some(limit) = own
            && let Err(wait) = shared.take(&bucket, limit).await?
        {
            return Ok(Err((wait, OWN)));
        }
        let Some(limit) = self.settings.overall_calls.map(limit) else { return Ok(Ok(())) };
        let Err(wait) = shared.take(OVERALL_BUCKET, limit).await? else { return Ok(Ok(())) };
        if let Some(limit) = own {
            shared.put_back(&bucket, limit).await?;
        }
        Ok(Err((wait, OVERALL)))
    }

    /// Takes one token from each bucket, or returns how long there is none.
    fn take_token(&self, principal: &str) -> Result<(), Refusal> {
        let RateSettings { principal_calls, overall_calls, window: per, .. } = self.settings;
        let now = Instant::now();
        let mut shares = self.buckets.lock();
        let own = principal_calls.map(|calls| {
            (TokenBucket::refilled(shares.callers.get(principal).copied(), calls, per, now), calls)
        });
        let all = overall_calls
            .map(|calls| (TokenBucket::refilled(shares.overall, calls, per, now), calls));
        for (share, label) in [(own, OWN), (all, OVERALL)] {
            if let Some(wait) = share.and_then(|(share, calls)| share.time_to_token(calls, per)) {
                return Err((wait, label));
            }
        }
        if let Some((share, _)) = own {
            shares.evict_quiet(principal);
            let taken = TokenBucket { tokens: share.tokens - 1.0, ..share };
            shares.callers.insert(principal.to_owned(), taken);
        }
        shares.overall = all.map(|(share, _)| TokenBucket { tokens: share.tokens - 1.0, ..share });
        Ok(())
    }
}

impl TokenBuckets {
    fn evict_quiet(&mut self, principal: &str) {
        if self.callers.len() < MAX_CALLERS || self.callers.contains_key(principal) {
            return;
        }
        let mut times: Vec<Instant> = self.callers.values().map(|share| share.updated).collect();
        let (_, middle, _) = times.select_nth_unstable(MAX_CALLERS / 2);
        let middle = *middle;
        self.callers.retain(|_, share| share.updated > middle);
    }
}

impl Middleware for RateLimit {
    fn kind(&self) -> &'static str {
        "rate-limit"
    }

    fn handle<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        if let Some(shared) = &self.shared {
            return Box::pin(async move {
                let taken =
                    self.take_shared_token(shared, call.context.principal().identity()).await;
                match taken {
                    Ok(()) => next.call(call).await,
                    Err(refusal) => refusal_fault(refusal, &call).into(),
                }
            });
        }
        match self.take_token(call.context.principal().identity()) {
            Ok(()) => next.call(call),
            Err(refusal) => {
                let fault = refusal_fault(refusal, &call);
                Box::pin(async move { fault.into() })
            }
        }
    }
}

fn refusal_fault((wait, label): Refusal, call: &Call) -> Fault {
    let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).saturating_add(1);
    let detail = format!(
        "rate limit reached: {label} no calls left; try again in {} s",
        wait_ms.div_ceil(1000)
    );
    let data = Raw::from_value(&json!({ "retryAfterMs": wait_ms }));
    Fault::new(FaultKind::Busy, detail).with_data(data).with_subject(call.operation.target())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::testing::{call, fault, slow_service, text};

    fn limit(principal_calls: Option<u32>, overall_calls: Option<u32>) -> RateLimit {
        let per = Duration::from_secs(60);
        RateLimit::new(RateSettings {
            principal_calls,
            overall_calls,
            window: per,
            is_shared: false,
        })
    }

    #[tokio::test(start_paused = true)]
    async fn each_caller_has_a_share_that_refills() {
        let service = slow_service(limit(Some(2), None));
        for caller in ["a", "a", "b"] {
            assert_eq!(text(&call(&service, caller, "wait", "{}").await), "waited");
        }
        let refused = fault(call(&service, "a", "wait", "{}").await);
        assert_eq!(refused.kind, FaultKind::Busy);
        assert_eq!(
            refused.detail,
            "rate limit reached: this principal has no calls left; try again in 31 s"
        );
        assert_eq!(refused.data.unwrap().as_str(), r#"{"retryAfterMs":30001}"#);
        tokio::time::advance(Duration::from_secs(31)).await;
        assert_eq!(text(&call(&service, "a", "wait", "{}").await), "waited");
        fault(call(&service, "a", "wait", "{}").await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_call_uses_no_budget() {
        let service = slow_service(limit(Some(1), Some(2)));
        text(&call(&service, "a", "wait", "{}").await);
        for _ in 0..5 {
            fault(call(&service, "a", "wait", "{}").await);
        }
        text(&call(&service, "b", "wait", "{}").await);
        let refused = fault(call(&service, "c", "wait", "{}").await);
        assert!(
            refused.detail.starts_with("rate limit reached: all principals together have"),
            "{}",
            refused.detail
        );
    }

    #[tokio::test(start_paused = true)]
    async fn callers_are_forgotten_when_there_are_too_many() {
        let limit = limit(Some(1), None);
        for caller in 0..MAX_CALLERS + 10 {
            tokio::time::advance(Duration::from_millis(1)).await;
            limit.take_token(&caller.to_string()).unwrap();
        }
        assert!(limit.buckets.lock().callers.len() <= MAX_CALLERS);
        assert!(limit.take_token(&(MAX_CALLERS + 9).to_string()).is_err());
    }
}
