//! A server by where it is: how to speak to it is found out, and remembered.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use creole_proto::client::Profile;
use creole_proto::client::era_probe::suggests_legacy_sse;
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::meta::PROTOCOL_VERSION;
use creole_proto::model::ClientCapabilities;
use creole_proto::revision::{Era, Revision, Rules};
use tokio::time::Instant;

use super::connection::{Connection, OnLog, OnQuestion};
use super::era::{self, Found, Memory, Support};
use super::http::{HttpServer, OldSseServer, Target, status_of};
use super::lines::ChildServer;
use super::link::Transport;
use super::negotiation::{self, Order, Terms};
use super::probe;
use crate::process::Program;

/// Codes that are about the request and not about what is asked, also where the revision gives them no meaning.
const INVALID_REQUEST: i64 = -32600;
const UNSUPPORTED_VERSION: i64 = -32022;

/// Where a server is.
#[derive(Clone, Debug)]
pub enum Way {
    /// A program to be started; each connection has a process of its own.
    Child(Program),
    /// A place on the network.
    Http(Target),
}

impl Way {
    /// What the server is called in messages.
    pub fn name(&self) -> &str {
        match self {
            Self::Child(program) => &program.name,
            Self::Http(target) => target.name(),
        }
    }
}

/// What the server may ask on a connection, and who answers.
#[derive(Clone, Default)]
pub struct Offer {
    /// What a server of the handshake era is told that it may ask for.
    pub capabilities: Arc<ClientCapabilities>,
    /// Who answers questions that belong to no known call.
    pub on_question: Option<OnQuestion>,
    /// Who hears log messages that belong to no known call.
    pub on_log: Option<OnLog>,
}

impl fmt::Debug for Offer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Offer");
        shown.field("capabilities", &self.capabilities).finish_non_exhaustive()
    }
}

/// Opens connections to one server, in the way that it wants to be spoken to. When one that failed may be tried
/// again is up to whoever dials; see [`RestartPolicy`](crate::process::RestartPolicy).
///
/// A server may speak both eras. Which one a connection is of is up to the caller that it is for
/// ([`connect_in`](Self::connect_in)); the other is used only where the server lacks the caller's.
#[derive(Debug)]
pub struct Dialer {
    way: Way,
    profile: Arc<Profile>,
    pinned: Option<&'static Rules>,
    memory: Mutex<Memory>,
    started: Instant,
}

impl Dialer {
    /// A dialer that knows nothing of the server.
    pub fn new(way: Way, profile: Arc<Profile>) -> Self {
        let memory = Mutex::default();
        Self { way, profile, pinned: None, memory, started: Instant::now() }
    }

    /// The same dialer, which speaks to the server in this revision alone.
    #[must_use]
    pub fn pinned(mut self, rules: &'static Rules) -> Self {
        self.pinned = Some(rules);
        self
    }

    /// Where the server is.
    pub fn way(&self) -> &Way {
        &self.way
    }

    /// The eras that the server speaks, as far as that is known.
    pub fn support(&self) -> Support {
        match self.only() {
            Some(Era::Handshake) => Support { handshake: Some(true), stateless: Some(false) },
            Some(Era::Stateless) => Support { handshake: Some(false), stateless: Some(true) },
            None => self.memory().support(self.started.elapsed()),
        }
    }

    /// How the server is spoken to in this era, if it is known to speak it.
    pub fn spoken(&self, era: Era) -> Option<Found> {
        let recalled = self.memory().spoken(era, self.started.elapsed());
        match self.pinned.filter(|pinned| pinned.era == era) {
            Some(pinned) if era == Era::Stateless => Some(Found::Stateless(pinned)),
            // Who was told of a handshake was not told by which transport.
            Some(_) => recalled.or(Some(Found::Handshake)),
            None => recalled,
        }
    }

    /// How the server wants to be spoken to, in the newest way that it knows, as far as that is known.
    pub fn known(&self) -> Option<Found> {
        self.spoken(self.support().era_for(Era::Stateless)?)
    }

    /// Opens a connection in the newest way that the server knows; finds out which, where that is not known.
    ///
    /// # Errors
    /// When the server cannot be reached, or does not want to be spoken to in any way that is known here.
    pub async fn connect(&self, offer: &Offer) -> Result<Connection, Fault> {
        self.connect_in(Era::Stateless, offer).await
    }

