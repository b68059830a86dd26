//! Opening conversations with a server, and when one that failed may be tried again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use creole::client::http::ResumedServer;
use creole::client::{
    Address, ClientOffer, Connection, ConnectionSetup, Connector as Client, DetectedEra,
    may_be_wrong_era,
};
use creole::process::{RestartDecision, RestartPolicy};
use creole::proto::client::{OpenMode, Profile};
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::revision::{Era, Rules};
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;

use super::guess;
use super::pool::Owner;

/// Which conversation a server is offered.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Speak {
    /// What it turns out to speak: the era of the caller that a connection is for, if the server has it.
    #[default]
    Detect,
    /// This revision.
    Revision(&'static Rules),
}

/// The most callers whose failures are remembered.
const MOST_OWNERS: usize = 1024;

/// How long a server that was asked anew how it wants to be spoken to is not asked again: whoever calls it could have
/// it asked each time.
const SETTLED: Duration = Duration::from_secs(10);

/// Opens conversations with one server.
pub(super) struct Dialer {
    told: Tongue,
    /// What it turned out to speak instead.
    guessed: OnceLock<Tongue>,
    /// Whether that may be found out.
    pub(super) guesses: bool,
    speak: Speak,
    began: Instant,
    failures: Mutex<Failures>,
}

/// A dialect, and whoever speaks to the server in it.
struct Tongue {
    client: Client,
    profile: Arc<Profile>,
    /// When the server was asked anew how it wants to be spoken to; held meanwhile.
    asked: AsyncMutex<Option<Instant>>,
}

impl Tongue {
    fn new(way: Address, speak: Speak, profile: Arc<Profile>) -> Self {
        let client = Client::new(way, Arc::clone(&profile));
        let client = match speak {
            Speak::Revision(rules) => client.pin_revision(rules),
            Speak::Detect => client,
        };
        Self { client, profile, asked: AsyncMutex::default() }
    }
}

/// Who failed: what cannot be started is so for everybody; what ended is so for the one whose it was.
#[derive(Default)]
struct Failures {
    starts: State,
    ends: HashMap<Owner, State>,
}

#[derive(Default)]
struct State {
    restarts: RestartPolicy,
    /// Why it last failed.
    failure: Option<Fault>,
}

impl State {
    fn fail(&mut self, now: Duration, fault: &Fault) {
        self.restarts.record_end(now, u64::from(now.subsec_nanos()));
        self.failure = Some(fault.clone());
    }

    fn start(&mut self, now: Duration) {
        self.restarts.record_start(now);
        self.failure = None;
    }

    fn waits(&self, now: Duration) -> bool {
        self.restarts.decide(now) != RestartDecision::Start
    }
}

impl Failures {
    /// The failures of one caller's conversations. Those of callers that may start anyway are forgotten first.
    fn of(&mut self, owner: &Owner, now: Duration) -> &mut State {
        if self.ends.len() >= MOST_OWNERS && !self.ends.contains_key(owner) {
            self.ends.retain(|_, state| state.waits(now));
        }
        if self.ends.len() >= MOST_OWNERS && !self.ends.contains_key(owner) {
            // So many at once are the server's own failures.
            return &mut self.starts;
        }
        self.ends.entry(owner.clone()).or_default()
    }
}

impl Dialer {
    pub(super) fn new(way: Address, speak: Speak, profile: Arc<Profile>) -> Self {
        let (began, failures) = (Instant::now(), Mutex::default());
        let told = Tongue::new(way, speak, profile);
        Self { told, guessed: OnceLock::new(), guesses: false, speak, began, failures }
    }

    fn tongue(&self) -> &Tongue {
        self.guessed.get().unwrap_or(&self.told)
    }

    fn client(&self) -> &Client {
        &self.tongue().client
    }

    pub(super) fn name(&self) -> &str {
        self.client().address().name()
    }

    /// The era that a caller of this era is served in: its own, unless the server is known to lack it.
    pub(super) fn era_for(&self, caller: Era) -> Era {
        self.client().supported_eras().era_for(caller).unwrap_or(caller)
    }

