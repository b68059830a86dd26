//! The site gate: authenticates HTTP callers at a WordPress site that a reload may reconfigure.

use creole::sync::RwLock;
use std::sync::Arc;

use creole::serve::http::{Admission, Authenticate, PeerAddress, RequestHead};
use creole_tools::wordpress::Site;

/// Authenticates callers at a site. Clones share the site.
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