    /// Opens a connection for a caller of this era: in its own era if the server speaks that, else in the other one.
    ///
    /// # Errors
    /// When the server cannot be reached, or does not want to be spoken to in any way that is known here.
    pub async fn connect_in(&self, caller: Era, offer: &Offer) -> Result<Connection, Fault> {
        match &self.way {
            Way::Child(program) => self.start(program, caller, offer).await,
            Way::Http(target) => self.call(target, caller, offer).await,
        }
    }

    /// Notes that the server turned out not to speak an era, although nobody asked it.
    pub fn lacks(&self, era: Era) {
        self.memory().lacks(era, era::SHORTEST, self.started.elapsed());
    }

    /// Finds out anew whether the server speaks this era, after it [refused](is_misunderstood) a call in it; tells
    /// whether it does.
    ///
    /// # Errors
    /// When it cannot be reached or does not say.
    pub async fn speaks_still(&self, era: Era, fault: &Fault) -> Result<bool, Fault> {
        let Way::Http(target) = &self.way else { return Ok(true) };
        if self.only().is_some() {
            return Ok(true);
        }
        let found = probe::http(target, &self.profile).await?;
        // Who speaks both says so by answering, and nothing about the other era.
        let spoke_both = self.support().speaks(found.era()) == Some(true);
        if found.era() == era || (spoke_both && !names_versions(fault)) {
            return Ok(true);
        }
        let now = self.started.elapsed();
        self.memory().lacks(era, era::SHORTEST, now);
        self.memory().learn(found, Duration::ZERO, now);
        Ok(false)
    }

    /// The only era that the server is spoken to in, where that was decided beforehand.
    fn only(&self) -> Option<Era> {
        let dialect = &self.profile.dialect;
        match self.pinned {
            Some(pinned) => Some(pinned.era),
            None if !dialect.stateless => Some(Era::Handshake),
            None if !dialect.handshake => Some(Era::Stateless),
            None => None,
        }
    }

    /// The era that a caller of this era is served in, where the server need not be asked first.
    fn decided(&self, caller: Era) -> Option<Era> {
        match self.only() {
            Some(Era::Stateless) if self.spoken(Era::Stateless).is_none() => None,
            Some(only) => Some(only),
            None => self.support().era_for(caller),
        }
    }

    /// Starts a program and opens a connection to it.
    async fn start(
        &self,
        program: &Program,
        caller: Era,
        offer: &Offer,
    ) -> Result<Connection, Fault> {
        let support = self.support();
        let first = self.only().or(support.era_for(caller)).unwrap_or(caller);
        let second = self.only().is_none().then(|| era::other(first));
        let is_sure = support.speaks(first) == Some(true);
        let order = Order { first, second, is_sure };
        let opened = negotiation::open(program, self.terms(offer), order).await?;
        if let Some(lacks) = opened.lacks {
            self.memory().lacks(lacks, era::LONGEST, self.started.elapsed());
        }
        let found = match opened.connection.greeting().rules {
            rules if rules.era == Era::Stateless => Found::Stateless(rules),
            _ => Found::Handshake,
        };
        self.learn(found, &opened.connection);
        Ok(opened.connection)
    }

    /// Opens a connection over HTTP.
    async fn call(&self, target: &Target, caller: Era, offer: &Offer) -> Result<Connection, Fault> {
        let era = self.decided(caller);
        // A dialect decides the era and not the revision: that is settled with the server.
        let may_ask = self.pinned.is_none() && self.only() != Some(Era::Handshake);
        if let Some(era) = era {
            match self.open(self.spoken(era).unwrap_or(self.newest(era)), offer).await {
                Err(fault) if may_ask && contradicts(&fault) => self.memory().forget(era),
                opened => return opened,
            }
        }
        let may_shake_hands = self.only() != Some(Era::Stateless);
        if may_shake_hands && caller == Era::Handshake && era != Some(Era::Handshake) {
            match self.open(Found::Handshake, offer).await {
                Err(fault) if contradicts(&fault) => {
                    // Where that leads nowhere either, what the server said first says more.
                    let found =
                        probe::http(target, &self.profile).await.map_err(|_| fault.clone())?;
                    if found.era() == Era::Handshake {
                        return Err(fault);
                    }
                    let opened = self.open(found, offer).await.map_err(|_| fault)?;
                    self.memory().lacks(Era::Handshake, era::LONGEST, self.started.elapsed());
                    return Ok(opened);
                }
                opened => return opened,
            }
        }
        let found = probe::http(target, &self.profile).await?;
        let opened = self.open(found, offer).await?;
        if opened.greeting().rules.era == Era::Handshake {
            self.memory().lacks(Era::Stateless, era::LONGEST, self.started.elapsed());
        }
        Ok(opened)
    }

