//! Names of other servers' items here: with a prefix, so that two servers may have tools of one name.

use std::collections::{HashMap, HashSet};

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
    /// It looks like another one.
    LooksLike(String, String),
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
            Self::LooksLike(name, other) => {
                write!(formatter, "{name:?} looks like {other:?}; rename one of them")
            }
        }
    }
}

/// Names that are taken, so that none is given that a person or a model would mistake for another.
#[derive(Debug, Default)]
pub(super) struct Taken {
    names: HashSet<String>,
    looks: HashMap<String, String>,
}

impl Taken {
    /// Takes a name. The same name again is not our business: who comes first has it.
    pub(super) fn take(&mut self, name: &str) -> Result<(), Unusable> {
        if self.names.contains(name) {
            return Ok(());
        }
        let look = look(name);
        if let Some(other) = self.looks.get(&look) {
            return Err(Unusable::LooksLike(name.to_owned(), other.clone()));
        }
        self.looks.insert(look, name.to_owned());
        self.names.insert(name.to_owned());
        Ok(())
    }
}

/// What a name looks like: case, the kind of hyphen and letters of other scripts that look like Latin ones make
/// no difference to a reader.
fn look(name: &str) -> String {
    let plain = name.chars().filter(|character| !is_invisible(*character)).map(latin);
    plain.flat_map(char::to_lowercase).collect()
}

fn is_invisible(character: char) -> bool {
    matches!(character, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        || ('\u{e0000}'..='\u{e007f}').contains(&character)
}

fn latin(character: char) -> char {
    match character {
        'а' | 'ɑ' | 'α' => 'a',
        'е' | 'ҽ' => 'e',
        'і' | 'ı' => 'i',
        'ј' => 'j',
        'о' | 'ο' | 'օ' => 'o',
        'р' | 'ρ' => 'p',
        'с' => 'c',
        'ѕ' => 's',
        'х' | 'χ' => 'x',
        'у' => 'y',
        '\u{2010}'..='\u{2015}' | '−' => '-',
        '！'..='～' => char::from_u32(character as u32 - 0xfee0).unwrap_or(character),
        other => other,
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
        assert_eq!(naming("a").here(&"b".repeat(61)).unwrap().len(), 64);
        assert!(matches!(naming("a").here(&"b".repeat(62)), Err(Unusable::TooLong(_))));
    }

    #[test]
    fn look_alikes_are_refused_and_repeats_are_not() {
        let mut taken = Taken::default();
        taken.take("pay").unwrap();
        taken.take("pay").unwrap();
        taken.take("paid").unwrap();
        for alike in ["Pay", "p\u{430}y", "pa\u{200b}y", "ｐａｙ"] {
            let error = taken.take(alike).unwrap_err();
            assert!(error.to_string().contains("looks like \"pay\""), "{error}");
        }
    }
}
