//! Encrypts and authenticates what a state on the network stores, so that the store can neither read nor forge it.
//!
//! A stored text is `nonce || ciphertext || tag`, made with XChaCha20-Poly1305. Its kind and its name are bound into it,
//! so a text that is moved to another key, log or topic does not open. A text that does not open counts as absent.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use chacha20poly1305::{AeadInOut, KeyInit, XChaCha20Poly1305, XNonce};

use crate::random;
use crate::secrets::{Secrets, digest};
use crate::state::{Result, StateError};
use crate::sync::RwLock;

const NONCE: usize = 24;
const TAG: usize = 16;

/// What a stored text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoredKind {
    Entry,
    Lease,
    LogEntry,
    Message,
}

/// The keys that protect a state; clones share them.
#[derive(Clone)]
pub struct StateProtection {
    shared: Arc<SharedKeys>,
}

struct SharedKeys {
    /// The newest first. All of them open, the newest one encrypts.
    ciphers: RwLock<Vec<XChaCha20Poly1305>>,
    /// Whether an unreadable text was reported. Only the first one is: its writer may write many.
    is_reported: AtomicBool,
}

impl StateProtection {
    /// The protection with these secrets, which all processes that share the state must have.
    #[must_use]
    pub fn new(secrets: &Secrets) -> Self {
        let ciphers = RwLock::new(ciphers(secrets));
        let shared = SharedKeys { ciphers, is_reported: AtomicBool::new(false) };
        Self { shared: Arc::new(shared) }
    }

    /// Encrypts with the newest of these secrets from now on.
    pub fn set_secrets(&self, secrets: &Secrets) {
        *self.shared.ciphers.write() = ciphers(secrets);
    }

    /// The text to store under this name.
    pub(super) fn encrypt(&self, kind: StoredKind, name: &str, plain: &[u8]) -> Result<Bytes> {
        let nonce: [u8; NONCE] = random::random_bytes().map_err(|_| StateError::Stopped)?;
        let mut text = Vec::with_capacity(NONCE + plain.len() + TAG);
        text.extend_from_slice(plain);
        let ciphers = self.shared.ciphers.read();
        let cipher = ciphers.first().ok_or(StateError::Stopped)?;
        cipher
            .encrypt_in_place(&XNonce::from(nonce), &associated_data(kind, name), &mut text)
            .map_err(|_| StateError::Stopped)?;
        text.splice(..0, nonce);
        Ok(text.into())
    }

    /// The plain bytes; `None` for a text that was not stored under this name by a process with the secrets.
    pub(super) fn decrypt(&self, kind: StoredKind, name: &str, text: &[u8]) -> Option<Bytes> {
        let plain = self.try_decrypt(kind, name, text);
        if plain.is_none() && !self.shared.is_reported.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                ?kind,
                "the state store holds data that was not written with the key of `keys_file`; it counts as absent"
            );
        }
        plain
    }

    fn try_decrypt(&self, kind: StoredKind, name: &str, text: &[u8]) -> Option<Bytes> {
        let (nonce, sealed) = text.split_first_chunk::<NONCE>()?;
        let data = associated_data(kind, name);
        self.shared.ciphers.read().iter().find_map(|cipher| {
            let mut plain = sealed.to_vec();
            cipher.decrypt_in_place(&XNonce::from(*nonce), &data, &mut plain).ok()?;
            Some(plain.into())
        })
    }
}

impl fmt::Debug for StateProtection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("StateProtection").finish_non_exhaustive()
    }
}

/// The ciphers of secrets. Their keys are derived, because the secrets have other uses too.
fn ciphers(secrets: &Secrets) -> Vec<XChaCha20Poly1305> {
    let key = |secret: &[u8; 32]| digest(&[b"creole state v1 key ", &secret[..]].concat());
    secrets.iter().map(|secret| XChaCha20Poly1305::new(&key(secret).into())).collect()
}

fn associated_data(kind: StoredKind, name: &str) -> Vec<u8> {
    let kind: &[u8] = match kind {
        StoredKind::Entry => b"creole state v1 entry ",
        StoredKind::Lease => b"creole state v1 lease ",
        StoredKind::LogEntry => b"creole state v1 log ",
        StoredKind::Message => b"creole state v1 message ",
    };
    [kind, name.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protection(text: &str) -> StateProtection {
        StateProtection::new(&Secrets::parse(text).unwrap())
    }

    #[test]
    fn a_text_opens_only_under_its_kind_and_name() {
        let keys = protection(&"07".repeat(32));
        let text = keys.encrypt(StoredKind::Entry, "a", b"secret").unwrap();
        assert!(!text.windows(6).any(|bytes| bytes == b"secret"));
        assert_eq!(keys.decrypt(StoredKind::Entry, "a", &text).unwrap(), "secret");
        assert_eq!(keys.decrypt(StoredKind::Entry, "b", &text), None);
        assert_eq!(keys.decrypt(StoredKind::LogEntry, "a", &text), None);
        for index in 0..text.len() {
            let mut changed = text.to_vec();
            changed[index] ^= 1;
            assert_eq!(keys.decrypt(StoredKind::Entry, "a", &changed), None, "byte {index}");
        }
        assert_eq!(keys.decrypt(StoredKind::Entry, "a", b"short"), None);
        assert_ne!(keys.encrypt(StoredKind::Entry, "a", b"secret").unwrap(), text);
    }

    #[test]
    fn the_previous_key_still_opens() {
        let (old, new) = ("01".repeat(32), "02".repeat(32));
        let keys = protection(&old);
        let before = keys.encrypt(StoredKind::Message, "t", b"x").unwrap();
        keys.set_secrets(&Secrets::parse(&format!("{new}\n{old}")).unwrap());
        assert_eq!(keys.decrypt(StoredKind::Message, "t", &before).unwrap(), "x");
        let after = keys.encrypt(StoredKind::Message, "t", b"x").unwrap();
        assert_eq!(protection(&new).decrypt(StoredKind::Message, "t", &after).unwrap(), "x");
        assert_eq!(protection(&old).decrypt(StoredKind::Message, "t", &after), None);
    }
}
