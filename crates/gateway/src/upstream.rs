//! An upstream as an endpoint: forwards calls to another server and translates between its era and the caller's.
//!
//! An upstream of the handshake era sends input requests during a call. A caller of that era receives them as they are.
//! A caller of the stateless era receives them as the outcome of its call, and the upstream call is parked
//! meanwhile. An upstream of the stateless era ends its call with input requests. For callers of the handshake era,
//! [`creole::input`] sends them and then repeats the call.

mod collect;
pub(crate) mod connections;
mod forward;
mod inspect;
mod lists;
mod observed_request;
mod observed_start;
mod park;
mod phase_history;
mod relay;
pub(crate) mod settings;
pub(crate) mod startup;
mod status;
#[cfg(test)]
mod tests;
pub(crate) mod upstream_metrics;

pub use crate::upstream::connections::connector::detect_dialect;
pub use crate::upstream::connections::inspected_connection::InspectedConnection;
pub use crate::upstream::settings::{
    Affinity, NameError, Naming, RevisionChoice, SettingsOrigin, UpstreamSettings,
};
pub use creole::client::Address;
pub use phase_history::{PhaseChange, UpstreamPhase};
pub use status::{ListStatus, UpstreamError, UpstreamServer, UpstreamState, UpstreamStatus};

use std::sync::{Arc, Weak};
use std::time::Duration;

use creole::internal::call::ConnectionId;
use creole::internal::chain::{BreakerStatus, Endpoint};
use creole::internal::registry::ItemSource;
use creole::internal::sync::Mutex;
use creole::internal::telemetry::metrics::CollectorGuard;
use creole::proto::fault::Fault;
use creole::proto::operation::Outcome;
use creole::{BoxFuture, Call, Context, Registry};

use crate::upstream::connections::UpstreamSessions;
use crate::upstream::forward::CallForwarder;
use crate::upstream::lists::{UpstreamLists, list_sync};
use crate::upstream::park::ParkedCalls;
use crate::upstream::startup::{Startup, StartupStatus};
use crate::upstream::status::{StatusData, excluded_line, fault_message};
use crate::upstream::upstream_metrics::UpstreamMetrics;

/// Where an upstream is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamLocation {
    /// The file name of a program.
    Program(String),
    /// A URL without credentials and query.
    Url(String),
}

/// A server that the gateway forwards to.
pub struct Upstream {
    settings: Arc<UpstreamSettings>,
    startup: Arc<Startup>,
    sessions: Arc<UpstreamSessions>,
    lists: Arc<UpstreamLists>,
    forwarder: CallForwarder,
    /// Reports its state to the metrics, while it is in use.
    collector: Mutex<Option<CollectorGuard>>,
}

impl Upstream {
    /// Starts an upstream. The registry lists its items as soon as it is ready.
    pub fn start(settings: UpstreamSettings, registry: &Registry, is_alone: bool) -> Arc<Self> {
        let upstream = Self::new(registry.add_source(), settings, is_alone);
        upstream.start_metrics();
        if upstream.startup.is_queued() {
            upstream.startup.start_now();
        }
        upstream
    }

    /// An upstream that is not started yet. This source of a registry lists its items as soon as it is ready.
    pub(crate) fn new(
        source: ItemSource,
        mut settings: UpstreamSettings,
        is_alone: bool,
    ) -> Arc<Self> {
        source.set_name(settings.address.name());
        let metrics = UpstreamMetrics::attach(&mut settings);
        let settings = Arc::new(settings);
        let parked_calls = ParkedCalls::new(
            settings.input_timeout,
            settings.max_parked_calls,
            settings.replicas.clone(),
            &settings.telemetry,
        );
        let sessions = Arc::new(UpstreamSessions::new(
            Arc::clone(&settings),
            Arc::clone(&parked_calls) as _,
            metrics,
        ));
        let startup = Arc::new(Startup::new(Arc::clone(&settings)));
        let upstream = Arc::new_cyclic(|this: &Weak<Self>| {
            let lists = UpstreamLists::new(
                (source, is_alone),
                Arc::clone(&sessions),
                Arc::clone(&startup),
                Weak::clone(this) as _,
            );
            let forwarder =
                CallForwarder::new(Arc::clone(&sessions), Arc::clone(&lists), parked_calls);
            Self { settings, startup, sessions, lists, forwarder, collector: Mutex::default() }
        });
        tokio::spawn(list_sync::run_list_sync(Arc::downgrade(&upstream.lists)));
        upstream
    }

    /// Reports its state to the metrics from now on, if metrics are counted.
    pub(crate) fn start_metrics(self: &Arc<Self>) {
        let Some(metrics) = &self.sessions.metrics else { return };
        let upstream = Arc::downgrade(self);
        let guard = metrics.metrics().on_collect(move |values| {
            if let Some(upstream) = upstream.upgrade() {
                upstream.collect(values);
            }
        });
        *self.collector.lock() = Some(guard);
    }

    /// Reports its state no longer: it is not part of the gateway any more.
    pub(crate) fn stop_metrics(&self) {
        drop(self.collector.lock().take());
    }

    /// The name of the upstream in messages.
    pub fn name(&self) -> &str {
        self.settings.name()
    }

    /// The patterns of its layers that have matched none of its items so far, as messages.
    pub fn unmatched_patterns(&self) -> Vec<String> {
        self.settings.chain.unmatched_patterns()
    }

    /// Whether the upstream is ready.
    pub fn is_ready(&self) -> bool {
        self.startup.is_ready()
    }

