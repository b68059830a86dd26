//! A JSON Web Key Set (RFC 7517, section 5).

use std::fmt;

use serde_json::{Map, Value};

use super::algorithm::SignatureAlgorithm;
use super::json_object;
use super::public_key::PublicKey;
use crate::http::document::MAX_DOCUMENT_BYTES;

/// The maximum number of usable keys.
const MAX_KEYS: usize = 64;

/// The maximum length of a key id, in bytes.
pub const MAX_KEY_ID: usize = 256;

/// The maximum number of keys that are tried for a token without a key id.
const MAX_TRIED: usize = 4;

/// The usable keys of an issuer.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct KeySet {
    keys: Vec<(Option<String>, PublicKey)>,
    repeated_ids: usize,
}

/// Why a document is not a key set that is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeySetError {
    /// It is not a JSON object with a list `keys`, exceeds a limit or repeats a name.
    Malformed,
    /// It has more keys than are used.
    TooMany,
    /// It has no key that verifies signatures.
    NoUsableKey,
}

impl fmt::Display for KeySetError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Malformed => "it is not a JSON Web Key Set",
            Self::TooMany => "it has more than 64 keys",
            Self::NoUsableKey => "it has no key that can verify signatures",
        })
    }
}

impl std::error::Error for KeySetError {}

impl KeySet {
    /// Reads a key set. Keys that are not used here are left out.
    ///
    /// # Errors
    /// When the document is something else, or no usable key is left.
    pub fn parse(bytes: &[u8]) -> Result<Self, KeySetError> {
        let document =
            json_object::parse(bytes, MAX_DOCUMENT_BYTES).ok_or(KeySetError::Malformed)?;
        let elements =
            document.get("keys").and_then(Value::as_array).ok_or(KeySetError::Malformed)?;
        let mut set = Self::default();
        let mut repeated = Vec::new();
        for (id, key) in elements.iter().filter_map(Value::as_object).filter_map(read) {
            let same_id = |other: &&(Option<String>, PublicKey)| id.is_some() && other.0 == id;
            match set.keys.iter().find(same_id) {
                Some((_, other)) if *other == key => {}
                // Which of them signs cannot be known.
                Some(_) => repeated.extend(id),
                None => set.keys.push((id, key)),
            }
            if set.keys.len() > MAX_KEYS {
                return Err(KeySetError::TooMany);
            }
        }
        set.keys.retain(|(id, _)| id.as_ref().is_none_or(|id| !repeated.contains(id)));
        set.repeated_ids = repeated.len();
        match set.keys.is_empty() {
            true => Err(KeySetError::NoUsableKey),
            false => Ok(set),
        }
    }

    /// The number of keys that were left out because another key has the same id.
    pub fn repeated_ids(&self) -> usize {
        self.repeated_ids
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The keys that may have signed a token: the one with its key id, or all that fit the algorithm if the token has no
    /// key id and these are few.
    pub fn candidates(&self, id: Option<&str>, algorithm: SignatureAlgorithm) -> Vec<&PublicKey> {
        let fits = |(known, key): &&(Option<String>, PublicKey)| {
            key.fits(algorithm) && (id.is_none() || known.as_deref() == id)
        };
        let mut found: Vec<_> = self.keys.iter().filter(fits).map(|(_, key)| key).collect();
        if id.is_none() && found.len() > MAX_TRIED {
            found.clear();
        }
        found
    }
}

/// A usable key with its id. A key with an id that no token can have is not used.
fn read(jwk: &Map<String, Value>) -> Option<(Option<String>, PublicKey)> {
    let id = match jwk.get("kid") {
        Some(id) => Some(id.as_str().filter(|id| id.len() <= MAX_KEY_ID)?.to_owned()),
        None => None,
    };
    Some((id, PublicKey::read(jwk)?))
}

#[cfg(test)]
mod tests;
