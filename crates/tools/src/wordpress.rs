//! WordPress: the tools of a site, called with the identity of the caller.
//!
//! A caller presents a user name and an Application Password. The site checks them, and they are sent to that site
//! only. The pack `buddyboss-platform` has curated tools for the BuddyBoss platform. The pack `wordpress` has tools
//! that are generated from the site's index of routes.

mod diagnose;
pub(crate) mod login;
mod routes;
#[cfg(test)]
mod scripted_site;
mod site;
mod tool_result;
mod tools;
mod write_guard;

use std::time::Duration;

use crate::recipe::secret::SecretSource;

pub use crate::wordpress::site::address::SiteAddress;
pub use diagnose::SiteCheck;
pub(crate) use routes::add as add_routes;
pub use site::Site;
pub(crate) use tools::add;
pub use tools::{PHASES, SETS};

/// Patterns that select the routes of a site that become tools. `*` matches any path segment, and at the end the rest
/// of the path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedRoutes {
    /// The routes that may be read.
    pub read: Vec<String>,
    /// The routes that may be written.
    pub write: Vec<String>,
}

/// The settings of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteSettings {
    /// Its address.
    pub address: SiteAddress,
    /// The capability that callers need at the site; empty if a valid login is enough.
    pub capability: String,
    /// The account for callers without credentials: a user name and an Application Password.
    pub account: Option<(String, SecretSource)>,
    /// The tool sets that are offered.
    pub sets: Vec<String>,
    /// The routes that become tools.
    pub routes: AllowedRoutes,
    /// Maximum duration of a request.
    pub timeout: Duration,
}
