//! The command line as types; its help is their documentation.

mod admin;
mod audit;
mod lazy;
mod login;
mod policy;
mod setup;
mod verbs;

pub(crate) use admin::{AdminArgs, ConsoleArgs, TopArgs, TraceArgs};
pub(crate) use audit::{AuditCommand, AuditSearchArgs, AuditVerifyArgs};
pub(crate) use login::{ClientArgs, LoginArgs, LoginsArgs, LogoutArgs};
pub(crate) use policy::{
    PolicyCallerArgs, PolicyCommand, PolicyExplainArgs, PolicyListArgs, PolicyTestArgs,
};
pub(crate) use setup::{AddArgs, ClientName, CompletionsArgs, InitArgs, InstallArgs, ManArgs};
pub(crate) use verbs::{
    CallArgs, CheckArgs, EnvironmentArgs, ImportArgs, LIST_KINDS, ListArgs, PromptArgs, ReadArgs,
    SessionArgs, StatusArgs, TargetArgs,
};

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgGroup, Args as Group, Parser, Subcommand, ValueEnum};
use creole::internal::credential_files::Expiry;
use creole_config::ConfigSource;
use creole_config::plan::http::address;
use creole_config::tables::enums::LogFormat;
use lazy::LazyArgs;

/// Connects any MCP client to any MCP server.
///
/// Creole serves tools, resources and prompts over the Model Context Protocol, in every official
/// revision and in dialects of your own.
#[derive(Debug, Parser)]
#[command(name = "creole", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The command.
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  creole serve                       serve the built-in tools on stdin and stdout
  creole init                        write a first configuration
  creole config check creole.toml    check the configuration and show what it means
  creole serve creole.toml           serve the configuration
  creole list -- creole serve        list the items of a server

A client such as Claude Desktop or Cursor starts Creole itself. `creole install` writes this entry into its configuration:
  { \"mcpServers\": { \"creole\": { \"command\": \"creole\", \"args\": [\"serve\"] } } }";

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve a configuration to MCP clients.
    Serve(LazyArgs<ServeArgs>),
    /// Bridge stdio to another server of any revision and transport.
    Connect(LazyArgs<ConnectArgs>),
    /// List the tools, resources, templates and prompts of a server.
    List(LazyArgs<ListArgs>),
    /// Call a tool of a server.
    Call(LazyArgs<CallArgs>),
    /// Read a resource of a server.
    Read(LazyArgs<ReadArgs>),
    /// Render a prompt of a server.
    Prompt(LazyArgs<PromptArgs>),
    /// Check a server: its revision and transport, what clients of each revision get, and problems of names and schemas.
    Check(LazyArgs<CheckArgs>),
    /// Show the state of each upstream of a configuration, or of one server.
    Status(LazyArgs<StatusArgs>),
    /// Log in to a server that requires OAuth, and store the login.
    Login(LazyArgs<LoginArgs>),
    /// Revoke and delete a stored login.
    Logout(LazyArgs<LogoutArgs>),
    /// List the stored logins.
    Logins(LazyArgs<LoginsArgs>),
    /// Write a first configuration.
    Init(LazyArgs<InitArgs>),
    /// Add a server to a configuration.
    Add(LazyArgs<AddArgs>),
    /// Write an entry for Creole into the configuration of a client.
    Install(LazyArgs<InstallArgs>),
    /// Convert the configuration of another client to a Creole configuration.
    Import(LazyArgs<ImportArgs>),
    /// Show, check and describe configurations.
    #[command(subcommand)]
    Config(LazyArgs<ConfigCommand>),
    /// Test and explain the policy of a configuration.
    #[command(subcommand)]
    Policy(LazyArgs<PolicyCommand>),
    /// Check and search audit logs.
    #[command(subcommand)]
    Audit(LazyArgs<AuditCommand>),
    /// Add, change and remove users and keys.
    Passwd(LazyArgs<PasswdArgs>),
    /// Print a completion script for a shell.
    Completions(LazyArgs<CompletionsArgs>),
    /// Print the manual, or write one page per command.
    Man(LazyArgs<ManArgs>),
    /// Kill the child processes of a gateway that was killed. The gateway starts this command itself.
    #[command(hide = true)]
    Reap,
    /// Print a link that signs in to the console of a running server.
    Console(LazyArgs<ConsoleArgs>),
    /// Show the upstreams of a running server: rates, latencies, errors and calls in flight.
    Top(LazyArgs<TopArgs>),
    /// Print what happens in a call of a running server: layers, upstreams and translation.
    Trace(LazyArgs<TraceArgs>),
    /// Show withheld tools whose definitions changed, and approve them.
    Approve(LazyArgs<ApproveArgs>),
}

