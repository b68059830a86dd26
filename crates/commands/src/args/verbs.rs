//! The command lines of the verbs that use another server.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args as Group;
use creole::proto::dialect::BUILTIN_NAMES;
use creole::proto::model::{Level, ListKind};
use creole::proto::revision::Revision;

/// `creole list`.
#[derive(Debug, Group)]
#[command(after_help = LIST_EXAMPLES, override_usage = LIST_USAGE)]
pub(crate) struct ListArgs {
    /// The URL of the server, unless `--config`, `--preset` or `--` selects one, and the kind to list: tools,
    /// resources, templates or prompts. Default: all kinds.
    #[arg(value_name = "URL, KIND", num_args = 0..=2)]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) peer: SessionArgs,
}

const LIST_USAGE: &str = "\
creole list <URL | --config <FILE> | --preset <NAME>> [KIND] [OPTIONS]
       creole list [KIND] [OPTIONS] -- <COMMAND> [ARGS]...";

const LIST_EXAMPLES: &str = "\
Examples:
  creole list https://example.com/mcp
  creole list --config creole.toml
  creole list --preset default tools
  creole list tools --json -- npx -y @modelcontextprotocol/server-everything";

/// `creole call`.
#[derive(Debug, Group)]
#[command(after_help = CALL_EXAMPLES, override_usage = CALL_USAGE)]
pub(crate) struct CallArgs {
    /// The URL of the server, unless `--config`, `--preset` or `--` selects one, and the name of the tool.
    #[arg(value_name = "URL, TOOL", num_args = 0..)]
    pub(crate) words: Vec<String>,
    /// An argument. Its value is converted to the type in the tool's schema: a number, a boolean, JSON for arrays and
    /// objects, otherwise a string.
    #[arg(long = "arg", value_name = "NAME=VALUE")]
    pub(crate) arguments: Vec<String>,
    /// All arguments as a JSON object, which is sent unchecked. `-` reads it from stdin.
    #[arg(long = "args", value_name = "OBJECT", conflicts_with = "arguments")]
    pub(crate) object: Option<String>,
    #[command(flatten)]
    pub(crate) peer: SessionArgs,
}

const CALL_USAGE: &str = "\
creole call <URL | --config <FILE> | --preset <NAME>> <TOOL> [OPTIONS]
       creole call <TOOL> [OPTIONS] -- <COMMAND> [ARGS]...";

const CALL_EXAMPLES: &str = "\
Examples:
  creole call --preset default hello --arg name=World
  creole call --config creole.toml search --arg text=roads
  creole call https://example.com/mcp add --arg a=2 --arg b=3
  creole call add --args '{\"a\":2,\"b\":3}' --json -- npx -y @modelcontextprotocol/server-everything

The exit code is 0 if the tool succeeded, 1 if it failed, and 2 if the command line is invalid. Input requests of the
tool are answered at the terminal. Without a terminal, they are declined.";

/// `creole read`.
#[derive(Debug, Group)]
#[command(after_help = READ_EXAMPLES, override_usage = READ_USAGE)]
pub(crate) struct ReadArgs {
    /// The URL of the server, unless `--config`, `--preset` or `--` selects one, and the URI of the resource.
    #[arg(value_name = "URL, URI", num_args = 0..=2)]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) peer: SessionArgs,
}

const READ_USAGE: &str = "\
creole read <URL | --config <FILE> | --preset <NAME>> <URI> [OPTIONS]
       creole read <URI> [OPTIONS] -- <COMMAND> [ARGS]...";

const READ_EXAMPLES: &str = "\
Examples:
  creole read --preset default creole://guide
  creole read --config creole.toml table://todo/tasks
  creole read https://example.com/mcp file:///logo.png > logo.png
  creole read demo://resource/1 --json -- npx -y @modelcontextprotocol/server-everything";

/// `creole prompt`.
#[derive(Debug, Group)]
#[command(after_help = PROMPT_EXAMPLES, override_usage = PROMPT_USAGE)]
pub(crate) struct PromptArgs {
    /// The URL of the server, unless `--config`, `--preset` or `--` selects one, and the name of the prompt.
    #[arg(value_name = "URL, NAME", num_args = 0..)]
    pub(crate) words: Vec<String>,
    /// An argument. Arguments of prompts are strings.
    #[arg(long = "arg", value_name = "NAME=VALUE")]
    pub(crate) arguments: Vec<String>,
    #[command(flatten)]
    pub(crate) peer: SessionArgs,
}

const PROMPT_USAGE: &str = "\
creole prompt <URL | --config <FILE> | --preset <NAME>> <NAME> [OPTIONS]
       creole prompt <NAME> [OPTIONS] -- <COMMAND> [ARGS]...";

const PROMPT_EXAMPLES: &str = "\
Examples:
  creole prompt --preset default plan_task --arg goal='Ship it'
  creole prompt --config creole.toml translate --arg language=French
  creole prompt https://example.com/mcp review --arg file=main.rs --json";

/// `creole check`.
#[derive(Debug, Group)]
#[command(after_help = CHECK_EXAMPLES, override_usage = CHECK_USAGE)]
pub(crate) struct CheckArgs {
    /// The URL of the server, unless `--config`, `--preset` or `--` selects one.
    #[arg(value_name = "URL", num_args = 0..=1)]
    pub(crate) words: Vec<String>,
    /// Check a WordPress site instead: permalinks, Application Passwords, and whether BuddyBoss sees the authenticated user.
    #[arg(long, value_name = "SITE", conflicts_with_all = ["words", "config", "preset", "command"])]
    pub(crate) wordpress: Option<String>,
    /// Exit with 1 if there are findings.
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) peer: SessionArgs,
}

