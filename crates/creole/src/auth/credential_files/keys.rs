//! Bearer keys: long random texts, of which only the SHA-256 is stored.
//!
//! A key of 256 random bits cannot be guessed, so a fast hash is enough. There is no minimum length, because users do
//! not choose keys.

use std::sync::Arc;
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use creole_proto::wire::hex;
use subtle::{ConditionallySelectable, ConstantTimeEq};

use super::expiry::Expiry;
use super::file;
use super::file::{CredentialEntry, StoredCredential};
use crate::auth::denial::DenialReason;
use crate::auth::error::AuthError;
use crate::auth::secret::{Secret, SecretRef};
use crate::auth::{Digest, random};
use crate::principal::Principal;
use crate::secrets::digest;

/// What the keys of this program begin with.
pub(crate) const KEY_PREFIX: &str = "creole_";

/// A new key. It is shown once; only its SHA-256 is stored.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// The key as the caller sends it. Its prefix lets scanners find leaked keys.
    pub key: Secret,
    /// Its SHA-256 as hexadecimal digits.
    pub sha256: String,
}

impl NewKey {
    /// Generates a key.
    ///
    /// # Panics
    /// When the system has no random bytes.
    #[must_use]
    pub fn random() -> Self {
        let key = format!("{KEY_PREFIX}{}", URL_SAFE_NO_PAD.encode(random()));
        Self { sha256: hex(&digest(key.as_bytes())), key: key.as_str().into() }
    }
}

/// A key of the configuration, given by its SHA-256.
#[derive(Clone, Debug)]
pub struct BearerKey {
    pub(in crate::auth) name: String,
    pub(in crate::auth) digest: Digest,
    pub(in crate::auth) roles: Arc<[Arc<str>]>,
    pub(in crate::auth) expires: Option<Expiry>,
}

impl BearerKey {
    /// A key with this name and this SHA-256 as hexadecimal digits.
    ///
    /// # Errors
    /// When the name or a role is not a plain word, or the SHA-256 is not 64 hexadecimal digits.
    pub fn new(
        name: &str,
        sha256: &str,
        roles: &[String],
        expires: Option<&str>,
    ) -> Result<Self, AuthError> {
        file::check_name("name", name)?;
        let error = || {
            AuthError::new(format!("the SHA-256 of the key `{name}` is not 64 hexadecimal digits"))
        };
        Ok(Self {
            name: name.to_owned(),
            digest: file::digest_of_hex(sha256).ok_or_else(error)?,
            roles: file::check_roles(roles.iter().map(String::as_str))?,
            expires: expires.map(file::parse_expiry).transpose()?,
        })
    }
}

/// The accepted keys.
#[derive(Debug, Default)]
pub(in crate::auth) struct BearerKeys {
    keys: Vec<(Digest, Option<Expiry>, Principal)>,
}

impl BearerKeys {
    /// The keys of the configuration and those of the file together.
    pub(in crate::auth) fn new(
        written: &[BearerKey],
        entries: Vec<CredentialEntry>,
    ) -> Result<Self, AuthError> {
        let mut keys = Self::default();
        for key in written {
            let known = key_principal(&key.name, &key.roles);
            keys.add(key.digest, key.expires, known)?;
        }
        for CredentialEntry { line, name, credential: proof, roles } in entries {
            if let StoredCredential::Key { digest, expires } = proof {
                let known = key_principal(&name, &roles);
                keys.add(digest, expires, known).map_err(|error| error.at_line(line))?;
            }
        }
        Ok(keys)
    }

    fn add(&mut self, key: Digest, end: Option<Expiry>, known: Principal) -> Result<(), AuthError> {
        let name = known.id().trim_start_matches("key:");
        if self.keys.iter().any(|(.., other)| other.id() == known.id()) {
            return Err(AuthError::new(format!("two keys have the name `{name}`")));
        }
        if self.keys.iter().any(|(other, ..)| *other == key) {
            let message = format!("the key `{name}` has the same SHA-256 as another key");
            return Err(AuthError::new(message)
                .help("create a separate key for each name, so that each can be revoked"));
        }
        self.keys.push((key, end, known));
        Ok(())
    }

    pub(in crate::auth) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The principal of a key, or the reason of the denial. Every key is compared, so that the time reveals nothing.
    pub(in crate::auth) fn find(&self, key: SecretRef<'_>) -> Result<&Principal, DenialReason> {
        let given = digest(key.0);
        let mut found = u64::MAX;
        for (index, (known, ..)) in (0..).zip(&self.keys) {
            found.conditional_assign(&index, known.ct_eq(&given));
        }
        let found = usize::try_from(found).ok().and_then(|found| self.keys.get(found));
        let (_, end, principal) = found.ok_or(DenialReason::UnknownKey)?;
        match end.is_some_and(|end| end.has_passed(SystemTime::now())) {
            true => Err(DenialReason::ExpiredKey),
            false => Ok(principal),
        }
    }
}

fn key_principal(name: &str, roles: &[Arc<str>]) -> Principal {
    Principal::new(&format!("key:{name}"), roles)
}
