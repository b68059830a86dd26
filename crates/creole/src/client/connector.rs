//! Opens connections to a server by its address: detects the era that it speaks, and caches it.

use crate::sync::Mutex;
use std::fmt;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use creole_proto::client::Profile;
use creole_proto::client::era_probe::suggests_legacy_sse;
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::meta::PROTOCOL_VERSION;
use creole_proto::model::ClientCapabilities;
use creole_proto::revision::{Era, Rules};
use tokio::time::Instant;

use super::connection::{Connection, OnInputRequest, OnLog};
use super::era::{DetectedEra, EraCache, EraSupport};
use super::negotiation::{EraOrder, NegotiationTerms};
use super::transport::Transport;
use super::{era, negotiation, probe};
use crate::client::transport::http::{HttpAddress, HttpServer, LegacySseServer, status_of};
use crate::client::transport::lines::ChildServer;
use crate::process::Program;

/// Error codes about the form of a request and not about its contents, also in revisions that give them no meaning.
const INVALID_REQUEST: i64 = -32600;
const UNSUPPORTED_VERSION: i64 = -32022;

/// The address of a server.
#[derive(Clone, Debug)]
pub enum Address {
    /// A program to start; each connection has its own process.
    Child(Program),
    /// An HTTP URL.
    Http(HttpAddress),
}

impl Address {
    /// The server's name in messages.
    pub fn name(&self) -> &str {
        match self {
            Self::Child(program) => &program.name,
            Self::Http(target) => target.name(),
        }
    }
}

/// The input requests that a connection accepts, and their handlers.
#[derive(Clone, Default)]
pub struct ClientOffer {
    /// The capabilities that a server of the handshake era is told.
    pub capabilities: Arc<ClientCapabilities>,
    /// Handles input requests that belong to no known call.
    pub on_input_request: Option<OnInputRequest>,
    /// Handles log messages that belong to no known call.
    pub on_log: Option<OnLog>,
}

impl fmt::Debug for ClientOffer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Offer");
        shown.field("capabilities", &self.capabilities).finish_non_exhaustive()
    }
}

