//! The verbs that write configurations: Creole's own and those of clients.

pub(crate) mod add;
pub(crate) mod files;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod install;
pub(crate) mod terminal_prompt;
