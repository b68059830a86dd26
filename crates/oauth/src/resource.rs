//! The side of a resource server: whether an access token is valid, and whom it names.
//!
//! [`TokenShape`] tells kinds of tokens apart. A JWT is read by [`compact`], verified with a key of its issuer's
//! [`key_set`], and its claims are checked by the rules of the issuer ([`access_token`]). [`introspection`] asks the
//! issuer about opaque tokens. [`proof`] checks that the caller has the key that a token is bound to. [`discovery`] finds
//! the keys of an issuer.

pub mod access_token;
pub mod algorithm;
pub mod claim_path;
pub mod compact;
pub mod confirmation;
pub mod discovery;
pub mod introspection;
mod json_object;
pub mod key_set;
pub mod nonce;
pub mod proof;
pub mod public_key;
pub mod refusal;

/// What a token is, told from its text alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenShape {
    /// Three parts of base64url: a signed token.
    Jwt,
    /// Five parts of base64url: an encrypted token, which this server cannot read.
    Encrypted,
    /// Any other token (RFC 6750, section 2.1).
    Opaque,
    /// A text that is no token.
    Malformed,
}

impl TokenShape {
    /// The shape of a token.
    pub fn of(token: &str) -> Self {
        let is_base64url =
            |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' || byte == b'.';
        let is_token = |byte: u8| is_base64url(byte) || b"~+/=".contains(&byte);
        if token.is_empty() || !token.bytes().all(is_token) {
            return Self::Malformed;
        }
        let dots = token.bytes().filter(|byte| *byte == b'.').count();
        match (token.bytes().all(is_base64url), dots) {
            (true, 2) => Self::Jwt,
            (true, 4) => Self::Encrypted,
            _ => Self::Opaque,
        }
    }
}

#[cfg(test)]
mod testing;

#[cfg(test)]
mod tests {
    use super::TokenShape;

    #[test]
    fn the_shape_is_told_from_the_text() {
        for (text, shape) in [
            ("a.b.c", TokenShape::Jwt),
            ("a.b.", TokenShape::Jwt),
            ("..", TokenShape::Jwt),
            ("a.b.c.d.e", TokenShape::Encrypted),
            ("a.b.c=", TokenShape::Opaque),
            ("a.b", TokenShape::Opaque),
            ("a.b.c.d", TokenShape::Opaque),
            ("gho_16C7e42F292c6912E7", TokenShape::Opaque),
            ("a~b+c/d=", TokenShape::Opaque),
            ("", TokenShape::Malformed),
            ("a b", TokenShape::Malformed),
            ("a.b.c\n", TokenShape::Malformed),
            ("ä", TokenShape::Malformed),
        ] {
            assert_eq!(TokenShape::of(text), shape, "{text:?}");
        }
    }
}
