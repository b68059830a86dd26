//! The algorithms of signatures that are verified.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED, ED25519,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512,
    RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters,
    VerificationAlgorithm,
};

/// An algorithm of RFC 7518, RFC 8037 or RFC 9864 with a public key. `none` and algorithms with a shared key do not exist
/// here, so no configuration can allow them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SignatureAlgorithm {
    /// ECDSA with P-256 and SHA-256.
    Es256,
    /// EdDSA with Ed25519, by its older name.
    EdDsa,
    /// EdDSA with Ed25519.
    Ed25519,
    /// RSA PKCS #1 v1.5 with SHA-256.
    Rs256,
    /// RSA PSS with SHA-256.
    Ps256,
    /// ECDSA with P-384 and SHA-384.
    Es384,
    /// ECDSA with P-521 and SHA-512.
    Es512,
    /// RSA PKCS #1 v1.5 with SHA-384.
    Rs384,
    /// RSA PKCS #1 v1.5 with SHA-512.
    Rs512,
    /// RSA PSS with SHA-384.
    Ps384,
    /// RSA PSS with SHA-512.
    Ps512,
}

/// The kind of a public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyKind {
    Rsa,
    P256,
    P384,
    P521,
    Ed25519,
}

impl SignatureAlgorithm {
    /// All algorithms.
    pub const ALL: [Self; 11] = [
        Self::Es256,
        Self::EdDsa,
        Self::Ed25519,
        Self::Rs256,
        Self::Ps256,
        Self::Es384,
        Self::Es512,
        Self::Rs384,
        Self::Rs512,
        Self::Ps384,
        Self::Ps512,
    ];

    /// The algorithms that are allowed unless the configuration says otherwise.
    pub const DEFAULT: [Self; 5] =
        [Self::Es256, Self::EdDsa, Self::Ed25519, Self::Rs256, Self::Ps256];

    /// The registered name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
            Self::Ed25519 => "Ed25519",
            Self::Rs256 => "RS256",
            Self::Ps256 => "PS256",
            Self::Es384 => "ES384",
            Self::Es512 => "ES512",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
        }
    }

    /// The algorithm with exactly this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    pub(super) fn key_kind(self) -> KeyKind {
        match self {
            Self::Es256 => KeyKind::P256,
            Self::Es384 => KeyKind::P384,
            Self::Es512 => KeyKind::P521,
            Self::EdDsa | Self::Ed25519 => KeyKind::Ed25519,
            _ => KeyKind::Rsa,
        }
    }

    /// The parameters of an RSA algorithm.
    pub(super) fn rsa(self) -> Option<&'static RsaParameters> {
        Some(match self {
            Self::Rs256 => &RSA_PKCS1_2048_8192_SHA256,
            Self::Rs384 => &RSA_PKCS1_2048_8192_SHA384,
            Self::Rs512 => &RSA_PKCS1_2048_8192_SHA512,
            Self::Ps256 => &RSA_PSS_2048_8192_SHA256,
            Self::Ps384 => &RSA_PSS_2048_8192_SHA384,
            Self::Ps512 => &RSA_PSS_2048_8192_SHA512,
            _ => return None,
        })
    }

    /// The verification of an algorithm with a curve.
    pub(super) fn curve(self) -> Option<&'static dyn VerificationAlgorithm> {
        Some(match self {
            Self::Es256 => &ECDSA_P256_SHA256_FIXED,
            Self::Es384 => &ECDSA_P384_SHA384_FIXED,
            Self::Es512 => &ECDSA_P521_SHA512_FIXED,
            Self::EdDsa | Self::Ed25519 => &ED25519,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::SignatureAlgorithm;

    #[test]
    fn algorithms_are_named_exactly_and_shared_keys_have_none() {
        for algorithm in SignatureAlgorithm::ALL {
            assert_eq!(SignatureAlgorithm::from_name(algorithm.name()), Some(algorithm));
        }
        for name in
            ["none", "None", "", "HS256", "HS384", "HS512", "rs256", "ES256K", "RSA1_5", "dir"]
        {
            assert_eq!(SignatureAlgorithm::from_name(name), None, "{name}");
        }
    }
}
