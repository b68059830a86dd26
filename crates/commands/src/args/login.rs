//! The command lines of the verbs about logins.

use std::path::PathBuf;

use clap::{ArgGroup, Args as Group};

/// `creole login`.
#[derive(Debug, Group)]
#[command(after_help = LOGIN_EXAMPLES)]
pub(crate) struct LoginArgs {
    /// The URL of the server, or the name of an upstream of the configuration.
    #[arg(value_name = "URL, NAME")]
    pub(crate) target: String,
    /// The configuration file that has the upstream. Default: `creole.toml`.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    /// Do not open a browser: print the address, and read the address that the browser ended at.
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Print an address and a code, which you enter on any device.
    #[arg(long, conflicts_with_all = ["no_browser", "port"])]
    pub(crate) device: bool,
    /// How long the login may take, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub(crate) timeout: u64,
    /// A header of every request to the server. `${NAME}` is replaced by an environment variable.
    #[arg(long = "header", value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
    /// A PEM file with the certificate authorities (CA) that are trusted for the server and for its authorization
    /// server, instead of the system's.
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// As which client a login is made, and what it asks for.
#[derive(Clone, Debug, Default, Group)]
pub(crate) struct ClientArgs {
    /// A scope that is requested in addition to those that the server names.
    #[arg(long = "scope", value_name = "SCOPE", value_parser = scope)]
    pub(crate) scopes: Vec<String>,
    /// The id of a client that is registered at the authorization server. Default: Creole registers itself.
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,
    /// A file whose first line is the secret of the client. `-` reads stdin.
    #[arg(long, value_name = "FILE", requires = "client_id")]
    pub(crate) client_secret_file: Option<PathBuf>,
    /// The URL of the metadata document of the client, for authorization servers that read one.
    #[arg(long, value_name = "URL", conflicts_with = "client_id")]
    pub(crate) client_metadata: Option<String>,
    /// The port on 127.0.0.1 that the browser returns to. Default: the port of the last login, or any free port.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,
    /// Allow an authorization server in a private network, although the server is not there.
    #[arg(long)]
    pub(crate) allow_private: bool,
}

/// Reads a scope (RFC 6749, section 3.3).
fn scope(text: &str) -> Result<String, String> {
    let is_allowed = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    match !text.is_empty() && text.bytes().all(is_allowed) {
        true => Ok(text.to_owned()),
        false => {
            Err("write one scope without spaces and quotation marks; repeat --scope".to_owned())
        }
    }
}

const LOGIN_EXAMPLES: &str = "\
Examples:
  creole login https://example.com/mcp
  creole login https://example.com/mcp --scope files:write
  creole login https://example.com/mcp --no-browser
  creole login wiki --config creole.toml

The login is stored in a file that only you can read, and the other commands use and refresh it. CREOLE_LOGINS names
another folder. The exit code is 0 if you are logged in or the server requires no login, 1 if the login failed, and 2
if the command line is invalid.";

/// `creole logout`.
#[derive(Debug, Group)]
#[command(after_help = LOGOUT_EXAMPLES)]
#[command(group(ArgGroup::new("which").required(true).args(["target", "all"])))]
pub(crate) struct LogoutArgs {
    /// The URL of the server, or the name of an upstream of the configuration.
    #[arg(value_name = "URL, NAME")]
    pub(crate) target: Option<String>,
    /// End all logins.
    #[arg(long)]
    pub(crate) all: bool,
    /// The configuration file that has the upstream. Default: `creole.toml`.
    #[arg(long, value_name = "FILE", conflicts_with = "all")]
    pub(crate) config: Option<PathBuf>,
    /// Delete the login without asking the authorization server to revoke it.
    #[arg(long)]
    pub(crate) local: bool,
    /// A PEM file with the certificate authorities (CA) that are trusted for the authorization server, instead of the
    /// system's.
    #[arg(long, value_name = "FILE", conflicts_with = "local")]
    pub(crate) cacert: Option<PathBuf>,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

const LOGOUT_EXAMPLES: &str = "\
Examples:
  creole logout https://example.com/mcp
  creole logout --all

The authorization server is asked to revoke the tokens. The file is deleted even if that fails. The exit code is 1 if
there was no such login.";

/// `creole logins`.
#[derive(Debug, Group)]
#[command(after_help = LOGINS_EXAMPLES)]
pub(crate) struct LoginsArgs {
    /// The URL of the server, or the name of an upstream of the configuration. Default: all logins.
    #[arg(value_name = "URL, NAME")]
    pub(crate) target: Option<String>,
    /// The configuration file that has the upstream. Default: `creole.toml`.
    #[arg(long, value_name = "FILE", requires = "target")]
    pub(crate) config: Option<PathBuf>,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

const LOGINS_EXAMPLES: &str = "\
Examples:
  creole logins
  creole logins https://example.com/mcp --json

A login `renews` if it is refreshed when it expires, `ends` at the time that is shown, or has `ended`. With a server,
the exit code is 1 if there is no login that can be used.";
