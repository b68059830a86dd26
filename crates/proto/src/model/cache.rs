//! How long and for whom results may be kept.

use crate::revision::Rules;
use crate::wire::Object;

/// How long and for whom a result may be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheHints {
    /// Milliseconds that it may be considered fresh.
    pub ttl_ms: u64,
    /// Whether it may be shown to any user.
    pub public: bool,
}

impl CacheHints {
    /// Not to be kept, not to be shared.
    pub const NONE: Self = Self { ttl_ms: 0, public: false };

    /// What a result says of itself; one that does not say is not to be kept.
    pub fn read(result: Object<'_>, rules: &Rules) -> Self {
        if !rules.cache_hints {
            return Self::NONE;
        }
        let ttl_ms = result.get("ttlMs").and_then(milliseconds).unwrap_or(0);
        let scope = result.string("cacheScope").ok().flatten();
        Self { ttl_ms, public: scope.as_deref() == Some("public") }
    }
}

/// A number of milliseconds, however it is written.
pub(crate) fn milliseconds(raw: &str) -> Option<u64> {
    if let Ok(number) = raw.parse() {
        return Some(number);
    }
    let number: f64 = raw.parse().ok()?;
    // A cast saturates, which is as good as any number of milliseconds.
    (number >= 0.0).then_some(number as u64)
}
