//! The types of a site in a program that supports none. They have no values, so code that uses them never runs.

use std::convert::Infallible;

use creole::Server;
use creole::internal::http::{Admission, Authenticate, RequestHead};
use creole::serve::http::PeerAddress;

/// A site.
#[derive(Clone, Debug)]
pub struct Site(Infallible);

/// The settings of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteSettings(Infallible);

/// Authenticates HTTP callers at a site.
#[derive(Clone, Debug)]
pub struct SiteGate(Infallible);

impl SiteSettings {
    pub(crate) fn is_same_site(&self, _other: &Self) -> bool {
        match self.0 {}
    }

    pub(crate) fn authenticates_callers(&self) -> bool {
        match self.0 {}
    }
}

impl Site {
    pub(crate) fn new(settings: SiteSettings) -> Self {
        match settings.0 {}
    }

    pub(crate) fn settings(&self) -> &SiteSettings {
        match self.0 {}
    }

    pub(crate) fn with_settings(&self, _settings: SiteSettings) -> Self {
        match self.0 {}
    }
}

impl SiteGate {
    pub(crate) fn new(site: &Site) -> Self {
        match site.0 {}
    }

    pub(crate) fn set_site(&self, _site: &Site) {
        match self.0 {}
    }
}

impl Authenticate for SiteGate {
    fn admit<'a>(&'a self, _head: &'a mut RequestHead, _peer: PeerAddress) -> Admission<'a> {
        match self.0 {}
    }
}

pub(crate) fn pack_names() -> impl Iterator<Item = &'static str> {
    std::iter::empty()
}

pub(crate) fn is_pack(_name: &str) -> bool {
    false
}

pub(crate) fn add_pack(_server: Server, _name: &str, site: &Site) -> Server {
    match site.0 {}
}