/// Opens connections to one server, in an era that it speaks. The user of the connector decides when to retry after a
/// failure; see [`RestartPolicy`](crate::process::RestartPolicy).
///
/// A server may speak both eras. A connection has the era of the caller that it is for
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
    /// A connector that knows nothing of the server yet.
    pub fn new(way: Address, profile: Arc<Profile>) -> Self {
        let memory = Mutex::default();
        Self {
            address: way,
            profile,
            pinned_rules: None,
            era_cache: memory,
            started: Instant::now(),
        }
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

    /// The eras that the server speaks, as far as known.
    pub fn supported_eras(&self) -> EraSupport {
        match self.only_era() {
            Some(Era::Handshake) => EraSupport { handshake: Some(true), stateless: Some(false) },
            Some(Era::Stateless) => EraSupport { handshake: Some(false), stateless: Some(true) },
            None => self.era_cache().support(self.started.elapsed()),
        }
    }

    /// The detected form of this era, if the server is known to speak it.
    pub fn detected_in(&self, era: Era) -> Option<DetectedEra> {
        let recalled = self.era_cache().detected_in(era, self.started.elapsed());
        match self.pinned_rules.filter(|pinned| pinned.era == era) {
            Some(pinned) if era == Era::Stateless => Some(DetectedEra::Stateless(pinned)),
            // The known fact is the handshake, not its transport.
            Some(_) => recalled.or(Some(DetectedEra::Handshake)),
            None => recalled,
        }
    }

    /// The newest era that the server speaks, as far as known.
    pub fn detected(&self) -> Option<DetectedEra> {
        self.detected_in(self.supported_eras().era_for(Era::Stateless)?)
    }

    /// Opens a connection in the newest era that the server speaks; detects it if it is not known.
    ///
    /// # Errors
    /// When the server cannot be reached, or speaks no supported revision.
    pub async fn connect(&self, offer: &ClientOffer) -> Result<Connection, Fault> {
        self.connect_in(Era::Stateless, offer).await
    }

    /// Opens a connection for a caller of this era: in its own era if the server speaks that, else in the other one.
    ///
    /// # Errors
    /// When the server cannot be reached, or speaks no supported revision.
    pub async fn connect_in(&self, caller: Era, offer: &ClientOffer) -> Result<Connection, Fault> {
        match &self.address {
            Address::Child(program) => self.connect_child(program, caller, offer).await,
            Address::Http(target) => self.connect_http(target, caller, offer).await,
        }
    }

    /// Records that the server does not speak an era, without a probe.
    pub fn mark_era_missing(&self, era: Era) {
        self.era_cache().mark_missing(era, era::MIN_AGE, self.started.elapsed());
    }

    /// Detects again whether the server speaks this era, after it [refused](may_be_wrong_era) a call in it; returns
    /// whether it does.
    ///
    /// # Errors
    /// When the server cannot be reached or its response is inconclusive.
    pub async fn recheck_era(&self, era: Era, fault: &Fault) -> Result<bool, Fault> {
        let Address::Http(target) = &self.address else { return Ok(true) };
        if self.only_era().is_some() {
            return Ok(true);
        }
        let found = probe::probe_http(target, &self.profile).await?;
        // A server that speaks both eras responds to the probe, which says nothing about the other era.
        let spoke_both = self.supported_eras().speaks(found.era()) == Some(true);
        if found.era() == era || (spoke_both && !is_unsupported_version(fault)) {
            return Ok(true);
        }
        let now = self.started.elapsed();
        self.era_cache().mark_missing(era, era::MIN_AGE, now);
        self.era_cache().learn(found, Duration::ZERO, now);
        Ok(false)
    }

    /// The only allowed era, if the settings decide it.
    fn only_era(&self) -> Option<Era> {
        let dialect = &self.profile.dialect;
        match self.pinned_rules {
            Some(pinned) => Some(pinned.era),
            None if !dialect.stateless => Some(Era::Handshake),
            None if !dialect.handshake => Some(Era::Stateless),
            None => None,
        }
    }

    /// The era in which a caller of this era is served, if no probe is needed.
    fn known_era_for(&self, caller: Era) -> Option<Era> {
        match self.only_era() {
            Some(Era::Stateless) if self.detected_in(Era::Stateless).is_none() => None,
            Some(only) => Some(only),
            None => self.supported_eras().era_for(caller),
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
        let second = self.only_era().is_none().then(|| era::other_era(first));
        let is_sure = support.speaks(first) == Some(true);
        let order = EraOrder { first, second, is_first_known: is_sure };
        let opened = negotiation::open(program, self.negotiation_terms(offer), order).await?;
        if let Some(lacks) = opened.missing_era {
            self.era_cache().mark_missing(lacks, era::MAX_AGE, self.started.elapsed());
        }
        let found = match opened.connection.greeting().rules {
            rules if rules.era == Era::Stateless => DetectedEra::Stateless(rules),
            _ => DetectedEra::Handshake,
        };
        self.learn(found, &opened.connection);
        Ok(opened.connection)
    }

    /// Opens a connection over HTTP.
    async fn connect_http(
        &self,
        target: &HttpAddress,
        caller: Era,
        offer: &ClientOffer,
    ) -> Result<Connection, Fault> {
        let era = self.known_era_for(caller);
        // A dialect decides the era, not the revision: that is negotiated with the server.
        let may_ask = self.pinned_rules.is_none() && self.only_era() != Some(Era::Handshake);
        if let Some(era) = era {
            match self.open_http(self.detected_in(era).unwrap_or(self.newest_in(era)), offer).await
            {
                Err(fault) if may_ask && contradicts_era(&fault) => self.era_cache().forget(era),
                opened => return opened,
            }
        }
        let may_shake_hands = self.only_era() != Some(Era::Stateless);
        if may_shake_hands && caller == Era::Handshake && era != Some(Era::Handshake) {
            match self.open_http(DetectedEra::Handshake, offer).await {
                Err(fault) if contradicts_era(&fault) => {
                    // If that fails too, the server's first fault is more informative.
                    let found = probe::probe_http(target, &self.profile)
                        .await
                        .map_err(|_| fault.clone())?;
                    if found.era() == Era::Handshake {
                        return Err(fault);
                    }
                    let opened = self.open_http(found, offer).await.map_err(|_| fault)?;
                    self.era_cache().mark_missing(
                        Era::Handshake,
                        era::MAX_AGE,
                        self.started.elapsed(),
                    );
                    return Ok(opened);
                }
                opened => return opened,
            }
        }
        let found = probe::probe_http(target, &self.profile).await?;
        let opened = self.open_http(found, offer).await?;
        if opened.greeting().rules.era == Era::Handshake {
            self.era_cache().mark_missing(Era::Stateless, era::MAX_AGE, self.started.elapsed());
        }
        Ok(opened)
    }

    /// Opens a connection over HTTP in this form, or in the one that the server leads to.
    async fn open_http(
        &self,
        found: DetectedEra,
        offer: &ClientOffer,
    ) -> Result<Connection, Fault> {
        let (found, opened) = match self.open_http_once(found, offer).await {
            Err(fault) if found == DetectedEra::Handshake && suggests_older(&fault) => {
                // If that fails too, the server's first fault is more informative.
                (
                    DetectedEra::LegacySse,
                    self.open_http_once(DetectedEra::LegacySse, offer).await.map_err(|_| fault)?,
                )
            }
            opened => (found, opened?),
        };
        self.learn(found, &opened);
        Ok(opened)
    }

    async fn open_http_once(
        &self,
        found: DetectedEra,
        offer: &ClientOffer,
    ) -> Result<Connection, Fault> {
        let transport: Box<dyn Transport> = match (&self.address, found) {
            (Address::Child(program), _) => Box::new(ChildServer::start(program).await?),
            (Address::Http(target), DetectedEra::LegacySse) => {
                Box::new(LegacySseServer::new(target.clone()))
            }
            (Address::Http(target), _) => Box::new(HttpServer::new(target.clone())),
        };
        Connection::open(transport, self.negotiation_terms(offer).setup(found.era())).await
    }

    fn learn(&self, found: DetectedEra, opened: &Connection) {
        let fresh = Duration::from_millis(opened.greeting().server_info.cache.ttl_ms);
        self.era_cache().learn(found, fresh, self.started.elapsed());
    }

    /// The newest form of an era, for a server of which nothing is known.
    fn newest_in(&self, era: Era) -> DetectedEra {
        match era {
            Era::Handshake => DetectedEra::Handshake,
            Era::Stateless => DetectedEra::Stateless(Rules::CANONICAL),
        }
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

/// Whether a server may have refused a call because of its era or revision, before it processed the request.
pub fn may_be_wrong_era(fault: &Fault) -> bool {
    match fault.kind {
        FaultKind::UnsupportedVersion | FaultKind::NotInitialized | FaultKind::InvalidRequest => {
            true
        }
        // Not a JSON-RPC response: the server does not accept the request as such, for example without a session.
        FaultKind::BackendUnavailable => {
            status_of(fault).is_some_and(|status| matches!(status, 400 | 422))
        }
        FaultKind::Foreign => {
            matches!(fault.foreign_code, Some(INVALID_REQUEST | UNSUPPORTED_VERSION))
        }
        // The server names a member that a request of a session lacks (2026-07-28 basic, `_meta`).
        FaultKind::InvalidParams | FaultKind::InvalidArguments => {
            fault.detail.contains(PROTOCOL_VERSION)
        }
        _ => false,
    }
}

/// Whether a server says that it does not support this version.
fn is_unsupported_version(fault: &Fault) -> bool {
    fault.kind == FaultKind::UnsupportedVersion || fault.foreign_code == Some(UNSUPPORTED_VERSION)
}

/// Whether a reachable server refuses this era.
fn contradicts_era(fault: &Fault) -> bool {
    let is_absence =
        matches!(fault.kind, FaultKind::BackendUnavailable | FaultKind::Timeout | FaultKind::Busy);
    !is_absence || suggests_older(fault)
}

fn suggests_older(fault: &Fault) -> bool {
    status_of(fault).is_some_and(suggests_legacy_sse)
}
