//! The tables `[upstreams.NAME]`: the servers behind this one.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::describe::schema;
use crate::syntax::value::{Entries, Ranged, Spanned};
use crate::tables::chain::LayerTable;
use crate::tables::dialect::DialectChoice;
use crate::tables::enums::{AffinityChoice, UpstreamEra};

/// A server behind this one: a program that is started, or an address that is called.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpstreamTable {
    /// The program to start and its arguments; no shell is involved. Either this or `url`.
    pub command: Option<Spanned<Vec<Spanned<String>>>>,
    /// The address of an MCP endpoint. Either this or `command`.
    pub url: Option<Spanned<String>>,
    /// A preset that stands here until the command line names a program: `creole serve … -- COMMAND`. In place of
    /// `command` and `url`.
    pub preset: Option<Spanned<String>>,
    /// Variables that the program is given. Only with `command`.
    pub env: Option<Spanned<Entries<Spanned<String>>>>,
    /// Variables of this process that the program is given too, by their names. Only with `command`.
    pub env_pass: Option<Spanned<Vec<Spanned<String>>>>,
    /// The folder that the program runs in, as seen from the folder of this file. Only with `command`.
    pub cwd: Option<Spanned<String>>,
    /// Headers that each request carries, such as `Authorization`. Only with `url`.
    pub headers: Option<Spanned<Entries<Spanned<String>>>>,
    /// A file whose first line is sent as `Authorization: Bearer …`, as seen from the folder of this file. It is read
    /// at the first request, and again when the server answers with 401. Only with `url`.
    pub token_file: Option<Spanned<String>>,
    /// A program and its arguments whose first line of output is sent as `Authorization: Bearer …`. It is started
    /// without a shell for the first request, and again when the server answers with 401; it gets the environment that
    /// a `command` gets, and ten seconds. Only with `url`.
    pub token_command: Option<Spanned<Vec<Spanned<String>>>>,
    /// A file of certificates in the PEM form, as seen from the folder of this file: the authorities that vouch for the
    /// server, in place of those that the system trusts. Only with a `url` that begins with `https://`.
    pub ca_file: Option<Spanned<String>>,
    /// What its tools and prompts are called by here before their own names; empty for nothing. Default: the name of
    /// this table and `__`.
    pub prefix: Option<Spanned<String>>,
    /// How it speaks: the name of a dialect, or a table of your own. Default: `spec`.
    pub dialect: Option<DialectChoice>,
    /// The revision that it is spoken to in, and no other. Default: the newest of the caller's generation, or of the
    /// other one where the server lacks that.
    #[serde(default)]
    #[schemars(schema_with = "schema::revision")]
    pub revision: Option<Spanned<String>>,
    /// Which generation of the protocol it is spoken to in: `handshake`, `stateless`, or `auto` for that of the caller.
    /// Default: `auto`.
    pub era: Option<Spanned<UpstreamEra>>,
    /// Who shares a connection to it. Default: `principal`.
    pub affinity: Option<AffinityChoice>,
    /// Whether it may ask callers something in the middle of a call. Default: true.
    pub interactive: Option<bool>,
    /// How long one of its calls may be silent, in seconds. Default: 60.
    pub timeout_seconds: Option<Ranged<1, 86_400>>,
    /// How long it may take to be ready, in seconds; lists of several servers wait for it eight at most. Default: 30.
    pub startup_seconds: Option<Ranged<1, 3600>>,
    /// How many of its calls may wait for answers of callers that come back with them. Default: 1024.
    pub most_waiting: Option<Ranged<1, 100_000>>,
    /// How many connections to it callers have at once, one of them at most half; the longest unused makes room for a new one.
    /// Default: 64.
    pub most_sessions: Option<Ranged<1, 100_000>>,
    /// Whether it is used at all. Default: true.
    pub enabled: Option<bool>,
    /// Layers around its calls, the first one outermost.
    pub chain: Option<Vec<Spanned<LayerTable>>>,
}
