//! The tables `[upstreams.NAME]`: the servers that the gateway forwards to.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::syntax::value::{Entries, Ranged, Spanned};
use crate::tables::chain::LayerTable;
use crate::tables::dialect::DialectChoice;
use crate::tables::enums::{AffinityChoice, UpstreamEra};
use crate::tables::key_schemas;
use crate::tables::oauth::OAuthTable;

/// A server that the gateway forwards to: a program that Creole starts, or a URL.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpstreamTable {
    /// The program to start and its arguments. No shell is used. Use either this or `url`.
    pub command: Option<Spanned<Vec<Spanned<String>>>>,
    /// The URL of an MCP endpoint. Use either this or `command`.
    pub url: Option<Spanned<String>>,
    /// A preset that is used as the upstream, unless the command line names a program (`creole serve … -- COMMAND`).
    /// Use it instead of `command` and `url`.
    pub preset: Option<Spanned<String>>,
    /// Environment variables of the program. Only with `command`.
    pub env: Option<Spanned<Entries<Spanned<String>>>>,
    /// Names of environment variables that the program inherits from this process. Only with `command`.
    pub env_pass: Option<Spanned<Vec<Spanned<String>>>>,
    /// The working directory of the program. A relative path is resolved against the folder of this file. Only with
    /// `command`.
    pub cwd: Option<Spanned<String>>,
    /// Headers that each request carries, such as `Authorization`. Only with `url`.
    pub headers: Option<Spanned<Entries<Spanned<String>>>>,
    /// A file whose first line is sent as `Authorization: Bearer …`. A relative path is resolved against the folder of
    /// this file. It is read at the first request, and again when the upstream responds with 401. Only with `url`.
    pub token_file: Option<Spanned<String>>,
    /// A program and its arguments. The first line of its output is sent as `Authorization: Bearer …`. It runs at the
    /// first request, and again when the upstream responds with 401. It runs without a shell and in the environment of
    /// a `command`. It must end within ten seconds. Only with `url`.
    pub token_command: Option<Spanned<Vec<Spanned<String>>>>,
    /// How Creole logs in to the upstream. Only with `url`, and without `token_file`, `token_command` and the header
    /// `Authorization`.
    pub oauth: Option<Spanned<OAuthTable>>,
    /// A file of PEM certificates: the certificate authorities that are trusted for this upstream, instead of those of
    /// the system. A relative path is resolved against the folder of this file. Only with a `url` that begins with
    /// `https://`.
    pub ca_file: Option<Spanned<String>>,
    /// The prefix of the names of the upstream's tools and prompts. An empty string means no prefix. Default: the name
    /// of this table and `__`.
    pub prefix: Option<Spanned<String>>,
    /// The dialect of the upstream: the name of a built-in dialect, or a table. Default: `spec`.
    pub dialect: Option<DialectChoice>,
    /// The only revision that Creole uses with the upstream. Default: the newest revision of the caller's era, or of
    /// the other era if the upstream does not support the caller's.
    #[serde(default)]
    #[schemars(schema_with = "key_schemas::revision")]
    pub revision: Option<Spanned<String>>,
    /// The era that Creole uses with the upstream: `handshake`, `stateless`, or `auto` for the caller's era. Default:
    /// `auto`.
    pub era: Option<Spanned<UpstreamEra>>,
    /// Which calls share a connection to the upstream. Default: `principal`.
    pub affinity: Option<AffinityChoice>,
    /// Whether the upstream may send input requests to callers during a call. Default: true.
    pub interactive: Option<bool>,
    /// The maximum time that a call may run without a message of the upstream, in seconds. The call then fails with a
    /// `timeout` error. Default: 60.
    pub timeout_seconds: Option<Ranged<1, 86_400>>,
    /// The maximum time that the upstream may take to start, in seconds. Calls that wait for it then fail. A list of
    /// several upstreams waits at most eight seconds for it. Default: 30.
    pub startup_timeout_seconds: Option<Ranged<1, 3600>>,
    /// The maximum number of parked calls: calls that wait for input of their callers. Further calls that need input
    /// fail with a `busy` error. Default: 1024.
    pub max_parked_calls: Option<Ranged<1, 100_000>>,
    /// The maximum number of connections to the upstream for all callers. One caller may use at most half of them. At
    /// the limit, a new connection replaces the one that was unused for the longest time. Default: 64.
    pub max_sessions: Option<Ranged<1, 100_000>>,
    /// Whether the upstream gets the trace context of calls. Set it to false for the server of another company.
    /// Default: true.
    pub propagate: Option<bool>,
    /// The names of the members of `baggage` that the upstream gets. Default: none.
    pub baggage: Option<Spanned<Vec<Spanned<String>>>>,
    /// Whether the upstream is used. Default: true.
    pub enabled: Option<bool>,
    /// The layers around the calls of this upstream. The first layer is the outermost.
    pub chain: Option<Vec<Spanned<LayerTable>>>,
}
