//! Cache hints: the lifetime and the scope of a cached result.

use crate::revision::Rules;
use crate::wire::Object;

/// The lifetime and the scope of a cached result (2026-07-28 schema, `CacheableResult`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheHints {
    /// The time in milliseconds for which the result is fresh (`ttlMs`).
    pub ttl_ms: u64,
    /// Whether the result may be shared between users (`cacheScope`).
    pub public: bool,
}

impl CacheHints {
    /// Neither cached nor shared.
    pub const NONE: Self = Self { ttl_ms: 0, public: false };

    /// Reads the cache hints of a result. A result without hints is not cacheable.
    pub fn read(result: Object<'_>, rules: &Rules) -> Self {
        if !rules.cache_hints {
            return Self::NONE;
        }
        let ttl_ms = result.get("ttlMs").and_then(milliseconds).unwrap_or(0);
        let scope = result.string("cacheScope").ok().flatten();
        Self { ttl_ms, public: scope.as_deref() == Some("public") }
    }
}

/// A number of milliseconds, in any JSON spelling.
pub(crate) fn milliseconds(raw: &str) -> Option<u64> {
    if let Ok(number) = raw.parse() {
        return Some(number);
    }
    let number: f64 = raw.parse().ok()?;
    // The cast saturates, which is an acceptable number of milliseconds.
    (number >= 0.0).then_some(number as u64)
}
