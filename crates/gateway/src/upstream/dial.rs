//! Opening conversations with a server, and when one that failed may be tried again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use creole::client::{Connection, Dialer as Client, Found, Offer, Way};
use creole::process::{Restarts, Verdict};
use creole::proto::client::Profile;
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::revision::{Era, Rules};
use tokio::time::Instant;

/// Which conversation a server is offered.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Speak {
    /// What it turns out to speak, the newest first.
    #[default]
    Detect,
    /// This revision.
    Revision(&'static Rules),
}

impl Speak {
    fn found(self) -> Option<Found> {
        match self {
            Self::Detect => None,
            Self::Revision(rules) if rules.era == Era::Stateless => Some(Found::Stateless(rules)),
            Self::Revision(_) => Some(Found::Handshake),
        }
    }
}

/// Opens conversations with one server.
pub(super) struct Dialer {
    client: Client,
    began: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    restarts: Restarts,
    /// Why it last failed.
    failure: Option<Fault>,
}

impl Dialer {
    pub(super) fn new(way: Way, speak: Speak, profile: Arc<Profile>) -> Self {
        let mut client = Client::new(way, profile);
        if let Some(found) = speak.found() {
            client = client.pinned(found);
        }
        Self { client, began: Instant::now(), state: Mutex::default() }
    }

    pub(super) fn name(&self) -> &str {
        self.client.way().name()
    }

    /// Whether requests stand alone, so that one conversation serves everybody; nothing while nobody knows.
    pub(super) fn is_stateless(&self) -> Option<bool> {
        self.client.known().map(|found| matches!(found, Found::Stateless(_)))
    }

    /// Whether questions say which call they belong to: those that come on the call's own stream do.
    pub(super) fn attributes_questions(&self) -> bool {
        matches!(self.client.way(), Way::Http(_)) && self.client.known() != Some(Found::OldSse)
    }

    /// Opens a conversation, unless the server failed a moment ago.
    pub(super) async fn open(&self, offer: &Offer) -> Result<Connection, Fault> {
        self.may_start()?;
        let opened = self.client.connect(offer).await;
        match &opened {
            Ok(_) => {
                let now = self.began.elapsed();
                let mut state = self.lock();
                state.restarts.started(now);
                state.failure = None;
            }
            Err(fault) => self.failed(fault),
        }
        opened
    }

    /// Fails at once while a server that failed may not be tried again.
    fn may_start(&self) -> Result<(), Fault> {
        let state = self.lock();
        let verdict = state.restarts.verdict(self.began.elapsed());
        let Verdict::Wait(wait) = verdict else { return Ok(()) };
        let seconds = wait.as_secs() + 1;
        let why = state.failure.as_ref().map_or("it ended", |fault| &fault.detail);
        let name = self.name();
        let detail = format!("{name} is not available ({why}); it is tried again in {seconds} s");
        Err(Fault::new(FaultKind::BackendUnavailable, detail).about(name))
    }

    /// Notes that a conversation could not be opened, or ended although nobody wanted it to.
    pub(super) fn failed(&self, fault: &Fault) {
        let now = self.began.elapsed();
        let dice = u64::from(now.subsec_nanos());
        let mut state = self.lock();
        state.restarts.ended(now, dice);
        state.failure = Some(fault.clone());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
