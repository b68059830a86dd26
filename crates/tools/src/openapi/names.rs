//! Names of tools and of their arguments: what every client takes, the same each time, and never twice.

use std::collections::{HashMap, HashSet};

/// The longest name of a tool, in bytes. Clients put names of their own before it and take 64 in all.
const LONGEST: usize = 56;
/// The longest name of an argument, in bytes.
const LONGEST_ARGUMENT: usize = 64;

/// The name that an operation has without one of its own: its method and its path.
pub(super) fn of_path(method: &str, path: &str) -> String {
    snake(&format!("{method} {path}"))
}

/// A name in small letters and underscores.
pub(super) fn snake(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let mut name = String::with_capacity(text.len());
    for (position, letter) in letters.iter().enumerate() {
        let before = position.checked_sub(1).map(|before| letters[before]);
        let after = letters.get(position + 1);
        // A word begins where small letters end, and with the last of several capitals: `getURLById`.
        let begins = letter.is_ascii_uppercase()
            && (before.is_some_and(|it| it.is_ascii_lowercase() || it.is_ascii_digit())
                || (before.is_some_and(|it| it.is_ascii_uppercase())
                    && after.is_some_and(char::is_ascii_lowercase)));
        let parts = begins || !letter.is_ascii_alphanumeric();
        if parts && !name.is_empty() && !name.ends_with('_') {
            name.push('_');
        }
        if letter.is_ascii_alphanumeric() {
            name.push(letter.to_ascii_lowercase());
        }
    }
    name.trim_end_matches('_').to_owned()
}

/// The names of tools that were given away.
#[derive(Default)]
pub(super) struct Names {
    taken: HashSet<String>,
    /// The number that was given last to a name that is wished for again.
    numbers: HashMap<String, usize>,
}

impl Names {
    /// A name that nobody has, as close to what is wished as can be.
    pub(super) fn give(&mut self, prefix: &str, wished: &str) -> String {
        let room = LONGEST.saturating_sub(prefix.len()).max(8);
        let mut name = format!("{prefix}{}", fitted(wished, room));
        while !self.taken.insert(name.clone()) {
            let number = self.numbers.entry(wished.to_owned()).or_insert(1);
            *number += 1;
            let ending = format!("_{number}");
            name = format!("{prefix}{}{ending}", fitted(wished, room - ending.len()));
        }
        name
    }

    /// Takes a name that somebody chose; tells whether nobody has it.
    pub(super) fn take(&mut self, name: &str) -> bool {
        self.taken.insert(name.to_owned())
    }
}

/// A name of at most so many bytes; what is cut is told apart by its digest.
fn fitted(name: &str, most: usize) -> String {
    if name.len() <= most {
        return name.to_owned();
    }
    let ending = format!("_{:06x}", digest(name) & 0x00ff_ffff);
    let room = name.floor_char_boundary(most.saturating_sub(ending.len()));
    format!("{}{ending}", name[..room].trim_end_matches('_'))
}

/// A number that is the same for the same text on every machine (FNV-1a).
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The name of an argument: that of the document, with what clients do not take written as `_`.
pub(super) fn argument(name: &str, taken: &HashSet<String>, place: &str) -> String {
    let letter = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-' | '.');
    let mut plain: String = name.chars().map(|it| if letter(it) { it } else { '_' }).collect();
    let trimmed = plain.trim_matches('_');
    if trimmed.len() < plain.len() && !trimmed.is_empty() && !name.starts_with('_') {
        plain = trimmed.to_owned();
    }
    if plain.is_empty() {
        plain = "value".to_owned();
    }
    plain = fitted(&plain, LONGEST_ARGUMENT);
    if !taken.contains(&plain) {
        return plain;
    }
    let with_place = fitted(&format!("{plain}_{place}"), LONGEST_ARGUMENT);
    let mut number = 2;
    let mut unique = with_place.clone();
    while taken.contains(&unique) {
        unique = fitted(&format!("{with_place}_{number}"), LONGEST_ARGUMENT);
        number += 1;
    }
    unique
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_small_letters_and_underscores() {
        let rows = [
            ("listPets", "list_pets"),
            ("getURLById", "get_url_by_id"),
            ("repos/list-for-org", "repos_list_for_org"),
            ("Pets.List", "pets_list"),
            ("v2GetX", "v2_get_x"),
            ("  __a  ", "a"),
            ("naïve ÜberPet", "na_ve_ber_pet"),
        ];
        for (written, name) in rows {
            assert_eq!(snake(written), name, "{written}");
        }
        assert_eq!(of_path("GET", "/pets/{petId}/photos"), "get_pets_pet_id_photos");
    }

    #[test]
    fn names_fit_and_are_never_given_twice() {
        let mut names = Names::default();
        assert_eq!(names.give("", "list"), "list");
        assert_eq!(names.give("", "list"), "list_2");
        assert_eq!(names.give("p_", "list"), "p_list");
        let (long, other) = ("x".repeat(80), "x".repeat(81));
        let (first, second) = (names.give("p_", &long), names.give("p_", &other));
        assert!(first.len() == LONGEST && second.len() == LONGEST && first != second);
        assert_eq!(Names::default().give("p_", &long), first);
        assert!(!names.take("list") && names.take("own"));
    }

    #[test]
    fn arguments_keep_their_names_where_clients_take_them() {
        let taken = HashSet::from(["id".to_owned(), "id_path".to_owned()]);
        let rows = [
            ("name", "name"),
            ("filter[name]", "filter_name"),
            ("$top", "top"),
            ("X-Request-Id", "X-Request-Id"),
            ("_id", "_id"),
            ("ü", "value"),
            ("id", "id_path_2"),
        ];
        for (written, name) in rows {
            let given = argument(written, &taken, "path");
            if written == "ü" {
                assert!(!given.is_empty());
            } else {
                assert_eq!(given, name, "{written}");
            }
        }
        assert!(argument(&"x".repeat(100), &taken, "query").len() <= LONGEST_ARGUMENT);
    }
}
