//! Names that a layer gave, and what each stands for.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use creole_proto::model::ListKind;

/// Names that were given, by list.
#[derive(Debug, Default)]
pub(super) struct Given(RwLock<BTreeMap<ListKind, Book>>);

/// The names of one list. They are given in rounds: an item that is gone does not ask for its name again.
#[derive(Debug, Default)]
struct Book {
    round: u64,
    names: BTreeMap<String, Holder>,
}

#[derive(Debug)]
struct Holder {
    own: String,
    /// When it last asked for the name.
    round: u64,
}

impl Given {
    /// Begins a round: all items of the list ask for their names again. A name stands for what it stood for until
    /// another item asks for it, so that calls meanwhile find what they look for; after a round without its item it
    /// is forgotten.
    pub(super) fn anew(&self, kind: ListKind) {
        let mut books = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let book = books.entry(kind).or_default();
        let last = book.round;
        book.names.retain(|_, holder| holder.round == last);
        book.round += 1;
    }

    /// Gives a name to an item, unless another one has it, which is told.
    pub(super) fn give(&self, kind: ListKind, name: &str, own: &str) -> Result<(), String> {
        let mut books = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let Book { round, names } = books.entry(kind).or_default();
        match names.get(name) {
            Some(holder) if holder.own != own && holder.round == *round => Err(holder.own.clone()),
            _ => {
                names.insert(name.to_owned(), Holder { own: own.to_owned(), round: *round });
                Ok(())
            }
        }
    }

    /// What a name stands for.
    pub(super) fn behind(&self, kind: ListKind, name: &str) -> Option<String> {
        let books = self.0.read().unwrap_or_else(PoisonError::into_inner);
        books.get(&kind)?.names.get(name).map(|holder| holder.own.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_free_again_when_its_item_no_longer_asks_for_it() {
        let (given, kind) = (Given::default(), ListKind::Tools);
        given.give(kind, "read", "old_read").unwrap();
        assert_eq!(given.give(kind, "read", "read").unwrap_err(), "old_read");
        given.anew(kind);
        assert_eq!(given.behind(kind, "read").as_deref(), Some("old_read"), "calls go on");
        given.give(kind, "read", "read").unwrap();
        assert_eq!(given.give(kind, "read", "old_read").unwrap_err(), "read");
        assert_eq!(given.behind(kind, "read").as_deref(), Some("read"));
        given.anew(kind);
        given.anew(kind);
        assert_eq!(given.behind(kind, "read"), None, "nobody asked for it in a whole round");
    }
}