    /// Waits until the upstream is ready or has failed, at most for its startup timeout.
    pub async fn wait_until_ready(&self, context: &Context) -> Result<(), Fault> {
        if self.is_ready() {
            return Ok(());
        }
        self.start_for_caller(context);
        self.startup.wait_until_ready().await
    }

    /// Lets the next attempt to connect begin soon, because the reason of the last failure may be gone.
    pub fn end_backoff(&self) {
        self.sessions.connector.end_backoff();
    }

    /// Starts an upstream that waits for its only caller.
    pub(crate) fn start_for_caller(&self, context: &Context) {
        if self.startup.waits_for_caller() {
            self.sessions.set_only_caller(context);
            self.startup.start_now();
        }
    }

    /// Its startup.
    pub(crate) fn startup(&self) -> &Startup {
        &self.startup
    }

    /// Its lists.
    pub(crate) fn lists(&self) -> &Arc<UpstreamLists> {
        &self.lists
    }

    /// The state of this upstream now.
    pub fn status(&self) -> UpstreamStatus {
        let StatusData { revision, declared, latency, last_error, .. } = self.lists.status_data();
        UpstreamStatus {
            name: self.name().to_owned(),
            state: match &*self.startup.status() {
                StartupStatus::Starting if self.startup.since().is_none() => UpstreamState::Waiting,
                StartupStatus::Starting => UpstreamState::Starting,
                StartupStatus::Ready => UpstreamState::Ready,
                StartupStatus::Failed(fault) => {
                    UpstreamState::Failed(self.settings.with_address(&fault_message(fault)))
                }
            },
            transport: self.transport(),
            revision,
            lists: declared.into_iter().map(|kind| self.lists.list_status(kind)).collect(),
            excluded: self.lists.excluded().iter().map(excluded_line).collect(),
            excluded_items: self.lists.excluded(),
            latency,
            last_error: last_error.map(|error| UpstreamError {
                message: self.settings.with_address(&error.message),
                stderr: error.stderr,
            }),
        }
    }

    /// Closes all connections to the upstream, stops its program, and connects again soon.
    pub async fn restart(&self) {
        self.sessions.pool.close_connections().await;
        self.end_backoff();
    }

    /// Asks the upstream whether it responds. One that is not connected is connected to, also before the planned time.
    ///
    /// # Errors
    /// When it does not respond.
    pub async fn probe(&self) -> Result<(), Fault> {
        self.end_backoff();
        self.sessions.gateway_connection().await?.ping().await
    }

    /// After what time the next attempt to connect begins, if the last one failed.
    pub fn next_start(&self) -> Option<Duration> {
        self.sessions.connector.next_start()
    }

    /// The state of its circuit breaker, if it has one.
    pub fn breaker_status(&self) -> Option<BreakerStatus> {
        self.settings.chain.breaker_status()
    }

    /// Lets calls pass its circuit breakers again. Returns whether it has one.
    pub fn reset_breakers(&self) -> bool {
        self.settings.chain.reset_breakers()
    }

    /// The program without its arguments, or the address without credentials and query.
    pub fn location(&self) -> UpstreamLocation {
        match &self.settings.address {
            Address::Child(program) => {
                let file = std::path::Path::new(&program.command).file_name();
                let file = file.unwrap_or(&program.command);
                UpstreamLocation::Program(file.to_string_lossy().into_owned())
            }
            Address::Http(target) => {
                let url = target.url();
                let host = url.host().unwrap_or_default();
                let port = url.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
                let scheme = url.scheme_str().unwrap_or("http");
                UpstreamLocation::Url(format!("{scheme}://{host}{port}{}", url.path()))
            }
        }
    }

    /// The parked calls: the digest of the id, and who called.
    pub fn parked_calls(&self) -> Vec<(String, String)> {
        self.forwarder.parked_calls.list()
    }

    /// Ends the parked call with this digest; whether there was one.
    pub fn end_parked_call(&self, digest: &str) -> bool {
        self.forwarder.parked_calls.end(digest)
    }

    fn transport(&self) -> &'static str {
        match self.settings.address {
            Address::Child(_) => "stdio",
            Address::Http(_) => "http",
        }
    }

    /// Closes all connections to the upstream gracefully. Parked calls are left to other replicas.
    pub async fn close(&self) {
        self.forwarder.parked_calls.hand_over().await;
        self.sessions.pool.close().await;
    }

    /// Lists its items in another source of a registry from now on.
    pub(crate) fn move_to(&self, source: ItemSource) {
        self.lists.move_to(source);
    }

    /// Whether a restart with these settings would change nothing.
    pub(crate) fn is_equivalent(&self, settings: &UpstreamSettings, is_alone: bool) -> bool {
        self.lists.is_single() == is_alone && self.settings.is_equivalent(settings)
    }
}

impl Endpoint for Upstream {
    fn call(&self, call: Call) -> BoxFuture<'_, Outcome> {
        Box::pin(async move { without_trace(self.forwarder.answer_call(&call).await) })
    }

    fn call_owned(self: Arc<Self>, call: Call) -> BoxFuture<'static, Outcome> {
        Box::pin(async move { without_trace(self.forwarder.answer_call(&call).await) })
    }

    fn subscription_ended(&self, uri: &str, connection: ConnectionId) {
        self.lists.release_subscription(uri, connection);
    }
}

/// Removes the standard error output of an upstream program from an outcome. It is for the operator and may contain
/// secrets.
fn without_trace(mut outcome: Outcome) -> Outcome {
    if let Outcome::Fail(fault) = &mut outcome {
        fault.trace = None;
    }
    outcome
}
