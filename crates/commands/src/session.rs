//! A client session with a server for the duration of one command.

pub(crate) mod events;
pub(crate) mod hints;
mod in_process;
pub(crate) mod input_requests;

pub(crate) use in_process::LoadedConfig;

use std::env;
use std::ops::Deref;
use std::pin::pin;
use std::time::Duration;

use creole::client::{Address, Client, ClientBuilder};
use creole::proto::client::ClientLimits;
use creole::proto::dialect::{Dialect, builtin};
use creole::proto::fault::Fault;
use creole::proto::revision::{Era, Rules};
use creole_config::plan::LogPlan;
use creole_config::tables::enums::{LogFormat, LogLevel};
use creole_gateway::upstream::detect_dialect;
use tokio::runtime::Builder;
use tokio::signal;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::args::SessionArgs;
use crate::failure::Failure;
use crate::instance::runtime;
use crate::login;
use crate::output::progress;
use crate::session::hints::GivenUrl;
use crate::session::in_process::{ConfigUpstreams, InProcessServer};
use crate::session::input_requests::TerminalUser;
use crate::target::ServerTarget;
use crate::upstreams::UpstreamRow;
use crate::{log, output};

/// The maximum duration of a call, whatever progress the server reports.
const MAX_CALL: Duration = Duration::from_secs(24 * 3600);

/// How long a server within this process may take to end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// What a connection is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SessionPurpose {
    /// Calls. Many tools request input only during a call, so a revision with inline input requests is preferred.
    Call,
    /// A report on the server, in its newest revision.
    Inspect,
}

impl SessionPurpose {
    fn preferred_era(self) -> Era {
        match self {
            Self::Call => Rules::NEWEST_HANDSHAKE.era,
            Self::Inspect => Rules::CANONICAL.era,
        }
    }
}

/// Connects, does the work and closes. If a server supports both eras, the one that suits the purpose is used.
pub(crate) fn with_client<T>(
    target: ServerTarget<'_>,
    peer: &SessionArgs,
    purpose: SessionPurpose,
    work: impl AsyncFnOnce(&ServerSession) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let name = target.name().to_owned();
    let target = ReadyTarget::of(target)?;
    log::start(target.log());
    let runtime = runtime(&mut Builder::new_current_thread())?;
    let done = runtime.block_on(async {
        let mut interrupted = pin!(signal::ctrl_c());
        let (session, serving) = tokio::select! {
            connected = progress::with_progress(connect(target, &name, peer, purpose)) => connected?,
            _ = &mut interrupted => return Err(interrupted_failure()),
        };
        let done = tokio::select! {
            done = progress::with_progress(work(&session)) => done,
            _ = &mut interrupted => Err(interrupted_failure()),
        };
        if done.is_err() {
            session.report_missing();
        }
        session.client.close().await;
        if let Some(serving) = serving {
            // A server that does not end ends with the process.
            let _ = timeout(CLOSE_TIMEOUT, serving).await;
        }
        done
    });
    // A thread that still reads the terminal would block the end of the runtime.
    runtime.shutdown_background();
    done
}

fn interrupted_failure() -> Failure {
    Failure::Call("interrupted; the pending request was cancelled".to_owned())
}

/// A server that is ready to be connected to.
enum ReadyTarget {
    /// A remote server or a program.
    Remote(Box<Address>),
    /// A loaded configuration.
    InProcess(Box<LoadedConfig>),
}

impl ReadyTarget {
    fn of(target: ServerTarget<'_>) -> Result<Self, Failure> {
        Ok(match target {
            ServerTarget::Address(address) => Self::Remote(address),
            ServerTarget::Config(wanted) => Self::InProcess(Box::new(LoadedConfig::load(&wanted)?)),
        })
    }

