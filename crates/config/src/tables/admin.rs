//! The table `[admin]`: the admin listener, its users and its console.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::syntax::value::Spanned;
use crate::tables::http::TlsTable;

/// The admin listener: metrics, an API and a console for operators. It is separate from the listener of MCP clients.
/// Without this table there is none.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdminTable {
    /// The address and port to listen on, or `unix:` and the path of a socket that only the user of the process can
    /// use. An address that other machines can reach needs `users` or `keys_file`, and `tls`. Default:
    /// `127.0.0.1:9464`.
    pub listen: Option<Spanned<String>>,
    /// The file of users and password hashes. `creole passwd` writes it. The roles are `admin:read`, `admin:operate`
    /// and `admin:approve`. Without `users` and `keys_file`, the link of `creole console` signs in with all roles. A
    /// relative path is resolved against the folder of this file.
    pub users: Option<Spanned<String>>,
    /// The file of bearer keys of programs. `creole passwd --key` writes it. A relative path is resolved against the
    /// folder of this file.
    pub keys_file: Option<Spanned<String>>,
    /// Accepted values of the `Host` header, in addition to those of this machine. A value without a port accepts any
    /// port.
    pub hosts: Option<Vec<Spanned<String>>>,
    /// Whether the console is served. Default: true.
    pub console: Option<bool>,
    /// Whether operators may look at the arguments and results of calls. Default: `ask`.
    pub capture: Option<CaptureMode>,
    /// Whether `/metrics` needs no credential. Default: false.
    pub metrics_open: Option<bool>,
    /// The address of a page that shows a trace, with `{trace}` in place of its id. The console links to it.
    pub trace_url: Option<Spanned<String>>,
    /// The certificate and key for HTTPS. Without them the listener uses HTTP.
    pub tls: Option<TlsTable>,
}

/// Whether operators may look at the arguments and results of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CaptureMode {
    /// No arguments and results are kept.
    Never,
    /// They are kept while an operator runs a capture.
    Ask,
    /// They are kept for all calls that the console shows.
    Always,
}
