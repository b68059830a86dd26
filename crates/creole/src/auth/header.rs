//! Parses the `Authorization` header.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::HeaderValue;

use super::secret::{Secret, SecretRef};

/// Longer headers are not parsed: names with passwords, and tokens.
pub(super) const MAX_HEADER_BYTES: usize = 8 * 1024;
const MAX_TOKEN_HEADER_BYTES: usize = 25 * 1024;

/// Some clients omit the padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The credentials that a caller presents.
#[derive(Debug)]
pub(super) enum PresentedCredentials<'a> {
    /// None, or of an unknown scheme.
    Nothing,
    /// A name and a password. Both are empty if they are malformed: no user has an empty name, and checking it takes as
    /// long as checking another.
    Basic { name: String, password: Secret },
    /// A key or an access token.
    Bearer(SecretRef<'a>),
    /// An access token that is bound to a key.
    Dpop(SecretRef<'a>),
}

impl<'a> PresentedCredentials<'a> {
    /// Parses the header.
    pub(super) fn read(header: Option<&'a HeaderValue>) -> Self {
        let Some(bytes) = header.map(HeaderValue::as_bytes) else { return Self::Nothing };
        let end = bytes.iter().position(|byte| *byte == b' ').unwrap_or(bytes.len());
        let (scheme, rest) = bytes.split_at(end);
        // RFC 9110, 11.4: one or more spaces, and the name of the scheme in any case.
        let start = rest.iter().position(|byte| *byte != b' ').unwrap_or(rest.len());
        let within = |max: usize| if bytes.len() > max { &[] } else { &rest[start..] };
        let rest = within(MAX_TOKEN_HEADER_BYTES);
        if scheme.eq_ignore_ascii_case(b"basic") {
            let rest = within(MAX_HEADER_BYTES);
            let (name, password) = parse_basic(rest).unwrap_or_default();
            Self::Basic { name, password: Secret::from(password) }
        } else if scheme.eq_ignore_ascii_case(b"bearer") {
            Self::Bearer(SecretRef(rest))
        } else if scheme.eq_ignore_ascii_case(b"dpop") {
            Self::Dpop(SecretRef(rest))
        } else {
            Self::Nothing
        }
    }
}

/// RFC 7617: base64 of the name, a colon and the password; in UTF-8, as our challenge says, and without
/// control characters.
fn parse_basic(encoded: &[u8]) -> Option<(String, Vec<u8>)> {
    let text = String::from_utf8(BASE64.decode(encoded).ok()?).ok()?;
    if text.chars().any(char::is_control) {
        return None;
    }
    let (name, password) = text.split_once(':')?;
    Some((name.to_owned(), password.as_bytes().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `name/password`, `key:…`, or `nothing`.
    fn read(header: &[u8]) -> String {
        let header = HeaderValue::from_bytes(header).unwrap();
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        match PresentedCredentials::read(Some(&header)) {
            PresentedCredentials::Nothing => "nothing".to_owned(),
            PresentedCredentials::Basic { name, password } => {
                format!("{name}/{}", text(password.expose()))
            }
            PresentedCredentials::Bearer(key) => format!("key:{}", text(key.0)),
            PresentedCredentials::Dpop(token) => format!("dpop:{}", text(token.0)),
        }
    }

    #[test]
    fn right_headers_are_read() {
        let right: [(&[u8], &str); 8] = [
            (b"dpop abc", "dpop:abc"),
            (b"Basic YWxpY2U6c2VjcmV0", "alice/secret"),
            (b"basic YWxpY2U6c2VjcmV0", "alice/secret"),
            (b"BASIC   YWxpY2U6c2VjcmV0", "alice/secret"),
            (b"Basic YWxpY2U6YTpi", "alice/a:b"),
            (b"Basic YWxpY2U6", "alice/"),
            (b"Basic YWxpY2U6ww", "/"),
            (b"bEARER abc.def", "key:abc.def"),
        ];
        for (header, expected) in right {
            assert_eq!(read(header), expected, "{}", String::from_utf8_lossy(header));
        }
        let accented = format!("Basic {}", BASE64.encode("zoë:pässword"));
        assert_eq!(read(accented.as_bytes()), "zoë/pässword");
        assert_eq!(read(accented.trim_end_matches('=').as_bytes()), "zoë/pässword");
    }

    #[test]
    fn an_invalid_header_has_no_principal() {
        let encoded = |plain: &[u8]| [b"Basic ", BASE64.encode(plain).as_bytes()].concat();
        let invalid_headers: Vec<Vec<u8>> = vec![
            b"Basic".to_vec(),
            b"Basic ".to_vec(),
            b"Basic !!!!".to_vec(),
            b"Basic YWxpY2U6c2VjcmV0 x".to_vec(),
            b"Basic YWxpY2U6c2VjcmV0, Bearer abc".to_vec(),
            b"Basic \xff\xfe".to_vec(),
            encoded(b"no colon"),
            encoded(b"alice:\xff\xfe"),
            encoded(b"alice:a\nb"),
            encoded(b"al\0ice:secret"),
            encoded(&[b'a'; 64 * 1024]),
            encoded(&[b"alice:".as_slice(), &[b'a'; 64 * 1024]].concat()),
        ];
        for header in invalid_headers {
            assert_eq!(read(&header), "/", "{}", String::from_utf8_lossy(&header));
        }
        let nothing: [&[u8]; 6] = [
            b"",
            b" ",
            b"Digest username=\"alice\"",
            b"Basicx YWxpY2U6c2VjcmV0",
            b"\xff\xfe",
            b"Basic\tYWxpY2U6c2VjcmV0",
        ];
        for header in nothing {
            assert_eq!(read(header), "nothing", "{}", String::from_utf8_lossy(header));
        }
        assert_eq!(read(&[b"Bearer ".as_slice(), &[b'a'; 64 * 1024]].concat()), "key:");
        assert!(matches!(PresentedCredentials::read(None), PresentedCredentials::Nothing));
    }
}
