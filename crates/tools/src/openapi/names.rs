//! Names of tools and their arguments: accepted by every client, deterministic and unique.

use std::collections::{HashMap, HashSet};

/// Maximum length of a tool's name, in bytes. Clients add prefixes and accept 64 bytes in total.
const MAX_TOOL_NAME: usize = 56;
/// Maximum length of an argument's name, in bytes.
const MAX_ARGUMENT_NAME: usize = 64;

/// The name of an operation without an `operationId`: its method and path.
pub(crate) fn name_of_path(method: &str, path: &str) -> String {
    to_snake_case(&format!("{method} {path}"))
}

/// A name in lower case with underscores.
pub(crate) fn to_snake_case(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let mut name = String::with_capacity(text.len());
    for (position, character) in letters.iter().enumerate() {
        let before = position.checked_sub(1).map(|before| letters[before]);
        let after = letters.get(position + 1);
        // A word begins after a lower-case letter, and with the last of several capitals: `getURLById`.
        let begins = character.is_ascii_uppercase()
            && (before
                .is_some_and(|symbol| symbol.is_ascii_lowercase() || symbol.is_ascii_digit())
                || (before.is_some_and(|symbol| symbol.is_ascii_uppercase())
                    && after.is_some_and(char::is_ascii_lowercase)));
        let parts = begins || !character.is_ascii_alphanumeric();
        if parts && !name.is_empty() && !name.ends_with('_') {
            name.push('_');
        }
        if character.is_ascii_alphanumeric() {
            name.push(character.to_ascii_lowercase());
        }
    }
    name.trim_end_matches('_').to_owned()
}

/// The assigned names of tools.
#[derive(Default)]
pub(crate) struct ToolNames {
    taken: HashSet<String>,
    /// The last number that was appended to a repeated name.
    numbers: HashMap<String, usize>,
}

impl ToolNames {
    /// Assigns an unused name, as similar as possible to the wanted one.
    pub(crate) fn assign(&mut self, prefix: &str, wished: &str) -> String {
        let available = MAX_TOOL_NAME.saturating_sub(prefix.len()).max(8);
        let mut name = format!("{prefix}{}", truncate_with_digest(wished, available));
        while !self.taken.insert(name.clone()) {
            let number = self.numbers.entry(wished.to_owned()).or_insert(1);
            *number += 1;
            let ending = format!("_{number}");
            name = format!(
                "{prefix}{}{ending}",
                truncate_with_digest(wished, available - ending.len())
            );
        }
        name
    }

    /// Reserves a configured name. Returns whether it was unused.
    pub(crate) fn reserve(&mut self, name: &str) -> bool {
        self.taken.insert(name.to_owned())
    }
}

/// A name of at most `most` bytes. A truncated name ends with a digest of the full one.
fn truncate_with_digest(name: &str, max: usize) -> String {
    if name.len() <= max {
        return name.to_owned();
    }
    let ending = format!("_{:06x}", digest(name) & 0x00ff_ffff);
    let available = name.floor_char_boundary(max.saturating_sub(ending.len()));
    format!("{}{ending}", name[..available].trim_end_matches('_'))
}

/// A hash that is the same on every machine (FNV-1a).
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The name of an argument: the document's name with unsupported characters replaced by `_`.
pub(crate) fn argument_name(name: &str, taken: &HashSet<String>, location: &str) -> String {
    let is_allowed =
        |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '.');
    let mut plain: String =
        name.chars().map(|character| if is_allowed(character) { character } else { '_' }).collect();
    let trimmed = plain.trim_matches('_');
    if trimmed.len() < plain.len() && !trimmed.is_empty() && !name.starts_with('_') {
        plain = trimmed.to_owned();
    }
    if plain.is_empty() {
        plain = "value".to_owned();
    }
    plain = truncate_with_digest(&plain, MAX_ARGUMENT_NAME);
    if !taken.contains(&plain) {
        return plain;
    }
    let with_place = truncate_with_digest(&format!("{plain}_{location}"), MAX_ARGUMENT_NAME);
    let mut number = 2;
    let mut unique = with_place.clone();
    while taken.contains(&unique) {
        unique = truncate_with_digest(&format!("{with_place}_{number}"), MAX_ARGUMENT_NAME);
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
        for (text, name) in rows {
            assert_eq!(to_snake_case(text), name, "{text}");
        }
        assert_eq!(name_of_path("GET", "/pets/{petId}/photos"), "get_pets_pet_id_photos");
    }

    #[test]
    fn names_are_valid_and_unique() {
        let mut names = ToolNames::default();
        assert_eq!(names.assign("", "list"), "list");
        assert_eq!(names.assign("", "list"), "list_2");
        assert_eq!(names.assign("p_", "list"), "p_list");
        let (long, other) = ("x".repeat(80), "x".repeat(81));
        let (first, second) = (names.assign("p_", &long), names.assign("p_", &other));
        assert!(first.len() == MAX_TOOL_NAME && second.len() == MAX_TOOL_NAME && first != second);
        assert_eq!(ToolNames::default().assign("p_", &long), first);
        assert!(!names.reserve("list") && names.reserve("own"));
    }

    #[test]
    fn arguments_keep_their_names_if_clients_accept_them() {
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
        for (text, name) in rows {
            let output = argument_name(text, &taken, "path");
            if text == "ü" {
                assert!(!output.is_empty());
            } else {
                assert_eq!(output, name, "{text}");
            }
        }
        assert!(argument_name(&"x".repeat(100), &taken, "query").len() <= MAX_ARGUMENT_NAME);
    }
}
