//! Opens connections to an upstream and applies backoff after failures.

use creole::internal::sync::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, MutexGuard, OnceLock};
use std::time::Duration;

use creole::client::Address;
use creole::internal::client::{
    ClientOffer, Connection, ConnectionSetup, Connector as Client, ResumedServer, may_be_wrong_era,
};
use creole::internal::process::{RestartDecision, RestartPolicy};
use creole::proto::client::{OpenMode, Profile};
use creole::proto::dialect::{BUILTIN_NAMES, Dialect, VersionPolicy, builtin};
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::revision::{Era, Rules};
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;

use crate::upstream::connections::session_key::SessionOwner;
use crate::upstream::observed_start::ObservedStart;
use crate::upstream::settings::RevisionChoice;
use crate::upstream::upstream_metrics::UpstreamMetrics;

/// The maximum number of callers whose failures are remembered.
const MAX_OWNERS: usize = 1024;

/// The minimum time between two era probes of an upstream. Without it, each call could trigger one.
const ERA_PROBE_INTERVAL: Duration = Duration::from_secs(10);

/// Opens connections to one upstream.
pub(crate) struct UpstreamConnector {
    configured: DialectClient,
    /// The detected dialect, if it differs from the configured one.
    detected: OnceLock<DialectClient>,
    /// Whether the dialect may be detected.
    pub(crate) detects_dialect: bool,
    /// Counts the attempts to connect, if metrics are counted.
    pub(crate) metrics: Option<Arc<UpstreamMetrics>>,
    /// Whether a program that is started gets the span of its start.
    pub(crate) propagates_trace: bool,
    revisions: RevisionChoice,
    created: Instant,
    failures: Mutex<ConnectionFailures>,
    /// How often it tried to open a connection.
    attempts: AtomicU32,
}

/// A dialect, and the connector that uses it.
struct DialectClient {
    client: Client,
    profile: Arc<Profile>,
    /// The time of the last era probe. Held during a probe.
    last_probe: AsyncMutex<Option<Instant>>,
}

impl DialectClient {
    fn new(address: Address, choice: RevisionChoice, profile: Arc<Profile>) -> Self {
        let client = Client::new(address, Arc::clone(&profile));
        let client = match choice {
            RevisionChoice::Revision(rules) => client.pin_revision(rules),
            RevisionChoice::Detect => client,
        };
        Self { client, profile, last_probe: AsyncMutex::default() }
    }
}

/// Connection failures. A failure to start counts for all callers, an unexpected end only for the owner of the session.
#[derive(Default)]
struct ConnectionFailures {
    start_failures: FailureState,
    session_failures: HashMap<SessionOwner, FailureState>,
}

#[derive(Default)]
struct FailureState {
    restarts: RestartPolicy,
    /// The last failure.
    failure: Option<Fault>,
}

impl FailureState {
    fn fail(&mut self, now: Duration, fault: &Fault) {
        self.restarts.record_end(now, u64::from(now.subsec_nanos()));
        self.failure = Some(fault.clone());
    }

    fn start(&mut self, now: Duration) {
        self.restarts.record_start(now);
        self.failure = None;
    }

    fn is_waiting(&self, now: Duration) -> bool {
        self.restarts.decide(now) != RestartDecision::Start
    }
}

impl ConnectionFailures {
    /// The failures of one owner's connections. Owners that may start again anyway are evicted first.
    fn for_owner(&mut self, owner: &SessionOwner, now: Duration) -> &mut FailureState {
        if self.session_failures.len() >= MAX_OWNERS && !self.session_failures.contains_key(owner) {
            self.session_failures.retain(|_, state| state.is_waiting(now));
        }
        if self.session_failures.len() >= MAX_OWNERS && !self.session_failures.contains_key(owner) {
            // This many failing owners indicate a failure of the upstream itself.
            return &mut self.start_failures;
        }
        self.session_failures.entry(owner.clone()).or_default()
    }
}

impl UpstreamConnector {
    pub(crate) fn new(address: Address, choice: RevisionChoice, profile: Arc<Profile>) -> Self {
        let (started, failures) = (Instant::now(), Mutex::default());
        let told = DialectClient::new(address, choice, profile);
        Self {
            configured: told,
            detected: OnceLock::new(),
            detects_dialect: false,
            metrics: None,
            propagates_trace: true,
            revisions: choice,
            created: started,
            failures,
            attempts: AtomicU32::new(0),
        }
    }

    /// After what time the next attempt to connect may begin. `None`: at once.
    pub(crate) fn next_start(&self) -> Option<Duration> {
        let now = self.created.elapsed();
        match self.lock().start_failures.restarts.decide(now) {
            RestartDecision::Wait(wait) => Some(wait),
            RestartDecision::Start => None,
        }
    }

    fn dialect_client(&self) -> &DialectClient {
        self.detected.get().unwrap_or(&self.configured)
    }

    fn client(&self) -> &Client {
        &self.dialect_client().client
    }

    pub(crate) fn name(&self) -> &str {
        self.client().address().name()
    }

