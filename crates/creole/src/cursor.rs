//! Opaque cursors: where a page ended, sealed so that clients cannot make them up.

use crate::seal::{Purpose, Sealer};

/// Where a page ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// How many items came before.
    pub(crate) index: usize,
    /// The last item's name: it keeps the place when items come and go.
    pub(crate) after: String,
}

impl Position {
    pub(crate) fn seal(&self, sealer: &Sealer, principal: &str, list: &str) -> String {
        let plain = format!("{}\n{}", self.index, self.after);
        let binding = [principal.as_bytes(), list.as_bytes()];
        sealer.seal(Purpose::Cursor, &binding, u64::MAX, plain.as_bytes())
    }

    pub(crate) fn open(text: &str, sealer: &Sealer, principal: &str, list: &str) -> Option<Self> {
        let binding = [principal.as_bytes(), list.as_bytes()];
        let plain = sealer.open(Purpose::Cursor, &binding, 0, text).ok()?;
        let plain = String::from_utf8(plain).ok()?;
        let (index, after) = plain.split_once('\n')?;
        Some(Self { index: index.parse().ok()?, after: after.to_owned() })
    }
}
