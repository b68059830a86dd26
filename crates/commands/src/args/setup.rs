//! The command lines of the verbs that set Creole up: configurations, clients, shells and manuals.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as Group, ValueEnum};
use clap_complete::Shell;

use super::address_and_port;

/// `creole init`.
#[derive(Debug, Group)]
#[command(after_help = INIT_EXAMPLES)]
pub(crate) struct InitArgs {
    /// The file to write. It must not exist. `-` is stdout.
    #[arg(value_name = "FILE", default_value = "creole.toml")]
    pub(crate) file: PathBuf,
    /// The name of the server.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// An upstream MCP server: its name, and a URL or a command line.
    #[arg(long = "upstream", value_name = "NAME=URL|COMMAND")]
    pub(crate) upstreams: Vec<String>,
    /// A service with an OpenAPI document: its name, and the file or the URL of the document.
    #[arg(long, value_name = "NAME=DOCUMENT")]
    pub(crate) openapi: Vec<String>,
    /// A folder whose files become resources.
    #[arg(long = "folder", value_name = "NAME=PATH")]
    pub(crate) folders: Vec<String>,
    /// A database that tools read: its name, and `sqlite:FILE` or `postgres://USER@HOST/DATABASE`.
    #[arg(long = "database", value_name = "NAME=URL")]
    pub(crate) databases: Vec<String>,
    /// A WordPress site with the BuddyBoss platform.
    #[arg(long, value_name = "URL")]
    pub(crate) wordpress: Option<String>,
    /// Listen for HTTP on this address and port instead of stdin and stdout.
    #[arg(long, value_name = "ADDRESS", value_parser = address_and_port)]
    pub(crate) http: Option<std::net::SocketAddr>,
}

const INIT_EXAMPLES: &str = "\
Examples:
  creole init
  creole init --upstream files='npx -y @modelcontextprotocol/server-filesystem /data'
  creole init team.toml --upstream far=https://example.com/mcp --http 127.0.0.1:8080

At a terminal, it prompts for settings that are not on the command line. Without a terminal, it does not prompt.";

/// `creole add`.
#[derive(Debug, Group)]
#[command(after_help = ADD_EXAMPLES, override_usage = ADD_USAGE)]
pub(crate) struct AddArgs {
    /// The name of the upstream. It becomes the prefix of its tools, followed by `__`.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The `http` or `https` URL of the server, unless `--` gives a command.
    #[arg(value_name = "URL", required_unless_present = "command", conflicts_with = "command")]
    pub(crate) url: Option<String>,
    /// The configuration file. It is created if it does not exist.
    #[arg(long, value_name = "FILE", default_value = "creole.toml")]
    pub(crate) config: PathBuf,
    /// A header of every request, such as `Authorization: Bearer ${TOKEN}`. `${NAME}` is replaced by an environment
    /// variable at the time of serving.
    #[arg(long = "header", value_name = "NAME: VALUE", conflicts_with = "command")]
    pub(crate) headers: Vec<String>,
    /// A PEM file with the certificate authorities (CA) of the server.
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub(crate) cacert: Option<String>,
    /// An environment variable for the program. `NAME` alone passes the value at the time of serving.
    #[arg(long = "env", value_name = "NAME[=VALUE]", requires = "command")]
    pub(crate) entries: Vec<String>,
    /// A server program to start. It serves on its stdin and stdout.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

const ADD_USAGE: &str = "\
creole add <NAME> <URL> [OPTIONS]
       creole add <NAME> [OPTIONS] -- <COMMAND> [ARGS]...";

const ADD_EXAMPLES: &str = "\
Examples:
  creole add far https://example.com/mcp --header 'Authorization: Bearer ${TOKEN}'
  creole add files -- npx -y @modelcontextprotocol/server-filesystem /data
  creole add db --config team.toml --env DATABASE_URL -- uvx some-server";

/// `creole install`.
#[derive(Debug, Group)]
#[command(after_help = INSTALL_EXAMPLES)]
pub(crate) struct InstallArgs {
    /// The client whose configuration is changed.
    #[arg(value_name = "CLIENT", value_enum)]
    pub(crate) client: ClientName,
    /// The configuration that Creole serves in this client. Default: the preset `default`.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The name of the server in the client.
    #[arg(long, value_name = "NAME", default_value = "creole")]
    pub(crate) name: String,
    /// Write the configuration of the project in the current folder instead of the user's.
    #[arg(long, conflicts_with = "file")]
    pub(crate) project: bool,
    /// The configuration file of the client, if it is not at its default path.
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Write without confirmation.
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Show the change and write nothing.
    #[arg(long, conflicts_with = "yes")]
    pub(crate) dry_run: bool,
}

const INSTALL_EXAMPLES: &str = "\
Examples:
  creole install claude-desktop --config creole.toml
  creole install vscode --project --dry-run
  creole install cursor --config team.toml --name team --yes

It shows the change and asks for confirmation. The rest of the file does not change, including comments. The previous
version of the file is kept beside it.";

/// Clients that start servers as child processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClientName {
    /// Claude Desktop.
    ClaudeDesktop,
    /// Claude Code.
    ClaudeCode,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    Vscode,
    /// Zed.
    Zed,
}

/// `creole completions`.
#[derive(Debug, Group)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_name = "SHELL", value_enum)]
    pub(crate) shell: Shell,
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  creole completions bash > ~/.local/share/bash-completion/completions/creole
  creole completions zsh > ~/.zfunc/_creole
  creole completions fish > ~/.config/fish/completions/creole.fish";

/// `creole man`.
#[derive(Debug, Group)]
#[command(after_help = MAN_EXAMPLES)]
pub(crate) struct ManArgs {
    /// The folder for one page per command. It is created if it does not exist. Without it, the page of `creole` is
    /// printed to stdout.
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
}

const MAN_EXAMPLES: &str = "\
Examples:
  creole man | man -l -
  creole man ~/.local/share/man/man1";
