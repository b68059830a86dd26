//! A public key from its JSON Web Key (RFC 7517).

use std::fmt;

use aws_lc_rs::signature::{ParsedPublicKey, RsaPublicKeyComponents};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use super::algorithm::{KeyKind, SignatureAlgorithm};
use crate::crypto::jose::thumbprint;

/// The size of an RSA key, in bits.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2_048..=8_192;

/// The members that only private and shared keys have.
const PRIVATE_MEMBERS: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

/// A public key that verifies signatures.
pub struct PublicKey {
    thumbprint: String,
    /// The key, prepared for each algorithm that it may be used with.
    prepared: Vec<(SignatureAlgorithm, ParsedPublicKey)>,
}

impl PublicKey {
    /// Reads a key that verifies signatures. `None` if it is for another use, of an unknown kind, too short or broken.
    pub fn read(jwk: &Map<String, Value>) -> Option<Self> {
        Self::read_for(jwk, &SignatureAlgorithm::ALL)
    }

    /// The same for these algorithms only.
    pub fn read_for(jwk: &Map<String, Value>, algorithms: &[SignatureAlgorithm]) -> Option<Self> {
        if !is_for_signatures(jwk) {
            return None;
        }
        let (kind, material) = Material::read(jwk)?;
        let named = match jwk.get("alg") {
            Some(name) => Some(SignatureAlgorithm::from_name(name.as_str()?)?),
            None => None,
        };
        let fits = |it: &&SignatureAlgorithm| {
            it.key_kind() == kind && named.is_none_or(|named| named == **it)
        };
        let prepare = |it: &SignatureAlgorithm| Some((*it, material.prepare(*it)?));
        let prepared = algorithms.iter().filter(fits).map(prepare).collect::<Option<Vec<_>>>()?;
        let thumbprint = thumbprint(&Value::Object(jwk.clone()));
        (!prepared.is_empty()).then_some(Self { thumbprint, prepared })
    }

    /// Whether the JSON Web Key has a member of a private or shared key.
    pub fn is_private(jwk: &Map<String, Value>) -> bool {
        PRIVATE_MEMBERS.iter().any(|member| jwk.contains_key(*member))
    }

    /// The thumbprint (RFC 7638).
    pub fn thumbprint(&self) -> &str {
        &self.thumbprint
    }

    /// Whether the key may be used with an algorithm.
    pub fn fits(&self, algorithm: SignatureAlgorithm) -> bool {
        self.prepared.iter().any(|(it, _)| *it == algorithm)
    }

    /// Whether the signature of a message is right.
    pub fn verify(&self, algorithm: SignatureAlgorithm, message: &[u8], signature: &[u8]) -> bool {
        let key = self.prepared.iter().find(|(it, _)| *it == algorithm);
        key.is_some_and(|(_, key)| key.verify_sig(message, signature).is_ok())
    }

    fn algorithms(&self) -> impl Iterator<Item = SignatureAlgorithm> {
        self.prepared.iter().map(|(algorithm, _)| *algorithm)
    }
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        self.thumbprint == other.thumbprint && self.algorithms().eq(other.algorithms())
    }
}

impl Eq for PublicKey {}

impl fmt::Debug for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PublicKey({})", self.thumbprint)
    }
}

/// `use` and `key_ops` do not forbid to verify signatures (RFC 7517, sections 4.2 and 4.3).
fn is_for_signatures(jwk: &Map<String, Value>) -> bool {
    let by_use = jwk.get("use").is_none_or(|it| it == "sig");
    let by_operations = jwk.get("key_ops").is_none_or(|it| {
        it.as_array().is_some_and(|operations| operations.iter().any(|it| it == "verify"))
    });
    by_use && by_operations
}

/// The numbers of a key.
enum Material {
    Rsa(RsaPublicKeyComponents<Vec<u8>>),
    Bytes(Vec<u8>),
}

impl Material {
    fn read(jwk: &Map<String, Value>) -> Option<(KeyKind, Self)> {
        let bytes = |name: &str| BASE64_URL_SAFE_NO_PAD.decode(jwk.get(name)?.as_str()?).ok();
        let curve = || jwk.get("crv").and_then(Value::as_str);
        match jwk.get("kty")?.as_str()? {
            "RSA" => {
                let components = RsaPublicKeyComponents { n: bytes("n")?, e: bytes("e")? };
                is_strong(&components).then_some((KeyKind::Rsa, Self::Rsa(components)))
            }
            "EC" => {
                let (kind, length) = match curve()? {
                    "P-256" => (KeyKind::P256, 32),
                    "P-384" => (KeyKind::P384, 48),
                    "P-521" => (KeyKind::P521, 66),
                    _ => return None,
                };
                let (x, y) = (bytes("x")?, bytes("y")?);
                let is_right = x.len() == length && y.len() == length;
                // An uncompressed point.
                is_right.then(|| (kind, Self::Bytes([&[4][..], &x, &y].concat())))
            }
            "OKP" if curve()? == "Ed25519" => {
                let x = bytes("x").filter(|x| x.len() == 32)?;
                Some((KeyKind::Ed25519, Self::Bytes(x)))
            }
            _ => None,
        }
    }

    fn prepare(&self, algorithm: SignatureAlgorithm) -> Option<ParsedPublicKey> {
        match self {
            Self::Rsa(components) => components.to_parsed_public_key(algorithm.rsa()?).ok(),
            Self::Bytes(bytes) => ParsedPublicKey::new(algorithm.curve()?, bytes).ok(),
        }
    }
}

/// The modulus has an accepted size, and the exponent is odd, at least 65537 and at most 64 bits.
fn is_strong(components: &RsaPublicKeyComponents<Vec<u8>>) -> bool {
    let Some(first) = components.n.first().filter(|first| **first != 0) else { return false };
    let bits = components.n.len() * 8 - first.leading_zeros() as usize;
    let exponent = match components.e.as_slice() {
        [0, ..] => 0,
        bytes if bytes.len() <= 8 => bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
        _ => 0,
    };
    RSA_BITS.contains(&bits) && exponent >= 65_537 && exponent % 2 == 1
}

#[cfg(test)]
mod tests;
