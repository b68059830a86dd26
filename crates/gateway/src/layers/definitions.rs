//! Layers that change or hide the definitions of items.

pub(crate) mod assigned_names;
pub(crate) mod filter;
pub(crate) mod hints;
pub(crate) mod json_edit;
pub(crate) mod pin;
pub(crate) mod rename;
pub(crate) mod rewrite;
