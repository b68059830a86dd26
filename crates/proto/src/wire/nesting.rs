//! The open containers at the position of a scan, with the keys of their objects.
//!
//! Duplicate keys are detected because one reader may take the first of two equal keys and another the last
//! (RFC 8259, 4). No hash is involved, so a sender cannot choose colliding keys.

use alloc::vec::Vec;

use super::cursor::StringToken;

/// One stack for containers and keys, so that an ordinary message costs a single allocation.
pub(super) struct Nesting<'a> {
    entries: Vec<NestingEntry<'a>>,
    depth: usize,
}

/// The two kinds of containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContainerKind {
    Array,
    Object,
}

/// The keys of an object are directly above it, because inner containers are closed when a key follows.
#[derive(Clone, Copy)]
enum NestingEntry<'a> {
    Array,
    Object,
    Key(StringToken<'a>),
}

impl<'a> Nesting<'a> {
    pub(super) fn new() -> Self {
        Self { entries: Vec::with_capacity(INITIAL_ENTRIES), depth: 0 }
    }

    /// Number of open containers.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// The kind of the innermost container.
    pub(super) fn innermost(&self) -> Option<ContainerKind> {
        self.entries.last().map(|entry| match entry {
            NestingEntry::Array => ContainerKind::Array,
            NestingEntry::Object | NestingEntry::Key(_) => ContainerKind::Object,
        })
    }

    pub(super) fn open(&mut self, shape: ContainerKind) {
        self.depth += 1;
        self.entries.push(match shape {
            ContainerKind::Array => NestingEntry::Array,
            ContainerKind::Object => NestingEntry::Object,
        });
    }

    /// Adds a key of the innermost container, which is an object.
    pub(super) fn key(&mut self, key: StringToken<'a>) {
        self.entries.push(NestingEntry::Key(key));
    }

    /// Closes the innermost container. Returns whether two of its keys were equal.
    pub(super) fn close(&mut self) -> bool {
        self.depth -= 1;
        let is_key = |entry: &&NestingEntry<'a>| matches!(entry, NestingEntry::Key(_));
        let keys = self.entries.len() - self.entries.iter().rev().take_while(is_key).count();
        let repeats = has_duplicate_key(&self.entries[keys..]);
        self.entries.truncate(keys - 1);
        repeats
    }
}

impl<'a> NestingEntry<'a> {
    fn text(&self) -> StringToken<'a> {
        match self {
            Self::Key(key) => *key,
            Self::Array | Self::Object => StringToken { body: b"", escaped: false },
        }
    }
}

/// Enough for the open containers and keys of an ordinary call.
const INITIAL_ENTRIES: usize = 24;

/// Up to this many keys, comparing all pairs is faster than sorting.
const MAX_PAIRWISE_KEYS: usize = 12;

fn has_duplicate_key(keys: &[NestingEntry<'_>]) -> bool {
    if keys.len() > MAX_PAIRWISE_KEYS || keys.iter().any(|key| key.text().escaped) {
        return has_duplicate_key_sorted(keys);
    }
    let mut rest = keys;
    while let [key, others @ ..] = rest {
        if others.iter().any(|other| other.text().body == key.text().body) {
            return true;
        }
        rest = others;
    }
    false
}

#[cold]
fn has_duplicate_key_sorted(keys: &[NestingEntry<'_>]) -> bool {
    let mut keys: Vec<_> = keys.iter().map(|key| key.text().value()).collect();
    // Comparing lengths first avoids most comparisons of bytes.
    keys.sort_unstable_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    keys.windows(2).any(|pair| pair[0] == pair[1])
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use super::*;

    fn plain(body: &str) -> StringToken<'_> {
        StringToken { body: body.as_bytes(), escaped: false }
    }

    fn repeats(count: usize, extra: Option<StringToken<'_>>) -> bool {
        let keys: Vec<String> = (0..count).map(|index| format!("key{index}")).collect();
        let mut nesting = Nesting::new();
        nesting.open(ContainerKind::Object);
        nesting.key(plain("outer"));
        nesting.open(ContainerKind::Object);
        for key in keys.iter().map(|key| plain(key)).chain(extra) {
            nesting.key(key);
        }
        let repeats = nesting.close();
        assert_eq!(nesting.depth(), 1);
        assert!(!nesting.close());
        assert_eq!(nesting.innermost(), None);
        repeats
    }

    #[test]
    fn a_repeated_key_is_found_in_objects_of_any_size() {
        for count in [1, 2, MAX_PAIRWISE_KEYS - 1, MAX_PAIRWISE_KEYS, MAX_PAIRWISE_KEYS + 1, 5000] {
            assert!(repeats(count, Some(plain("key0"))), "{count}");
            assert!(
                repeats(count, Some(StringToken { body: br"k\u0065y0", escaped: true })),
                "{count}"
            );
            assert!(
                !repeats(count, Some(StringToken { body: br"k\u0065y", escaped: true })),
                "{count}"
            );
            assert!(!repeats(count, Some(plain("other"))), "{count}");
            assert!(!repeats(count, None), "{count}");
        }
    }

    #[test]
    fn the_same_key_in_an_inner_and_an_outer_object_is_no_repetition() {
        assert!(!repeats(3, Some(plain("outer"))));
    }

    #[test]
    fn the_innermost_container_is_known_whatever_was_closed_before() {
        let mut nesting = Nesting::new();
        nesting.open(ContainerKind::Array);
        nesting.open(ContainerKind::Object);
        nesting.key(plain("a"));
        assert_eq!(nesting.innermost(), Some(ContainerKind::Object));
        nesting.open(ContainerKind::Array);
        assert_eq!(nesting.innermost(), Some(ContainerKind::Array));
        nesting.close();
        assert_eq!(nesting.innermost(), Some(ContainerKind::Object));
        nesting.close();
        assert_eq!((nesting.innermost(), nesting.depth()), (Some(ContainerKind::Array), 1));
    }
}
