//! Signals to the process: drain, end at once, reload.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use creole::EndReason;
use creole::serve::http::Drain;
use creole_config::Reloader;
use tokio::sync::Notify;

use super::systemd::ServiceNotifier;
use crate::output;

/// Reloads something other than the configuration, and reports the outcome if it matters.
pub(super) type Reload = Box<dyn Fn() + Send + Sync>;

/// How long after the first signal to end another one is a repetition. `timeout` sends it to the process and to its group,
/// which the process is in.
const REPETITION: Duration = Duration::from_millis(200);

/// What signals change.
pub(super) struct SignalTargets {
    /// The shutdown of the server.
    pub(super) drain: Drain,
    /// How long the server still accepts after the first signal to end.
    pub(super) drain_delay: Duration,
    /// Reloads the configuration.
    pub(super) reloader: Arc<Reloader>,
    /// What else is reloaded.
    pub(super) reloads: Vec<Reload>,
    /// Tells systemd about reloads and the shutdown.
    pub(super) notifier: ServiceNotifier,
}

/// Handles signals until the process ends. Returns what the second signal to end notifies.
pub(super) fn listen(targets: SignalTargets) -> io::Result<Arc<Notify>> {
    let mut signals = Signals::new()?;
    let SignalTargets { drain, drain_delay, reloader, reloads, notifier } = targets;
    let end_now = Arc::new(Notify::new());
    let second = Arc::clone(&end_now);
    tokio::spawn(async move {
        let mut first: Option<Instant> = None;
        while let Some(signal) = signals.next().await {
            match signal {
                Signal::Reload => {
                    reloads.iter().for_each(|reload| reload());
                    // A reload may wait for upstreams. Signals do not wait for it.
                    let (reloader, notifier) = (Arc::clone(&reloader), notifier.clone());
                    notifier.notify_reloading();
                    tokio::spawn(async move {
                        reloader.reload_and_report().await;
                        notifier.notify_reloaded();
                    });
                }
                Signal::End if first.is_some_and(|first| first.elapsed() < REPETITION) => {}
                Signal::End if first.is_some() => {
                    drain.end();
                    second.notify_one();
                }
                Signal::End => {
                    first = Some(Instant::now());
                    notifier.notify_stopping();
                    output::write_message(&shutdown_message(drain_delay));
                    let drain = drain.clone();
                    tokio::spawn(async move { drain.begin_after(drain_delay).await });
                }
            }
        }
    });
    Ok(end_now)
}

/// The message about the first signal to end.
fn shutdown_message(delay: Duration) -> String {
    let accepting = match delay.as_secs() {
        0 => String::new(),
        seconds => format!("accepting for {seconds} s, then "),
    };
    format!(
        "creole: {accepting}shutting down after the running calls; a second signal exits at once"
    )
}

/// Handles the reload signal until the process ends. Other signals keep their default effect.
#[cfg(unix)]
pub(super) fn listen_for_reloads(reloader: &Arc<Reloader>, reloads: Vec<Reload>) -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut hang_up = signal(SignalKind::hangup())?;
    let reloader = Arc::clone(reloader);
    tokio::spawn(async move {
        while hang_up.recv().await.is_some() {
            reloads.iter().for_each(|reload| reload());
            reloader.reload_and_report().await;
        }
    });
    Ok(())
}

#[cfg(not(unix))]
pub(super) fn listen_for_reloads(_: &Arc<Reloader>, _: Vec<Reload>) -> io::Result<()> {
    Ok(())
}

/// Serves until the client disconnects or the process is asked to end.
#[cfg(unix)]
pub(super) async fn until_terminated(
    served: impl Future<Output = io::Result<EndReason>>,
) -> io::Result<EndReason> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        ended = served => ended,
        _ = terminate.recv() => Ok(EndReason::OutputBroken),
    }
}

#[cfg(not(unix))]
pub(super) async fn until_terminated(
    served: impl Future<Output = io::Result<EndReason>>,
) -> io::Result<EndReason> {
    served.await
}

enum Signal {
    End,
    #[cfg_attr(not(unix), expect(dead_code, reason = "only Unix has the signal for a reload"))]
    Reload,
}

#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Option<Signal> {
        tokio::select! {
            notified = self.terminate.recv() => notified.map(|()| Signal::End),
            notified = self.interrupt.recv() => notified.map(|()| Signal::End),
            notified = self.hang_up.recv() => notified.map(|()| Signal::Reload),
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> Option<Signal> {
        tokio::signal::ctrl_c().await.ok().map(|()| Signal::End)
    }
}
