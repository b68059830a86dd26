//! The command lines of `creole policy`.

use std::path::PathBuf;

use clap::{Args as Group, Subcommand};

/// `creole policy`.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Check a policy against a file of cases.
    ///
    /// Exit code 0: all decisions are as expected. 1: some are not. 2: a file is invalid.
    Test(PolicyTestArgs),
    /// Show how a policy decides about one request, rule by rule.
    Explain(PolicyExplainArgs),
    /// Show what a caller may use.
    List(PolicyListArgs),
}

/// `creole policy test`.
#[derive(Debug, Group)]
#[command(after_help = TEST_EXAMPLES)]
pub(crate) struct PolicyTestArgs {
    /// The configuration file with the policy.
    #[arg(value_name = "CONFIG")]
    pub(crate) file: PathBuf,
    /// The TOML file with the cases.
    #[arg(value_name = "CASES")]
    pub(crate) cases: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

const TEST_EXAMPLES: &str = "\
Examples:
  creole policy test creole.toml cases.toml

A case names a caller, a request and the expected decision:
  [[cases]]
  name = \"a developer reads\"
  as = { id = \"oauth:corp:ada\", roles = [\"dev\"], scopes = [\"mcp\"] }
  call = \"files__read_text\"            # or `read` with a URI, or `prompt`
  arguments = { path = \"a.txt\" }
  now = \"2026-11-18T12:00:00Z\"         # default: the current time
  expect = \"allow\"                     # or \"deny\", \"hidden\", { challenge = [\"files:write\"] }

Nothing is started and nothing is fetched.";

/// The caller of a request.
#[derive(Debug, Group)]
pub(crate) struct PolicyCallerArgs {
    /// The id of the caller, such as `local`, `user:ada`, `key:ci` or `oauth:LABEL:SUBJECT`.
    #[arg(long = "as", value_name = "ID")]
    pub(crate) id: String,
    /// A role of the caller.
    #[arg(long = "role", value_name = "ROLE")]
    pub(crate) roles: Vec<String>,
    /// A scope of the caller's access token. A caller with such an id has no other scopes.
    #[arg(long = "scope", value_name = "SCOPE")]
    pub(crate) scopes: Vec<String>,
    /// The client that the access token was issued to.
    #[arg(long, value_name = "CLIENT")]
    pub(crate) client: Option<String>,
    /// A JSON file with the claims of the access token.
    #[arg(long, value_name = "FILE")]
    pub(crate) claims: Option<PathBuf>,
    /// The server that is called. Default: the first one of the configuration.
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
    /// A JSON file with the items of the server, as `creole list --json` prints them. Rules then see the annotations of
    /// tools.
    #[arg(long, value_name = "FILE")]
    pub(crate) catalogue: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `creole policy explain`.
#[derive(Debug, Group)]
#[command(
    group(clap::ArgGroup::new("request").required(true).args(["call", "read", "prompt"])),
    after_help = EXPLAIN_EXAMPLES
)]
pub(crate) struct PolicyExplainArgs {
    /// The configuration file with the policy.
    #[arg(value_name = "CONFIG")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) caller: PolicyCallerArgs,
    /// The tool that is called, under the name that clients use.
    #[arg(long, value_name = "TOOL")]
    pub(crate) call: Option<String>,
    /// The URI of the resource that is read.
    #[arg(long, value_name = "URI")]
    pub(crate) read: Option<String>,
    /// The prompt that is requested.
    #[arg(long, value_name = "NAME")]
    pub(crate) prompt: Option<String>,
    /// The arguments of the call as a JSON object.
    #[arg(long = "args", value_name = "OBJECT")]
    pub(crate) object: Option<String>,
    /// The time of the call, such as `2026-11-18T12:00:00Z`. Default: now.
    #[arg(long, value_name = "TIME")]
    pub(crate) now: Option<String>,
}

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  creole policy explain creole.toml --as user:ada --role dev --call files__read_text
  creole policy explain creole.toml --as oauth:corp:ada --scope mcp --call tasks__update --args '{\"owner\":\"ada\"}'";

/// `creole policy list`.
#[derive(Debug, Group)]
#[command(after_help = LIST_EXAMPLES)]
pub(crate) struct PolicyListArgs {
    /// The configuration file with the policy.
    #[arg(value_name = "CONFIG")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) caller: PolicyCallerArgs,
}

const LIST_EXAMPLES: &str = "\
Examples:
  creole list --config creole.toml --json > items.json
  creole policy list creole.toml --as user:ada --role dev --catalogue items.json

Without `--catalogue`, the patterns of the rules are shown instead of the items.";
