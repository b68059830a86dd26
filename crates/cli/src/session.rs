//! A conversation with another server for the length of one command.

use std::env;
use std::pin::pin;
use std::time::Duration;

use creole::client::{Client, ClientBuilder, LineServer, Transport, Way};
use creole::guard;
use creole::proto::client::Limits;
use creole::proto::dialect::{Dialect, builtin};
use creole::proto::fault::Fault;
use creole::transport::memory;
use creole_gateway::config::words::{LogFormat, LogLevel};
use creole_gateway::federation::Federation;
use creole_gateway::plan::LogPlan;
use creole_gateway::upstream::{Affinity, Settings, guess};
use creole_gateway::{Plan, Source};
use creole_tools::Options;
use tokio::runtime::Builder;
use tokio::signal;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::args::PeerArgs;
use crate::commands::serve::runtime;
use crate::failure::Failure;
use crate::questions::Person;
use crate::target::Place;
use crate::{events, log, output};

/// How long a call may take, whatever the server reports.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// How long a server within this process may take to end.
const FAREWELL: Duration = Duration::from_secs(5);

/// Connects, does the work and closes.
pub(crate) fn with_client<T>(
    place: Place<'_>,
    peer: &PeerArgs,
    work: impl AsyncFnOnce(&Client) -> Result<T, Failure>,
) -> Result<T, Failure> {
    log::start(LogPlan { format: LogFormat::Text, level: LogLevel::Warn, payloads: false });
    let runtime = runtime(&mut Builder::new_current_thread())?;
    let done = runtime.block_on(async {
        let mut interrupted = pin!(signal::ctrl_c());
        let (client, serving) = tokio::select! {
            connected = connect(place, peer) => connected?,
            _ = &mut interrupted => return Err(stopped()),
        };
        let done = tokio::select! {
            done = work(&client) => done,
            _ = &mut interrupted => Err(stopped()),
        };
        client.close().await;
        if let Some(serving) = serving {
            // A server that does not end by itself ends with the process.
            let _ = timeout(FAREWELL, serving).await;
        }
        done
    });
    // A thread that still reads the terminal would keep the runtime from ending.
    runtime.shutdown_background();
    done
}

fn stopped() -> Failure {
    Failure::Call("interrupted: what was on its way is cancelled".to_owned())
}

async fn connect(
    place: Place<'_>,
    peer: &PeerArgs,
) -> Result<(Client, Option<JoinHandle<()>>), Failure> {
    let name = place.name().to_owned();
    let (connected, serving) = match place {
        Place::Preset(preset) => {
            let Embedded { dialect, transport, serving } = embedded(preset)?;
            (builder(peer, Some(dialect))?.connect_over(transport).await, Some(serving))
        }
        Place::Way(way) => (connect_to(*way, peer).await?, None),
    };
    Ok((connected.map_err(|fault| failed(&name, &fault))?, serving))
}

/// Connects to a server by the specification, or by the dialect that it turns out to speak.
async fn connect_to(way: Way, peer: &PeerArgs) -> Result<Result<Client, Fault>, Failure> {
    let told = peer.target.dialect.as_deref().and_then(builtin);
    let is_told = told.is_some();
    let connected = builder(peer, told)?.connect(way.clone()).await;
    let guessed = connected.as_ref().err().and_then(guess).filter(|_| !is_told);
    let Some(dialect) = guessed else { return Ok(connected) };
    output::talk(&format!(
        "creole: `{}` does not speak by the specification, but like `{}`",
        way.name(),
        dialect.name
    ));
    Ok(builder(peer, Some(dialect))?.connect(way).await)
}

