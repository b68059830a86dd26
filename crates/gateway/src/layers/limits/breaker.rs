//! The circuit breaker layer: refuses calls to an upstream that fails.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use creole::internal::chain::{BreakerChange, BreakerStatus, CircuitBreaker};
use creole::internal::sync::Mutex;
use creole::{BoxFuture, Call, Middleware, Next};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::operation::Outcome;
use creole_proto::wire::Raw;
use serde_json::json;
use tokio::time::Instant;

/// The settings of the circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerSettings {
    /// The number of consecutive failures that open it.
    pub failures: u32,
    /// How long it stays open before it admits a trial call.
    pub open: Duration,
}

/// How many changes are kept.
const MAX_CHANGES: usize = 100;

/// A layer that refuses calls immediately after consecutive failures, until a trial call succeeds. Only failures of the
/// upstream itself count. Error results of tools do not.
#[derive(Debug)]
pub struct Breaker {
    settings: BreakerSettings,
    state: Mutex<BreakerState>,
    /// When it opened and closed, oldest first.
    changes: Mutex<VecDeque<BreakerChange>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BreakerState {
    /// Calls pass. The number of consecutive failures.
    Closed(u32),
    /// Calls are refused until this time.
    Open(Instant),
    /// A trial call is running.
    HalfOpen,
}

impl BreakerState {
    /// Whether calls are refused, except for a trial call.
    fn is_open(self) -> bool {
        !matches!(self, Self::Closed(_))
    }
}

impl Breaker {
    /// A layer with these settings.
    pub fn new(settings: BreakerSettings) -> Self {
        Self { settings, state: Mutex::new(BreakerState::Closed(0)), changes: Mutex::default() }
    }

    /// Admits a call, as the trial call or as a normal one, or returns how long calls are refused.
    fn admit(&self) -> Result<BreakerPass<'_>, Duration> {
        let now = Instant::now();
        let mut state = self.state.lock();
        match *state {
            BreakerState::Closed(_) => Ok(BreakerPass { breaker: self, is_probe: false }),
            BreakerState::Open(until) if until > now => Err(until - now),
            BreakerState::Open(_) => {
                *state = BreakerState::HalfOpen;
                Ok(BreakerPass { breaker: self, is_probe: true })
            }
            BreakerState::HalfOpen => Err(Duration::ZERO),
        }
    }

    fn change(&self, change: impl FnOnce(BreakerState) -> BreakerState) {
        let mut state = self.state.lock();
        let was_open = state.is_open();
        *state = change(*state);
        let is_open = state.is_open();
        if is_open != was_open {
            self.keep_change(is_open);
        }
    }

    fn keep_change(&self, is_open: bool) {
        let mut changes = self.changes.lock();
        if changes.len() >= MAX_CHANGES {
            changes.pop_front();
        }
        changes.push_back(BreakerChange { at: SystemTime::now(), is_open });
    }
}

/// An admitted call. If a trial call is cancelled, the next call becomes the trial call.
struct BreakerPass<'a> {
    breaker: &'a Breaker,
    is_probe: bool,
}

impl BreakerPass<'_> {
    fn finish(mut self, failed: bool) {
        let BreakerSettings { failures, open } = self.breaker.settings;
        let tries = std::mem::take(&mut self.is_probe);
        self.breaker.change(|state| match (state, failed) {
            (BreakerState::Closed(before), true) if before + 1 < failures => {
                BreakerState::Closed(before + 1)
            }
            (BreakerState::Closed(_), true) => BreakerState::Open(Instant::now() + open),
            (BreakerState::Closed(_), false) => BreakerState::Closed(0),
            (BreakerState::HalfOpen, true) if tries => BreakerState::Open(Instant::now() + open),
            (BreakerState::HalfOpen, false) if tries => BreakerState::Closed(0),
            // A call from before it opened does not change the state.
            (state, _) => state,
        });
    }
}

impl Drop for BreakerPass<'_> {
    fn drop(&mut self) {
        if self.is_probe {
            self.breaker.change(|_| BreakerState::Open(Instant::now()));
        }
    }
}

