//! Fingerprints of credentials, which stand for them in tables.

use std::net::IpAddr;

use http::HeaderValue;
use sha2::Digest as _;

use super::login_throttle::network_prefix;
use super::{Digest, random};
use crate::sync::RwLock;

/// The fingerprints of one password attempt.
pub(super) struct AttemptFingerprints {
    pub(super) name: Digest,
    /// The name and the address of the attempt.
    pub(super) account: Digest,
    /// The address of the attempt.
    pub(super) address: Digest,
    /// The whole header and the address.
    pub(super) attempt: Digest,
}

impl AttemptFingerprints {
    pub(super) fn new(
        fingerprints: &Fingerprints,
        header: Option<&HeaderValue>,
        name: &str,
        peer: Option<IpAddr>,
    ) -> Self {
        let (network, name) = (network_prefix(peer), name.as_bytes());
        let header = header.map_or(&[][..], HeaderValue::as_bytes);
        Self {
            name: fingerprints.of(b"name", &[name]),
            account: fingerprints.of_subject(b"account", &[&network, name]),
            address: fingerprints.of_subject(b"address", &[&network]),
            attempt: fingerprints.of(b"attempt", &[&network, header]),
        }
    }
}

/// Computes fingerprints that are meaningless without a key, so that a table of them, or the time of a lookup, reveals
/// nothing about the credentials. Both keys are secret, so a hash of the key and the text is enough.
pub(super) struct Fingerprints {
    /// The key of fingerprints that never leave the process.
    key: Digest,
    /// The key of those that stand for who logs in. Replicas may share it.
    subject_key: RwLock<Digest>,
}

impl Fingerprints {
    pub(super) fn new() -> Self {
        Self { key: random(), subject_key: RwLock::new(random()) }
    }

    /// The fingerprint of a credential, within this process.
    pub(super) fn of(&self, purpose: &[u8], parts: &[&[u8]]) -> Digest {
        fingerprint(&self.key, purpose, parts)
    }

    /// The fingerprint of an account or an address, for all replicas with the same key.
    pub(super) fn of_subject(&self, purpose: &[u8], parts: &[&[u8]]) -> Digest {
        fingerprint(&self.subject_key.read(), purpose, parts)
    }

    /// Uses the key of other replicas for accounts and addresses.
    pub(super) fn share_subjects(&self, key: Digest) {
        *self.subject_key.write() = key;
    }
}

fn fingerprint(key: &Digest, purpose: &[u8], parts: &[&[u8]]) -> Digest {
    let mut hasher = sha2::Sha256::new();
    hasher.update(key);
    for part in [&[purpose], parts].concat() {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}
