//! Secret bytes that are never displayed.

use std::fmt;

/// A password or a key, which can be used but not printed.
///
/// There is no `Display` and no `Serialize`, and `Debug` reveals nothing, not even the length:
///
/// ```
/// let secret = creole::internal::credential_files::Secret::from("correct horse");
/// assert_eq!(format!("{secret:?}"), "Secret(…)");
/// ```
///
/// ```compile_fail
/// let secret = creole::internal::credential_files::Secret::from("correct horse");
/// format!("{secret}");
/// ```
#[derive(Clone)]
pub struct Secret(Box<[u8]>);

impl Secret {
    /// The bytes, for a computation and never for a message.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

/// A borrowed secret.
#[derive(Clone, Copy)]
pub(super) struct SecretRef<'a>(pub(super) &'a [u8]);

impl fmt::Debug for SecretRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().into())
    }
}

impl From<Vec<u8>> for Secret {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
