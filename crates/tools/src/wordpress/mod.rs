//! WordPress: the tools of a site, called as the person who calls.
//!
//! A caller shows a name and an Application Password; they are checked at the site and passed on to that site alone.
//! The pack `buddyboss-platform` has curated tools of the BuddyBoss platform, the pack `wordpress` tools that are made of the
//! site's own index of routes.

mod address;
mod answer;
mod doctor;
mod door;
mod form;
mod guard;
mod platform;
mod proof;
mod routes;
#[cfg(test)]
mod scripted;
mod site;
mod strikes;
mod tools;
mod trouble;
mod visitors;

use std::time::Duration;

use crate::recipe::secret::SecretSource;

pub use address::Address;
pub use doctor::Finding;
pub(crate) use routes::add as add_routes;
pub use site::Site;
pub(crate) use tools::add;
pub use tools::{PHASES, SETS};

/// Which of the routes of a site are tools: patterns, where `*` stands for any part and at the end for the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    /// Those that may be read.
    pub read: Vec<String>,
    /// Those that may be written to.
    pub write: Vec<String>,
}

/// What is to be known of a site before anything is asked of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where it is.
    pub address: Address,
    /// The capability that callers must have at the site; empty if being known is enough.
    pub capability: String,
    /// Who calls where callers do not say who they are: a name and an Application Password.
    pub account: Option<(String, SecretSource)>,
    /// The sets of tools that are offered.
    pub sets: Vec<String>,
    /// The routes that tools are made of.
    pub routes: Routes,
    /// How long one request may take.
    pub timeout: Duration,
}