    /// The URL that the user gave, if any.
    fn given_url(&self, peer: &SessionArgs) -> Option<GivenUrl> {
        let Self::Remote(address) = self else { return None };
        let Address::Http(target) = &**address else { return None };
        let has_credentials = !peer.target.headers.is_empty();
        Some(GivenUrl { url: target.url().to_string(), has_credentials })
    }

    /// The log settings of the configuration file, or the default.
    fn log(&self) -> LogPlan {
        let own = match self {
            Self::Remote(_) => None,
            Self::InProcess(inside) => inside.log(),
        };
        own.unwrap_or(LogPlan { format: LogFormat::Text, level: LogLevel::Warn, payloads: false })
    }
}

async fn connect(
    target: ReadyTarget,
    name: &str,
    peer: &SessionArgs,
    purpose: SessionPurpose,
) -> Result<(ServerSession, Option<JoinHandle<()>>), Failure> {
    let given = target.given_url(peer);
    let (connected, serving, upstreams) = match target {
        ReadyTarget::InProcess(inside) => {
            let InProcessServer { dialect, transport, serving, upstreams } = inside.start().await?;
            let connected = builder(peer, Some(dialect), purpose)?.connect_over(transport).await;
            (connected, Some(serving), Some(upstreams))
        }
        ReadyTarget::Remote(address) => (connect_to(*address, peer, purpose).await?, None, None),
    };
    match (connected, upstreams) {
        (Ok(client), upstreams) => Ok((ServerSession { client, upstreams }, serving)),
        (Err(fault), Some(upstreams)) => {
            // A configuration whose only upstream has failed refuses the connection.
            upstreams.report_missing();
            upstreams.check_answered().and_then(|()| Err(call_failure(name, &fault)))
        }
        (Err(fault), None) => Err(call_failure(
            name,
            &match given {
                Some(given) => given.explain(fault),
                None => fault,
            },
        )),
    }
}

/// A connection to a server, and the upstreams of a configuration that this process serves.
pub(crate) struct ServerSession {
    client: Client,
    upstreams: Option<ConfigUpstreams>,
}

impl Deref for ServerSession {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl ServerSession {
    /// Waits until each upstream is ready or has failed, so that one command sees all of them.
    pub(crate) async fn wait_until_settled(&self) {
        if let Some(upstreams) = &self.upstreams {
            upstreams.wait_until_settled().await;
        }
    }

    /// The state of each upstream.
    pub(crate) fn upstreams(&self) -> Vec<UpstreamRow> {
        self.upstreams.as_ref().map(ConfigUpstreams::rows).unwrap_or_default()
    }

    /// Reports missing upstreams with the reasons on stderr, once.
    pub(crate) fn report_missing(&self) {
        self.upstreams.iter().for_each(ConfigUpstreams::report_missing);
    }

