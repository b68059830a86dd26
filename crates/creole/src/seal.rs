//! Encrypts and authenticates data that passes through clients and comes back: request states and cursors.
//!
//! A sealed text is `c1.<key id>.<base64url(nonce || ciphertext || tag)>`, made with XChaCha20-Poly1305. Its purpose
//! and its recipient are bound into it, so a text that is moved to another user, method or purpose does not open.

use crate::sync::RwLock;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::secrets::{Secrets, digest};
use crate::state;
use crate::state::State;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use chacha20poly1305::{AeadInOut, KeyInit, XChaCha20Poly1305, XNonce};

/// Longer texts are rejected before they are decoded.
pub(crate) const MAX_TEXT: usize = 64 * 1024;

/// Longer plain bytes seal into more than [`MAX_TEXT`], which does not open.
#[cfg(test)]
pub(crate) const MAX_PLAIN: usize =
    (MAX_TEXT - PREFIX.len() - KEY_ID - 1) / 4 * 3 - NONCE - EXPIRY - TAG;

/// The maximum difference between the clocks of machines that share secrets: a text opens for that much longer, since
/// its clock may have been behind. Data in one place, such as a parked call, expires by the clock there.
pub(crate) const MAX_CLOCK_SKEW: Duration = Duration::from_secs(5 * 60);

/// Seals and opens texts; clones share their keys.
#[derive(Clone)]
pub struct Sealer {
    keys: Arc<RwLock<SealKeys>>,
}

/// The purpose of a sealed text. A text of one purpose does not open as another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The `requestState` of a call that waits for input.
    State,
    /// The position at which a list continues.
    Cursor,
}

/// Why a text does not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SealError {
    /// It was not sealed here or for this purpose, or it was changed. Which of them is never reported.
    Invalid,
    /// It is authentic but expired.
    Expired,
}

impl Sealer {
    /// A sealer whose texts no other process can open.
    ///
    /// # Panics
    /// When the system has no random bytes.
    #[must_use]
    pub fn random() -> Self {
        Self::from_key(&random())
    }

    /// A sealer that opens the texts of every sealer with the same secret.
    #[must_use]
    pub(crate) fn from_key(secret: &[u8; 32]) -> Self {
        let keys =
            SealKeys { current: Arc::new(SealKey::new(secret)), previous: None, leeway_ms: 0 };
        Self { keys: Arc::new(RwLock::new(keys)) }
    }

    /// A sealer whose secret is stored in a state under this name: each process that shares the state opens the texts
    /// of the others, and those from before a restart.
    ///
    /// # Errors
    /// When the state cannot be read or written. If another value is stored under this name, the secret is private to
    /// this sealer.
    ///
    /// # Panics
    /// When the system has no random bytes.
    pub async fn from_state(state: &State, name: &str) -> state::Result<Self> {
        let key = format!("seal/{name}");
        let own: [u8; 32] = random();
        // Of several processes that start together, the first one's secret is used by all.
        let is_own = state.swap(&key, None, Bytes::copy_from_slice(&own), None).await?.is_some();
        let item = match is_own {
            true => None,
            false => state.get(&key).await?,
        };
        let kept = item.and_then(|entry| <[u8; 32]>::try_from(&*entry.value).ok());
        Ok(Self::from_key(&kept.unwrap_or(own)))
    }

    /// Seals with a new secret from now on. Texts of the previous secret still open, older ones do not.
    ///
    /// Rotating to the secret in use does nothing, so a configuration may be reloaded.
    pub(crate) fn rotate(&self, secret: &[u8; 32]) {
        let key = Arc::new(SealKey::new(secret));
        let mut keys = self.keys.write();
        if keys.current.id != key.id {
            keys.previous = Some(std::mem::replace(&mut keys.current, key));
        }
    }

    /// Seals with the newest of these secrets from now on. Texts of the previous one still open, even if only this
    /// sealer has it. Other machines may use the secrets too; their clocks may differ by up to `MAX_CLOCK_SKEW`.
    pub fn set_secrets(&self, secrets: &Secrets) {
        secrets.iter().rev().for_each(|secret| self.rotate(secret));
        let mut keys = self.keys.write();
        keys.leeway_ms = MAX_CLOCK_SKEW.as_millis() as u64;
    }

