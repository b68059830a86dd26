//! Runs clients of other authors against our server over stdio and over HTTP.
//!
//! Each [`Peer`] is a published SDK or tool, pinned to an exact version under `acceptance/peers/`. [`installed`]
//! installs it under `target/peers/` once. [`run`] makes it perform [`Steps`] against a server command and returns the
//! JSON document that it printed; `acceptance/peers/README.md` describes the document.
//!
//! ```no_run
//! use creole_acceptance::peers::{self, Mode, Peer, Steps};
//! use serde_json::json;
//!
//! let steps = Steps::new().call("test_simple_text", json!({})).read("test://static-text");
//! let server = ["target/debug/creole", "serve", "--preset", "everything"];
//! let told = peers::run(Peer::PythonV2, Mode::Modern, &steps, &server)?;
//! assert_eq!(told["protocol"], "2026-07-28");
//! assert_eq!(told["errors"], json!([]));
//! # Ok::<(), String>(())
//! ```

mod availability;
#[cfg(unix)]
pub mod browser;
#[cfg(unix)]
mod debian;
#[cfg(unix)]
pub mod faketime;
#[cfg(unix)]
pub mod glewlwyd;
#[cfg(unix)]
pub mod haproxy;
#[cfg(unix)]
pub mod helm;
#[cfg(unix)]
pub mod idp;
mod inspector;
mod install;
#[cfg(target_os = "linux")]
pub mod iproute;
pub mod otlp;
#[cfg(unix)]
pub mod pgbouncer;
#[cfg(unix)]
pub mod postgres;
pub(crate) mod process;
#[cfg(unix)]
pub mod prometheus;
mod release;
mod servers;
#[cfg(unix)]
pub mod systemd;
#[cfg(unix)]
pub mod valkey;
#[cfg(unix)]
pub mod wordpress;
pub mod zoo;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

pub use self::availability::{if_installed, is_installed, is_suite_installed};
pub use self::install::{
    Installed, Missing, Suite, bridge, install_all, installed, installed_suite,
};
pub use self::release::Release;
pub use self::servers::{UpstreamServer, Web};

/// How long a run may take before its processes are killed.
const CONVERSATION: Duration = Duration::from_secs(180);

/// A client of another author.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    /// FastMCP, whose client is built on version 2 of the Python SDK. It cannot subscribe.
    FastMcp,
    /// The command line of the MCP Inspector. It lists, calls, reads and gets prompts. It answers no input request.
    Inspector,
    /// Version 1 of the Python SDK, which supports no revision after 2025-11-25.
    PythonV1,
    /// Version 2 of the Python SDK.
    PythonV2,
    /// Version 1 of the TypeScript SDK, which supports no revision after 2025-11-25.
    TypeScriptV1,
    /// Version 2 of the TypeScript SDK.
    TypeScriptV2,
    /// An older release of version 1 of the TypeScript SDK.
    OldTypeScript(Release),
    /// The Rust SDK.
    Rmcp,
}

impl Peer {
    /// All peers except the older releases.
    pub const ALL: [Self; 7] = [
        Self::FastMcp,
        Self::Inspector,
        Self::PythonV1,
        Self::PythonV2,
        Self::TypeScriptV1,
        Self::TypeScriptV2,
        Self::Rmcp,
    ];

    /// The name of the peer, of its folder under `target/peers/`, and of `sdk` in its document.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::FastMcp => "fastmcp",
            Self::Inspector => "inspector",
            Self::PythonV1 => "python-v1",
            Self::PythonV2 => "python-v2",
            Self::TypeScriptV1 => "typescript-v1",
            Self::TypeScriptV2 => "typescript-v2",
            Self::OldTypeScript(release) => release.name(),
            Self::Rmcp => "rmcp",
        }
    }

    /// The modes that the peer supports.
    #[must_use]
    pub fn modes(self) -> &'static [Mode] {
        match self {
            Self::PythonV1 | Self::TypeScriptV1 | Self::OldTypeScript(_) => {
                &[Mode::Default, Mode::Legacy]
            }
            Self::FastMcp | Self::Inspector | Self::PythonV2 | Self::TypeScriptV2 | Self::Rmcp => {
                &[Mode::Default, Mode::Auto, Mode::Legacy, Mode::Modern]
            }
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// How a peer negotiates the revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The default of the SDK: `python-v2` and `fastmcp` as in [`Mode::Auto`], the others as in [`Mode::Legacy`].
    Default,
    /// With `server/discover`, and with `initialize` if the server does not support it.
    Auto,
    /// With `initialize`.
    Legacy,
    /// Only 2026-07-28. `python-v2` does not even send `server/discover` then.
    Modern,
}

impl Mode {
    /// The mode's name on a peer's command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Auto => "auto",
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

/// The steps of a peer after it has connected and listed the tools, which it always does.
///
/// The peer uses its own order, that of the methods below, and performs each step once.
#[derive(Clone, Debug, Default)]
pub struct Steps(Vec<Step>);

/// One step: the flag of the command line, its name, and its arguments.
#[derive(Clone, Debug)]
struct Step {
    flag: &'static str,
    name: String,
    arguments: Option<Value>,
}

impl Steps {
    /// Only the listing of tools.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls a tool: the result is `call`.
    #[must_use]
    pub fn call(self, tool: &str, arguments: Value) -> Self {
        self.with("--call", tool, Some(arguments))
    }

    /// Lists resources and reads one: `resources` and `read`.
    #[must_use]
    pub fn read(self, uri: &str) -> Self {
        self.with("--read", uri, None)
    }

