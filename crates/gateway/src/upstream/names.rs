//! Names of other servers' items here: with a prefix, so that two servers may have tools of one name.

/// The longest name that hosts and models take.
const LONGEST: usize = 64;

/// How the items of one server are named here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Naming {
    /// What stands in front; nothing for names as they are.
    pub prefix: String,
}

impl Naming {
    /// Names as they are.
    pub const PLAIN: Self = Self { prefix: String::new() };

    /// The name here of something that is called `name` there.
    pub fn here(&self, name: &str) -> Result<String, Unusable> {
        if self.prefix.is_empty() {
            // Whoever asked for names as they are gets them as they are.
            return Ok(name.to_owned());
        }
        let full = format!("{}{name}", self.prefix);
        if !name.chars().all(is_plain) || name.is_empty() {
            return Err(Unusable::Characters(name.to_owned()));
        }
        match full.len() {
            0..=LONGEST => Ok(full),
            _ => Err(Unusable::TooLong(full)),
        }
    }
}

impl Naming {
    /// The name there of something that is called `name` here, if it can be one of this server.
    pub(super) fn there<'a>(&self, name: &'a str) -> Option<&'a str> {
        let there = name.strip_prefix(&self.prefix)?;
        (self.here(there).ok()? == name).then_some(there)
    }
}

/// What hosts and models take in the name of a tool (2025-11-25 server/tools, tool names).
fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '.' | '/')
}

/// A name that cannot be used here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// It has characters that do not belong into a name.
    Characters(String),
    /// With its prefix it is too long.
    TooLong(String),
}

impl std::fmt::Display for Unusable {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Characters(name) => write!(
                formatter,
                "{name:?} has characters other than letters, digits and `_-./`; rename it"
            ),
            Self::TooLong(name) => {
                write!(formatter, "{name} is longer than {LONGEST} characters; shorten the prefix")
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
        assert_eq!(naming("files").here("read").unwrap(), "files__read");
        assert_eq!(Naming::PLAIN.here("any thing").unwrap(), "any thing");
        assert!(matches!(naming("a").here("b c"), Err(Unusable::Characters(_))));
        assert!(matches!(naming("a").here(""), Err(Unusable::Characters(_))));
        assert_eq!(naming("files").there("files__read"), Some("read"));
        assert_eq!(naming("files").there("other__read"), None);
        assert_eq!(naming("files").there("files__"), None);
        assert_eq!(Naming::PLAIN.there("any thing"), Some("any thing"));
        assert_eq!(naming("a").here(&"b".repeat(61)).unwrap().len(), 64);
        assert!(matches!(naming("a").here(&"b".repeat(62)), Err(Unusable::TooLong(_))));
    }
}
