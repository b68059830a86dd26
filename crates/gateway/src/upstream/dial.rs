//! Opening conversations with a server: where it is, which era it speaks, and when it may be tried again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use creole::client::http::{HttpServer, OldSseServer, Target};
use creole::client::{ChildServer, Connection, OnQuestion, Setup, Transport};
use creole::process::{Program, Restarts, Verdict};
use creole::proto::client::{Opening, Profile};
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::model::ClientCapabilities;
use creole::proto::revision::{Era, Rules};
use tokio::time::Instant;

use super::era::{Found, Kind, detect};

/// Where a server is.
#[derive(Clone, Debug)]
pub enum Place {
    /// It is a program, started as our child.
    Program(Program),
    /// It is reached over HTTP.
    Http(Target),
}

impl Place {
    /// What the server is called in messages.
    pub fn name(&self) -> &str {
        match self {
            Self::Program(program) => &program.name,
            Self::Http(target) => target.name(),
        }
    }

    /// A fresh way to the server.
    pub(super) async fn transport(&self, kind: Kind) -> Result<Box<dyn Transport>, Fault> {
        Ok(match (self, kind) {
            (Self::Program(program), _) => Box::new(ChildServer::start(program).await?),
            (Self::Http(target), Kind::Usual) => Box::new(HttpServer::new(target.clone())),
            (Self::Http(target), Kind::OldSse) => Box::new(OldSseServer::new(target.clone())),
        })
    }
}

/// Which conversation a server is offered.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Speak {
    /// What it turns out to speak, the newest first.
    #[default]
    Detect,
    /// This revision.
    Revision(&'static Rules),
}

/// Opens conversations with one server.
pub(super) struct Dialer {
    place: Place,
    speak: Speak,
    profile: Arc<Profile>,
    began: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    found: Option<(Found, Instant)>,
    restarts: Restarts,
    /// Why it last failed.
    failure: Option<Fault>,
}

/// How long a server is believed to be of the older era: a wrong belief never fails, so only time ends it.
const BELIEVED: Duration = Duration::from_secs(24 * 3600);

impl Dialer {
    pub(super) fn new(place: Place, speak: Speak, profile: Arc<Profile>) -> Self {
        Self { place, speak, profile, began: Instant::now(), state: Mutex::default() }
    }

    pub(super) fn name(&self) -> &str {
        self.place.name()
    }

    /// Whether questions say which call they belong to.
    pub(super) fn attributes_questions(&self) -> bool {
        let old_sse = matches!(&self.lock().found, Some((found, _)) if found.kind == Kind::OldSse);
        matches!(self.place, Place::Http(_)) && !old_sse
    }

    /// The rules that the server speaks, as far as known.
    pub(super) async fn rules(&self) -> Result<Found, Fault> {
        if let Speak::Revision(rules) = self.speak {
            return Ok(Found { rules, kind: Kind::Usual });
        }
        if let Some(found) = self.believed() {
            return Ok(found);
        }
        let found =
            detect(&self.place, &self.profile).await.inspect_err(|fault| self.failed(fault))?;
        self.lock().found = Some((found, Instant::now()));
        Ok(found)
    }

    fn believed(&self) -> Option<Found> {
        let state = self.lock();
        let (found, since) = state.found?;
        (since.elapsed() < BELIEVED).then_some(found)
    }

    /// Opens a conversation in which the server may ask for these things.
    pub(super) async fn open(
        &self,
        capabilities: Arc<ClientCapabilities>,
        on_question: OnQuestion,
    ) -> Result<Connection, Fault> {
        self.may_start()?;
        let Found { rules, kind } = self.rules().await?;
        let opening = match rules.era {
            Era::Stateless => Opening::Stateless { rules },
            Era::Handshake => Opening::Handshake { propose: rules, capabilities },
        };
        let setup =
            Setup { profile: Arc::clone(&self.profile), opening, on_question: Some(on_question) };
        let opened = match self.place.transport(kind).await {
            Ok(transport) => Connection::open(transport, setup).await,
            Err(fault) => Err(fault),
        };
        match &opened {
            Ok(_) => {
                let now = self.began.elapsed();
                let mut state = self.lock();
                state.restarts.started(now);
                state.failure = None;
            }
            Err(fault) => {
                // What it was found to speak may have changed with the server.
                self.lock().found = None;
                self.failed(fault);
            }
        }
        opened
    }

    /// Fails at once while a server that failed may not be tried again.
    fn may_start(&self) -> Result<(), Fault> {
        let state = self.lock();
        let Verdict::Wait(wait) = state.restarts.verdict(self.began.elapsed()) else {
            return Ok(());
        };
        let seconds = wait.as_secs() + 1;
        let why = state.failure.as_ref().map_or("it ended", |fault| &fault.detail);
        let name = self.name();
        let detail = format!("{name} is not available ({why}); it is tried again in {seconds} s");
        Err(Fault::new(FaultKind::BackendUnavailable, detail).about(name))
    }

    /// Notes that a conversation ended which nobody wanted to end.
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
