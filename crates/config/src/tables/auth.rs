//! Whom the server lets in over HTTP, as it is written.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::syntax::value::Spanned;

/// Whom the server lets in over HTTP. On stdio, who starts the server is let in.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuthTable {
    /// The file of users and the hashes of their passwords, which `creole passwd` writes. A relative path
    /// begins at the folder of this file.
    pub users: Option<Spanned<String>>,
    /// Keys of programs.
    pub keys: Option<Spanned<Vec<KeyTable>>>,
    /// The file of keys, which `creole passwd --key` writes. A relative path begins at the folder of this
    /// file.
    pub keys_file: Option<Spanned<String>>,
    /// The role that a user or a key must have. Default: none, who is known may come in.
    pub role: Option<Spanned<String>>,
}

/// A key of a program, by its SHA-256.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyTable {
    /// The name by which the program is known.
    pub name: Spanned<String>,
    /// The SHA-256 of the key in 64 hexadecimal digits; never the key itself.
    #[schemars(regex(pattern = r"^([0-9A-Fa-f]{64}|.*\$\{.*)$"))]
    pub sha256: Spanned<String>,
    /// The roles of the program.
    pub roles: Option<Vec<Spanned<String>>>,
    /// When the key ends, such as `2027-01-31` or `2027-01-31T12:00:00Z`. Default: never.
    pub expires: Option<Spanned<String>>,
}
