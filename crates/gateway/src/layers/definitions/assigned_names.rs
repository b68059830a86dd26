//! The names that a layer assigned, and the item that each stands for.

use creole::internal::sync::RwLock;
use std::collections::BTreeMap;

use creole_proto::model::ListKind;

/// Assigned names by list.
#[derive(Debug, Default)]
pub(crate) struct AssignedNames(RwLock<BTreeMap<ListKind, ListNames>>);

/// The names of one list. They are assigned in rounds: a removed item does not claim its name again.
#[derive(Debug, Default)]
struct ListNames {
    round: u64,
    names: BTreeMap<String, NameHolder>,
}

#[derive(Debug)]
struct NameHolder {
    own_name: String,
    /// The round in which the name was last claimed.
    round: u64,
}

impl AssignedNames {
    /// Begins a round, in which all items of the list claim their names again. A name keeps its item until another item
    /// claims it, so that calls find their item meanwhile. After a round without a claim the name is forgotten.
    pub(crate) fn start_round(&self, kind: ListKind) {
        let mut names = self.0.write();
        let book = names.entry(kind).or_default();
        let last = book.round;
        book.names.retain(|_, holder| holder.round == last);
        book.round += 1;
    }

    /// Assigns a name to an item. If another item has it, returns that item.
    pub(crate) fn assign(&self, kind: ListKind, name: &str, own: &str) -> Result<(), String> {
        let mut books = self.0.write();
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

    /// The item that a name stands for.
    pub(crate) fn own_name(&self, kind: ListKind, name: &str) -> Option<String> {
        let names = self.0.read();
        names.get(&kind)?.names.get(name).map(|holder| holder.own_name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_free_again_when_its_item_no_longer_uses_it() {
        let (given, kind) = (AssignedNames::default(), ListKind::Tools);
        given.assign(kind, "read", "old_read").unwrap();
        assert_eq!(given.assign(kind, "read", "read").unwrap_err(), "old_read");
        given.start_round(kind);
        assert_eq!(given.own_name(kind, "read").as_deref(), Some("old_read"), "calls still work");
        given.assign(kind, "read", "read").unwrap();
        assert_eq!(given.assign(kind, "read", "old_read").unwrap_err(), "read");
        assert_eq!(given.own_name(kind, "read").as_deref(), Some("read"));
        given.start_round(kind);
        given.start_round(kind);
        assert_eq!(given.own_name(kind, "read"), None, "the name was unused for a whole round");
    }
}
