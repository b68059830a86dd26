//! The tables `[databases.NAME]` and `[tasks]`: databases that tools read, and the database of the pack `tasks`.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::syntax::value::{Ranged, Spanned};

/// A database that tools and resources read. Creole never writes to it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DatabaseTable {
    /// The database: `sqlite:FILE` or `postgres://USER@HOST/DATABASE`. A relative FILE is resolved against the folder
    /// of this file. For PostgreSQL, `?sslmode=` sets the encryption of the connection: `disable`, `prefer`, `require`
    /// or `verify-full`, with `sslrootcert=FILE`. Without it, the certificate and the host name of a database on
    /// another machine are verified.
    pub url: Spanned<String>,
    /// The password of the PostgreSQL user. Prefer an environment variable, as `${NAME}`.
    pub password: Option<Spanned<String>>,
    /// The file that contains the password. It is read when this file is read.
    pub password_file: Option<Spanned<String>>,
    /// The tables that become resources, at `table://NAME/TABLE`. Default: none.
    pub tables: Option<Vec<Spanned<String>>>,
    /// The maximum number of rows in one result. If there are more, the result says so. Default: 100.
    pub max_rows: Option<Ranged<1, 10_000>>,
    /// The maximum time of one query, in seconds. The query is then cancelled. Default: 10.
    pub timeout_seconds: Option<Ranged<1, 3600>>,
    /// The maximum number of connections. Further queries wait. Default: 4.
    pub connections: Option<Ranged<1, 100>>,
    /// Whether the database is used. If false, its tables and the tools that query it are not offered. Default: true.
    pub enabled: Option<bool>,
}

/// The database of the pack `tasks`. Without this table it is `CREOLE_TASKS_URL`, or a file in the data directory.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TasksTable {
    /// The database: `sqlite:FILE` or `postgres://USER@HOST/DATABASE`. A relative FILE is resolved against the folder
    /// of this file.
    pub url: Spanned<String>,
    /// The password of the PostgreSQL user. Prefer an environment variable, as `${NAME}`.
    pub password: Option<Spanned<String>>,
    /// The file that contains the password. It is read when this file is read.
    pub password_file: Option<Spanned<String>>,
}
