//! A site with its packs, and logins of callers at it.

use std::sync::Arc;

use creole::Server;
use creole::internal::http::{Admission, Authenticate, RequestHead};
use creole::internal::sync::RwLock;
use creole::serve::http::PeerAddress;
use creole_wordpress::{PACKS, SitePack};

pub use creole_wordpress::{Site, SiteSettings};

/// The names of the packs.
pub(crate) fn pack_names() -> impl Iterator<Item = &'static str> {
    PACKS.iter().map(|pack| pack.name)
}

/// Whether this is the name of a pack of a site.
pub(crate) fn is_pack(name: &str) -> bool {
    SitePack::find(name).is_some()
}

/// Adds a pack of a site.
pub(crate) fn add_pack(server: Server, name: &str, site: &Site) -> Server {
    match SitePack::find(name) {
        Some(pack) => pack.add(server, site),
        None => server,
    }
}

/// Authenticates HTTP callers at a site that a reload may reconfigure. Clones share the site.
#[derive(Clone)]
pub struct SiteGate(Arc<RwLock<Site>>);

impl SiteGate {
    pub(crate) fn new(site: &Site) -> Self {
        Self(Arc::new(RwLock::new(site.clone())))
    }

    /// Authenticates at this site from now on.
    pub(crate) fn set_site(&self, site: &Site) {
        *self.0.write() = site.clone();
    }
}

impl Authenticate for SiteGate {
    fn admit<'a>(&'a self, head: &'a mut RequestHead, peer: PeerAddress) -> Admission<'a> {
        let site = self.0.read().clone();
        Admission::Later(Box::pin(async move { site.authenticate(head, peer).await }))
    }
}
