//! A compact JSON Web Signature (RFC 7515, section 3.1) with a JSON payload.

use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use super::algorithm::SignatureAlgorithm;
use super::json_object;
use super::key_set::MAX_KEY_ID;
use super::public_key::PublicKey;
use super::refusal::TokenRefusal;

/// The maximum length of a decoded header, in bytes.
const MAX_HEADER: usize = 2_048;

/// The maximum length of a decoded payload, in bytes.
const MAX_PAYLOAD: usize = 16_384;

/// The maximum length of a decoded signature, in bytes: that of the largest RSA key.
const MAX_SIGNATURE: usize = 1_024;

/// A signed token whose signature may be wrong. Its `Debug` output hides it.
#[derive(Clone, PartialEq)]
pub struct CompactToken<'a> {
    message: &'a str,
    header: Map<String, Value>,
    payload: Map<String, Value>,
    signature: Vec<u8>,
}

impl<'a> CompactToken<'a> {
    /// Reads a token.
    ///
    /// # Errors
    /// When it has another form, exceeds a limit, repeats a name, or demands an extension.
    pub fn parse(text: &'a str) -> Result<Self, TokenRefusal> {
        let token = Self::read(text).ok_or(TokenRefusal::Malformed)?;
        // No extension is understood (RFC 7515, section 4.1.11), and a payload is never compressed or unencoded.
        match ["crit", "b64", "zip"].iter().any(|name| token.header.contains_key(*name)) {
            true => Err(TokenRefusal::Malformed),
            false => Ok(token),
        }
    }

    fn read(text: &'a str) -> Option<Self> {
        let (message, signature) = text.rsplit_once('.')?;
        let (header, payload) = message.split_once('.')?;
        Some(Self {
            message,
            header: json_object::parse(&decode(header, MAX_HEADER)?, MAX_HEADER)?,
            payload: json_object::parse(&decode(payload, MAX_PAYLOAD)?, MAX_PAYLOAD)?,
            signature: decode(signature, MAX_SIGNATURE)?,
        })
    }

    /// The claims, which are not verified.
    pub fn payload(&self) -> &Map<String, Value> {
        &self.payload
    }

    /// The same after the verification.
    pub fn into_payload(self) -> Map<String, Value> {
        self.payload
    }

    /// The member `jwk` of the header.
    pub(super) fn header_key(&self) -> Option<&Map<String, Value>> {
        self.header.get("jwk")?.as_object()
    }

    /// The algorithm.
    ///
    /// # Errors
    /// When it is not in the list.
    pub fn algorithm(
        &self,
        allowed: &[SignatureAlgorithm],
    ) -> Result<SignatureAlgorithm, TokenRefusal> {
        let named = self.header.get("alg").and_then(Value::as_str);
        let known = named.and_then(SignatureAlgorithm::from_name);
        known.filter(|it| allowed.contains(it)).ok_or(TokenRefusal::Algorithm)
    }

    /// The key id.
    ///
    /// # Errors
    /// When it is not a text, or longer than any key id.
    pub fn key_id(&self) -> Result<Option<&str>, TokenRefusal> {
        match self.header.get("kid") {
            None => Ok(None),
            Some(Value::String(id)) if id.len() <= MAX_KEY_ID => Ok(Some(id)),
            Some(_) => Err(TokenRefusal::Malformed),
        }
    }

    /// The type of the token, if the header has one.
    ///
    /// # Errors
    /// When it is not a text.
    pub fn kind(&self) -> Result<Option<&str>, TokenRefusal> {
        match self.header.get("typ") {
            None => Ok(None),
            Some(Value::String(kind)) => Ok(Some(kind)),
            Some(_) => Err(TokenRefusal::Typ),
        }
    }

    /// Whether a key made the signature.
    pub fn is_signed_by(&self, key: &PublicKey, algorithm: SignatureAlgorithm) -> bool {
        key.verify(algorithm, self.message.as_bytes(), &self.signature)
    }
}

impl fmt::Debug for CompactToken<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("CompactToken(…)")
    }
}

/// Decodes base64url without padding, if the result is short enough.
fn decode(text: &str, max_bytes: usize) -> Option<Vec<u8>> {
    // Four characters are three bytes.
    if text.len() > max_bytes.div_ceil(3) * 4 {
        return None;
    }
    BASE64_URL_SAFE_NO_PAD.decode(text).ok()
}

#[cfg(test)]
mod tests;
