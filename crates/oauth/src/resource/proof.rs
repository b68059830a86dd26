//! Checks that a caller has the key that its token is bound to (RFC 9449, section 4.3).

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Map, Value};
use subtle::ConstantTimeEq;

use super::access_token::seconds;
use super::algorithm::SignatureAlgorithm;
use super::compact::CompactToken;
use super::public_key::PublicKey;
use super::refusal::TokenRefusal;
use crate::web_url::WebUrl;

/// The maximum length of a proof, in bytes.
const MAX_PROOF: usize = 4_096;

/// How much the time of a proof may differ from ours, in seconds.
pub const PROOF_SECONDS: u64 = 300;

/// The maximum length of the id of a proof, in bytes.
const MAX_ID: usize = 256;

/// The request that a proof must be for.
#[derive(Clone, Copy)]
pub struct ProvenCall<'a> {
    /// The HTTP method.
    pub method: &'a str,
    /// The addresses by which the request may be made.
    pub urls: &'a [WebUrl],
    /// The access token of the request.
    pub token: &'a str,
    /// The thumbprint of the key that the token is bound to.
    pub key: &'a str,
    /// The time, in seconds since 1970.
    pub now: u64,
}

impl fmt::Debug for ProvenCall<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ProvenCall(…)")
    }
}

/// A right proof. It may have been used before.
#[derive(Clone, PartialEq, Eq)]
pub struct CheckedProof {
    /// The SHA-256 of the key's thumbprint and the proof's id.
    pub fingerprint: [u8; 32],
    /// When the proof was made, in seconds since 1970.
    pub issued_at: u64,
    /// The nonce in it.
    pub nonce: Option<String>,
}

impl fmt::Debug for CheckedProof {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("CheckedProof(…)")
    }
}

impl CheckedProof {
    /// Checks a proof. Its nonce, and whether it was used before, are left to the caller.
    ///
    /// # Errors
    /// When the proof is not for this request, this token or this key.
    pub fn check(proof: &str, call: ProvenCall<'_>) -> Result<Self, TokenRefusal> {
        if proof.len() > MAX_PROOF {
            return Err(TokenRefusal::Malformed);
        }
        let token = CompactToken::parse(proof)?;
        if !token.kind()?.is_some_and(|kind| kind.eq_ignore_ascii_case("dpop+jwt")) {
            return Err(TokenRefusal::Typ);
        }
        let algorithm = token.algorithm(&SignatureAlgorithm::DEFAULT)?;
        let jwk = token.header_key().ok_or(TokenRefusal::Malformed)?;
        if PublicKey::is_private(jwk) {
            return Err(TokenRefusal::Malformed);
        }
        let key = PublicKey::read_for(jwk, &[algorithm]).ok_or(TokenRefusal::Algorithm)?;
        if !token.is_signed_by(&key, algorithm) {
            return Err(TokenRefusal::Signature);
        }
        let claims = token.payload();
        let (issued_at, id) = call.check_claims(claims)?;
        if !is_equal(key.thumbprint(), call.key) {
            return Err(TokenRefusal::Binding);
        }
        let fingerprint = digest(&SHA256, [call.key, id].join(" ").as_bytes());
        let fingerprint = <[u8; 32]>::try_from(fingerprint.as_ref());
        let nonce = match claims.get("nonce") {
            None => None,
            Some(value) => Some(value.as_str().ok_or(TokenRefusal::Claims)?.to_owned()),
        };
        let fingerprint = fingerprint.map_err(|_| TokenRefusal::Malformed)?;
        Ok(Self { fingerprint, issued_at, nonce })
    }
}

impl ProvenCall<'_> {
    /// Checks the request, the time and the token. Returns the time and the id of the proof.
    fn check_claims<'a>(
        &self,
        claims: &'a Map<String, Value>,
    ) -> Result<(u64, &'a str), TokenRefusal> {
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let is_method = text("htm") == Some(self.method);
        let named = text("htu").and_then(|url| WebUrl::parse(url).ok());
        let named = named.filter(|url| url.query().is_empty());
        let is_place =
            named.is_some_and(|named| self.urls.iter().any(|url| is_same_place(&named, url)));
        if !is_method || !is_place {
            return Err(TokenRefusal::Binding);
        }
        let issued_at = claims.get("iat").filter(|it| it.is_u64()).and_then(seconds);
        let issued_at = issued_at.ok_or(TokenRefusal::Claims)?;
        if issued_at.abs_diff(self.now) > PROOF_SECONDS {
            return Err(TokenRefusal::Expired);
        }
        let id = text("jti").filter(|id| !id.is_empty() && id.len() <= MAX_ID);
        let id = id.ok_or(TokenRefusal::Claims)?;
        let hash = BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, self.token.as_bytes()));
        match text("ath").is_some_and(|ath| is_equal(ath, &hash)) {
            true => Ok((issued_at, id)),
            false => Err(TokenRefusal::Binding),
        }
    }
}

/// Whether two addresses are the same but for the case of the host, a default port, and a slash at the end.
fn is_same_place(left: &WebUrl, right: &WebUrl) -> bool {
    let path = |url: &WebUrl| {
        let path = url.path();
        path.strip_suffix('/').unwrap_or(path).to_owned()
    };
    left.is_same_origin(right) && path(left) == path(right)
}

fn is_equal(left: &str, right: &str) -> bool {
    left.as_bytes().ct_eq(right.as_bytes()).into()
}

#[cfg(test)]
mod tests;
