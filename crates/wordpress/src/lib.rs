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

use creole::Server;
use creole_tools::recipe::secret::SecretSource;

pub use crate::site::address::SiteAddress;
pub use diagnose::SiteCheck;
pub use site::Site;
pub use tools::{PHASES, SETS};

/// A pack of tools for a site.
#[derive(Clone, Copy, Debug)]
pub struct SitePack {
    /// Its name.
    pub name: &'static str,
    /// A description of its tools and of the data that it reads and writes.
    pub about: &'static str,
    add: fn(Server, &Site) -> Server,
}

/// The packs.
pub const PACKS: &[SitePack] = &[
    SitePack {
        name: "buddyboss-platform",
        about: "Members, groups, activity, messages and more of a WordPress site with the BuddyBoss platform; reads \
                and writes that site as the caller.",
        add: tools::add,
    },
    SitePack {
        name: "wordpress",
        about: "Tools made of the routes of a WordPress site that the configuration allows; reads, and where allowed \
                writes, that site as the caller.",
        add: routes::add,
    },
];

impl SitePack {
    /// The pack of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        PACKS.iter().find(|pack| pack.name == name)
    }

    /// Adds the pack to a server. Its tools work on this site.
    #[must_use]
    pub fn add(&self, server: Server, site: &Site) -> Server {
        (self.add)(server, site)
    }
}

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

impl SiteSettings {
    /// Whether these are settings of the same site: a user at one site is not the same principal at another.
    pub fn is_same_site(&self, other: &Self) -> bool {
        self.address == other.address
    }

    /// Whether callers sign in at the site, because there is no account for all of them.
    pub fn authenticates_callers(&self) -> bool {
        self.account.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pack_can_be_added_to_one_server() {
        let site = Site::new(SiteSettings {
            address: SiteAddress::parse("http://127.0.0.1:9").unwrap(),
            capability: String::new(),
            account: None,
            sets: PHASES.iter().map(|phase| (*phase).to_owned()).collect(),
            routes: AllowedRoutes::default(),
            timeout: Duration::from_secs(1),
        });
        let mut server = Server::new("all");
        for SitePack { name, about, .. } in PACKS {
            assert!(about.ends_with('.'), "{name}");
            server = SitePack::find(name).unwrap().add(server, &site);
        }
        drop(server.start());
        assert!(SitePack::find("tasks").is_none());
    }
}
