//! The URIs of files. Each file has exactly one: other spellings are invalid, so that percent-encoding cannot evade
//! rules about URIs.

use crate::files::root::path_parts;

/// The prefix of all folder URIs.
const SCHEME: &str = "folder://";

/// The URIs of one folder.
#[derive(Clone, Debug)]
pub(super) struct FolderUris {
    prefix: String,
}

impl FolderUris {
    pub(super) fn new(name: &str) -> Self {
        Self { prefix: format!("{SCHEME}{name}/") }
    }

    /// The URI template.
    pub(super) fn template(&self) -> String {
        format!("{}{{+path}}", self.prefix)
    }

    /// The URI of a file, percent-encoded (RFC 3986, section 2.1).
    pub(super) fn uri_of(&self, path: &str) -> String {
        let mut uri = self.prefix.clone();
        for byte in path.bytes() {
            match byte {
                byte if byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@".contains(&byte) => {
                    uri.push(char::from(byte));
                }
                byte => uri.push_str(&format!("%{byte:02X}")),
            }
        }
        uri
    }

    /// The path of a URI.
    pub(super) fn path_of(&self, uri: &str) -> Option<String> {
        let path = percent_decode(uri.strip_prefix(&self.prefix)?)?;
        let is_one = !path.is_empty() && path_parts(&path).is_some() && self.uri_of(&path) == uri;
        is_one.then_some(path)
    }
}

/// A path as the value of the template's variable. The expansion keeps these characters (RFC 6570, section 3.2.3),
/// although they would end the path or have another meaning, so they are encoded here.
pub(super) fn template_value(path: &str) -> String {
    let mut value = String::with_capacity(path.len());
    for character in path.chars() {
        match character {
            '%' | '?' | '#' | '[' | ']' => {
                value.push_str(&format!("%{:02X}", u32::from(character)))
            }
            character => value.push(character),
        }
    }
    value
}

fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digit =
            |byte: u8| char::from(byte).to_digit(16).and_then(|value| u8::try_from(value).ok());
        bytes.push(match byte {
            b'%' => digit(rest.next()?)? << 4 | digit(rest.next()?)?,
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_uri_and_the_uri_one_path() {
        let uris = FolderUris::new("docs");
        for (path, uri) in [
            ("a.md", "folder://docs/a.md"),
            ("a b/c@d:e.md", "folder://docs/a%20b/c@d:e.md"),
            ("ü?#%[].md", "folder://docs/%C3%BC%3F%23%25%5B%5D.md"),
            ("..a/b..", "folder://docs/..a/b.."),
            ("a\\b", "folder://docs/a%5Cb"),
        ] {
            assert_eq!(uris.uri_of(path), uri);
            assert_eq!(uris.path_of(uri).as_deref(), Some(path));
        }
        assert_eq!(template_value("a b?/50%[ü].md"), "a b%3F/50%25%5Bü%5D.md");
    }

    #[test]
    fn a_uri_outside_of_the_folder_or_in_another_form_is_unknown() {
        let uris = FolderUris::new("docs");
        for rest in [
            "",
            "/",
            "../a",
            "a/../b",
            "a/..",
            "./a",
            "a//b",
            "/etc/passwd",
            "a/",
            "%2e%2e/a",
            "%2E%2E/a",
            "a%2Fb",
            "a%2fb",
            "a%5cb",
            "a%00",
            "a\0",
            "%",
            "%2",
            "%zz",
            "%+f",
            "%ff",
            "%61.md",
            "a?b",
            "a#b",
            "a b",
            "ü",
            "%c3%bc",
        ] {
            assert_eq!(uris.path_of(&format!("folder://docs/{rest}")), None, "{rest}");
        }
        for other in ["folder://docs2/a", "folder://doc/a", "file:///a", "FOLDER://docs/a", "a"] {
            assert_eq!(uris.path_of(other), None, "{other}");
        }
    }
}