    /// Seals `plain` for `purpose` and for the `binding`, until `expires_at_ms`.
    ///
    /// # Panics
    /// When the system has no random bytes.
    #[must_use]
    pub(crate) fn seal(
        &self,
        purpose: Purpose,
        binding: &[&[u8]],
        expires_at_ms: u64,
        plain: &[u8],
    ) -> String {
        let key = Arc::clone(&self.keys.read().current);
        let mut sealed = Vec::with_capacity(EXPIRY + plain.len() + TAG);
        sealed.extend_from_slice(&expires_at_ms.to_be_bytes());
        sealed.extend_from_slice(plain);
        let nonce: [u8; NONCE] = random();
        key.cipher
            .encrypt_in_place(&XNonce::from(nonce), &associated_data(purpose, binding), &mut sealed)
            .expect("the cipher accepts 256 GiB");

        let mut text = String::with_capacity(64 + sealed.len() * 4 / 3);
        text.push_str(PREFIX);
        text.push_str(&key.id);
        text.push('.');
        // The length of the nonce is a multiple of three bytes, so the parts encode like the whole.
        URL_SAFE_NO_PAD.encode_string(nonce, &mut text);
        URL_SAFE_NO_PAD.encode_string(&sealed, &mut text);
        text
    }

    /// Opens a text that was sealed for the same purpose and binding.
    ///
    /// # Errors
    /// [`SealError::Expired`] when it is authentic but `now_ms` has reached its expiry, plus [`MAX_CLOCK_SKEW`] if
    /// other machines may share the secrets, and [`SealError::Invalid`] in every other case.
    pub(crate) fn open(
        &self,
        purpose: Purpose,
        binding: &[&[u8]],
        now_ms: u64,
        text: &str,
    ) -> Result<Vec<u8>, SealError> {
        let (key, nonce, mut opened) = self.parse(text).ok_or(SealError::Invalid)?;
        key.cipher
            .decrypt_in_place(&XNonce::from(nonce), &associated_data(purpose, binding), &mut opened)
            .map_err(|_| SealError::Invalid)?;
        let expires_at_ms = *opened.first_chunk::<EXPIRY>().ok_or(SealError::Invalid)?;
        let leeway_ms = self.keys.read().leeway_ms;
        if now_ms >= u64::from_be_bytes(expires_at_ms).saturating_add(leeway_ms) {
            return Err(SealError::Expired);
        }
        opened.drain(..EXPIRY);
        Ok(opened)
    }

    /// The key, the nonce and the ciphertext.
    fn parse(&self, text: &str) -> Option<(Arc<SealKey>, [u8; NONCE], Vec<u8>)> {
        if text.len() > MAX_TEXT {
            return None;
        }
        let (id, encoded) = text.strip_prefix(PREFIX)?.split_once('.')?;
        let key = self.keys.read().find(id)?;
        let (nonce, sealed) = encoded.split_at_checked(NONCE / 3 * 4)?;
        let nonce = URL_SAFE_NO_PAD.decode(nonce).ok()?.try_into().ok()?;
        Some((key, nonce, URL_SAFE_NO_PAD.decode(sealed).ok()?))
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.keys.read();
        f.debug_struct("Sealer").field("key", &keys.current.id).finish_non_exhaustive()
    }
}

impl fmt::Display for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Invalid => "not valid here",
            Self::Expired => "no longer valid",
        })
    }
}

impl Error for SealError {}

struct SealKeys {
    current: Arc<SealKey>,
    previous: Option<Arc<SealKey>>,
    /// How long texts open after their expiry.
    leeway_ms: u64,
}

impl SealKeys {
    fn find(&self, id: &str) -> Option<Arc<SealKey>> {
        [Some(&self.current), self.previous.as_ref()]
            .into_iter()
            .flatten()
            .find(|key| key.id == id)
            .cloned()
    }
}

struct SealKey {
    /// Identifies the key to replicas, and reveals nothing about it.
    id: String,
    cipher: XChaCha20Poly1305,
}

impl SealKey {
    /// The cipher key is derived, so that a secret may also be used for other purposes.
    fn new(secret: &[u8; 32]) -> Self {
        let derive = |label: &[u8]| digest(&[label, &secret[..]].concat());
        let id = URL_SAFE_NO_PAD.encode(&derive(b"creole seal v1 id ")[..KEY_ID / 4 * 3]);
        Self { id, cipher: XChaCha20Poly1305::new(&derive(b"creole seal v1 key ").into()) }
    }
}

/// The associated data: each part carries its length, so that no two lists of parts give the same bytes.
fn associated_data(purpose: Purpose, binding: &[&[u8]]) -> Vec<u8> {
    let mut bytes =
        Vec::with_capacity(64 + binding.iter().map(|part| part.len() + 8).sum::<usize>());
    bytes.extend_from_slice(match purpose {
        Purpose::State => b"creole seal v1 state ",
        Purpose::Cursor => b"creole seal v1 cursor",
    });
    for part in binding {
        bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
        bytes.extend_from_slice(part);
    }
    bytes
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // Any fallback instead of a panic would seal with a guessable nonce or key.
    getrandom::fill(&mut bytes).expect("the system provides random bytes");
    bytes
}

const PREFIX: &str = "c1.";
const KEY_ID: usize = 8;
const NONCE: usize = 24;
const EXPIRY: usize = 8;
const TAG: usize = 16;

pub(crate) mod cursor;

#[cfg(test)]
mod tests;
