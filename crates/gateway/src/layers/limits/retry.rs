//! The retry layer: repeats failed calls that are safe to repeat.

use std::sync::Arc;
use std::time::Duration;

use creole::{BoxFuture, Call, Middleware, Next};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::{Definition, ListKind};
use creole_proto::operation::{Operation, Outcome};

use crate::layers::NamePatterns;
use crate::layers::definitions::hints::HintedTools;

/// The settings of the retry layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetrySettings {
    /// The total number of attempts.
    pub attempts: u32,
    /// The wait before the second attempt. It doubles with each further one.
    pub delay: Duration,
    /// The maximum wait.
    pub max_delay: Duration,
    /// Tools that may be repeated although they do not declare it.
    pub names: NamePatterns,
}

/// A layer that repeats calls that are safe to repeat: reads, and tools that declare that they are idempotent. Any
/// other failed call may have had an effect, so it is not repeated.
#[derive(Debug)]
pub struct Retry {
    settings: RetrySettings,
    idempotent: HintedTools,
}

impl Retry {
    /// A layer with these settings.
    pub fn new(settings: RetrySettings) -> Self {
        Self { settings, idempotent: HintedTools::default() }
    }

    fn may_repeat(&self, call: &Call) -> bool {
        // A call with input responses belongs to an earlier round.
        if call.context.caller().input_responses.is_some() || call.context.request_state().is_some()
        {
            return false;
        }
        match &call.operation {
            Operation::CallTool { name, .. } => {
                self.idempotent.contains(name) || self.settings.names.contains(name)
            }
            Operation::Discover
            | Operation::List(..)
            | Operation::ReadResource { .. }
            | Operation::ReadDirectory { .. }
            | Operation::GetSkill { .. }
            | Operation::GetPrompt { .. }
            | Operation::Complete(_) => true,
            _ => false,
        }
    }

    /// The wait after an attempt. `None` if the upstream requests a longer wait than the maximum.
    fn wait_after(&self, attempt: u32, fault: &Fault) -> Option<Duration> {
        let doubled = self.settings.delay.saturating_mul(1 << (attempt - 1).min(30));
        let wanted = retry_after(fault).unwrap_or_default();
        let max_duration = self.settings.max_delay;
        (wanted <= max_duration).then(|| doubled.min(max_duration).max(wanted))
    }
}

/// The wait that the upstream requested, as in `Retry-After`, or a layer such as the circuit breaker.
fn retry_after(fault: &Fault) -> Option<Duration> {
    let [seconds, millis] =
        fault.data.as_ref()?.as_object()?.get_many(["retryAfter", "retryAfterMs"]);
    let seconds = seconds.and_then(|text| text.parse().ok()).map(Duration::from_secs);
    seconds.or_else(|| millis?.parse().ok().map(Duration::from_millis))
}

/// Whether the fault may be temporary. A call that timed out may still be running, unless its fault has
/// `"sent": false`.
fn is_transient(fault: &Fault) -> bool {
    match fault.kind {
        FaultKind::BackendUnavailable => true,
        FaultKind::Timeout => !fault.may_be_processed(),
        _ => false,
    }
}

impl Middleware for Retry {
    fn kind(&self) -> &'static str {
        "retry"
    }

    fn handle<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        if !self.may_repeat(&call) {
            return next.call(call);
        }
        Box::pin(async move {
            for attempt in 1..self.settings.attempts {
                let fault = match next.call(call.clone()).await {
                    Outcome::Fail(fault) if is_transient(&fault) => fault,
                    done => return done,
                };
                let Some(wait) = self.wait_after(attempt, &fault) else { return fault.into() };
                tracing::debug!(attempt, detail = fault.detail, "retrying the call");
                tokio::time::sleep(wait).await;
            }
            next.call(call).await
        })
    }

    fn rewrite_definition(&self, kind: ListKind, item: Arc<Definition>) -> Option<Arc<Definition>> {
        self.idempotent.record(kind, &item, |hints| hints.idempotent);
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::testing::{FlakyTools, call, fault, text};
    use creole_proto::wire::Raw;

    fn retry(names: &[&str]) -> Retry {
        Retry::new(RetrySettings {
            attempts: 3,
            delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(60),
            names: NamePatterns::new(names.iter().copied()),
        })
    }

    fn unavailable() -> Fault {
        Fault::new(FaultKind::BackendUnavailable, "it is gone")
    }

    #[tokio::test(start_paused = true)]
    async fn an_idempotent_call_is_retried_with_increasing_delays() {
        let (service, flaky) = FlakyTools::serve(retry(&[]), unavailable(), 2);
        let started = tokio::time::Instant::now();
        assert_eq!(text(&call(&service, "a", "read", "{}").await), "done");
        assert_eq!((flaky.calls(), started.elapsed().as_secs()), (3, 3));
    }

    #[tokio::test(start_paused = true)]
    async fn retry_after_is_respected_or_the_call_is_given_up() {
        let wants = |data: &str| {
            let data = Raw::parse(data).unwrap();
            FlakyTools::serve(retry(&[]), unavailable().with_data(data), 1)
        };
        for data in [r#"{"retryAfter":60}"#, r#"{"retryAfterMs":60000}"#] {
            let started = tokio::time::Instant::now();
            let (service, flaky) = wants(data);
            assert_eq!(text(&call(&service, "a", "read", "{}").await), "done");
            assert_eq!((flaky.calls(), started.elapsed().as_secs()), (2, 60), "{data}");
        }
        let started = tokio::time::Instant::now();
        let (service, flaky) = wants(r#"{"retryAfter":61}"#);
        fault(call(&service, "a", "read", "{}").await);
        assert_eq!((flaky.calls(), started.elapsed().as_secs()), (1, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_are_bounded() {
        let (service, flaky) = FlakyTools::serve(retry(&[]), unavailable(), 9);
        assert_eq!(fault(call(&service, "a", "read", "{}").await).detail, "it is gone");
        assert_eq!(flaky.calls(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_not_idempotent_is_not_retried_unless_configured() {
        let (service, flaky) = FlakyTools::serve(retry(&[]), unavailable(), 1);
        fault(call(&service, "a", "write", "{}").await);
        assert_eq!(flaky.calls(), 1);
        let (service, flaky) = FlakyTools::serve(retry(&["wr*"]), unavailable(), 1);
        assert_eq!(text(&call(&service, "a", "write", "{}").await), "done");
        assert_eq!(flaky.calls(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_may_still_run_is_not_repeated() {
        let timeout = Fault::new(FaultKind::Timeout, "too long");
        let (service, flaky) = FlakyTools::serve(retry(&[]), timeout.clone(), 1);
        fault(call(&service, "a", "read", "{}").await);
        assert_eq!(flaky.calls(), 1);
        let unsent = timeout.with_data(Raw::parse(r#"{"sent":false}"#).unwrap());
        let (service, flaky) = FlakyTools::serve(retry(&[]), unsent, 1);
        call(&service, "a", "read", "{}").await;
        assert_eq!(flaky.calls(), 2);
    }
}
