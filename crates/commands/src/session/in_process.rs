//! Serves a configuration within this process, to this process alone.

use std::sync::atomic::{AtomicBool, Ordering};

use creole::client::{LineServer, Transport};
use creole::proto::dialect::Dialect;
use creole::stream::memory_pair;
use creole_config::plan::LogPlan;
use creole_config::{ConfigSource, Plan};
use creole_gateway::federation::Federation;
use creole_gateway::upstream::Affinity;
use tokio::task::JoinHandle;

use crate::args::ServeArgs;
use crate::failure::Failure;
use crate::instance::{no_export, only_server, start_instance};
use crate::target;
use crate::upstreams::{UpstreamRow, documents, report_missing};

/// A configuration that was loaded and can be served.
pub(crate) struct LoadedConfig {
    name: String,
    plan: Plan,
    is_file: bool,
}

/// A configuration that is served.
pub(super) struct InProcessServer {
    pub(super) dialect: Dialect,
    pub(super) transport: Box<dyn Transport>,
    pub(super) serving: JoinHandle<()>,
    pub(super) upstreams: ConfigUpstreams,
}

impl LoadedConfig {
    /// Loads the configuration. It may have to fetch documents, so this must not run within a runtime.
    pub(crate) fn load(wanted: &target::ConfigTarget<'_>) -> Result<Self, Failure> {
        let plan = Plan::load(wanted.source, &creole_config::packs())?;
        let plan = match wanted.server {
            Some(name) => only_server(&plan, name)?,
            None if plan.other_servers.is_empty() => plan,
            None => {
                let several =
                    "the configuration has several servers; choose one with --server NAME";
                return Err(Failure::Usage(several.to_owned()));
            }
        };
        let is_file = matches!(wanted.source, ConfigSource::File(_));
        Ok(Self { name: wanted.name.clone(), plan, is_file })
    }

    /// The plan of the configuration.
    pub(crate) fn into_plan(self) -> Plan {
        self.plan
    }

    /// The log settings of a configuration file. Presets have none.
    pub(super) fn log(&self) -> Option<LogPlan> {
        self.is_file.then_some(self.plan.log)
    }

    /// Serves the configuration until its client disconnects.
    pub(super) async fn start(self) -> Result<InProcessServer, Failure> {
        let served =
            start_instance(&self.plan, &ServeArgs::default(), &no_export(), Affinity::Single)
                .await?;
        let upstreams = ConfigUpstreams {
            federation: served.federation.clone(),
            documents: documents(&self.plan),
            has_own_items: self.plan.has_usable_items(),
            is_reported: AtomicBool::new(false),
        };
        let (near, far) = memory_pair();
        let (input, output) = near.split();
        let serving = tokio::spawn(async move {
            let (input, output) = far.split();
            // The other end reports how it ended.
            let _ = served.service.serve(input, output).await;
            served.close().await;
        });
        let transport = Box::new(LineServer::new(&self.name, input, output));
        Ok(InProcessServer { dialect: self.plan.server.dialect, transport, serving, upstreams })
    }
}

/// The upstreams and the documents of a served configuration.
pub(super) struct ConfigUpstreams {
    federation: Federation,
    documents: Vec<UpstreamRow>,
    /// Whether the server has items besides those of its upstreams.
    has_own_items: bool,
    is_reported: AtomicBool,
}

impl ConfigUpstreams {
    pub(super) async fn wait_until_settled(&self) {
        self.federation.wait_until_settled().await;
    }

    pub(super) fn rows(&self) -> Vec<UpstreamRow> {
        let upstreams: Vec<UpstreamRow> =
            self.federation.status().iter().map(UpstreamRow::from).collect();
        [upstreams, self.documents.clone()].concat()
    }

    /// Reports missing upstreams with the reasons on stderr, once.
    pub(super) fn report_missing(&self) {
        if !self.is_reported.swap(true, Ordering::Relaxed) {
            report_missing(&self.rows());
        }
    }

    /// Fails if no upstream is ready and the server has no other items.
    pub(super) fn check_answered(&self) -> Result<(), Failure> {
        let rows = self.rows();
        match self.has_own_items || rows.is_empty() || rows.iter().any(UpstreamRow::is_ready) {
            true => Ok(()),
            false => Err(Failure::Call("no upstream responded".to_owned())),
        }
    }
}