    /// The era that the gateway uses for a caller of this era: its own, unless the upstream is known to lack it.
    pub(crate) fn era_for(&self, caller: Era) -> Era {
        self.client().supported_eras().era_for(caller).unwrap_or(caller)
    }

    /// Records that the upstream lacks an era, as an open connection shows.
    pub(crate) fn note_missing_era(&self, era: Era) {
        self.client().mark_era_missing(era);
    }

    /// Whether the upstream has changed its era, as an error response suggests. This is possible only if the upstream
    /// can be replaced without the connection noticing.
    pub(crate) async fn detect_era_change(&self, fault: &Fault, era: Era) -> bool {
        if !may_be_wrong_era(fault) || !matches!(self.client().address(), Address::Http(_)) {
            return false;
        }
        let mut asked = self.dialect_client().last_probe.lock().await;
        // Another call has detected the change meanwhile.
        if self.client().supported_eras().supports(era) == Some(false) {
            return true;
        }
        if asked.is_some_and(|at| at.elapsed() < ERA_PROBE_INTERVAL) {
            return false;
        }
        *asked = Some(Instant::now());
        self.client().recheck_era(era, fault).await.is_ok_and(|speaks| !speaks)
    }

    /// Whether input requests identify their call: those on the call's own stream do.
    pub(crate) fn attributes_input_requests(&self) -> bool {
        matches!(self.client().address(), Address::Http(_)) && !self.client().is_legacy_sse()
    }

    /// Opens a connection for a caller of this era, unless a failure is too recent. It uses the other era if the
    /// upstream lacks the caller's.
    pub(crate) async fn open(
        &self,
        offer: &ClientOffer,
        owner: &SessionOwner,
        caller: Era,
    ) -> Result<Connection, Fault> {
        self.check_may_start(owner)?;
        let attempt = self.attempts.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let start = ObservedStart::begin(self.name(), attempt);
        let environment = start.as_ref().filter(|_| self.propagates_trace);
        let environment = environment.map(ObservedStart::environment).unwrap_or_default();
        let on_violation = self.metrics.as_ref().map(UpstreamMetrics::on_violation);
        let offer = ClientOffer { on_violation, environment, ..offer.clone() };
        let opened = self.connect(&offer, caller).await;
        if let Some(start) = start {
            start.end(&opened);
        }
        if let Some(metrics) = &self.metrics {
            metrics.connection_opened(&opened, *owner == SessionOwner::Gateway);
        }
        let now = self.created.elapsed();
        let mut failures = self.lock();
        match &opened {
            Ok(_) => {
                failures.start_failures.start(now);
                failures.for_owner(self.failure_owner(owner), now).start(now);
            }
            Err(fault) => failures.start_failures.fail(now, fault),
        }
        opened
    }

    /// Opens a connection that continues a call of another replica, under the request id that the upstream has.
    pub(crate) async fn resume_session(
        &self,
        resumed: ResumedServer,
        rules: &'static Rules,
        number: u64,
        offer: &ClientOffer,
    ) -> Result<Connection, Fault> {
        let capabilities = Arc::clone(&offer.capabilities);
        let mode = OpenMode::Handshake { proposed_rules: rules, capabilities };
        let setup = ConnectionSetup {
            on_input_request: offer.on_input_request.clone(),
            on_log: offer.on_log.clone(),
            // The id before it belongs to the handshake.
            after_id: number.saturating_sub(2),
            ..ConnectionSetup::new(Arc::clone(&self.dialect_client().profile), mode)
        };
        Connection::open(Box::new(resumed), setup).await
    }

    /// Opens a connection by the specification, or in the dialect that is detected.
    async fn connect(&self, offer: &ClientOffer, caller: Era) -> Result<Connection, Fault> {
        let may_guess = self.detects_dialect && self.detected.get().is_none();
        let connected = self.connect_as(self.dialect_client(), offer, caller).await;
        let guessed = connected.as_ref().err().filter(|_| may_guess).and_then(detect_dialect);
        let Some(dialect) = guessed else { return connected };
        let (upstream, spoken) = (self.name(), dialect.name.clone());
        let message = "the upstream deviates from the specification; using the detected dialect";
        tracing::warn!(target: "creole", upstream, dialect = %spoken, "{message}");
        let profile = Arc::new(Profile { dialect, ..(*self.configured.profile).clone() });
        let address = self.configured.client.address().clone();
        let client =
            self.detected.get_or_init(|| DialectClient::new(address, self.revisions, profile));
        self.connect_as(client, offer, caller).await
    }

    async fn connect_as(
        &self,
        client: &DialectClient,
        offer: &ClientOffer,
        caller: Era,
    ) -> Result<Connection, Fault> {
        #[cfg(test)]
        if let Some(connecting) = in_process::connect(self, &client.profile, offer) {
            return connecting.await;
        }
        client.client.connect_in(caller, offer).await
    }