const CHECK_USAGE: &str = "\
creole check <URL | --config <FILE> | --preset <NAME> | --wordpress <SITE>> [OPTIONS]
       creole check [OPTIONS] -- <COMMAND> [ARGS]...";

const CHECK_EXAMPLES: &str = "\
Examples:
  creole check https://example.com/mcp
  creole check --config creole.toml
  creole check --json -- npx -y @modelcontextprotocol/server-everything
  creole check --wordpress https://example.org

A WordPress site is checked as CREOLE_WORDPRESS_USER with CREOLE_WORDPRESS_PASSWORD, if they are set. No tool is called.

The exit code is 1 if the connection to the server fails, otherwise 0. With --strict, it is also 1 if there are findings.";

/// `creole import`.
#[derive(Debug, Group)]
#[command(after_help = IMPORT_EXAMPLES)]
pub(crate) struct ImportArgs {
    /// The configuration file of another client: JSON with `mcpServers` or `servers`, with or without comments.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The file to write. It must not exist. Default: stdout.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

const IMPORT_EXAMPLES: &str = "\
Examples:
  creole import claude_desktop_config.json
  creole import .vscode/mcp.json --output creole.toml
  creole config check creole.toml

Values that look like secrets are not copied. They become ${NAME}; set these variables in the environment.";

/// The server of a session, and the settings of the session.
#[derive(Debug, Group)]
pub(crate) struct SessionArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Serve this configuration file in this process, with the environment of this shell, and use it. Creole does not
    /// listen on any port.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "preset", "headers", "cacert", "no_login", "dialect"])]
    pub(crate) config: Option<PathBuf>,
    /// The server of the configuration, if it has several.
    #[arg(long, value_name = "NAME", requires = "config")]
    pub(crate) server: Option<String>,
    /// The timeout for a silent server, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: u64,
    /// Offer the current directory as a root to the server.
    #[arg(long)]
    pub(crate) root: bool,
    /// The minimum level of the server's log messages that are shown on stderr.
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = level)]
    pub(crate) level: Level,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The server of a session and its connection settings. Its URL is an argument of the command.
#[derive(Debug, Group)]
pub(crate) struct TargetArgs {
    /// Serve a built-in configuration in this process and use it.
    #[arg(long, value_name = "NAME", conflicts_with = "command")]
    pub(crate) preset: Option<String>,
    /// A header of every request, such as `Authorization: Bearer ${TOKEN}`. `${NAME}` is replaced by an environment
    /// variable.
    #[arg(long = "header", value_name = "NAME: VALUE", conflicts_with_all = ["command", "preset"])]
    pub(crate) headers: Vec<String>,
    /// A PEM file with the certificate authorities (CA) that are trusted for an `https` server, instead of the
    /// system's.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "preset"])]
    pub(crate) cacert: Option<PathBuf>,
    /// Do not log in to a server that requires a login: use stored logins only. This is the default without a terminal.
    #[arg(long, conflicts_with_all = ["command", "preset"])]
    pub(crate) no_login: bool,
    #[command(flatten)]
    pub(crate) environment: EnvironmentArgs,
    /// The dialect of the server, if it deviates from the specification.
    #[arg(long, value_name = "NAME", value_parser = BUILTIN_NAMES.to_vec(), conflicts_with = "preset")]
    pub(crate) dialect: Option<String>,
    /// The only protocol revision to use with the server, such as 2025-11-25. Default: `check` uses the newest
    /// revision of the server, `connect` uses the era of the client. The other commands prefer the handshake era, because
    /// more servers support input requests there.
    #[arg(long, value_name = "REVISION", value_parser = revision)]
    pub(crate) revision: Option<Revision>,
    /// A server program to start. It serves on its stdin and stdout.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// The environment of a started program.
#[derive(Clone, Debug, Default, Group)]
pub(crate) struct EnvironmentArgs {
    /// An environment variable for the program, which otherwise gets only basic variables. `NAME` alone passes the
    /// variable of Creole's own environment.
    #[arg(long = "env", value_name = "NAME[=VALUE]", requires = "command")]
    pub(crate) entries: Vec<String>,
}

/// Reads the name of a revision.
fn revision(text: &str) -> Result<Revision, String> {
    Revision::from_name(text).ok_or_else(|| {
        let known = Revision::ALL.map(|revision| revision.rules().name);
        format!("the known revisions are {}", known.join(", "))
    })
}

/// Reads the name of a log level.
fn level(text: &str) -> Result<Level, String> {
    Level::from_name(text).ok_or_else(|| {
        "the known levels are debug, info, notice, warning, error, critical, alert, emergency"
            .to_owned()
    })
}

/// The names of the lists on the command line.
pub(crate) const LIST_KINDS: [(&str, ListKind); 4] = [
    ("tools", ListKind::Tools),
    ("resources", ListKind::Resources),
    ("templates", ListKind::Templates),
    ("prompts", ListKind::Prompts),
];

/// `creole status`.
#[derive(Debug, Group)]
#[command(after_help = STATUS_EXAMPLES, override_usage = STATUS_USAGE)]
pub(crate) struct StatusArgs {
    /// The configuration file or the URL of a server. Without it, and without `--config`, `--preset` or `--`:
    /// `creole.toml`.
    #[arg(value_name = "FILE, URL", num_args = 0..=1)]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) peer: SessionArgs,
}

const STATUS_USAGE: &str = "\
creole status [FILE | URL | --config <FILE> | --preset <NAME>] [OPTIONS]
       creole status [OPTIONS] -- <COMMAND> [ARGS]...";

const STATUS_EXAMPLES: &str = "\
Examples:
  creole status creole.toml
  creole status https://example.com/mcp
  creole status --json

The command starts each upstream of a configuration, fetches its lists, and stops it. For a URL or a command, it shows
that server alone. The exit code is 0 if at least one server responded, otherwise 1.";
