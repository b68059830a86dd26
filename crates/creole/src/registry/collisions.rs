//! Detects items whose names collide with, or are visually confusable with, those of another server.

use std::fmt;

/// An item of an upstream that is excluded, because another item has its name or a confusable one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameCollision {
    /// The name that it would have here.
    pub name: String,
    /// The name of the item that is listed.
    pub holder: String,
    /// The name of that item's upstream; `None` if it is this server's own.
    pub server: Option<String>,
}

impl fmt::Display for NameCollision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, holder, server } = self;
        let server = match server {
            Some(server) => format!("`{server}`"),
            None => "this server itself".to_owned(),
        };
        match name == holder {
            true => write!(formatter, "{server} already has {name:?}; set another prefix"),
            false => write!(
                formatter,
                "{name:?} is confusable with {holder:?} of {server}; rename one of them or set a \
                    prefix"
            ),
        }
    }
}

/// The skeleton of a name: confusable names have the same one. It ignores case, the kind of hyphen, and letters of
/// other scripts that look like Latin ones.
pub(super) fn skeleton(name: &str) -> String {
    let plain = name.chars().filter(|character| !is_invisible(*character)).map(to_latin);
    plain.flat_map(char::to_lowercase).collect()
}

fn is_invisible(character: char) -> bool {
    matches!(character, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        || ('\u{e0000}'..='\u{e007f}').contains(&character)
}

fn to_latin(character: char) -> char {
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

    #[test]
    fn confusable_names_have_the_same_skeleton() {
        for alike in ["Pay", "p\u{430}y", "pa\u{200b}y", "ｐａｙ"] {
            assert_eq!(skeleton(alike), skeleton("pay"), "{alike:?}");
        }
        assert_ne!(skeleton("paid"), skeleton("pay"));
    }

    #[test]
    fn an_excluded_item_names_the_item_that_it_collides_with() {
        let told = |name: &str, server: Option<&str>| {
            let (holder, server) = ("pay".to_owned(), server.map(str::to_owned));
            NameCollision { name: name.to_owned(), holder, server }.to_string()
        };
        assert_eq!(told("pay", Some("bank")), "`bank` already has \"pay\"; set another prefix");
        assert_eq!(told("pay", None), "this server itself already has \"pay\"; set another prefix");
        let alike = told("Pay", Some("bank"));
        assert!(alike.starts_with("\"Pay\" is confusable with \"pay\" of `bank`"), "{alike}");
    }
}
