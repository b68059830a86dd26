//! The table `[state]`: where tasks and sessions are stored, and the key that protects them.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::syntax::value::{Ranged, Spanned};

/// The storage of tasks and sessions.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateTable {
    /// The SQLite file that stores tasks and sessions, so that they survive a restart. It is created if it does not
    /// exist. Several processes on one machine may share it, and a client may continue at any of them. A relative path
    /// is resolved against the folder of this file.
    pub file: Option<Spanned<String>>,
    /// The store on the network that replicas on several machines share, instead of `file`: `valkey://USER@HOST:PORT/0`
    /// for Valkey or Redis, `valkeys://` with encryption, or `postgres://USER@HOST/DATABASE`. It needs `keys_file`.
    pub url: Option<Spanned<String>>,
    /// The password of the user of `url`. Prefer an environment variable, as `${NAME}`.
    pub password: Option<Spanned<String>>,
    /// The file that contains the password. It is read when this file is read.
    pub password_file: Option<Spanned<String>>,
    /// The name of the replicas in the store. Replicas with the same name share tasks and sessions; others on the same
    /// store do not see them. Default: `creole`.
    pub name: Option<Spanned<String>>,
    /// A file with the key that encrypts the data that clients hold for the server, and all that is in the store of
    /// `url`, as 64 hexadecimal digits. A second line may hold the previous key: data that was encrypted with it is
    /// still accepted. The clocks of machines that share the key may differ by five minutes. Default: the key in
    /// `file`, or a random key of the process.
    pub keys_file: Option<Spanned<String>>,
    /// A file with the certificates of the authorities that the certificate of the store is checked against, in PEM
    /// format. A relative path is resolved against the folder of this file. Default: those of the system.
    pub ca_file: Option<Spanned<String>>,
    /// The maximum time of an operation on the store, in seconds. Default: 2.
    pub timeout_seconds: Option<Ranged<1, 60>>,
    /// How many replicas of a Valkey or Redis server must confirm a write that must not happen twice. Default: 0.
    pub wait_replicas: Option<Spanned<Ranged<0, 10>>>,
    /// Whether the Valkey or Redis server belongs to a cluster. Default: false.
    pub cluster: Option<Spanned<bool>>,
    /// The sentinels that know the current Valkey or Redis server. They replace the host and the port of `url`.
    pub sentinel: Option<Spanned<SentinelTable>>,
    /// The address of PostgreSQL without a connection pooler, if `url` is that of a pooler: a pooler does not forward
    /// notifications. Without it, messages of other replicas are polled for.
    pub listen_url: Option<Spanned<String>>,
    /// Whether the connection to a store on another machine may be unencrypted. Default: false.
    pub insecure: Option<bool>,
}

/// The sentinels that know the current server.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SentinelTable {
    /// The sentinels, as `HOST:PORT`.
    pub nodes: Vec<Spanned<String>>,
    /// The name of the server that they watch.
    pub master: Spanned<String>,
}