/// `creole approve`.
#[derive(Debug, Group)]
#[command(
    after_help = "Examples:\n  creole approve creole.toml\n  creole approve creole.toml files read"
)]
pub(crate) struct ApproveArgs {
    /// The configuration file whose chains pin tools.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The upstream whose tools are approved. Without it, nothing is approved and all changes are shown.
    #[arg(value_name = "SERVER")]
    pub(crate) server: Option<String>,
    /// The tool that is approved. Default: all changed tools of the upstream.
    #[arg(value_name = "TOOL")]
    pub(crate) tool: Option<String>,
}

/// `creole serve`.
#[derive(Clone, Debug, Default, Group)]
#[command(after_help = SERVE_EXAMPLES, override_usage = SERVE_USAGE)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) chosen: ConfigSourceArgs,
    /// Serve on stdin and stdout, one message per line. This is the default without `[http]`.
    #[arg(long)]
    pub(crate) stdio: bool,
    /// Listen for HTTP on this address and port. Overrides the configuration.
    #[arg(long, value_name = "ADDRESS", value_parser = address_and_port, conflicts_with = "stdio")]
    pub(crate) http: Option<SocketAddr>,
    /// Serve only this server of the configuration.
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
    /// Serve without authentication: every client that can reach the address may call.
    #[arg(long)]
    pub(crate) dangerously_without_auth: bool,
    /// Let other machines reach the admin listener without users or without TLS, if a proxy or a mesh does both.
    #[arg(long)]
    pub(crate) insecure_admin: bool,
    /// Log every step, and send the location of failures to clients.
    #[arg(long)]
    pub(crate) debug: bool,
    /// The format of the log on stderr. Overrides the configuration.
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub(crate) log: Option<LogChoice>,
    #[command(flatten)]
    pub(crate) environment: EnvironmentArgs,
    /// A server program to start. Its tools, resources and prompts are served.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// `creole connect`.
#[derive(Debug, Group)]
#[command(after_help = CONNECT_EXAMPLES, override_usage = CONNECT_USAGE)]
pub(crate) struct ConnectArgs {
    /// The `http` or `https` URL of the server, unless `--preset` or `--` selects one.
    #[arg(value_name = "URL", required_unless_present_any = ["preset", "command"])]
    #[arg(conflicts_with_all = ["preset", "command"])]
    pub(crate) url: Option<String>,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    /// How long the first request of the client waits for a login, in seconds. Most clients give up after 60.
    #[arg(long, value_name = "SECONDS", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=600))]
    pub(crate) login_wait: u64,
    /// Log every step, and send the location of failures to the client.
    #[arg(long)]
    pub(crate) debug: bool,
    /// The format of the log on stderr.
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub(crate) log: Option<LogChoice>,
}

const CONNECT_USAGE: &str = "\
creole connect <URL | --preset <NAME>> [OPTIONS]
       creole connect [OPTIONS] -- <COMMAND> [ARGS]...";

const CONNECT_EXAMPLES: &str = "\
Examples:
  creole connect https://example.com/mcp
  creole connect http://127.0.0.1:8080/mcp --header 'Authorization: Bearer ${TOKEN}'
  creole connect --env API_KEY -- npx -y some-server

If the server requires a login, the browser opens. A client that can open URLs shows the address.

In the configuration of a client that supports only stdio:
  { \"mcpServers\": { \"far\": { \"command\": \"creole\", \"args\": [\"connect\", \"https://example.com/mcp\"] } } }";

/// Reads an address and a port.
fn address_and_port(text: &str) -> Result<SocketAddr, String> {
    let invalid = "write a local address and a port, such as `127.0.0.1:8080`";
    address(text).ok_or_else(|| invalid.to_owned())
}

const SERVE_USAGE: &str =
    "creole serve [FILE | --preset <NAME>] [OPTIONS] [-- <COMMAND> [ARGS]...]";

const SERVE_EXAMPLES: &str = "\
Examples:
  creole serve
  creole serve creole.toml --log json
  creole serve --preset bossman
  creole serve --http 127.0.0.1:8080
  creole serve --http 127.0.0.1:8080 -- npx -y @modelcontextprotocol/server-everything
  creole serve --env API_KEY -- npx -y some-server

Try it without a client:
  echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\"}}' | creole serve";

/// `creole config`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print a configuration as TOML.
    #[command(after_help = "Example:\n  creole config show --preset bossman > creole.toml")]
    #[command(override_usage = "creole config show [FILE | --preset <NAME>]")]
    Show(ConfigSourceArgs),
    /// Check a configuration and show what it means.
    #[command(
        after_help = "Examples:\n  creole config check creole.toml\n  creole config check creole.toml --connect\n  creole config check creole.toml --operations"
    )]
    Check(ConfigCheckArgs),
    /// Print the JSON Schema of configurations, for completion and checks in editors.
    #[command(after_help = "Example:\n  creole config schema > creole.schema.json")]
    Schema,
    /// Print the configuration reference as Markdown.
    #[command(after_help = "Example:\n  creole config reference | less")]
    Reference,
}

