//! The sessions of one upstream: opens and pools its connections, and decides which session a call uses.

pub(crate) mod active_calls;
pub(crate) mod affinity;
pub(crate) mod capabilities;
pub(crate) mod connector;
pub(crate) mod inspected_connection;
pub(crate) mod pool;
pub(crate) mod session_client;
pub(crate) mod session_key;

use std::sync::{Arc, OnceLock};

use creole::Context;
use creole::internal::call::ClientSession;
use creole::proto::client::Profile;
use creole::proto::model::{ClientCapabilities, Implementation};
use creole::proto::revision::Era;
use creole::proto::wire::Raw;
use tokio::sync::watch;

use crate::upstream::connections::capabilities::caller_capabilities;
use crate::upstream::connections::connector::UpstreamConnector;
use crate::upstream::connections::pool::{EvictParkedCall, UpstreamPool};
use crate::upstream::settings::UpstreamSettings;
use crate::upstream::upstream_metrics::UpstreamMetrics;

/// The sessions of one upstream: the gateway's own one, and those of callers.
pub(crate) struct UpstreamSessions {
    pub(super) settings: Arc<UpstreamSettings>,
    pub(super) connector: Arc<UpstreamConnector>,
    pub(super) pool: Arc<UpstreamPool>,
    /// What the gateway's own session declares: nothing, or the capabilities of the only caller.
    gateway_capabilities: OnceLock<Arc<ClientCapabilities>>,
    /// The era of the only caller, once it is known.
    only_era: OnceLock<Era>,
    /// The session of the only caller, once it is known.
    only_session: OnceLock<ClientSession>,
    /// The capabilities of a caller that accepts no input requests.
    no_capabilities: Arc<ClientCapabilities>,
    /// Its metrics, if metrics are counted.
    pub(super) metrics: Option<Arc<UpstreamMetrics>>,
    /// Signals that the upstream has changed its era and that its old sessions are retired.
    era_changed: watch::Sender<()>,
}

impl UpstreamSessions {
    /// No sessions yet. A caller that needs a connection may evict one of its parked calls.
    pub(super) fn new(
        settings: Arc<UpstreamSettings>,
        parked_calls: Arc<dyn EvictParkedCall>,
        metrics: Option<Arc<UpstreamMetrics>>,
    ) -> Self {
        let identity = Implementation {
            name: "creole".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..Implementation::default()
        };
        let profile = Arc::new(Profile {
            dialect: settings.dialect.clone(),
            identity: Raw::from_value(&identity),
            limits: settings.limits,
            extensions: Vec::new(),
        });
        let mut connector =
            UpstreamConnector::new(settings.address.clone(), settings.revisions, profile);
        connector.detects_dialect = settings.detects_dialect;
        connector.metrics.clone_from(&metrics);
        connector.propagates_trace = settings.propagation.is_enabled;
        let connector = Arc::new(connector);
        let limits = (settings.max_sessions, settings.max_sessions_per_caller());
        Self {
            pool: UpstreamPool::new(Arc::clone(&connector), parked_calls, limits),
            connector,
            gateway_capabilities: OnceLock::new(),
            only_era: OnceLock::new(),
            only_session: OnceLock::new(),
            no_capabilities: Arc::default(),
            metrics,
            era_changed: watch::Sender::new(()),
            settings,
        }
    }

    /// Records the only caller. The gateway's own session has its era and declares its capabilities.
    pub(super) fn set_only_caller(&self, context: &Context) {
        // A client of the stateless era declares its capabilities with each call, and they may differ each time.
        let stays = context.session_name().is_some();
        let capabilities = match self.settings.interactive && stays {
            true => caller_capabilities(context),
            false => Arc::default(),
        };
        _ = self.gateway_capabilities.set(capabilities);
        if let Some(session) = context.client_session() {
            _ = self.only_session.set(session);
        }
        _ = self.only_era.set(context.caller().rules.era);
    }

    /// Retires the sessions of an era that the upstream no longer uses.
    pub(super) fn retire_era(&self, era: Era) {
        if self.pool.retire_era(era) {
            self.era_changed.send_replace(());
        }
    }

    /// Changes when the upstream has changed its era.
    pub(super) fn era_changes(&self) -> watch::Receiver<()> {
        self.era_changed.subscribe()
    }
}
