//! Whom the server lets in over HTTP, as it is written.

use schemars::JsonSchema;
use serde::Deserialize;

use super::value::Placed;

/// Whom the server lets in over HTTP. On stdio, who starts the server is let in.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuthTable {
    /// The file of users and the hashes of their passwords, which `creole passwd` writes. A relative path
    /// begins at the folder of this file.
    pub users: Option<Placed<String>>,
    /// Keys of programs.
    pub keys: Option<Placed<Vec<KeyTable>>>,
    /// The file of keys, which `creole passwd --key` writes. A relative path begins at the folder of this
    /// file.
    pub keys_file: Option<Placed<String>>,
    /// The role that a user or a key must have. Default: none, who is known may come in.
    pub role: Option<Placed<String>>,
}

/// A key of a program, by its SHA-256.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyTable {
    /// The name by which the program is known.
    pub name: Placed<String>,
    /// The SHA-256 of the key in 64 hexadecimal digits; never the key itself.
    #[schemars(regex(pattern = r"^([0-9A-Fa-f]{64}|.*\$\{.*)$"))]
    pub sha256: Placed<String>,
    /// The roles of the program.
    pub roles: Option<Vec<Placed<String>>>,
    /// When the key ends, such as `2027-01-31` or `2027-01-31T12:00:00Z`. Default: never.
    pub expires: Option<Placed<String>>,
}