/// `creole config check`.
#[derive(Debug, Group)]
pub(crate) struct ConfigCheckArgs {
    /// The configuration file.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Also show for every OpenAPI operation whether it became a tool.
    #[arg(long)]
    pub(crate) operations: bool,
    /// Also connect to every upstream, database and document, and report filter patterns that match nothing.
    #[arg(long)]
    pub(crate) connect: bool,
    /// Serve without authentication: every client that can reach the address may call.
    #[arg(long)]
    pub(crate) dangerously_without_auth: bool,
    /// Let other machines reach the admin listener without users or without TLS, if a proxy or a mesh does both.
    #[arg(long)]
    pub(crate) insecure_admin: bool,
}

/// `creole passwd`.
#[derive(Debug, Group)]
#[command(after_help = PASSWD_EXAMPLES, override_usage = PASSWD_USAGE)]
#[command(group(ArgGroup::new("whom").required(true).args(["user", "key", "remove"])))]
pub(crate) struct PasswdArgs {
    /// The file of users or keys. It is created if it does not exist, readable only by its owner.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The user whose password is set. It is typed twice at a terminal, or read from the first line of stdin.
    #[arg(value_name = "USER")]
    pub(crate) user: Option<String>,
    /// A role of the user or key. Without it, the roles do not change.
    #[arg(long = "role", value_name = "ROLE", conflicts_with = "remove")]
    pub(crate) roles: Vec<String>,
    /// Create a bearer key with this name and print it once. The file stores its SHA-256.
    #[arg(long, value_name = "NAME")]
    pub(crate) key: Option<String>,
    /// The expiry of the key, such as 2027-01-31 or 2027-01-31T12:00:00Z.
    #[arg(long, value_name = "DATE", conflicts_with_all = ["user", "remove"])]
    pub(crate) expires: Option<Expiry>,
    /// Remove the user or key with this name.
    #[arg(long, value_name = "NAME")]
    pub(crate) remove: Option<String>,
}

const PASSWD_USAGE: &str = "creole passwd <FILE> <USER | --key <NAME> | --remove <NAME>> [OPTIONS]";

const PASSWD_EXAMPLES: &str = "\
Examples:
  creole passwd users.txt alice --role mcp
  creole passwd keys.txt --key ci --role mcp --expires 2027-01-31
  creole passwd users.txt --remove alice

The configuration names the files:
  [auth]
  users = \"users.txt\"
  keys_file = \"keys.txt\"
  role = \"mcp\"";

/// The configuration that is meant.
#[derive(Clone, Debug, Default, Group)]
pub(crate) struct ConfigSourceArgs {
    /// The configuration file. Default: the preset `default`.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// A built-in configuration: default, bb-mcp-server, mcp-chain, bossman, fpf-governance,
    /// buddyboss, everything.
    #[arg(long, value_name = "NAME", conflicts_with = "file")]
    preset: Option<String>,
}

impl ConfigSourceArgs {
    /// Whether nothing was chosen.
    pub(crate) fn is_default(&self) -> bool {
        self.file.is_none() && self.preset.is_none()
    }

    /// Where the configuration comes from.
    pub(crate) fn source(&self) -> ConfigSource<'_> {
        match (&self.file, &self.preset) {
            (Some(path), _) => ConfigSource::File(path),
            (None, Some(name)) => ConfigSource::Preset(name),
            (None, None) => ConfigSource::Default,
        }
    }
}

/// How the log is written.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogChoice {
    /// One line of text per event.
    Text,
    /// One line of JSON per event.
    Json,
    /// No log.
    Off,
}

impl From<LogChoice> for LogFormat {
    fn from(choice: LogChoice) -> Self {
        match choice {
            LogChoice::Text => Self::Text,
            LogChoice::Json => Self::Json,
            LogChoice::Off => Self::Off,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use creole_config::presets;

    use super::*;

    #[test]
    fn the_command_line_is_free_of_contradictions() {
        Args::command().debug_assert();
    }

    #[test]
    fn the_help_names_every_preset() {
        let mut command = Args::command();
        let serve = command.find_subcommand_mut("serve").unwrap();
        let help = serve.render_help().to_string();
        for preset in presets::ALL {
            assert!(help.contains(preset.name), "{}", preset.name);
        }
    }
}
