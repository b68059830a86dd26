//! The table `[wordpress]`: a site that tools work on.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::syntax::value::{Ranged, Spanned};

/// The WordPress site that the packs `buddyboss-platform` and `wordpress` work on. Without `user`, callers over HTTP
/// sign in with an Application Password of that site, which is checked there and passed on to it alone.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WordPressTable {
    /// The address of the site's front page.
    pub url: Spanned<String>,
    /// Whether passwords may be sent to another machine unencrypted. Default: false.
    pub allow_http: Option<bool>,
    /// The capability that callers must have at the site; empty if being known is enough. Default: `manage_options`.
    pub capability: Option<Spanned<String>>,
    /// The user whom all calls are made as. Default: everybody calls as themselves.
    pub user: Option<Spanned<String>>,
    /// An Application Password of that user.
    pub password: Option<Spanned<String>>,
    /// The file that holds an Application Password of that user.
    pub password_file: Option<Spanned<String>>,
    /// The sets of tools of the pack `buddyboss-platform`, or the phases `phase-1` and `phase-2`, which are several sets
    /// each. Default: `phase-1`.
    pub sets: Option<Vec<Spanned<String>>>,
    /// Which of the site's routes the pack `wordpress` makes tools of.
    pub routes: Option<RoutesTable>,
    /// How long one request to the site may take, in seconds. Default: 30.
    pub timeout_seconds: Option<Ranged<1, 300>>,
}

/// Which of the site's routes are tools. `*` stands for any part of a route, and at the end for all that follows.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoutesTable {
    /// Routes that may be read, such as `wp/v2/posts/*`.
    pub read: Option<Vec<Spanned<String>>>,
    /// Routes that may be written to.
    pub write: Option<Vec<Spanned<String>>>,
}
