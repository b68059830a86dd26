//! What the tables of items mean: tools, files, databases, services and what packs need.

pub(crate) mod database;
pub(crate) mod files;
pub(crate) mod openapi;
pub(crate) mod script;
pub(crate) mod skills;
pub(crate) mod tools;
pub(crate) mod wordpress;
