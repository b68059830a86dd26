//! The result of an upstream that is relayed to a client.

use serde::{Deserialize, Serialize};

use super::CacheHints;
use crate::revision::Rules;
use crate::wire::Raw;

/// An upstream's result as received. Most of it reaches the client unchanged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RelayedResult {
    result: Raw,
    /// The rules of the upstream.
    #[serde(with = "rules_by_name")]
    pub rules: &'static Rules,
    /// The kind of result.
    pub kind: RelayedKind,
    /// Whether the result is known to have all members that its rules require, and none that concern only the gateway.
    #[serde(skip)]
    is_verbatim: bool,
}

impl RelayedResult {
    /// A relayed result from an object.
    pub fn new(result: Raw, rules: &'static Rules, kind: RelayedKind) -> Self {
        Self { result, rules, kind, is_verbatim: false }
    }

    /// Sets whether the result is known to be [verbatim](Self::is_verbatim).
    pub(crate) fn with_verbatim(self, is_whole: bool) -> Self {
        Self { is_verbatim: is_whole, ..self }
    }

    /// The whole result: an object.
    pub fn result(&self) -> &Raw {
        &self.result
    }

    /// The whole result: an object.
    pub fn into_result(self) -> Raw {
        self.result
    }

    /// Replaces the result.
    pub fn set_result(&mut self, result: Raw) {
        (self.result, self.is_verbatim) = (result, false);
    }

    /// Whether a peer with the same rules can receive the result unchanged.
    pub(crate) fn is_verbatim(&self) -> bool {
        self.is_verbatim
    }

    /// The upstream's cache hints, if any (2026-07-28 schema, `CacheableResult`).
    pub fn cache_hints(&self) -> Option<CacheHints> {
        let result = self.result.as_object()?;
        let says = result.get_many(["ttlMs", "cacheScope"]).iter().any(Option::is_some);
        says.then(|| CacheHints::read(result, self.rules))
    }

    /// Whether the result reports that a tool failed.
    pub fn is_error(&self) -> bool {
        self.result.as_object().and_then(|result| result.get("isError")) == Some("true")
    }
}

/// Serialises rules as the name of their revision.
mod rules_by_name {
    use alloc::string::String;

    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use crate::revision::{Revision, Rules};

    pub(super) fn serialize<S: Serializer>(
        rules: &Rules,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(rules.name)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<&'static Rules, D::Error> {
        let name = String::deserialize(deserializer)?;
        let found = Revision::from_name(&name).map(Revision::rules);
        found.ok_or_else(|| D::Error::custom("unknown revision"))
    }
}

/// The kind of a relayed result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RelayedKind {
    /// A tool result.
    Tool,
    /// A resource's contents.
    Contents,
    /// A rendered prompt.
    Prompt,
    /// Any other result.
    Other,
}
