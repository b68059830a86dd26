//! The credentials of a caller at the site: a user name and an Application Password, in one header.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use http::HeaderValue;

use creole_tools::recipe::secret::Secret;

/// Maximum size of the header. Longer ones are not forwarded.
const MAX_HEADER_BYTES: usize = 1024;

/// The header `Authorization: Basic …` of a caller. It is sent to the site and nowhere else.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct BasicCredentials(HeaderValue);

impl BasicCredentials {
    /// Reads the header, if it has the form of a name and a password. The site checks whether they are valid.
    pub(crate) fn from_header(header: &HeaderValue) -> Option<Self> {
        let text = header.to_str().ok().filter(|text| text.len() <= MAX_HEADER_BYTES)?;
        let (scheme, encoded) = text.split_once(' ')?;
        // Some clients omit the padding.
        let plain = STANDARD_NO_PAD.decode(encoded.trim().trim_end_matches('=')).ok()?;
        let is_basic = scheme.eq_ignore_ascii_case("basic") && plain.contains(&b':');
        is_basic.then(|| Self::mark_sensitive(header.clone()))
    }

    /// The header for a name and a password.
    pub(crate) fn new(user: &str, Secret(password): &Secret) -> Option<Self> {
        let encoded = STANDARD.encode(format!("{user}:{password}"));
        HeaderValue::try_from(format!("Basic {encoded}")).ok().map(Self::mark_sensitive)
    }

    fn mark_sensitive(mut header: HeaderValue) -> Self {
        header.set_sensitive(true);
        Self(header)
    }

    /// The header itself.
    pub(crate) fn header(&self) -> &HeaderValue {
        &self.0
    }
}

impl fmt::Debug for BasicCredentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Proof(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_and_a_password_are_passed_on() {
        let right = BasicCredentials::new("admin", &Secret("abcd efgh".to_owned())).unwrap();
        assert_eq!(BasicCredentials::from_header(right.header()), Some(right.clone()));
        assert_eq!(format!("{right:?}"), "Proof(…)");
        for invalid in ["Bearer abc", "Basic", "Basic !!!", "Basic YWJj", ""] {
            assert_eq!(
                BasicCredentials::from_header(&HeaderValue::from_static(invalid)),
                None,
                "{invalid}"
            );
        }
    }
}