fn is_failure(outcome: &Outcome) -> bool {
    let kinds = [FaultKind::BackendUnavailable, FaultKind::Timeout];
    matches!(outcome, Outcome::Fail(fault) if kinds.contains(&fault.kind))
}

impl CircuitBreaker for Breaker {
    fn status(&self) -> BreakerStatus {
        let now = Instant::now();
        match *self.state.lock() {
            BreakerState::Closed(failures) => {
                BreakerStatus { state: "closed", failures, wait: None }
            }
            BreakerState::Open(until) => BreakerStatus {
                state: "open",
                failures: self.settings.failures,
                wait: Some(until.saturating_duration_since(now)),
            },
            BreakerState::HalfOpen => {
                BreakerStatus { state: "half_open", failures: self.settings.failures, wait: None }
            }
        }
    }

    fn changes(&self) -> Vec<BreakerChange> {
        self.changes.lock().iter().copied().collect()
    }

    fn reset(&self) {
        self.change(|_| BreakerState::Closed(0));
    }
}

impl Middleware for Breaker {
    fn kind(&self) -> &'static str {
        "circuit-breaker"
    }

    fn circuit_breaker(&self) -> Option<&dyn CircuitBreaker> {
        Some(self)
    }

    fn handle<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            match self.admit() {
                Ok(pass) => {
                    let outcome = next.call(call).await;
                    pass.finish(is_failure(&outcome));
                    outcome
                }
                Err(wait) => {
                    let detail = format!(
                        "circuit breaker open: the upstream failed {} times in a row; try again in {} s",
                        self.settings.failures,
                        wait.as_secs().saturating_add(1),
                    );
                    let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                    let data = Raw::from_value(&json!({ "retryAfterMs": wait_ms, "sent": false }));
                    let fault = Fault::new(FaultKind::BackendUnavailable, detail).with_data(data);
                    fault.with_subject(call.operation.target()).into()
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::testing::{FlakyTools, call, fault, text};

    fn serve(kind: FaultKind, failures: usize) -> (creole::Service, std::sync::Arc<FlakyTools>) {
        let open = Duration::from_secs(30);
        let breaker = Breaker::new(BreakerSettings { failures: 2, open });
        FlakyTools::serve(breaker, Fault::new(kind, "it is gone"), failures)
    }

    #[tokio::test(start_paused = true)]
    async fn it_opens_after_failures_in_a_row_and_closes_when_a_try_succeeds() {
        let (service, flaky) = serve(FaultKind::BackendUnavailable, 3);
        for _ in 0..2 {
            assert_eq!(fault(call(&service, "a", "read", "{}").await).detail, "it is gone");
        }
        let refused = fault(call(&service, "a", "read", "{}").await);
        assert!(refused.detail.contains("failed 2 times in a row"), "{}", refused.detail);
        assert_eq!(flaky.calls(), 2);
        tokio::time::advance(Duration::from_secs(31)).await;
        assert_eq!(fault(call(&service, "a", "read", "{}").await).detail, "it is gone");
        fault(call(&service, "a", "read", "{}").await);
        assert_eq!(flaky.calls(), 3);
        tokio::time::advance(Duration::from_secs(31)).await;
        for _ in 0..3 {
            assert_eq!(text(&call(&service, "a", "read", "{}").await), "done");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_tool_error_does_not_open_the_breaker() {
        let (service, flaky) = serve(FaultKind::ToolFailed, 9);
        for _ in 0..9 {
            fault(call(&service, "a", "read", "{}").await);
        }
        assert_eq!(flaky.calls(), 9);
    }

    #[tokio::test(start_paused = true)]
    async fn a_try_that_is_cancelled_leaves_it_to_the_next_one() {
        let breaker = Breaker::new(BreakerSettings { failures: 1, open: Duration::from_secs(1) });
        breaker.admit().unwrap().finish(true);
        tokio::time::advance(Duration::from_secs(2)).await;
        let trying = breaker.admit().unwrap();
        assert!(breaker.admit().is_err());
        drop(trying);
        breaker.admit().unwrap().finish(false);
        assert_eq!(*breaker.state.lock(), BreakerState::Closed(0));
    }
}
