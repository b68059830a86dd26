//! A text that is never shown.

use std::fmt;

use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// A token, a password or a code. Its `Debug` output hides it, and its memory is overwritten when it is dropped.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretText(String);

impl SecretText {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl Zeroize for SecretText {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

impl Drop for SecretText {
    fn drop(&mut self) {
        self.zeroize();
    }
}

impl ZeroizeOnDrop for SecretText {}

impl fmt::Debug for SecretText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("…")
    }
}

#[cfg(test)]
mod tests {
    use zeroize::{Zeroize, ZeroizeOnDrop};

    use super::SecretText;

    fn drop_overwritten(secret: impl ZeroizeOnDrop) {
        drop(secret);
    }

    #[test]
    fn a_secret_is_overwritten_and_not_shown() {
        let mut secret = SecretText::new("canary");
        assert_eq!(format!("{secret:?}"), "…");
        secret.zeroize();
        assert_eq!(secret.expose(), "");
        drop_overwritten(secret);
    }
}