    /// Notes that the server does not speak an era, as an open connection shows.
    pub(super) fn lacks(&self, era: Era) {
        self.client().mark_era_missing(era);
    }

    /// Whether a server that answered a call like this turns out to be of another era than the conversation. That can
    /// only be where the server can become another one without the conversation noticing.
    pub(super) async fn has_changed(&self, fault: &Fault, era: Era) -> bool {
        if !may_be_wrong_era(fault) || !matches!(self.client().address(), Address::Http(_)) {
            return false;
        }
        let mut asked = self.tongue().asked.lock().await;
        // Another call found out meanwhile.
        if self.client().supported_eras().speaks(era) == Some(false) {
            return true;
        }
        if asked.is_some_and(|at| at.elapsed() < SETTLED) {
            return false;
        }
        *asked = Some(Instant::now());
        self.client().recheck_era(era, fault).await.is_ok_and(|speaks| !speaks)
    }

    /// Whether questions say which call they belong to: those that come on the call's own stream do.
    pub(super) fn attributes_questions(&self) -> bool {
        matches!(self.client().address(), Address::Http(_))
            && self.client().detected_in(Era::Handshake) != Some(DetectedEra::LegacySse)
    }

    /// Opens a conversation for a caller of this era, unless the server failed a moment ago. It is of the other era if
    /// the server lacks the caller's.
    pub(super) async fn open(
        &self,
        offer: &ClientOffer,
        owner: &Owner,
        caller: Era,
    ) -> Result<Connection, Fault> {
        self.may_start(owner)?;
        let opened = self.connect(offer, caller).await;
        let now = self.began.elapsed();
        let mut failures = self.lock();
        match &opened {
            Ok(_) => {
                failures.starts.start(now);
                failures.of(self.blamed(owner), now).start(now);
            }
            Err(fault) => failures.starts.fail(now, fault),
        }
        opened
    }

    /// Opens a conversation in which a call of another process goes on, under the number that the server knows.
    pub(super) async fn adopt(
        &self,
        resumed: ResumedServer,
        rules: &'static Rules,
        number: u64,
        offer: &ClientOffer,
    ) -> Result<Connection, Fault> {
        let capabilities = Arc::clone(&offer.capabilities);
        let opening = OpenMode::Handshake { proposed_rules: rules, capabilities };
        let setup = ConnectionSetup {
            on_input_request: offer.on_input_request.clone(),
            on_log: offer.on_log.clone(),
            // The number before is that of the opening.
            after_id: number.saturating_sub(2),
            ..ConnectionSetup::new(Arc::clone(&self.tongue().profile), opening)
        };
        Connection::open(Box::new(resumed), setup).await
    }

    /// Opens a conversation by the specification, or in the dialect that the server turns out to speak.
    async fn connect(&self, offer: &ClientOffer, caller: Era) -> Result<Connection, Fault> {
        let may_guess = self.guesses && self.guessed.get().is_none();
        let connected = self.connect_in(self.tongue(), offer, caller).await;
        let guessed = connected.as_ref().err().filter(|_| may_guess).and_then(guess);
        let Some(dialect) = guessed else { return connected };
        let (upstream, spoken) = (self.name(), dialect.name.clone());
        let told = "it does not speak by the specification, but a dialect";
        tracing::warn!(target: "creole", upstream, dialect = %spoken, "{told}");
        let profile = Arc::new(Profile { dialect, ..(*self.told.profile).clone() });
        let way = self.told.client.address().clone();
        let tongue = self.guessed.get_or_init(|| Tongue::new(way, self.speak, profile));
        self.connect_in(tongue, offer, caller).await
    }

    async fn connect_in(
        &self,
        tongue: &Tongue,
        offer: &ClientOffer,
        caller: Era,
    ) -> Result<Connection, Fault> {
        #[cfg(test)]
        if let Some(connecting) = inside::connect(self, &tongue.profile, offer) {
            return connecting.await;
        }
        tongue.client.connect_in(caller, offer).await
    }

