//! Unguessable texts.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use crate::error::OAuthError;

/// 32 random bytes as 43 characters that need no encoding in a URL.
pub(crate) fn token() -> Result<String, OAuthError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| OAuthError::NoRandomBytes)?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}
