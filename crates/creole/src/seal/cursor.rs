//! Opaque cursors: the end of a page, sealed so that clients cannot forge them.

use crate::seal::{Purpose, Sealer};

/// The end of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The number of items before it.
    pub(crate) index: usize,
    /// The last item's name: it keeps the position when items are added and removed.
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
