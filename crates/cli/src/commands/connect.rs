//! `creole connect`: another server, spoken to on stdin and stdout.

use std::io::{self, IsTerminal};

use creole::Server;
use creole_gateway::config::words::{LogFormat, LogLevel};
use creole_gateway::federation::Federation;
use creole_gateway::plan::LogPlan;
use creole_gateway::upstream::{Affinity, Settings};
use tokio::runtime::Builder;

use super::serve::{ended_with, runtime};
use crate::args::ConnectArgs;
use crate::failure::Failure;
use crate::{guardian, log, output, target};

/// Speaks until the client is gone.
pub(crate) fn run(args: &ConnectArgs) -> Result<(), Failure> {
    let mut place = target::place(&args.target)?;
    guardian::watch(std::iter::once(&mut place), None);
    let format = args.log.map_or(LogFormat::Text, Into::into);
    log::start(LogPlan { format, level: LogLevel::Warn, payloads: false });
    if io::stdin().is_terminal() {
        let name = place.name();
        output::talk(&format!(
            "creole: speaks for {name} on stdin and stdout and waits for a client to start it"
        ));
    }
    let runtime = runtime(&mut Builder::new_current_thread())?;
    runtime.block_on(async {
        let federation = Federation::default();
        let service = Server::new("creole").with(federation.layer()).start();
        let settings =
            Settings { affinity: Affinity::Single, transparent: true, ..Settings::new(place) };
        federation.begin(vec![settings], &service.registry(), false);
        let ended = service.serve_stdio().await;
        drop(service);
        ended_with(ended, federation.close()).await
    })
}
