//! Finds names that some clients refuse, and names that are confusable.

use std::collections::BTreeMap;

/// The maximum length of a name that every client accepts.
const MAX_NAME: usize = 64;

/// Checks the names of one list.
pub(super) fn lint(names: &[&str], add: &mut impl FnMut(&str, String)) {
    duplicates(names, add);
    for name in names {
        if name.is_empty() {
            add(name, "has an empty name".to_owned());
        }
        let odd: String = name.chars().filter(|character| !is_safe(*character)).collect();
        if !odd.is_empty() {
            let odd: String = odd.escape_debug().collect();
            add(name, format!("has `{odd}` in its name; some clients accept only A-Z a-z 0-9 _ -"));
        }
        let length = name.chars().count();
        if length > MAX_NAME {
            add(
                name,
                format!("has a name of {length} characters; some clients accept only {MAX_NAME}"),
            );
        }
    }
    confusables(names, add);
}

fn is_safe(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == '-'
}

/// Names that are listed more than once.
pub(super) fn duplicates(names: &[&str], add: &mut impl FnMut(&str, String)) {
    let mut counted: BTreeMap<&str, usize> = BTreeMap::new();
    for name in names {
        let count = counted.entry(name).or_default();
        *count += 1;
        if *count == 2 {
            add(name, "is listed twice; clients see only one of them".to_owned());
        }
    }
}

/// Finds names that are visually confusable.
fn confusables(names: &[&str], add: &mut impl FnMut(&str, String)) {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for name in names {
        match seen.get(&skeleton(name)) {
            Some(first) if first != name => {
                add(name, format!("has a name that is confusable with `{first}`"))
            }
            Some(_) => {}
            None => _ = seen.insert(skeleton(name), name),
        }
    }
}

/// The name without the differences that readers overlook.
fn skeleton(name: &str) -> String {
    let plain = |character: char| match character {
        '_' | '-' | '.' | '/' | ' ' => None,
        '0' => Some('o'),
        '1' | 'I' | '|' => Some('l'),
        'а' => Some('a'),
        'е' => Some('e'),
        'о' => Some('o'),
        'р' => Some('p'),
        'с' => Some('c'),
        character => Some(character.to_ascii_lowercase()),
    };
    name.chars().filter_map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(names: &[&str]) -> Vec<String> {
        let mut found = Vec::new();
        lint(names, &mut |name, problem| found.push(format!("{name} {problem}")));
        found
    }

    #[test]
    fn portable_names_are_accepted() {
        assert_eq!(problems(&["read_file", "write-file", "list2"]), Vec::<String>::new());
    }

    #[test]
    fn names_that_clients_refuse_are_reported() {
        assert!(problems(&["a.b"])[0].contains("has `.` in its name"));
        assert!(problems(&["ünï\u{200b}"])[0].contains("`üï\\u{200b}`"));
        assert!(problems(&[&"x".repeat(65)])[0].contains("65 characters"));
        assert!(problems(&[""])[0].contains("empty name"));
    }

    #[test]
    fn confusable_names_are_reported() {
        assert_eq!(
            problems(&["get_task", "getTask"]),
            ["getTask has a name that is confusable with `get_task`"]
        );
        assert_eq!(problems(&["l0g", "log"]), ["log has a name that is confusable with `l0g`"]);
        assert_eq!(problems(&["a", "a"]), ["a is listed twice; clients see only one of them"]);
    }
}
