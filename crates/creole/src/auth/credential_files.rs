//! Users and keys in files: reading, changing and checking their entries.

pub(crate) mod credential_text;
pub(crate) mod expiry;
pub(crate) mod file;
pub(crate) mod keys;
pub(crate) mod users;
