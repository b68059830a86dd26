//! The door of a site that may be asked otherwise after the configuration was read again.

use std::sync::{Arc, PoisonError, RwLock};

use creole::serve::http::{Admission, Authenticate, PeerAddress, RequestHead};
use creole_tools::wordpress::Site;

/// Where callers sign in; clones are the same.
#[derive(Clone)]
pub struct SiteGate(Arc<RwLock<Site>>);

impl SiteGate {
    pub(crate) fn new(site: &Site) -> Self {
        Self(Arc::new(RwLock::new(site.clone())))
    }

    /// Has callers sign in there from now on.
    pub(crate) fn set_site(&self, site: &Site) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = site.clone();
    }
}

impl Authenticate for SiteGate {
    fn admit<'a>(&'a self, head: &'a mut RequestHead, peer: PeerAddress) -> Admission<'a> {
        let site = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        Admission::Later(Box::pin(async move { site.authenticate(head, peer).await }))
    }
}
