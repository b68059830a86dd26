//! The command line of `creole status`.

use clap::Args as Group;

use super::SessionArgs;

/// `creole status`.
#[derive(Debug, Group)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
pub(crate) struct StatusArgs {
    /// The configuration file or the URL of a server. Without it, and without `--config`, `--preset` or `--`:
    /// `creole.toml`.
    #[arg(value_name = "FILE, URL", num_args = 0..=1)]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) peer: SessionArgs,
}

const USAGE: &str = "\
creole status [FILE | URL | --config <FILE> | --preset <NAME>] [OPTIONS]
       creole status [OPTIONS] -- <COMMAND> [ARGS]...";

const EXAMPLES: &str = "\
Examples:
  creole status creole.toml
  creole status https://example.com/mcp
  creole status --json

The upstreams of a configuration are started, asked for their lists, and ended. A server elsewhere tells of itself
alone. It ends with 0 if one answered, and with 1 if none did.";
