//! The packs that need nothing but this crate.

pub(crate) mod calculate;
pub(crate) mod echo;
pub(crate) mod everything;
pub(crate) mod guide;
pub(crate) mod hello;
pub(crate) mod schema_tool;
pub(crate) mod tasks;