    /// Fails immediately during the backoff after a failure.
    fn check_may_start(&self, owner: &SessionOwner) -> Result<(), Fault> {
        let (failures, now) = (self.lock(), self.created.elapsed());
        let own = failures.session_failures.get(self.failure_owner(owner));
        for state in [Some(&failures.start_failures), own].into_iter().flatten() {
            let RestartDecision::Wait(wait) = state.restarts.decide(now) else { continue };
            let seconds = wait.as_secs() + 1;
            let reason = state.failure.as_ref().map_or("it exited", |fault| &fault.detail);
            let name = self.name();
            let detail =
                format!("`{name}` is not available ({reason}); the next attempt is in {seconds} s");
            return Err(Fault::new(FaultKind::BackendUnavailable, detail).with_subject(name));
        }
        Ok(())
    }

    /// Ends the backoff after failures to start.
    pub(crate) fn end_backoff(&self) {
        self.lock().start_failures = FailureState::default();
    }

    /// Records that a connection of this owner ended unexpectedly.
    pub(crate) fn record_failure(&self, fault: &Fault, owner: &SessionOwner) {
        let now = self.created.elapsed();
        self.lock().for_owner(self.failure_owner(owner), now).fail(now, fault);
    }

    /// The owner that a failure counts for: a program belongs to its caller, a remote server to all callers.
    fn failure_owner<'a>(&self, owner: &'a SessionOwner) -> &'a SessionOwner {
        match self.client().address() {
            Address::Http(_) => &SessionOwner::Gateway,
            _ => owner,
        }
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionFailures> {
        self.failures.lock()
    }
}

/// The dialect of the version that an upstream named when it refused ours.
pub fn detect_dialect(fault: &Fault) -> Option<Dialect> {
    let supported = fault.data.as_ref().filter(|_| fault.kind == FaultKind::UnsupportedVersion)?;
    let supported: serde_json::Value = supported.decode().ok()?;
    let version = supported["supported"][0].as_str()?;
    BUILTIN_NAMES
        .iter()
        .filter_map(|name| builtin(name))
        .find(|dialect| matches!(&dialect.version, VersionPolicy::Fixed(fixed) if fixed == version))
}

/// In-process servers for tests.
#[cfg(test)]
pub(crate) mod in_process {
    use creole::internal::sync::Mutex;
    use std::collections::HashMap;
    use std::sync::Arc;

    use creole::BoxFuture;
    use creole::client::LineServer;
    use creole::internal::client::{ClientOffer, Connection, ConnectionSetup};
    use creole::proto::client::{OpenMode, Profile};
    use creole::proto::fault::Fault;
    use creole::proto::revision::Rules;
    use creole::stream::{MemoryConnection, memory_pair};

    type ServeFn = Arc<dyn Fn(MemoryConnection) + Send + Sync>;

    static SERVERS: Mutex<Option<HashMap<String, ServeFn>>> = Mutex::new(None);

    /// Registers a function that serves each connection to the server of this name.
    pub(crate) fn register<F: Future<Output = ()> + Send + 'static>(
        name: &str,
        serve: fn(MemoryConnection) -> F,
    ) {
        let serve: ServeFn = Arc::new(move |end| drop(tokio::spawn(serve(end))));
        let mut servers = SERVERS.lock();
        servers.get_or_insert_default().insert(name.to_owned(), serve);
    }

    /// Opens a connection to the server, if it is in this process.
    pub(crate) fn connect(
        connector: &super::UpstreamConnector,
        profile: &Arc<Profile>,
        offer: &ClientOffer,
    ) -> Option<BoxFuture<'static, Result<Connection, Fault>>> {
        let servers = SERVERS.lock();
        let name = connector.name().to_owned();
        let serve = Arc::clone(servers.as_ref()?.get(&name)?);
        let capabilities = Arc::clone(&offer.capabilities);
        // They use the handshake, unless the test sets another mode.
        let mode = match connector.revisions {
            super::RevisionChoice::Revision(rules) if !rules.has_handshake() => {
                OpenMode::Stateless { rules }
            }
            _ => OpenMode::Handshake { proposed_rules: Rules::NEWEST_HANDSHAKE, capabilities },
        };
        let (on_input_request, on_log) = (offer.on_input_request.clone(), offer.on_log.clone());
        let setup = ConnectionSetup {
            on_input_request,
            on_log,
            ..ConnectionSetup::new(Arc::clone(profile), mode)
        };
        Some(Box::pin(async move {
            let (local, remote) = memory_pair();
            serve(remote);
            let (input, output) = local.split();
            Connection::open(Box::new(LineServer::new(name, input, output)), setup).await
        }))
    }
}

#[cfg(test)]
mod tests {
    use creole::proto::wire::Raw;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_version_of_its_own_identifies_the_dialect() {
        let fault = Fault::new(FaultKind::UnsupportedVersion, "no");
        assert_eq!(detect_dialect(&fault).map(|dialect| dialect.name), None);
        let with_version = |version: &str| {
            fault.clone().with_data(Raw::from_value(&json!({"supported": [version]})))
        };
        assert_eq!(detect_dialect(&with_version("1.0")).unwrap().name, "bb-mcp-server");
        assert_eq!(detect_dialect(&with_version("7.0")).map(|dialect| dialect.name), None);
    }
}