/// Who we are to the server, and who answers what it asks.
fn builder(peer: &PeerArgs, dialect: Option<Dialect>) -> Result<ClientBuilder, Failure> {
    let silence = Duration::from_secs(peer.timeout);
    let limits =
        Limits { call_idle: silence, call_total: LONGEST, opening: silence, ..Limits::default() };
    let person = Person::default();
    let (form, url) = (person.clone(), person);
    let mut builder = ClientBuilder::new("creole", env!("CARGO_PKG_VERSION"))
        .limits(limits)
        .on_form(move |question| form.clone().answer(question))
        .on_url(move |question| url.clone().answer(question))
        .on_event(peer.level, events::tell);
    if let Some(dialect) = dialect {
        builder = builder.dialect(dialect);
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
        Failure::Usage(format!("the current directory cannot be told: {error}"))
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

/// A server within this process, as long as somebody speaks to it.
struct Embedded {
    dialect: Dialect,
    transport: Box<dyn Transport>,
    serving: JoinHandle<()>,
}

/// Serves a preset within this process.
fn embedded(preset: &str) -> Result<Embedded, Failure> {
    let plan = Plan::load(Source::Preset(preset), &creole_cli::packs())?;
    let refused =
        |refusal: String| Failure::Serve(format!("`{preset}` cannot be served: {refusal}"));
    let federation = Federation::default();
    let server = creole_cli::assemble(&plan, &Options::default(), &federation)
        .map_err(|refusal| refused(refusal.to_string()))?;
    let mut behind = Vec::new();
    for upstream in &plan.upstreams {
        let planned =
            Settings::planned(upstream).map_err(|refusal| refused(refusal.to_string()))?;
        behind.push(Settings { affinity: Affinity::Single, ..planned });
    }
    guard::install_hook(false);
    let service = server.start();
    federation.begin(behind, &service.registry(), plan.has_own());
    let (near, far) = memory();
    let (input, output) = near.split();
    let serving = tokio::spawn(async move {
        let (input, output) = far.split();
        // How it ended is told by the other end.
        let _ = service.serve(input, output).await;
        drop(service);
        federation.close().await;
    });
    let transport = Box::new(LineServer::new(preset, input, output));
    Ok(Embedded { dialect: plan.server.dialect, transport, serving })
}

/// The most lines of a program's last words that a person is shown.
const LAST_WORDS: usize = 20;

/// What a person is told of a fault, with the last words of a program that ended.
pub(crate) fn failed(name: &str, fault: &Fault) -> Failure {
    let detail = output::printable(&fault.detail);
    let code = fault.foreign_code.map(|code| format!(" (code {code})")).unwrap_or_default();
    let detail = if detail.is_empty() { fault.kind.name().to_owned() } else { detail };
    let said = match detail.contains(&format!("`{name}`")) {
        true => format!("{detail}{code}"),
        false => format!("`{name}`: {detail}{code}"),
    };
    Failure::Call(match fault.trace.as_deref().map(last_words) {
        Some(words) => format!("{said}; its last words on stderr:\n{words}"),
        None => said,
    })
}

fn last_words(trace: &str) -> String {
    let lines: Vec<&str> = trace.lines().collect();
    let last = &lines[lines.len().saturating_sub(LAST_WORDS)..];
    last.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use creole::proto::fault::FaultKind;

    use super::*;

    #[test]
    fn the_last_words_of_a_program_are_shown() {
        let mut fault = Fault::new(FaultKind::BackendUnavailable, "`x` ended with code 1");
        let words: Vec<String> = (0..30).map(|line| format!("line {line}")).collect();
        fault.trace = Some(words.join("\n"));
        let told = failed("x", &fault).to_string();
        assert!(
            told.starts_with(
                "error: `x` ended with code 1; its last words on stderr:\n  line 10\n"
            )
        );
        assert!(told.ends_with("\n  line 29"));
    }

    #[test]
    fn a_path_becomes_a_uri() {
        assert_eq!(file_uri("/home/a b/ü"), "file:///home/a%20b/%C3%BC");
    }

    #[test]
    fn a_fault_names_the_server_once() {
        let say =
            |detail: &str| failed("srv", &Fault::new(FaultKind::Internal, detail)).to_string();
        assert_eq!(say("it broke"), "error: `srv`: it broke");
        assert_eq!(say("`srv` is gone"), "error: `srv` is gone");
    }
}
