//! The timeout layer: ends calls that take too long.

use std::time::Duration;

use creole::{BoxFuture, Call, Middleware, Next};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::operation::{Operation, Outcome};

use crate::layers::NamePatterns;

/// A layer that ends calls that take too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeout {
    /// How long a call may take.
    pub after: Duration,
    /// Only calls of these names; empty for all.
    pub names: NamePatterns,
}

impl Timeout {
    fn applies(&self, operation: &Operation) -> bool {
        // A request for a task's result is meant to wait.
        !matches!(operation, Operation::TaskResult { .. })
            && (self.names.is_empty() || self.names.contains(operation.target()))
    }
}

impl Middleware for Timeout {
    fn kind(&self) -> &'static str {
        "timeout"
    }

    fn handle<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        if !self.applies(&call.operation) {
            return next.call(call);
        }
        let subject = call.operation.target().to_owned();
        Box::pin(async move {
            tokio::time::timeout(self.after, next.call(call)).await.unwrap_or_else(|_| {
                let detail = format!("the call took longer than {} s", self.after.as_secs());
                Fault::new(FaultKind::Timeout, detail).with_subject(&subject).into()
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::testing::{call, fault, slow_service, text};

    #[tokio::test(start_paused = true)]
    async fn a_timed_out_call_is_ended_and_others_are_not() {
        let after = Duration::from_secs(5);
        let service = slow_service(Timeout { after, names: NamePatterns::default() });
        assert_eq!(text(&call(&service, "a", "wait", r#"{"seconds":4}"#).await), "waited");
        let ended = fault(call(&service, "a", "wait", r#"{"seconds":6}"#).await);
        assert_eq!(ended.kind, FaultKind::Timeout);
        assert_eq!(ended.detail, "the call took longer than 5 s");
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_named_calls_are_ended() {
        let names = NamePatterns::new(["other*"]);
        let service = slow_service(Timeout { after: Duration::from_secs(5), names });
        assert_eq!(text(&call(&service, "a", "wait", r#"{"seconds":6}"#).await), "waited");
    }
}