    /// Opens a connection over HTTP in this way, or in the one that it leads to.
    async fn open(&self, found: Found, offer: &Offer) -> Result<Connection, Fault> {
        let (found, opened) = match self.begin(found, offer).await {
            Err(fault) if found == Found::Handshake && suggests_older(&fault) => {
                // Where that leads nowhere either, what the server said first says more.
                (Found::OldSse, self.begin(Found::OldSse, offer).await.map_err(|_| fault)?)
            }
            opened => (found, opened?),
        };
        self.learn(found, &opened);
        Ok(opened)
    }

    async fn begin(&self, found: Found, offer: &Offer) -> Result<Connection, Fault> {
        let transport: Box<dyn Transport> = match (&self.way, found) {
            (Way::Child(program), _) => Box::new(ChildServer::start(program).await?),
            (Way::Http(target), Found::OldSse) => Box::new(OldSseServer::new(target.clone())),
            (Way::Http(target), _) => Box::new(HttpServer::new(target.clone())),
        };
        Connection::open(transport, self.terms(offer).setup(found.era())).await
    }

    fn learn(&self, found: Found, opened: &Connection) {
        let fresh = Duration::from_millis(opened.greeting().server_info.cache.ttl_ms);
        self.memory().learn(found, fresh, self.started.elapsed());
    }

    /// How an era is spoken where nothing else is known.
    fn newest(&self, era: Era) -> Found {
        match era {
            Era::Handshake => Found::Handshake,
            Era::Stateless => Found::Stateless(Revision::newest(Era::Stateless).rules()),
        }
    }

    fn terms<'a>(&'a self, offer: &'a Offer) -> Terms<'a> {
        Terms::new(&self.profile, self.pinned, offer)
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens a connection over a transport, in this revision or else in the newest one of this era.
pub(super) async fn open(
    transport: Box<dyn Transport>,
    profile: &Arc<Profile>,
    (era, pinned): (Era, Option<&'static Rules>),
    offer: &Offer,
) -> Result<Connection, Fault> {
    Connection::open(transport, Terms::new(profile, pinned, offer).setup(era)).await
}

/// Whether a server may have refused a call because of how it is spoken to, and not because of what was asked, which it
/// has not looked at then.
pub fn is_misunderstood(fault: &Fault) -> bool {
    match fault.kind {
        FaultKind::UnsupportedVersion | FaultKind::NotInitialized | FaultKind::InvalidRequest => {
            true
        }
        // No JSON-RPC answer: what was sent is no request for it, such as one without a session.
        FaultKind::BackendUnavailable => {
            status_of(fault).is_some_and(|status| matches!(status, 400 | 422))
        }
        FaultKind::Foreign => {
            matches!(fault.foreign_code, Some(INVALID_REQUEST | UNSUPPORTED_VERSION))
        }
        // What a request of a session lacks is named (2026-07-28 basic, `_meta`).
        FaultKind::InvalidParams | FaultKind::InvalidArguments => {
            fault.detail.contains(PROTOCOL_VERSION)
        }
        _ => false,
    }
}

/// Whether a server says that it does not speak this version.
fn names_versions(fault: &Fault) -> bool {
    fault.kind == FaultKind::UnsupportedVersion || fault.foreign_code == Some(UNSUPPORTED_VERSION)
}

/// Whether a server that is there does not want to be spoken to like this.
fn contradicts(fault: &Fault) -> bool {
    let is_absence =
        matches!(fault.kind, FaultKind::BackendUnavailable | FaultKind::Timeout | FaultKind::Busy);
    !is_absence || suggests_older(fault)
}

fn suggests_older(fault: &Fault) -> bool {
    status_of(fault).is_some_and(suggests_legacy_sse)
}
