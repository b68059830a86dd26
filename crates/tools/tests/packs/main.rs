//! Tests of the packs as clients see them. Each test calls a whole server in the same process.

mod everything;
mod simple;
mod support;
mod tasks;
