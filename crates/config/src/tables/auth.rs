//! The table `[auth]`: authentication of HTTP clients.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::syntax::value::Spanned;

/// Authentication of HTTP clients. A client on stdio needs no authentication.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuthTable {
    /// The file of users and password hashes. `creole passwd` writes it. A relative path is resolved against the folder
    /// of this file.
    pub users: Option<Spanned<String>>,
    /// Bearer keys of programs.
    pub keys: Option<Spanned<Vec<KeyTable>>>,
    /// The file of bearer keys. `creole passwd --key` writes it. A relative path is resolved against the folder of this
    /// file.
    pub keys_file: Option<Spanned<String>>,
    /// The role that a user or a key must have. Default: none, every authenticated user or key is admitted.
    pub role: Option<Spanned<String>>,
}

/// A bearer key of a program, stored as its SHA-256.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyTable {
    /// The name that identifies the program.
    pub name: Spanned<String>,
    /// The SHA-256 of the key, as 64 hexadecimal digits. Never write the key itself.
    #[schemars(regex(pattern = r"^([0-9A-Fa-f]{64}|.*\$\{.*)$"))]
    pub sha256: Spanned<String>,
    /// The roles of the program.
    pub roles: Option<Vec<Spanned<String>>>,
    /// The time at which the key expires, such as `2027-01-31` or `2027-01-31T12:00:00Z`. Default: never.
    pub expires: Option<Spanned<String>>,
}
