//! The table `[wordpress]`: the WordPress site of two packs.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::syntax::value::{Ranged, Spanned};

/// The WordPress site of the packs `buddyboss-platform` and `wordpress`. Without `user`, HTTP callers authenticate with
/// an Application Password of the site. The site checks it, and Creole sends it to no other server.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WordPressTable {
    /// The URL of the site's front page.
    pub url: Spanned<String>,
    /// Whether passwords may be sent unencrypted to another machine. Default: false.
    pub allow_http: Option<bool>,
    /// The WordPress capability that callers must have. If it is empty, every user of the site is admitted. Default:
    /// `manage_options`.
    pub capability: Option<Spanned<String>>,
    /// The user of all calls. Default: each caller's own user.
    pub user: Option<Spanned<String>>,
    /// The Application Password of `user`.
    pub password: Option<Spanned<String>>,
    /// The file that contains the Application Password of `user`.
    pub password_file: Option<Spanned<String>>,
    /// The tool sets of the pack `buddyboss-platform`. `phase-1` and `phase-2` stand for several sets each. Default:
    /// `phase-1`.
    pub sets: Option<Vec<Spanned<String>>>,
    /// The routes of the site that the pack `wordpress` offers as tools.
    pub routes: Option<RoutesTable>,
    /// The maximum time of one request to the site, in seconds. The call then fails. Default: 30.
    pub timeout_seconds: Option<Ranged<1, 300>>,
}

/// The routes of the site that become tools. `*` matches one segment of a route. At the end it matches all further
/// segments.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoutesTable {
    /// Routes whose read operations become tools, such as `wp/v2/posts/*`.
    pub read: Option<Vec<Spanned<String>>>,
    /// Routes whose write operations become tools.
    pub write: Option<Vec<Spanned<String>>>,
}
