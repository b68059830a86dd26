//! What is kept between two rounds of a call: where the questions of the first came from.

use serde::{Deserialize, Serialize};

/// What is handed out with questions, sealed, and comes back with the answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kept {
    /// The server ended the call with its questions: it is called again with the answers and its own state.
    Relay(Option<String>),
    /// The server still waits for the answers, in a call that is parked here.
    Park(Parked),
    /// The server refused until a page is visited: it is called again once that was done.
    Again,
    /// The server made a task of the call.
    Task {
        /// Its name there.
        id: String,
        /// Which of its caller's conversations it belongs to.
        lane: usize,
    },
}

/// A call that is parked here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Parked {
    /// Which.
    pub(super) id: String,
    /// How often it had asked before.
    pub(super) round: u32,
    /// Which of its caller's conversations it is made in.
    pub(super) lane: usize,
}

impl Kept {
    pub(super) fn text(&self) -> String {
        // Plain data cannot fail to serialise.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// What was kept; nothing where the text is not ours, which the seal makes impossible.
    pub(super) fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_as_it_was_written() {
        let all = [
            Kept::Relay(None),
            Kept::Relay(Some("a\u{e9}\"b".to_owned())),
            Kept::Park(Parked { id: "x".to_owned(), round: 3, lane: 1 }),
            Kept::Again,
            Kept::Task { id: "t".to_owned(), lane: 2 },
        ];
        for kept in all {
            assert_eq!(Kept::read(&kept.text()), Some(kept));
        }
        assert_eq!(Kept::read("{}"), None);
    }
}
