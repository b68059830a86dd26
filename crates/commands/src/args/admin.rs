//! The command lines of the verbs that use the admin listener of a running process.

use clap::Args as Group;

/// Which process is meant.
#[derive(Clone, Debug, Group)]
pub(crate) struct AdminArgs {
    /// The address of the admin listener, such as `http://127.0.0.1:9464` or `unix:/run/creole/admin.sock`. Default: the
    /// process of this user, if there is one. If the listener has users, `CREOLE_ADMIN_KEY` must hold a key.
    #[arg(long = "admin", value_name = "URL")]
    pub(crate) url: Option<String>,
}

/// `creole console`.
#[derive(Debug, Group)]
#[command(after_help = CONSOLE_EXAMPLES)]
pub(crate) struct ConsoleArgs {
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
}

const CONSOLE_EXAMPLES: &str = "\
Examples:
  creole console
  creole console --admin http://127.0.0.1:9464

The link signs in once, within ten minutes. The process must have `[admin]` in its configuration.";
