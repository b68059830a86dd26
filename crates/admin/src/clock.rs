//! Times as text (RFC 3339) and durations as milliseconds.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use creole_proto::client::parse_timestamp;
use creole_proto::model::format_timestamp;

/// A time as text, in UTC with milliseconds.
pub(crate) fn text(time: SystemTime) -> String {
    format_timestamp(unix_ms(time))
}

/// The time now as text.
pub(crate) fn now() -> String {
    text(SystemTime::now())
}

/// The milliseconds since 1970.
pub(crate) fn unix_ms(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A duration in milliseconds, exact to a microsecond.
pub(crate) fn ms(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// The time of a text that [`text`] or a person wrote: `2026-11-18T10:00:00Z`, with fractions or an offset.
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    parse_timestamp(text).map(|ms| UNIX_EPOCH + Duration::from_millis(ms))
}