    /// Fails at once while a server that failed may not be tried again.
    fn may_start(&self, owner: &Owner) -> Result<(), Fault> {
        let (failures, now) = (self.lock(), self.began.elapsed());
        let own = failures.ends.get(self.blamed(owner));
        for state in [Some(&failures.starts), own].into_iter().flatten() {
            let RestartDecision::Wait(wait) = state.restarts.decide(now) else { continue };
            let seconds = wait.as_secs() + 1;
            let why = state.failure.as_ref().map_or("it ended", |fault| &fault.detail);
            let name = self.name();
            let detail =
                format!("{name} is not available ({why}); it is tried again in {seconds} s");
            return Err(Fault::new(FaultKind::BackendUnavailable, detail).with_subject(name));
        }
        Ok(())
    }

    /// Notes that somebody's conversation ended although nobody wanted it to.
    pub(super) fn failed(&self, fault: &Fault, owner: &Owner) {
        let now = self.began.elapsed();
        self.lock().of(self.blamed(owner), now).fail(now, fault);
    }

    /// Whose failures those of a conversation are: a program is its caller's own, a server elsewhere is everybody's.
    fn blamed<'a>(&self, owner: &'a Owner) -> &'a Owner {
        match self.client().address() {
            Address::Http(_) => &Owner::Gateway,
            _ => owner,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Failures> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Servers of tests, which are in the same process.
#[cfg(test)]
pub(super) mod inside {
    use std::collections::HashMap;
    use std::sync::{Arc, Mutex, PoisonError};

    use creole::BoxFuture;
    use creole::client::{ClientOffer, Connection, ConnectionSetup, LineServer};
    use creole::proto::client::{OpenMode, Profile};
    use creole::proto::fault::Fault;
    use creole::proto::revision::{Era, Revision};
    use creole::transport::{MemoryConnection, memory_pair};

    type Serve = Arc<dyn Fn(MemoryConnection) + Send + Sync>;

    static SERVERS: Mutex<Option<HashMap<String, Serve>>> = Mutex::new(None);

    /// Has this serve each conversation with the server of this name.
    pub(crate) fn add<F: Future<Output = ()> + Send + 'static>(
        name: &str,
        serve: fn(MemoryConnection) -> F,
    ) {
        let serve: Serve = Arc::new(move |end| drop(tokio::spawn(serve(end))));
        let mut servers = SERVERS.lock().unwrap_or_else(PoisonError::into_inner);
        servers.get_or_insert_default().insert(name.to_owned(), serve);
    }

    /// Opens a conversation with the server, if it is in this process.
    pub(super) fn connect(
        dialer: &super::Dialer,
        profile: &Arc<Profile>,
        offer: &ClientOffer,
    ) -> Option<BoxFuture<'static, Result<Connection, Fault>>> {
        let servers = SERVERS.lock().unwrap_or_else(PoisonError::into_inner);
        let name = dialer.name().to_owned();
        let serve = Arc::clone(servers.as_ref()?.get(&name)?);
        let capabilities = Arc::clone(&offer.capabilities);
        let newest = |era| Revision::newest(era).rules();
        // They shake hands, unless the test says otherwise.
        let opening = match dialer.speak {
            super::Speak::Revision(rules) if rules.era == Era::Stateless => {
                OpenMode::Stateless { rules }
            }
            _ => OpenMode::Handshake { proposed_rules: newest(Era::Handshake), capabilities },
        };
        let (on_question, on_log) = (offer.on_input_request.clone(), offer.on_log.clone());
        let setup = ConnectionSetup {
            on_input_request: on_question,
            on_log,
            ..ConnectionSetup::new(Arc::clone(profile), opening)
        };
        Some(Box::pin(async move {
            let (ours, theirs) = memory_pair();
            serve(theirs);
            let (input, output) = ours.split();
            Connection::open(Box::new(LineServer::new(name, input, output)), setup).await
        }))
    }
}
