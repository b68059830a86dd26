//! WordPress: the tools of a site, called as the person who calls.
//!
//! A caller shows a name and an Application Password; they are checked at the site and passed on to that site alone.
//! The pack `buddyboss-platform` has curated tools of the BuddyBoss platform, the pack `wordpress` tools that are made of the
//! site's own index of routes.

mod address;
mod authenticate;
mod basic_credentials;
mod diagnose;
mod form_file;
mod login_throttle;
mod platform;
mod routes;
#[cfg(test)]
mod scripted_site;
mod site;
mod site_error;
mod tool_result;
mod tools;
mod users;
mod write_guard;

use std::time::Duration;

use crate::recipe::secret::SecretSource;

pub use address::SiteAddress;
pub use diagnose::SiteCheck;
pub(crate) use routes::add as add_routes;
pub use site::Site;
pub(crate) use tools::add;
pub use tools::{PHASES, SETS};

/// Which of the routes of a site are tools: patterns, where `*` stands for any part and at the end for the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedRoutes {
    /// Those that may be read.
    pub read: Vec<String>,
    /// Those that may be written to.
    pub write: Vec<String>,
}

/// What is to be known of a site before anything is asked of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteSettings {
    /// Where it is.
    pub address: SiteAddress,
    /// The capability that callers must have at the site; empty if being known is enough.
    pub capability: String,
    /// Who calls where callers do not say who they are: a name and an Application Password.
    pub account: Option<(String, SecretSource)>,
    /// The sets of tools that are offered.
    pub sets: Vec<String>,
    /// The routes that tools are made of.
    pub routes: AllowedRoutes,
    /// How long one request may take.
    pub timeout: Duration,
}
