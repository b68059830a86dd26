//! The command lines of the verbs that use the admin listener of a running process.

use std::path::PathBuf;

use clap::Args as Group;

/// Which process is meant.
#[derive(Clone, Debug, Group)]
pub(crate) struct AdminArgs {
    /// The address of the admin listener, such as `http://127.0.0.1:9464` or `unix:/run/creole/admin.sock`. Default: the
    /// process of this user, if there is one. If the listener has users, `CREOLE_ADMIN_KEY` must hold a key.
    #[arg(long = "admin", value_name = "URL")]
    pub(crate) url: Option<String>,
    /// A PEM file with the certificate authorities (CA) that are trusted for an `https` listener, instead of the
    /// system's.
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
}

/// `creole console`.
#[derive(Debug, Group)]
#[command(after_help = CONSOLE_EXAMPLES)]
pub(crate) struct ConsoleArgs {
    /// The address of the admin listener, such as `http://127.0.0.1:9464`. Default: the process of this user, if there
    /// is one.
    #[arg(long = "admin", value_name = "URL")]
    pub(crate) url: Option<String>,
}

const CONSOLE_EXAMPLES: &str = "\
Examples:
  creole console
  creole console --admin http://127.0.0.1:9464

The link signs in once, within ten minutes. The process must have `[admin]` in its configuration. If the listener has
users, open its address in a browser and sign in with a name and a password.";

/// `creole top`.
#[derive(Debug, Group)]
#[command(after_help = TOP_EXAMPLES)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// Print the table once and exit. This is the default without a terminal.
    #[arg(long)]
    pub(crate) once: bool,
    /// Print the answer of the admin API as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

const TOP_EXAMPLES: &str = "\
Examples:
  creole top
  creole top --once --json
  CREOLE_ADMIN_KEY=... creole top --admin https://gateway.example.com:9464

Keys: n, s, r, l, e and a sort by name, state, rate, latency, errors and calls, and c as configured. Up and down choose
an upstream, Enter shows it, Escape returns, q quits.";

/// `creole trace`.
#[derive(Debug, Group)]
#[command(after_help = TRACE_EXAMPLES)]
pub(crate) struct TraceArgs {
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// Only calls of this tool, prompt or URI.
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Only calls that were sent to this upstream.
    #[arg(long, value_name = "NAME")]
    pub(crate) upstream: Option<String>,
    /// Only calls of this principal.
    #[arg(long, value_name = "NAME")]
    pub(crate) principal: Option<String>,
    /// Only calls of this method, such as `tools/list`. Default: calls of a tool, prompt, resource or task.
    #[arg(long, value_name = "METHOD")]
    pub(crate) method: Option<String>,
    /// Wait for the next call, also if there was one.
    #[arg(long)]
    pub(crate) next: bool,
    /// Print every call from now on.
    #[arg(long, conflicts_with = "next")]
    pub(crate) follow: bool,
    /// Print the answer of the admin API as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

const TRACE_EXAMPLES: &str = "\
Examples:
  creole trace
  creole trace --tool search --next
  creole trace --upstream wiki --follow

It prints the last call that matches, or waits for one. Calls are recorded while a console, `creole top` or
`creole trace` uses the admin listener, and for an hour after it.";
