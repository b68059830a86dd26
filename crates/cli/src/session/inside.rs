//! A configuration that is served within this process, to this process alone.

use creole::client::{LineServer, Transport};
use creole::proto::dialect::Dialect;
use creole::transport::memory;
use creole_gateway::plan::LogPlan;
use creole_gateway::upstream::Affinity;
use creole_gateway::{Plan, Source};
use tokio::task::JoinHandle;

use crate::args::ServeArgs;
use crate::commands::serve::{Served, chosen};
use crate::failure::Failure;
use crate::target;

/// A configuration that was read and can be served.
pub(super) struct Inside {
    name: String,
    plan: Plan,
    is_file: bool,
}

/// A configuration that is served.
pub(super) struct Running {
    pub(super) dialect: Dialect,
    pub(super) transport: Box<dyn Transport>,
    pub(super) serving: JoinHandle<()>,
}

impl Inside {
    /// Reads the configuration. Documents may have to be fetched, so this is not done within a runtime.
    pub(super) fn load(wanted: &target::Inside<'_>) -> Result<Self, Failure> {
        let plan = Plan::load(wanted.source, &creole_cli::packs())?;
        let plan = match wanted.server {
            Some(name) => chosen(&plan, name)?,
            None if plan.further.is_empty() => plan,
            None => {
                let several =
                    "the configuration has several servers; choose one with --server NAME";
                return Err(Failure::Usage(several.to_owned()));
            }
        };
        let is_file = matches!(wanted.source, Source::File(_));
        Ok(Self { name: wanted.name.clone(), plan, is_file })
    }

    /// The log that a configuration file asks for; what ships inside is nobody's own.
    pub(super) fn log(&self) -> Option<LogPlan> {
        self.is_file.then_some(self.plan.log)
    }

    /// Serves the configuration until its client is gone.
    pub(super) async fn start(self) -> Result<Running, Failure> {
        let served = Served::new(&self.plan, &ServeArgs::default(), Affinity::Single).await?;
        let (near, far) = memory();
        let (input, output) = near.split();
        let serving = tokio::spawn(async move {
            let (input, output) = far.split();
            // How it ended is told by the other end.
            let _ = served.service.serve(input, output).await;
            served.close().await;
        });
        let transport = Box::new(LineServer::new(&self.name, input, output));
        Ok(Running { dialect: self.plan.server.dialect, transport, serving })
    }
}
