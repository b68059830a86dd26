//! Counts the requests whose credentials were checked.

use std::sync::{Arc, OnceLock};

use http::HeaderValue;

use super::denial::DenialReason;
use crate::principal::Principal;
use crate::telemetry::metrics::{Metrics, table};

/// Counts the decisions of an authenticator, once it knows the metrics. Clones share it.
#[derive(Clone, Default)]
pub(super) struct AttemptMetrics(Arc<OnceLock<Arc<Metrics>>>);

impl AttemptMetrics {
    /// Counts from now on. The first call counts.
    pub(super) fn set(&self, metrics: &Arc<Metrics>) {
        _ = self.0.set(Arc::clone(metrics));
    }

    /// Counts a decision about a name with a password, a key, or nothing.
    pub(super) fn count(
        &self,
        authorization: Option<&HeaderValue>,
        decision: Result<&Principal, DenialReason>,
    ) {
        let method = match decision {
            Ok(principal) if principal.token().is_some() => "token",
            _ => scheme_method(authorization),
        };
        self.add(method, decision.map_or_else(outcome, |_| "granted"));
    }

    /// Counts a refused access token.
    pub(super) fn count_token(&self, outcome: &'static str) {
        self.add("token", outcome);
    }

    fn add(&self, method: &'static str, outcome: &'static str) {
        if let Some(metrics) = self.0.get() {
            metrics.count(&table::AUTH_ATTEMPTS, &[method, outcome]);
        }
    }
}

/// The method of an `Authorization` header.
fn scheme_method(authorization: Option<&HeaderValue>) -> &'static str {
    let scheme =
        authorization.and_then(|value| value.as_bytes().split(|byte| *byte == b' ').next());
    match scheme {
        Some(scheme) if scheme.eq_ignore_ascii_case(b"basic") => "password",
        Some(scheme) if scheme.eq_ignore_ascii_case(b"bearer") => "key",
        Some(scheme) if scheme.eq_ignore_ascii_case(b"dpop") => "token",
        _ => "none",
    }
}

/// The word for a denial.
fn outcome(reason: DenialReason) -> &'static str {
    match reason {
        DenialReason::NoCredentials => "missing",
        DenialReason::OtherScheme => "scheme",
        DenialReason::UnknownKey | DenialReason::WrongPassword => "wrong",
        DenialReason::ExpiredKey => "expired",
        DenialReason::MissingRole => "role",
        DenialReason::MissingScope => "scope",
        DenialReason::TooManyAttempts => "throttled",
        DenialReason::Busy => "busy",
    }
}

impl std::fmt::Debug for AttemptMetrics {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("AttemptMetrics").finish_non_exhaustive()
    }
}
