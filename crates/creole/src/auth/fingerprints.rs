//! Fingerprints of credentials, which stand for them in tables.

use std::net::IpAddr;

use http::HeaderValue;
use sha2::Digest as _;

use super::login_throttle::network_prefix;
use super::{Digest, random};

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
            account: fingerprints.of(b"account", &[&network, name]),
            address: fingerprints.of(b"address", &[&network]),
            attempt: fingerprints.of(b"attempt", &[&network, header]),
        }
    }
}

/// Computes fingerprints that are meaningless outside of this process, so that a table of them, or the time of a
/// lookup, reveals nothing about the credentials. They never leave the process, so a hash of the key and the text is
/// enough.
pub(super) struct Fingerprints {
    key: Digest,
}

impl Fingerprints {
    pub(super) fn new() -> Self {
        Self { key: random() }
    }

    pub(super) fn of(&self, purpose: &[u8], parts: &[&[u8]]) -> Digest {
        let mut hasher = sha2::Sha256::new();
        hasher.update(self.key);
        for part in [&[purpose], parts].concat() {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        hasher.finalize().into()
    }
}
