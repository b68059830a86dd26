//! Signs compact JSON Web Signatures (RFC 7515) with keys of the configuration or keys made here.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
    RSA_PSS_SHA256, RsaKeyPair,
};
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::error::OAuthError;

/// A private key with the algorithm that it signs with.
#[derive(Clone)]
pub struct SigningKey {
    pair: Arc<Pair>,
    algorithm: Algorithm,
    id: String,
}

enum Pair {
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rsa(RsaKeyPair),
}

/// A signature algorithm (RFC 7518, RFC 9864).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// ECDSA with the curve P-256.
    Es256,
    /// EdDSA with the curve Ed25519.
    EdDsa,
    /// RSA with PKCS #1 v1.5.
    Rs256,
    /// RSA with PSS.
    Ps256,
}

impl Algorithm {
    const ALL: [Self; 4] = [Self::Es256, Self::EdDsa, Self::Rs256, Self::Ps256];

    /// The registered name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
            Self::Rs256 => "RS256",
            Self::Ps256 => "PS256",
        }
    }

    /// The algorithm with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }
}

impl SigningKey {
    /// A new key for ES256.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub fn generate() -> Result<Self, OAuthError> {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING)
            .map_err(|_| OAuthError::NoRandomBytes)?;
        Ok(Self::new(Pair::Ecdsa(pair), Algorithm::Es256))
    }

    /// Reads a PKCS #8 key in PEM form. Without a named algorithm an RSA key signs with RS256.
    ///
    /// # Errors
    /// When the text is not such a key, or the key does not fit the algorithm.
    pub fn from_pem(pem: &str, algorithm: Option<Algorithm>) -> Result<Self, OAuthError> {
        let wrong = |reason: &str| OAuthError::Key { reason: reason.to_owned() };
        let der = pem_block(pem)
            .ok_or_else(|| wrong("the private key is not a PKCS #8 key in PEM form"))?;
        let fits = |wanted: &[Algorithm]| algorithm.is_none_or(|it| wanted.contains(&it));
        let (pair, algorithm) = if let Ok(pair) =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der)
        {
            (Pair::Ecdsa(pair), Some(Algorithm::Es256).filter(|it| fits(&[*it])))
        } else if let Ok(pair) = Ed25519KeyPair::from_pkcs8(&der) {
            (Pair::Ed25519(pair), Some(Algorithm::EdDsa).filter(|it| fits(&[*it])))
        } else if let Ok(pair) = RsaKeyPair::from_pkcs8(&der) {
            let chosen = algorithm.unwrap_or(Algorithm::Rs256);
            (Pair::Rsa(pair), Some(chosen).filter(|_| fits(&[Algorithm::Rs256, Algorithm::Ps256])))
        } else {
            return Err(wrong(
                "the private key is of a kind that is not used: use P-256, Ed25519 or RSA",
            ));
        };
        let algorithm =
            algorithm.ok_or_else(|| wrong("the private key does not fit the signing algorithm"))?;
        Ok(Self::new(pair, algorithm))
    }

    /// Reads a key that [`SigningKey::export`] wrote.
    ///
    /// # Errors
    /// When the text is not such a key.
    pub fn import(text: &str) -> Result<Self, OAuthError> {
        let wrong = || OAuthError::Key { reason: "the stored key cannot be read".to_owned() };
        let der = BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| wrong())?;
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der)
            .map_err(|_| wrong())?;
        Ok(Self::new(Pair::Ecdsa(pair), Algorithm::Es256))
    }

    /// The key as a text, for a key that was generated here.
    pub fn export(&self) -> Option<String> {
        match &*self.pair {
            Pair::Ecdsa(pair) => Some(BASE64_URL_SAFE_NO_PAD.encode(pair.to_pkcs8v1().ok()?)),
            _ => None,
        }
    }

    /// The same key under a key id of the configuration.
    #[must_use]
    pub fn with_id(mut self, id: &str) -> Self {
        id.clone_into(&mut self.id);
        self
    }

    /// The key id: the thumbprint (RFC 7638), or that of the configuration.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The public key as a JSON Web Key.
    pub fn public_key(&self) -> Value {
        self.pair.public_key()
    }

    /// Signs claims. The header gains the algorithm.
    ///
    /// # Errors
    /// When the signature fails.
    pub fn sign(&self, header: &Value, claims: &Value) -> Result<String, OAuthError> {
        let mut header = header.clone();
        header["alg"] = self.algorithm.name().into();
        let mut text = BASE64_URL_SAFE_NO_PAD.encode(header.to_string());
        text.push('.');
        BASE64_URL_SAFE_NO_PAD.encode_string(claims.to_string(), &mut text);
        let signature = self.pair.sign(self.algorithm, text.as_bytes());
        let signature = signature
            .ok_or_else(|| OAuthError::Key { reason: "the private key cannot sign".to_owned() })?;
        text.push('.');
        BASE64_URL_SAFE_NO_PAD.encode_string(signature, &mut text);
        Ok(text)
    }

    fn new(pair: Pair, algorithm: Algorithm) -> Self {
        let id = thumbprint(&pair.public_key());
        Self { pair: Arc::new(pair), algorithm, id }
    }
}

