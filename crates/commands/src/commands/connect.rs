//! `creole connect`: serves one upstream on stdin and stdout.

use std::io;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use creole::Server;
use creole::client::oauth::OAuthCredentials;
use creole::client::{Address, HttpAddress};
use creole::internal::catch_panic;
use creole::proto::dialect::builtin;
use creole_config::Plan;
use creole_config::plan::LogPlan;
use creole_config::tables::enums::{LogFormat, LogLevel};
use creole_gateway::federation::Federation;
use creole_gateway::upstream::{Affinity, RevisionChoice, UpstreamSettings, UpstreamState};
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep};

use super::serve::close_upstreams;
use crate::args::{ConnectArgs, TargetArgs};
use crate::commands::reap;
use crate::failure::Failure;
use crate::http_target::HttpTarget;
use crate::instance::runtime;
use crate::login::activity::{is_person_asked, wait_for_person};
use crate::login::client_login::{ClientLogin, LoginLayer, can_ask_later};
use crate::target::ServerTarget;
use crate::{log, login, output, target};

/// How long the authorization server may take to give tokens after the person has logged in.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(15);

/// How often it is looked for them.
const TOKEN_LOOK: Duration = Duration::from_millis(50);

/// Serves until the client disconnects.
pub(crate) fn run(args: &ConnectArgs) -> Result<(), Failure> {
    let mut settings = settings(args)?;
    let login = match (&mut settings.address, &args.url) {
        (Address::Http(address), Some(url)) => use_login(address, url, args)?,
        _ => None,
    };
    reap::attach_reaper(std::iter::once(&mut settings.address), None);
    log::start(log_plan(args));
    catch_panic::install_hook(args.debug);
    if io::stdin().is_terminal() {
        let name = settings.address.name();
        output::write_message(&format!(
            "creole: serves {name} on stdin and stdout; an MCP client usually starts this command"
        ));
    }
    let runtime = runtime(&mut Builder::new_current_thread())?;
    runtime.block_on(async {
        let federation = match &login {
            Some((_, Some(_))) => Federation::default().opening_despite(can_ask_later),
            _ => Federation::default(),
        };
        let server = Server::new("creole").version(env!("CARGO_PKG_VERSION")).debug(args.debug);
        let server = match &login {
            Some((_, Some(login))) => {
                let (login, federation) = (Arc::clone(login), federation.clone());
                let hold = Duration::from_secs(args.login_wait);
                server.with(LoginLayer { login, federation, hold })
            }
            _ => server,
        };
        let server = server.with(federation.layer());
        let service = server.start();
        federation.start_upstreams(vec![settings], &service.registry(), false);
        let ended = service.serve_stdio().await;
        drop(service);
        if let Some((credentials, Some(_))) = &login {
            finish_login(credentials).await;
        }
        let state = federation.status().into_iter().next().map(|upstream| upstream.state);
        close_upstreams(ended, federation.close()).await?;
        match state {
            Some(UpstreamState::Failed(reason)) => Err(Failure::Call(reason)),
            _ => Ok(()),
        }
    })
}

/// The login of a server without other credentials.
type ConnectLogin = (OAuthCredentials, Option<Arc<ClientLogin>>);

/// Gives the address the login of the person who uses the client, unless a header has credentials.
fn use_login(
    address: &mut HttpAddress,
    url: &str,
    args: &ConnectArgs,
) -> Result<Option<ConnectLogin>, Failure> {
    let TargetArgs { headers, cacert, no_login, .. } = &args.target;
    let server = HttpTarget::new(url, headers, cacert.as_deref())?;
    if server.has_authorization {
        return Ok(None);
    }
    let (credentials, login) = login::client_credentials(&server, &args.client, *no_login)?;
    *address = address.clone().credentials(Arc::new(credentials.clone()));
    Ok(Some((credentials, login)))
}

/// Lets a person who is logging in finish after the client has given up: its next start then succeeds.
async fn finish_login(credentials: &OAuthCredentials) {
    if !is_person_asked() {
        return;
    }
    wait_for_person().await;
    let until = Instant::now() + TOKEN_TIMEOUT;
    while !credentials.has_logged_in() && Instant::now() < until {
        sleep(TOKEN_LOOK).await;
    }
}

/// The settings of the upstream.
fn settings(args: &ConnectArgs) -> Result<UpstreamSettings, Failure> {
    let (place, _) = target::parse_target(args.url.as_slice(), &args.target, "`--preset NAME`")?;
    let (address, dialect) = match place {
        ServerTarget::Address(address) => {
            (*address, args.target.dialect.as_deref().and_then(builtin))
        }
        ServerTarget::Config(inside) => {
            let plan = Plan::load(inside.source, &creole_config::packs())?;
            let name = &inside.name;
            let unknown = |error| {
                Failure::Serve(format!(
                    "cannot determine the path of the creole executable: {error}"
                ))
            };
            (creole_config::preset_address(name, name).map_err(unknown)?, Some(plan.server.dialect))
        }
    };
    let (guesses, defaults) = (dialect.is_none(), UpstreamSettings::new(address));
    let dialect = dialect.unwrap_or_else(|| defaults.dialect.clone());
    let choice = args
        .target
        .revision
        .map_or(RevisionChoice::Detect, |revision| RevisionChoice::Revision(revision.rules()));
    let affinity = Affinity::Single;
    Ok(UpstreamSettings {
        affinity,
        transparent: true,
        detects_dialect: guesses,
        dialect,
        revisions: choice,
        ..defaults
    })
}

/// The log settings of the command line.
fn log_plan(args: &ConnectArgs) -> LogPlan {
    let format = args.log.map_or(LogFormat::Text, Into::into);
    let level = if args.debug { LogLevel::Debug } else { LogLevel::Warn };
    LogPlan { format, level, payloads: false }
}