    /// Fails if no upstream is ready and the configuration has no other items.
    pub(crate) fn check_answered(&self) -> Result<(), Failure> {
        self.upstreams.as_ref().map_or(Ok(()), ConfigUpstreams::check_answered)
    }
}

/// Connects to a server by the specification, or in the detected dialect.
async fn connect_to(
    mut address: Address,
    peer: &SessionArgs,
    purpose: SessionPurpose,
) -> Result<Result<Client, Fault>, Failure> {
    if let Address::Child(program) = &mut address {
        // The end of a program is the failure of this command, which prints the program's last output.
        program.log_stderr = false;
    }
    let given = peer.target.dialect.as_deref().and_then(builtin);
    let is_given = given.is_some();
    let connected = login::connect(|| builder(peer, given.clone(), purpose), &address).await?;
    let guessed = connected.as_ref().err().and_then(detect_dialect).filter(|_| !is_given);
    let Some(dialect) = guessed else { return Ok(connected) };
    output::write_message(&format!(
        "creole: `{}` deviates from the specification; using the dialect `{}`",
        address.name(),
        dialect.name
    ));
    Ok(builder(peer, Some(dialect), purpose)?.connect(address).await)
}

/// The client with its information and its handler of input requests.
fn builder(
    peer: &SessionArgs,
    dialect: Option<Dialect>,
    purpose: SessionPurpose,
) -> Result<ClientBuilder, Failure> {
    let silence = Duration::from_secs(peer.timeout);
    let limits = ClientLimits {
        call_idle_timeout: silence,
        call_total_timeout: MAX_CALL,
        handshake_timeout: silence,
        ..ClientLimits::default()
    };
    let person = TerminalUser::default();
    let (form, url) = (person.clone(), person);
    let mut builder = ClientBuilder::new("creole", env!("CARGO_PKG_VERSION"))
        .limits(limits)
        .prefer_era(purpose.preferred_era())
        .on_form(move |input_request| form.clone().respond(input_request))
        .on_url(move |input_request| url.clone().respond(input_request))
        .on_event(peer.level, events::show_event);
    if let Some(dialect) = dialect {
        builder = builder.dialect(dialect);
    }
    if let Some(revision) = peer.target.revision {
        builder = builder.revision(revision);
    }
    if peer.root {
        let (uri, name) = root()?;
        builder = builder.roots(&[(&uri, &name)]);
    }
    Ok(builder)
}

/// The current directory as a root.
fn root() -> Result<(String, String), Failure> {
    let folder = env::current_dir().map_err(|error| {
        Failure::Usage(format!("cannot determine the current directory: {error}"))
    })?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok((file_uri(&folder.to_string_lossy()), name))
}

/// The `file:` URI of an absolute path.
fn file_uri(path: &str) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => uri.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

/// The maximum number of lines of a program's standard error output that are shown.
const MAX_STDERR_LINES: usize = 50;

/// The failure for a fault, with the last output of a program that ended.
pub(crate) fn call_failure(name: &str, fault: &Fault) -> Failure {
    let detail = output::printable(&fault.detail);
    let code = fault.foreign_code.map(|code| format!(" (code {code})")).unwrap_or_default();
    let detail = if detail.is_empty() { fault.kind.name().to_owned() } else { detail };
    let is_named = detail.contains(&format!("`{name}`")) || detail.contains(&format!("://{name}"));
    let text = match is_named {
        true => format!("{detail}{code}"),
        false => format!("`{name}`: {detail}{code}"),
    };
    Failure::Call(match fault.trace.as_deref().map(stderr_tail) {
        Some(words) if text.ends_with("MCP response") => format!("{text}; it wrote:\n{words}"),
        Some(words) => format!("{text}; its last lines on stderr:\n{words}"),
        None => text,
    })
}

fn stderr_tail(trace: &str) -> String {
    let lines: Vec<&str> = trace.lines().collect();
    let last = &lines[lines.len().saturating_sub(MAX_STDERR_LINES)..];
    last.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use creole::proto::fault::FaultKind;

    use super::*;

    #[test]
    fn the_last_words_of_a_program_are_shown() {
        let mut fault = Fault::new(FaultKind::BackendUnavailable, "`x` exited with code 1");
        let words: Vec<String> = (0..80).map(|line| format!("line {line}")).collect();
        fault.trace = Some(words.join("\n"));
        let message = call_failure("x", &fault).to_string();
        assert!(
            message.starts_with(
                "error: `x` exited with code 1; its last lines on stderr:\n  line 30\n"
            )
        );
        assert!(message.ends_with("\n  line 79"));
    }

    #[test]
    fn a_path_becomes_a_uri() {
        assert_eq!(file_uri("/home/a b/ü"), "file:///home/a%20b/%C3%BC");
    }

    #[test]
    fn a_fault_names_the_server_once() {
        let say = |detail: &str| {
            call_failure("srv", &Fault::new(FaultKind::Internal, detail)).to_string()
        };
        assert_eq!(say("it broke"), "error: `srv`: it broke");
        assert_eq!(say("`srv` is gone"), "error: `srv` is gone");
    }
}
