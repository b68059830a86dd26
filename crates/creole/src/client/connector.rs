//! Opens connections to a server by its address: detects the era that it supports, and caches it.

#[cfg(feature = "http")]
mod http;

use crate::sync::Mutex;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use creole_proto::client::Profile;
use creole_proto::fault::Fault;
use creole_proto::revision::{Era, Rules};
use tokio::time::Instant;

use super::connection::Connection;
pub use super::connection_setup::ClientOffer;
use super::era::{DetectedEra, EraCache, EraSupport};
use super::negotiation::{EraOrder, NegotiationTerms};
use super::transport::Transport;
use super::{era, negotiation};
#[cfg(feature = "http")]
use crate::client::transport::http::HttpAddress;
use crate::process::Program;
#[cfg(feature = "http")]
pub use http::may_be_wrong_era;

/// The address of a server.
#[derive(Clone, Debug)]
pub enum Address {
    /// A program to start; each connection has its own process.
    Child(Program),
    /// An HTTP URL.
    #[cfg(feature = "http")]
    Http(HttpAddress),
}

impl Address {
    /// The server's name in messages.
    pub fn name(&self) -> &str {
        match self {
            Self::Child(program) => &program.name,
            #[cfg(feature = "http")]
            Self::Http(target) => target.name(),
        }
    }

    /// The extension of the protocol that the credentials of the address use.
    fn extension(&self) -> Option<&'static str> {
        match self {
            Self::Child(_) => None,
            #[cfg(feature = "http")]
            Self::Http(target) => target.extension(),
        }
    }
}

/// Opens connections to one server, in an era that it supports. The user of the connector decides when to retry after a
/// failure; see [`RestartPolicy`](crate::process::RestartPolicy).
///
/// A server may support both eras. A connection has the era of the caller that it is for
/// ([`connect_in`](Self::connect_in)); the other era is used only if the server lacks the caller's.
#[derive(Debug)]
pub struct Connector {
    address: Address,
    profile: Arc<Profile>,
    pinned_rules: Option<&'static Rules>,
    era_cache: Mutex<EraCache>,
    started: Instant,
}

impl Connector {
    /// A connector without any information about the server. The extension of the address's credentials is added to
    /// those of the profile.
    pub fn new(address: Address, mut profile: Arc<Profile>) -> Self {
        if let Some(extension) = address.extension()
            && !profile.extensions.contains(&extension)
        {
            Arc::make_mut(&mut profile).extensions.push(extension);
        }
        let memory = Mutex::default();
        Self { address, profile, pinned_rules: None, era_cache: memory, started: Instant::now() }
    }

    /// The same connector, which uses only this revision.
    #[must_use]
    pub fn pin_revision(mut self, rules: &'static Rules) -> Self {
        self.pinned_rules = Some(rules);
        self
    }

    /// The address of the server.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The eras that the server supports, as far as known.
    pub fn supported_eras(&self) -> EraSupport {
        match self.only_era() {
            Some(only) => EraSupport::only(only),
            None => self.era_cache().support(self.started.elapsed()),
        }
    }

    /// The detected form of this era, if the server is known to support it.
    pub fn detected_in(&self, era: Era) -> Option<DetectedEra> {
        let recalled = self.era_cache().detected_in(era, self.started.elapsed());
        // A pinned revision says nothing about the transport.
        recalled.or(self.pinned_rules.filter(|pinned| pinned.is_of(era)).map(DetectedEra::of))
    }

    /// The newest era that the server supports, as far as known.
    pub fn detected(&self) -> Option<DetectedEra> {
        self.detected_in(self.supported_eras().era_for(Rules::CANONICAL.era)?)
    }

    /// Opens a connection in the newest era that the server supports; detects it if it is not known.
    ///
    /// # Errors
    /// When the server cannot be reached, or supports none of our revisions.
    pub async fn connect(&self, offer: &ClientOffer) -> Result<Connection, Fault> {
        self.connect_in(Rules::CANONICAL.era, offer).await
    }

    /// Opens a connection for a caller of this era: in its own era if the server supports that, else in the other one.
    ///
    /// # Errors
    /// When the server cannot be reached, or supports none of our revisions.
    pub async fn connect_in(&self, caller: Era, offer: &ClientOffer) -> Result<Connection, Fault> {
        match &self.address {
            Address::Child(program) => self.connect_child(program, caller, offer).await,
            #[cfg(feature = "http")]
            Address::Http(target) => self.connect_http(target, caller, offer).await,
        }
    }

    /// Records that the server does not support an era, without a probe.
    pub fn mark_era_missing(&self, era: Era) {
        self.era_cache().mark_missing(era, era::MIN_AGE, self.started.elapsed());
    }

    /// The only allowed era, if the settings decide it.
    fn only_era(&self) -> Option<Era> {
        let dialect = &self.profile.dialect;
        match self.pinned_rules {
            Some(pinned) => Some(pinned.era),
            None => dialect.only_era(),
        }
    }

    /// Starts a program and opens a connection to it.
    async fn connect_child(
        &self,
        program: &Program,
        caller: Era,
        offer: &ClientOffer,
    ) -> Result<Connection, Fault> {
        let support = self.supported_eras();
        let first = self.only_era().or(support.era_for(caller)).unwrap_or(caller);
        let second = self.only_era().is_none().then(|| first.other());
        let is_sure = support.supports(first) == Some(true);
        let order = EraOrder { first, second, is_first_known: is_sure };
        let program = program.with_environment(&offer.environment);
        let program = &*program;
        let opened = negotiation::open(program, self.negotiation_terms(offer), order).await?;
        if let Some(lacks) = opened.missing_era {
            self.era_cache().mark_missing(lacks, era::MAX_AGE, self.started.elapsed());
        }
        let detected = DetectedEra::of(opened.connection.greeting().rules);
        self.learn(detected, &opened.connection);
        Ok(opened.connection)
    }

    fn learn(&self, detected: DetectedEra, opened: &Connection) {
        let fresh = Duration::from_millis(opened.greeting().server_info.cache.ttl_ms);
        self.era_cache().learn(detected, fresh, self.started.elapsed());
    }

    fn negotiation_terms<'a>(&'a self, offer: &'a ClientOffer) -> NegotiationTerms<'a> {
        NegotiationTerms::new(&self.profile, self.pinned_rules, offer)
    }

    fn era_cache(&self) -> MutexGuard<'_, EraCache> {
        self.era_cache.lock()
    }
}

/// Opens a connection over a transport, in this revision or else in the newest one of this era.
pub(super) async fn open_over(
    transport: Box<dyn Transport>,
    profile: &Arc<Profile>,
    (era, pinned): (Era, Option<&'static Rules>),
    offer: &ClientOffer,
) -> Result<Connection, Fault> {
    Connection::open(transport, NegotiationTerms::new(profile, pinned, offer).setup(era)).await
}
