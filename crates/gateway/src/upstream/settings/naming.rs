//! Local names of upstream items. A prefix allows two upstreams to have tools of the same name.

/// The maximum length of a name that hosts and models accept.
const MAX_NAME_LENGTH: usize = 64;

/// How the items of one upstream are named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Naming {
    /// The prefix. Empty for unchanged names.
    pub prefix: String,
}

impl Naming {
    /// Unchanged names.
    pub const UNPREFIXED: Self = Self { prefix: String::new() };

    /// The local name of an item that the upstream calls `name`.
    pub fn local_name(&self, name: &str) -> Result<String, NameError> {
        if self.prefix.is_empty() {
            // Without a prefix, names stay as they are.
            return Ok(name.to_owned());
        }
        let full = format!("{}{name}", self.prefix);
        if !name.chars().all(is_name_character) || name.is_empty() {
            return Err(NameError::Characters(name.to_owned()));
        }
        match full.len() {
            0..=MAX_NAME_LENGTH => Ok(full),
            _ => Err(NameError::TooLong(full)),
        }
    }
}

impl Naming {
    /// The upstream's name of an item with this local name, if it can belong to this upstream.
    pub(crate) fn upstream_name<'a>(&self, name: &'a str) -> Option<&'a str> {
        let there = name.strip_prefix(&self.prefix)?;
        (self.local_name(there).ok()? == name).then_some(there)
    }
}

/// Whether hosts and models accept the character in a tool name (2025-11-25 server/tools, tool names).
fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '.' | '/')
}

/// A name that cannot be used here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameError {
    /// It contains characters that are not allowed in a name.
    Characters(String),
    /// It is too long with its prefix.
    TooLong(String),
}

impl std::fmt::Display for NameError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Characters(name) => write!(
                formatter,
                "{name:?} has characters other than letters, digits and `_-./`; rename it"
            ),
            Self::TooLong(name) => {
                write!(
                    formatter,
                    "`{name}` is longer than {MAX_NAME_LENGTH} characters; shorten the prefix"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naming(prefix: &str) -> Naming {
        Naming { prefix: format!("{prefix}__") }
    }

    #[test]
    fn a_prefix_keeps_two_servers_apart() {
        assert_eq!(naming("files").local_name("read").unwrap(), "files__read");
        assert_eq!(Naming::UNPREFIXED.local_name("any thing").unwrap(), "any thing");
        assert!(matches!(naming("a").local_name("b c"), Err(NameError::Characters(_))));
        assert!(matches!(naming("a").local_name(""), Err(NameError::Characters(_))));
        assert_eq!(naming("files").upstream_name("files__read"), Some("read"));
        assert_eq!(naming("files").upstream_name("other__read"), None);
        assert_eq!(naming("files").upstream_name("files__"), None);
        assert_eq!(Naming::UNPREFIXED.upstream_name("any thing"), Some("any thing"));
        assert_eq!(naming("a").local_name(&"b".repeat(61)).unwrap().len(), 64);
        assert!(matches!(naming("a").local_name(&"b".repeat(62)), Err(NameError::TooLong(_))));
    }
}
