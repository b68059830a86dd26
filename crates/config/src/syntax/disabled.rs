//! Removes entries with `enabled = false`, so that the variables that they name need not be set.

use std::cell::Cell;
use std::env::VarError;

use toml::de::{DeTable, DeValue};

use crate::syntax::environment::{Lookup, expand};

/// The tables whose entries can be disabled.
const TABLES: [&str; 7] =
    ["upstreams", "databases", "tools", "folders", "prompts", "resources", "openapi"];

/// Removes disabled entries that name an unset variable, because they cannot be resolved. Other disabled entries are
/// checked like enabled ones.
pub(crate) fn remove_disabled(document: &mut DeTable<'_>, lookup: Lookup<'_>) {
    for (key, value) in document.iter_mut() {
        if let DeValue::Table(entries) = value.get_mut()
            && TABLES.contains(&&**key.get_ref())
        {
            let is_useless = |entry: &DeValue<'_>| match entry {
                DeValue::Table(entry) => !is_enabled(entry) && lacks_variable(entry, lookup),
                _ => false,
            };
            let useless: Vec<_> = entries
                .iter()
                .filter(|(_, entry)| is_useless(entry.get_ref()))
                .map(|(name, _)| name.clone())
                .collect();
            useless.iter().for_each(|name| _ = entries.remove(name));
        }
    }
}

fn is_enabled(entry: &DeTable<'_>) -> bool {
    let enabled = entry.iter().find(|(key, _)| key.get_ref() == "enabled");
    !matches!(enabled.map(|(_, value)| value.get_ref()), Some(DeValue::Boolean(false)))
}

fn lacks_variable(entry: &DeTable<'_>, lookup: Lookup<'_>) -> bool {
    let is_unset = Cell::new(false);
    let noted = |name: &str| {
        let found = lookup(name);
        is_unset.set(is_unset.get() || matches!(found, Err(VarError::NotPresent)));
        found
    };
    // A variable with a default may be unset.
    expand(&mut entry.clone(), &noted).is_err() && is_unset.get()
}
