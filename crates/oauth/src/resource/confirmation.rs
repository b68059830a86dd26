//! What a token is bound to: a key (RFC 9449, section 6) or a certificate (RFC 8705, section 3.1).

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use super::refusal::TokenRefusal;

/// What the caller must prove besides having the token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confirmation {
    /// The thumbprint of the key that signs the proofs.
    pub key: Option<String>,
    /// The SHA-256 of the certificate of the caller's connection.
    pub certificate: Option<[u8; 32]>,
}

impl Confirmation {
    /// Reads the claim `cnf`. A token without it is bound to nothing.
    ///
    /// # Errors
    /// When the claim is empty, or has a member that cannot be checked.
    pub fn read(claims: &Map<String, Value>) -> Result<Self, TokenRefusal> {
        let Some(value) = claims.get("cnf") else { return Ok(Self::default()) };
        let members = value.as_object().filter(|it| !it.is_empty());
        let mut confirmation = Self::default();
        for (name, value) in members.ok_or(TokenRefusal::Binding)? {
            let text = value.as_str().ok_or(TokenRefusal::Binding)?;
            let digest = BASE64_URL_SAFE_NO_PAD.decode(text).ok();
            let digest = digest.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
            let digest = digest.ok_or(TokenRefusal::Binding)?;
            match name.as_str() {
                "jkt" => confirmation.key = Some(text.to_owned()),
                "x5t#S256" => confirmation.certificate = Some(digest),
                _ => return Err(TokenRefusal::Binding),
            }
        }
        Ok(confirmation)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Confirmation, TokenRefusal};

    #[test]
    fn only_bindings_that_can_be_checked_are_read() {
        let read = |value: Value| {
            let claims = json!({ "cnf": value });
            Confirmation::read(claims.as_object().unwrap())
        };
        let digest = "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs";
        assert_eq!(read(json!({ "jkt": digest })).unwrap().key.as_deref(), Some(digest));
        assert!(read(json!({ "x5t#S256": digest })).unwrap().certificate.is_some());
        let both = read(json!({ "jkt": digest, "x5t#S256": digest })).unwrap();
        assert!(both.key.is_some() && both.certificate.is_some());
        for wrong in [
            json!({}),
            json!(null),
            json!([]),
            json!("x"),
            json!({ "jwk": {} }),
            json!({ "jkt": digest, "jwk": {} }),
            json!({ "jkt": 7 }),
            json!({ "jkt": "" }),
            json!({ "jkt": "AAAA" }),
            json!({ "x5t#S256": "!" }),
            json!({ "kid": digest }),
        ] {
            assert_eq!(read(wrong.clone()), Err(TokenRefusal::Binding), "{wrong}");
        }
        assert_eq!(Confirmation::read(&serde_json::Map::new()), Ok(Confirmation::default()));
    }
}
