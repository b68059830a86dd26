//! The tables `[databases.NAME]` and `[tasks]`: databases that are read, and where tasks are kept.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::syntax::value::{Ranged, Spanned};

/// A database that tools and resources read. Nothing in it is ever changed.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DatabaseTable {
    /// Where it is: `sqlite:FILE`, as seen from the folder of this file, or `postgres://USER@HOST/DATABASE`. Behind it,
    /// `?sslmode=` says how the way to a server is encrypted: `disable`, `prefer`, `require` or `verify-full`, with
    /// `sslrootcert=FILE`. A server on another machine has to prove its name unless that says otherwise.
    pub url: Spanned<String>,
    /// The password of a PostgreSQL user; better from the environment, as `${NAME}`.
    pub password: Option<Spanned<String>>,
    /// The file that holds the password, which is read with this file.
    pub password_file: Option<Spanned<String>>,
    /// The tables that are resources, at `table://NAME/TABLE`. Default: none.
    pub tables: Option<Vec<Spanned<String>>>,
    /// How many rows one answer has at most. Default: 100.
    pub max_rows: Option<Ranged<1, 10_000>>,
    /// How long one query may take, in seconds. Default: 10.
    pub timeout_seconds: Option<Ranged<1, 3600>>,
    /// How many connections there are at most; further calls wait. Default: 4.
    pub connections: Option<Ranged<1, 100>>,
    /// Whether its tables and the tools that ask it are offered at all. Default: true.
    pub enabled: Option<bool>,
}

/// Where the pack `tasks` keeps its tasks. Default: what `CREOLE_TASKS_URL` says, or a file in the data directory.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TasksTable {
    /// Where: `sqlite:FILE`, as seen from the folder of this file, or `postgres://USER@HOST/DATABASE`.
    pub url: Spanned<String>,
    /// The password of a PostgreSQL user; better from the environment, as `${NAME}`.
    pub password: Option<Spanned<String>>,
    /// The file that holds the password, which is read with this file.
    pub password_file: Option<Spanned<String>>,
}
