//! Log lines about refused tokens. A flood of wrong tokens is counted instead of logged.

use std::net::IpAddr;
use std::time::Duration;

use tokio::time::Instant;

use crate::sync::Mutex;

/// The maximum number of lines in [`PERIOD`].
const MAX_LINES: u32 = 10;

const PERIOD: Duration = Duration::from_secs(1);

/// Limits the log lines about refused tokens.
#[derive(Debug, Default)]
pub(super) struct RefusalLog {
    window: Mutex<Option<Window>>,
}

#[derive(Debug)]
struct Window {
    since: Instant,
    lines: u32,
    left_out: u64,
}

/// What a line says. It has nothing of the token itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct RefusedToken<'a> {
    /// Why the token is refused.
    pub(super) reason: &'static str,
    /// The label of the issuer, if it is known.
    pub(super) issuer: Option<&'a str>,
    /// The id of the principal, if the token itself is valid.
    pub(super) principal: Option<&'a str>,
    /// The address of the resource.
    pub(super) resource: &'a str,
    /// The address of the caller.
    pub(super) peer: Option<IpAddr>,
    /// How long the decision took.
    pub(super) duration: Duration,
}

impl RefusalLog {
    /// Logs a refused token, or counts it.
    pub(super) fn write(&self, refused: RefusedToken<'_>) {
        let Some(left_out) = self.admit(Instant::now()) else { return };
        if left_out > 0 {
            tracing::warn!(left_out, "more access tokens were refused than are logged");
        }
        let RefusedToken { reason, issuer, principal, resource, .. } = refused;
        let peer = refused.peer.map(tracing::field::display);
        let duration_us = u64::try_from(refused.duration.as_micros()).unwrap_or(u64::MAX);
        tracing::warn!(
            reason,
            issuer,
            principal,
            resource,
            peer,
            duration_us,
            "an access token was refused"
        );
    }

    /// Whether a line may be written, and how many were left out before it.
    fn admit(&self, now: Instant) -> Option<u64> {
        let mut window = self.window.lock();
        let window = window.get_or_insert(Window { since: now, lines: 0, left_out: 0 });
        if now.duration_since(window.since) >= PERIOD {
            (window.since, window.lines) = (now, 0);
        }
        if window.lines >= MAX_LINES {
            window.left_out += 1;
            return None;
        }
        window.lines += 1;
        Some(std::mem::take(&mut window.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_lines_a_second_are_written_and_the_others_are_counted() {
        let (log, now) = (RefusalLog::default(), Instant::now());
        let admitted = (0..100).filter(|_| log.admit(now).is_some()).count();
        assert_eq!(admitted, 10);
        assert_eq!(log.admit(now + PERIOD), Some(90));
        assert_eq!(log.admit(now + PERIOD), Some(0));
    }
}
