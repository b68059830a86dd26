//! The names that a configuration may use, and a suggestion for a mistyped one.

use creole_proto::fault::FaultKind;
use creole_proto::method::Method;
use creole_proto::revision::Revision;

/// The maximum number of names that are listed in addition to a suggestion.
const MAX_LISTED: usize = 8;

/// The capabilities that a server can declare.
pub(crate) const CAPABILITIES: [&str; 7] =
    ["tools", "resources", "prompts", "completions", "logging", "tasks", "skills"];

/// The names of the revisions that a dialect can be based on.
pub(crate) fn base_revisions() -> Vec<&'static str> {
    let with_handshake = |revision: &Revision| revision.rules().has_handshake();
    Revision::ALL.iter().filter(|each| with_handshake(each)).map(|each| each.rules().name).collect()
}

/// The names of all revisions.
pub(crate) fn revisions() -> Vec<&'static str> {
    Revision::ALL.iter().map(|each| each.rules().name).collect()
}

/// The names of all methods.
pub(crate) fn methods() -> Vec<&'static str> {
    Method::ALL.iter().map(|(_, name)| *name).collect()
}

/// The names of all kinds of faults.
pub(crate) fn fault_kinds() -> Vec<&'static str> {
    FaultKind::ALL.iter().map(|(_, name)| *name).collect()
}

/// The name closest to `word`, if it is close enough.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let best =
        known.into_iter().map(|name| (distance(word, name), name)).min_by_key(|best| best.0)?;
    let tolerated = word.chars().count().max(best.1.chars().count()).div_ceil(3);
    (best.0 <= tolerated).then_some(best.1)
}

/// A list of names in backquotes.
pub(crate) fn backquoted_list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

/// The help text for an unknown name: the closest name first, then all names if they are few.
pub(crate) fn suggestion(word: &str, noun: &str, known: &[&str]) -> String {
    let all = || format!("{noun} are {}", backquoted_list(known.iter().copied()));
    match nearest(word, known.iter().copied()) {
        Some(name) if known.len() > MAX_LISTED => format!("did you mean `{name}`?"),
        Some(name) => format!("did you mean `{name}`? {}", all()),
        None => all(),
    }
}

/// The edit distance: letters inserted, removed, changed or swapped with their neighbour.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().map(normalized_letter).collect();
    let right: Vec<char> = right.chars().map(normalized_letter).collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for row in 1..=left.len() {
        let mut current = vec![row];
        for column in 1..=right.len() {
            let changed = last[column - 1] + usize::from(left[row - 1] != right[column - 1]);
            let mut best = changed.min(last[column] + 1).min(current[column - 1] + 1);
            if is_swap(&left[..row], &right[..column]) {
                best = best.min(before_last[column - 2] + 1);
            }
            current.push(best);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last[right.len()]
}

fn is_swap(left: &[char], right: &[char]) -> bool {
    match (left, right) {
        ([.., a, b], [.., c, d]) => a == d && b == c,
        _ => false,
    }
}

/// Ignores case and the difference between hyphen and underscore, which are easily confused.
fn normalized_letter(character: char) -> char {
    if character == '_' { '-' } else { character.to_ascii_lowercase() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swapped_pair_of_letters_is_one_mistake() {
        assert_eq!(distance("pakcs", "packs"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("Page-Size", "page_size"), 0);
    }

    #[test]
    fn only_a_close_name_is_suggested() {
        let known = ["name", "title", "packs"];
        assert_eq!(nearest("pakcs", known), Some("packs"));
        assert_eq!(nearest("upstreams", known), None);
        assert_eq!(nearest("x", []), None);
    }
}
