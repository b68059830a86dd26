//! A server by where it is: how to speak to it is found out, and remembered.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use creole_proto::client::verdict::suggests_sse;
use creole_proto::client::{Opening, Profile};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::meta::PROTOCOL_VERSION;
use creole_proto::model::ClientCapabilities;
use creole_proto::revision::{Era, Revision, Rules};
use tokio::time::Instant;

use super::connection::{Connection, OnLog, OnQuestion, Setup};
use super::era::{Found, Memory};
use super::http::{HttpServer, OldSseServer, Target, status_of};
use super::lines::ChildServer;
use super::link::Transport;
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
/// again is up to whoever dials; see [`Restarts`](crate::process::Restarts).
#[derive(Debug)]
pub struct Dialer {
    way: Way,
    profile: Arc<Profile>,
    pinned: Option<Found>,
    memory: Arc<Mutex<Memory>>,
    started: Instant,
}

impl Dialer {
    /// A dialer that knows nothing of the server.
    pub fn new(way: Way, profile: Arc<Profile>) -> Self {
        let memory = Arc::default();
        Self { way, profile, pinned: None, memory, started: Instant::now() }
    }

    /// The same dialer, told how the server wants to be spoken to.
    #[must_use]
    pub fn pinned(mut self, found: Found) -> Self {
        self.pinned = Some(found);
        self
    }

    /// Where the server is.
    pub fn way(&self) -> &Way {
        &self.way
    }

    /// How the server wants to be spoken to, as far as that is known.
    pub fn known(&self) -> Option<Found> {
        let recalled = self.memory().recall(self.started.elapsed());
        match self.pinned {
            // Who was told of a handshake was not told by which transport.
            Some(Found::Handshake) if recalled == Some(Found::OldSse) => recalled,
            Some(pinned) => Some(pinned),
            None => recalled,
        }
    }

    /// Opens a connection; finds out how, where that is not known.
    ///
    /// # Errors
    /// When the server cannot be reached, or does not want to be spoken to in any way that is known here.
    pub async fn connect(&self, offer: &Offer) -> Result<Connection, Fault> {
        if let Some(known) = self.known() {
            match self.open(known, offer).await {
                Err(fault) if self.pinned != Some(known) && contradicts(&fault) => {
                    self.memory().forget()
                }
                opened => return opened,
            }
        }
        if let Some(pinned) = self.pinned {
            return self.open(pinned, offer).await;
        }
        let (found, late) = self.find().await?;
        self.memory().guess(found, self.started.elapsed());
        match late {
            Some(late) => self.open_unless(found, late, offer).await,
            None => self.open(found, offer).await,
        }
    }

    /// Finds out anew how the server wants to be spoken to, after it [refused](is_misunderstood) to be spoken to as before.
    ///
    /// # Errors
    /// When it cannot be reached or does not say.
    pub async fn find_again(&self) -> Result<Found, Fault> {
        if let Some(pinned) = self.pinned {
            return Ok(pinned);
        }
        let (found, _) = self.find().await?;
        if self.known().is_none_or(|known| known.era() != found.era()) {
            self.memory().guess(found, self.started.elapsed());
        }
        Ok(found)
    }

    /// Opens a connection to a server that was silent when it was asked. If it was only slow to start, then the
    /// process that was asked has a lead over the one that is opened now, and its answer comes first.
    async fn open_unless(
        &self,
        found: Found,
        mut late: probe::Late,
        offer: &Offer,
    ) -> Result<Connection, Fault> {
        let mut opening = Box::pin(self.open(found, offer));
        let heard = tokio::select! {
            opened = &mut opening => {
                self.learn_later(late);
                return opened;
            }
            heard = &mut late => heard,
        };
        let Some(other) = heard.filter(|other| *other != found) else { return opening.await };
        drop(opening);
        self.memory().guess(other, self.started.elapsed());
        self.open(other, offer).await
    }

