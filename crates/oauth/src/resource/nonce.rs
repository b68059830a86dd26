//! Nonces that a server demands in proofs (RFC 9449, section 9).

use std::fmt;

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq;

/// How long a nonce is the current one, in seconds. The one before is accepted too.
const WINDOW: u64 = 120;

/// Makes and checks nonces. Every process with the same secret makes the same ones, so none has to be stored.
#[derive(Clone)]
pub struct NonceKey(Key);

impl NonceKey {
    /// Uses a secret.
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(Key::new(HMAC_SHA256, secret))
    }

    /// The current nonce.
    pub fn nonce(&self, now: u64) -> String {
        self.of_window(now / WINDOW)
    }

    /// Whether a nonce is the current one or the one before.
    pub fn accepts(&self, nonce: &str, now: u64) -> bool {
        let window = now / WINDOW;
        let is =
            |window: u64| bool::from(self.of_window(window).as_bytes().ct_eq(nonce.as_bytes()));
        is(window) | window.checked_sub(1).is_some_and(is)
    }

    fn of_window(&self, window: u64) -> String {
        let message = [b"creole dpop nonce 1".as_slice(), &window.to_be_bytes()].concat();
        BASE64_URL_SAFE_NO_PAD.encode(sign(&self.0, &message))
    }
}

impl fmt::Debug for NonceKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("NonceKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::{NonceKey, WINDOW};

    #[test]
    fn a_nonce_holds_in_its_window_and_the_next_with_the_same_secret() {
        let (key, same, other) =
            (NonceKey::new(&[1; 32]), NonceKey::new(&[1; 32]), NonceKey::new(&[2; 32]));
        let begin = 1_000 * WINDOW;
        let nonce = key.nonce(begin);
        assert_eq!(nonce, key.nonce(begin + WINDOW - 1));
        assert_ne!(nonce, key.nonce(begin + WINDOW));
        for now in [begin, begin + WINDOW - 1, begin + WINDOW, begin + 2 * WINDOW - 1] {
            assert!(same.accepts(&nonce, now), "{now}");
        }
        for now in [begin - 1, begin + 2 * WINDOW, 0] {
            assert!(!key.accepts(&nonce, now), "{now}");
        }
        assert!(!other.accepts(&nonce, begin) && !key.accepts("", begin));
        assert_eq!(format!("{key:?}"), "NonceKey(…)");
    }
}
