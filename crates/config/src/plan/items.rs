//! Resolves the tables of items: tools, files, databases, services and the settings of packs.

pub(crate) mod database;
pub(crate) mod files;
pub(crate) mod openapi;
pub(crate) mod skills;
pub(crate) mod tools;
pub(crate) mod wordpress;
