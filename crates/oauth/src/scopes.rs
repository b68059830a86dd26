//! Sets of scopes, in the order in which they were named.

use serde::{Deserialize, Serialize};

use crate::error::OAuthError;

/// The maximum number of scopes in a set.
const MAX_SCOPES: usize = 128;

/// A set of scopes (RFC 6749, section 3.3).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Scopes(Vec<String>);

impl Scopes {
    /// Reads scopes that are separated by spaces. Those that the grammar does not allow are left out.
    pub fn parse(text: &str) -> Self {
        text.split(' ').map(str::to_owned).collect()
    }

    /// Whether there is no scope.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The scopes.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Whether the set has a scope.
    pub fn contains(&self, scope: &str) -> bool {
        self.0.iter().any(|known| known == scope)
    }

    /// Whether the set has every scope of another.
    pub fn contains_all(&self, other: &Self) -> bool {
        other.iter().all(|scope| self.contains(scope))
    }

    /// The scopes of both sets.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.iter().chain(other.iter()).map(str::to_owned).collect()
    }

    /// Checks the set against the largest one that the configuration allows.
    ///
    /// # Errors
    /// When a scope is not allowed.
    pub fn check_within(&self, allowed: Option<&Self>) -> Result<(), OAuthError> {
        let Some(allowed) = allowed else { return Ok(()) };
        match self.iter().find(|scope| !allowed.contains(scope)) {
            Some(scope) => Err(OAuthError::ScopeNotAllowed { scope: scope.to_owned() }),
            None => Ok(()),
        }
    }

    /// The scopes that are in the largest set that the configuration allows.
    #[must_use]
    pub fn within(&self, allowed: Option<&Self>) -> Self {
        let is_allowed = |scope: &&str| allowed.is_none_or(|allowed| allowed.contains(scope));
        self.iter().filter(is_allowed).map(str::to_owned).collect()
    }

    /// The scopes with spaces between them; `None` if there are none.
    pub fn to_parameter(&self) -> Option<String> {
        (!self.0.is_empty()).then(|| self.0.join(" "))
    }
}

impl FromIterator<String> for Scopes {
    fn from_iter<I: IntoIterator<Item = String>>(scopes: I) -> Self {
        let is_scope = |scope: &str| {
            let is_allowed = |byte: u8| {
                byte == b'!' || (b'#'..=b'[').contains(&byte) || (b']'..=b'~').contains(&byte)
            };
            !scope.is_empty() && scope.bytes().all(is_allowed)
        };
        let mut set: Vec<String> = Vec::new();
        for scope in scopes {
            if is_scope(&scope) && !set.contains(&scope) && set.len() < MAX_SCOPES {
                set.push(scope);
            }
        }
        Self(set)
    }
}

#[cfg(test)]
mod tests {
    use super::Scopes;

    #[test]
    fn a_set_keeps_the_order_and_drops_repetitions() {
        let left = Scopes::parse("b  a b \u{e9} \"x");
        assert_eq!(left.to_parameter().as_deref(), Some("b a"));
        assert_eq!(left.union(&Scopes::parse("c a")).to_parameter().as_deref(), Some("b a c"));
        assert_eq!(Scopes::parse("").to_parameter(), None);
    }

    #[test]
    fn a_scope_beyond_the_allowed_ones_is_named() {
        let allowed = Scopes::parse("a b");
        assert_eq!(Scopes::parse("b").check_within(Some(&allowed)), Ok(()));
        assert_eq!(Scopes::parse("x").check_within(None), Ok(()));
        let error = Scopes::parse("a admin:all").check_within(Some(&allowed)).unwrap_err();
        assert!(error.to_string().contains("`admin:all`"), "{error}");
    }
}
