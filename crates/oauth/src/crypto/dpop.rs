//! Proofs that the sender of a request has the key that its token is bound to (RFC 9449).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::json;

use crate::crypto::jose::SigningKey;
use crate::crypto::random;
use crate::error::OAuthError;
use crate::web_url::WebUrl;

/// The maximum number of origins whose nonces are kept.
const MAX_ORIGINS: usize = 64;

/// The maximum length of a nonce, in bytes.
const MAX_NONCE: usize = 1_024;

/// The key that tokens are bound to, with the nonces that servers demand.
#[derive(Debug)]
pub struct DpopKey {
    key: SigningKey,
    /// The nonce of each origin. Authorization servers and resource servers have their own.
    nonces: Mutex<HashMap<String, String>>,
}

/// The request that a proof is for.
#[derive(Clone, Copy, Debug)]
pub struct ProvenRequest<'a> {
    /// The HTTP method.
    pub method: &'a str,
    /// The address.
    pub url: &'a WebUrl,
    /// The access token that the request carries.
    pub access_token: Option<&'a str>,
}

impl DpopKey {
    /// Uses a key.
    pub fn new(key: SigningKey) -> Self {
        Self { key, nonces: Mutex::default() }
    }

    /// The key.
    pub fn key(&self) -> &SigningKey {
        &self.key
    }

    /// Stores the nonce of a response. Returns whether it differs from the one before.
    pub fn store_nonce(&self, url: &WebUrl, nonce: Option<&str>) -> bool {
        let Some(nonce) = nonce.filter(|nonce| !nonce.is_empty() && nonce.len() <= MAX_NONCE)
        else {
            return false;
        };
        let mut nonces = self.nonces.lock().unwrap_or_else(PoisonError::into_inner);
        if nonces.len() >= MAX_ORIGINS && !nonces.contains_key(url.origin()) {
            nonces.clear();
        }
        nonces.insert(url.origin().to_owned(), nonce.to_owned()).as_deref() != Some(nonce)
    }

    /// A new proof for one request.
    ///
    /// # Errors
    /// When the key cannot sign, or random bytes are missing.
    pub fn proof(&self, request: ProvenRequest<'_>, now: u64) -> Result<String, OAuthError> {
        let mut claims = json!({
            "htm": request.method,
            "htu": request.url.without_query(),
            "iat": now,
            "jti": random::token()?,
        });
        if let Some(token) = request.access_token {
            claims["ath"] = BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, token.as_bytes())).into();
        }
        let nonces = self.nonces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(nonce) = nonces.get(request.url.origin()) {
            claims["nonce"] = nonce.as_str().into();
        }
        drop(nonces);
        self.key.sign(&json!({ "typ": "dpop+jwt", "jwk": self.key.public_key() }), &claims)
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::prelude::BASE64_URL_SAFE_NO_PAD;
    use serde_json::Value;

    use super::{DpopKey, MAX_ORIGINS, ProvenRequest};
    use crate::crypto::jose::SigningKey;
    use crate::web_url::WebUrl;

    fn part(proof: &str, at: usize) -> Value {
        let part = proof.split('.').nth(at).unwrap();
        serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    }

    #[test]
    fn a_proof_names_the_request_and_its_token() {
        let dpop = DpopKey::new(SigningKey::generate().unwrap());
        let url = WebUrl::parse("https://mcp.example.com/mcp?x=1").unwrap();
        let request = ProvenRequest {
            method: "POST",
            url: &url,
            access_token: Some("Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU"),
        };
        let proof = dpop.proof(request, 7).unwrap();
        let (header, claims) = (part(&proof, 0), part(&proof, 1));
        assert_eq!(
            (&header["typ"], &header["alg"], &header["jwk"]["kty"]),
            (&"dpop+jwt".into(), &"ES256".into(), &"EC".into())
        );
        assert_eq!(header["jwk"].get("d"), None);
        assert_eq!(
            (&claims["htm"], &claims["htu"], &claims["iat"]),
            (&"POST".into(), &"https://mcp.example.com/mcp".into(), &7.into())
        );
        // The hash of the example in RFC 9449, section 7.1.
        assert_eq!(claims["ath"], "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo");
        assert_eq!(claims.get("nonce"), None);
        assert_ne!(part(&dpop.proof(request, 7).unwrap(), 1)["jti"], claims["jti"]);
    }

    #[test]
    fn nonces_belong_to_their_origin_and_are_limited() {
        let dpop = DpopKey::new(SigningKey::generate().unwrap());
        let url = |at: usize| WebUrl::parse(&format!("https://h{at}.example/t")).unwrap();
        assert!(dpop.store_nonce(&url(0), Some("n")) && !dpop.store_nonce(&url(0), Some("n")));
        assert!(!dpop.store_nonce(&url(0), None) && !dpop.store_nonce(&url(0), Some("")));
        let nonce = |at: usize| {
            let url = url(at);
            part(
                &dpop
                    .proof(ProvenRequest { method: "POST", url: &url, access_token: None }, 0)
                    .unwrap(),
                1,
            )["nonce"]
                .clone()
        };
        assert_eq!((nonce(0), nonce(1)), ("n".into(), Value::Null));
        assert!((0..=MAX_ORIGINS).all(|at| dpop.store_nonce(&url(at), Some("m"))));
        assert_eq!(nonce(MAX_ORIGINS), "m");
        assert_eq!(dpop.nonces.lock().unwrap().len(), 1);
    }
}