    /// How the server wants to be spoken to, by asking it.
    async fn find(&self) -> Result<(Found, Option<probe::Late>), Fault> {
        if !self.profile.dialect.stateless {
            return Ok((Found::Handshake, None));
        }
        match &self.way {
            Way::Child(program) => probe::child(program, &self.profile).await,
            Way::Http(target) => Ok((probe::http(target, &self.profile).await?, None)),
        }
    }

    /// A server that was only slow to start is spoken to in its own way the next time.
    fn learn_later(&self, late: probe::Late) {
        let (memory, started) = (Arc::clone(&self.memory), self.started);
        tokio::spawn(async move {
            if let Some(found) = late.await {
                let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
                memory.learn(found, Duration::ZERO, started.elapsed());
            }
        });
    }

    /// Opens a connection in this way, or in the one that it leads to.
    async fn open(&self, found: Found, offer: &Offer) -> Result<Connection, Fault> {
        let (found, opened) = match self.begin(found, offer).await {
            Err(fault) => {
                let Some(other) = self.other_way(found, &fault) else { return Err(fault) };
                // Where that leads nowhere either, what the server said first says more.
                (other, self.begin(other, offer).await.map_err(|_| fault)?)
            }
            Ok(opened) => (found, opened),
        };
        let fresh = Duration::from_millis(opened.greeting().card.cache.ttl_ms);
        self.memory().learn(found, fresh, self.started.elapsed());
        Ok(opened)
    }

    /// What is left to be tried with a server that does not shake hands.
    fn other_way(&self, tried: Found, fault: &Fault) -> Option<Found> {
        let knows_nothing_of_it =
            matches!(fault.kind, FaultKind::UnsupportedVersion | FaultKind::MethodNotFound);
        match &self.way {
            _ if tried != Found::Handshake => None,
            Way::Http(_) if suggests_older(fault) => Some(Found::OldSse),
            _ if self.pinned.is_some() => None,
            // It took its time to start, and so was silent when it was asked.
            _ if knows_nothing_of_it && self.profile.dialect.stateless => {
                Some(Found::Stateless(Revision::newest(Era::Stateless).rules()))
            }
            _ => None,
        }
    }

    async fn begin(&self, found: Found, offer: &Offer) -> Result<Connection, Fault> {
        let transport: Box<dyn Transport> = match (&self.way, found) {
            (Way::Child(program), _) => Box::new(ChildServer::start(program).await?),
            (Way::Http(target), Found::OldSse) => Box::new(OldSseServer::new(target.clone())),
            (Way::Http(target), _) => Box::new(HttpServer::new(target.clone())),
        };
        open(transport, &self.profile, found, offer).await
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens a connection over a transport.
pub(super) async fn open(
    transport: Box<dyn Transport>,
    profile: &Arc<Profile>,
    found: Found,
    offer: &Offer,
) -> Result<Connection, Fault> {
    let opening = match found {
        Found::Stateless(rules) => Opening::Stateless { rules },
        Found::Handshake | Found::OldSse => Opening::Handshake {
            propose: proposal(profile),
            capabilities: Arc::clone(&offer.capabilities),
        },
    };
    let (on_question, on_log) = (offer.on_question.clone(), offer.on_log.clone());
    let setup = Setup::new(Arc::clone(profile), opening);
    Connection::open(transport, Setup { on_question, on_log, ..setup }).await
}

/// The newest revision that the server's dialect shakes hands in.
fn proposal(profile: &Profile) -> &'static Rules {
    let shaken = |revision: &Revision| revision.rules().era == Era::Handshake;
    let newest = profile.dialect.revisions().filter(shaken).max();
    newest.map_or(profile.dialect.base_rules(), Revision::rules)
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

/// Whether a server that is there does not want to be spoken to like this.
fn contradicts(fault: &Fault) -> bool {
    let is_absence =
        matches!(fault.kind, FaultKind::BackendUnavailable | FaultKind::Timeout | FaultKind::Busy);
    !is_absence || suggests_older(fault)
}

fn suggests_older(fault: &Fault) -> bool {
    status_of(fault).is_some_and(suggests_sse)
}
