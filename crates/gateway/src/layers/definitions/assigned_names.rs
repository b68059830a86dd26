//! Names that a layer gave, and what each stands for.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use creole_proto::model::ListKind;

/// Names that were given, by list.
#[derive(Debug, Default)]
pub(crate) struct AssignedNames(RwLock<BTreeMap<ListKind, ListNames>>);

/// The names of one list. They are given in rounds: an item that is gone does not ask for its name again.
#[derive(Debug, Default)]
struct ListNames {
    round: u64,
    names: BTreeMap<String, NameHolder>,
}

#[derive(Debug)]
struct NameHolder {
    own_name: String,
    /// When it last asked for the name.
    round: u64,
}

impl AssignedNames {
    /// Begins a round: all items of the list ask for their names again. A name stands for what it stood for until
    /// another item asks for it, so that calls meanwhile find what they look for; after a round without its item it
    /// is forgotten.
    pub(crate) fn start_round(&self, kind: ListKind) {
        let mut books = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let book = books.entry(kind).or_default();
        let last = book.round;
        book.names.retain(|_, holder| holder.round == last);
        book.round += 1;
    }

    /// Gives a name to an item, unless another one has it, which is told.
    pub(crate) fn assign(&self, kind: ListKind, name: &str, own: &str) -> Result<(), String> {
        let mut books = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let ListNames { round, names } = books.entry(kind).or_default();
        match names.get(name) {
            Some(holder) if holder.own_name != own && holder.round == *round => {
                Err(holder.own_name.clone())
            }
            _ => {
                names.insert(
                    name.to_owned(),
                    NameHolder { own_name: own.to_owned(), round: *round },
                );
                Ok(())
            }
        }
    }

    /// What a name stands for.
    pub(crate) fn own_name(&self, kind: ListKind, name: &str) -> Option<String> {
        let books = self.0.read().unwrap_or_else(PoisonError::into_inner);
        books.get(&kind)?.names.get(name).map(|holder| holder.own_name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_free_again_when_its_item_no_longer_asks_for_it() {
        let (given, kind) = (AssignedNames::default(), ListKind::Tools);
        given.assign(kind, "read", "old_read").unwrap();
        assert_eq!(given.assign(kind, "read", "read").unwrap_err(), "old_read");
        given.start_round(kind);
        assert_eq!(given.own_name(kind, "read").as_deref(), Some("old_read"), "calls go on");
        given.assign(kind, "read", "read").unwrap();
        assert_eq!(given.assign(kind, "read", "old_read").unwrap_err(), "read");
        assert_eq!(given.own_name(kind, "read").as_deref(), Some("read"));
        given.start_round(kind);
        given.start_round(kind);
        assert_eq!(given.own_name(kind, "read"), None, "nobody asked for it in a whole round");
    }
}
