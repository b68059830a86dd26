//! The packs, as clients see them: each test talks to a whole server in the same process.

mod everything;
mod simple;
mod support;
mod tasks;