    /// Lists prompts and gets one: `prompts` and `prompt`.
    #[must_use]
    pub fn prompt(self, prompt: &str, arguments: Value) -> Self {
        self.with("--prompt", prompt, Some(arguments))
    }

    /// Calls a tool that reports progress: `progress` and `progress_call`.
    #[must_use]
    pub fn progress(self, tool: &str, arguments: Value) -> Self {
        self.with("--progress", tool, Some(arguments))
    }

    /// Calls a tool and cancels it when it reports progress: `cancelled` says whether the tool then created the file
    /// that the argument `file` names.
    #[must_use]
    pub fn cancel(self, tool: &str, arguments: Value) -> Self {
        self.with("--cancel", tool, Some(arguments))
    }

    /// Calls a tool that elicits, and accepts: `elicited` and `elicit_call`.
    #[must_use]
    pub fn elicit(self, tool: &str, arguments: Value) -> Self {
        self.with("--elicit", tool, Some(arguments))
    }

    /// Calls a tool that samples, and responds: `sampled` and `sample_call`.
    #[must_use]
    pub fn sample(self, tool: &str, arguments: Value) -> Self {
        self.with("--sample", tool, Some(arguments))
    }

    /// Calls a tool that requests the roots, and responds: `roots` and `roots_call`.
    #[must_use]
    pub fn roots(self, tool: &str, arguments: Value) -> Self {
        self.with("--roots", tool, Some(arguments))
    }

    /// Calls a tool that changes the tools, and waits for the notification, with a subscription if the revision has
    /// them: `list_changed` and `list_changed_call`.
    #[must_use]
    pub fn list_changed(self, tool: &str, arguments: Value) -> Self {
        self.with("--list-changed", tool, Some(arguments))
    }

    fn with(mut self, flag: &'static str, name: &str, arguments: Option<Value>) -> Self {
        self.0.push(Step { flag, name: name.to_owned(), arguments });
        self
    }
}

/// How a peer reaches its server.
#[derive(Clone, Copy, Debug)]
enum Server<'a> {
    /// It starts this command and uses its standard streams.
    Command(&'a [OsString]),
    /// It uses HTTP with this URL. Only the Inspector supports an additional header.
    Url { url: &'a str, header: Option<&'a str> },
    /// It uses HTTP with this URL, and logs in by its own OAuth code with this browser.
    Protected { url: &'a str, browser: &'a Path },
}

impl Server<'_> {
    /// The arguments of a peer's command line.
    fn words(self) -> Vec<OsString> {
        match self {
            Self::Command(command) => {
                [OsString::from("--")].into_iter().chain(command.iter().cloned()).collect()
            }
            Self::Url { url, .. } => vec!["--url".into(), url.into()],
            Self::Protected { url, browser } => {
                vec!["--url".into(), url.into(), "--login".into(), browser.into()]
            }
        }
    }
}

/// Makes a peer perform steps against the server at this URL, and returns its document as [`run`] does.
pub fn run_at(peer: Peer, mode: Mode, steps: &Steps, url: &str) -> Result<Value, String> {
    perform(peer, mode, steps, Server::Url { url, header: None })
}

/// Makes a peer perform steps against the server at this URL, which demands a login. The peer logs in by its own OAuth
/// code. `browser` is a program that opens an address and prints the one that it is sent back to.
pub fn run_logged_in(
    peer: Peer,
    mode: Mode,
    steps: &Steps,
    url: &str,
    browser: &Path,
) -> Result<Value, String> {
    perform(peer, mode, steps, Server::Protected { url, browser })
}

/// Makes the Inspector perform steps against the server at this URL, with a header `Name: Value` in each request.
pub fn inspect_at(mode: Mode, steps: &Steps, url: &str, header: &str) -> Result<Value, String> {
    perform(Peer::Inspector, mode, steps, Server::Url { url, header: Some(header) })
}

/// Makes a peer perform steps against the server that a command starts, and returns its document.
///
/// An error response to one step is in the document's `errors`. `Err` means that the peer is [`Missing`], that no
/// connection was established, or that the run took longer than three minutes.
pub fn run<S: AsRef<OsStr>>(
    peer: Peer,
    mode: Mode,
    steps: &Steps,
    server_command: &[S],
) -> Result<Value, String> {
    let command: Vec<OsString> =
        server_command.iter().map(|word| word.as_ref().to_owned()).collect();
    perform(peer, mode, steps, Server::Command(&command))
}

fn perform(peer: Peer, mode: Mode, steps: &Steps, server: Server<'_>) -> Result<Value, String> {
    if !peer.modes().contains(&mode) {
        return Err(format!("{peer} does not support the mode {}", mode.name()));
    }
    let installed = installed(peer).map_err(|missing| missing.to_string())?;
    let deadline = Instant::now() + CONVERSATION;
    if peer == Peer::Inspector {
        return inspector::run(&installed, mode, steps, server, deadline);
    }
    let mut command = installed.command();
    command.args(["--mode", mode.name()]);
    for step in &steps.0 {
        command.args([step.flag, &step.name]);
        command.args(step.arguments.as_ref().map(Value::to_string));
    }
    command.args(server.words());
    command.env("TEST_BROWSER_PRINTS", "1");
    let output = process::output(&mut command, deadline)?;
    if !output.success {
        return Err(format!("{peer} failed:\n{}", output.stderr));
    }
    serde_json::from_str(&output.stdout).map_err(|error| {
        format!("{peer} printed no document: {error}\n{}\n{}", output.stdout, output.stderr)
    })
}
