//! Paths of skills and files, and their URIs.

/// The prefix of every skill URI.
pub(crate) const SCHEME: &str = "skill://";

/// Maximum length of a path in bytes.
const MAX_PATH_BYTES: usize = 1024;

/// Rejects a path that is not a simple relative path downwards.
pub(crate) fn check_path(path: &str) -> Result<(), &'static str> {
    if path.len() > MAX_PATH_BYTES {
        return Err("is longer than 1024 bytes");
    }
    match path.split('/').find(|part| matches!(*part, "" | "." | "..")) {
        Some("") => Err("has an empty segment"),
        Some(_) => Err("has a segment `.` or `..`"),
        None => Ok(()),
    }
}

/// The URI for a path: other bytes are percent-encoded (RFC 3986, section 2.1).
pub(crate) fn uri_for_path(path: &str) -> String {
    let mut uri = String::with_capacity(SCHEME.len() + path.len());
    uri.push_str(SCHEME);
    for (position, part) in path.split('/').enumerate() {
        if position > 0 {
            uri.push('/');
        }
        for byte in part.bytes() {
            // The first part is in the position of a host, which may contain neither `:` nor `@`.
            if is_plain(byte) || position > 0 && matches!(byte, b':' | b'@') {
                uri.push(char::from(byte));
            } else {
                uri.push_str(&format!("%{byte:02X}"));
            }
        }
    }
    uri
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_down() {
        for invalid in ["", "/a", "a/", "a//b", ".", "..", "a/../b", "./a"] {
            assert!(check_path(invalid).is_err(), "{invalid}");
        }
        for right in ["a", "a/b.md", "..a/b..", "a b/ü"] {
            assert_eq!(check_path(right), Ok(()), "{right}");
        }
        assert!(check_path(&"a".repeat(MAX_PATH_BYTES + 1)).is_err());
    }

    #[test]
    fn characters_outside_of_a_uri_are_escaped() {
        assert_eq!(uri_for_path("a b/c@d:e/ü%?#.md"), "skill://a%20b/c@d:e/%C3%BC%25%3F%23.md");
        assert_eq!(uri_for_path("a:b/SKILL.md"), "skill://a%3Ab/SKILL.md");
    }
}
