//! What is left out of a server's lists is said when that begins, and not each time that they are fetched.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use creole::proto::model::ListKind;

/// For what kind of reason something is left out; each is found at another place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    /// It cannot be named, or somebody else has the name.
    Name,
    /// Its schema wants headers that cannot be sent.
    Headers,
}

/// What was said to be left out.
#[derive(Debug, Default)]
pub(super) struct LeftOut(Mutex<BTreeMap<(ListKind, Reason), Vec<String>>>);

impl LeftOut {
    /// Takes all that is left out of a list now, and says what was not left out the last time.
    pub(super) fn say(&self, upstream: &str, kind: ListKind, reason: Reason, now: Vec<String>) {
        for why in self.news(kind, reason, now) {
            tracing::warn!(target: "creole", upstream, why, "left out");
        }
    }

    /// Everything that is left out now.
    pub(super) fn all(&self) -> Vec<String> {
        let said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        said.values().flatten().cloned().collect()
    }

    fn news(&self, kind: ListKind, reason: Reason, now: Vec<String>) -> Vec<String> {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = said.insert((kind, reason), now.clone()).unwrap_or_default();
        now.into_iter().filter(|why| !before.contains(why)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_said_once_until_it_is_back() {
        let left_out = LeftOut::default();
        let news = |kind, now: &[&str]| {
            left_out.news(kind, Reason::Name, now.iter().map(|&it| it.to_owned()).collect())
        };
        assert_eq!(news(ListKind::Tools, &["a", "b"]), ["a", "b"]);
        assert_eq!(news(ListKind::Tools, &["b", "c", "a"]), ["c"]);
        assert_eq!(news(ListKind::Prompts, &["a"]), ["a"]);
        assert!(news(ListKind::Tools, &["c"]).is_empty());
        assert_eq!(news(ListKind::Tools, &["a", "c"]), ["a"]);
    }
}