/// Keys with the same public key are the same key.
impl PartialEq for SigningKey {
    fn eq(&self, other: &Self) -> bool {
        self.algorithm == other.algorithm
            && self.id == other.id
            && self.public_key() == other.public_key()
    }
}

impl Eq for SigningKey {}

impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SigningKey({}, {})", self.algorithm.name(), self.id)
    }
}

impl Pair {
    fn public_key(&self) -> Value {
        let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
        match self {
            // An uncompressed point: 0x04, then both coordinates.
            Self::Ecdsa(pair) => match pair.public_key().as_ref() {
                [4, point @ ..] if point.len() == 64 => {
                    json!({ "kty": "EC", "crv": "P-256", "x": encode(&point[..32]), "y": encode(&point[32..]) })
                }
                _ => Value::Null,
            },
            Self::Ed25519(pair) => {
                json!({ "kty": "OKP", "crv": "Ed25519", "x": encode(pair.public_key().as_ref()) })
            }
            Self::Rsa(pair) => {
                let key = pair.public_key();
                let (n, e) = (
                    key.modulus().big_endian_without_leading_zero(),
                    key.exponent().big_endian_without_leading_zero(),
                );
                json!({ "kty": "RSA", "n": encode(n), "e": encode(e) })
            }
        }
    }

    fn sign(&self, algorithm: Algorithm, message: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match self {
            Self::Ecdsa(pair) => pair.sign(&random, message).ok().map(|it| it.as_ref().to_vec()),
            Self::Ed25519(pair) => Some(pair.sign(message).as_ref().to_vec()),
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                let padding: &'static dyn aws_lc_rs::signature::RsaEncoding = match algorithm {
                    Algorithm::Ps256 => &RSA_PSS_SHA256,
                    _ => &RSA_PKCS1_SHA256,
                };
                pair.sign(padding, &random, message, &mut signature).ok()?;
                Some(signature)
            }
        }
    }
}

/// The thumbprint of a public key (RFC 7638): the required members in alphabetical order.
pub(crate) fn thumbprint(key: &Value) -> String {
    let members: &[&str] = match key["kty"].as_str() {
        Some("EC") => &["crv", "kty", "x", "y"],
        Some("OKP") => &["crv", "kty", "x"],
        _ => &["e", "kty", "n"],
    };
    let texts: Vec<_> = members.iter().map(|name| format!("\"{name}\":{}", key[*name])).collect();
    BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, format!("{{{}}}", texts.join(",")).as_bytes()))
}

/// The bytes of the first block of a PEM text.
fn pem_block(pem: &str) -> Option<Vec<u8>> {
    let (_, rest) = pem.split_once("-----BEGIN PRIVATE KEY-----")?;
    let (body, _) = rest.split_once("-----END PRIVATE KEY-----")?;
    let body: String = body.split_ascii_whitespace().collect();
    BASE64_STANDARD.decode(body).ok()
}

#[cfg(test)]
mod tests;
