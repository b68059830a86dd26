//! systemd: the listening socket that it passes, and the messages that tell it about the state of the process.
//!
//! Both are inert in a process that systemd did not start: its variables are then missing.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use creole::internal::sync::Mutex;

use crate::failure::Failure;

/// The variable with the process that the sockets are for.
#[cfg(unix)]
const LISTEN_PID: &str = "LISTEN_PID";
/// The variable with the number of sockets.
#[cfg(unix)]
const LISTEN_FDS: &str = "LISTEN_FDS";

/// Takes the listening socket of a socket unit, if there is one. Must be called before a thread starts, because it removes
/// variables from the environment.
///
/// # Errors
/// When systemd passes more than one socket, or one that is no listening TCP socket.
#[cfg(unix)]
pub(super) fn take_socket() -> Result<Option<TcpListener>, Failure> {
    let is_ours = std::env::var(LISTEN_PID).is_ok_and(|id| id == std::process::id().to_string());
    let passed = std::env::var(LISTEN_FDS).ok().filter(|_| is_ours);
    let Some(passed) = passed.filter(|count| count != "0") else { return Ok(None) };
    if passed != "1" {
        return Err(Failure::Refused(format!(
            "systemd passes {passed} sockets, but the server takes one; keep one `ListenStream=` in \
                the socket unit"
        )));
    }
    let unusable = |reason: &dyn std::fmt::Display| {
        Failure::Refused(format!(
            "systemd passes a socket that is no listening TCP socket: {reason}; write a port or an \
                address with a port after `ListenStream=`, and no `Accept=yes`"
        ))
    };
    let socket = listenfd::ListenFd::from_env().take_tcp_listener(0);
    let Some(socket) = socket.map_err(|error| unusable(&error))? else { return Ok(None) };
    match rustix::net::sockopt::socket_acceptconn(&socket) {
        Ok(true) => Ok(Some(socket)),
        Ok(false) => Err(unusable(&"it does not listen")),
        Err(error) => Err(unusable(&error)),
    }
}

#[cfg(not(unix))]
pub(super) fn take_socket() -> Result<Option<TcpListener>, Failure> {
    Ok(None)
}

/// Tells systemd about the state of the process (`sd_notify`). Clones speak for the same process.
#[derive(Clone, Default)]
pub(super) struct ServiceNotifier {
    /// Locked while a message is sent, so that messages arrive in the order of the states.
    state: Arc<Mutex<ServiceState>>,
}

#[derive(Default)]
struct ServiceState {
    status: String,
    running_reloads: usize,
    is_stopping: bool,
}

impl ServiceNotifier {
    /// The process serves. From now on, the watchdog of the unit is kept from firing while the runtime works.
    pub(super) fn notify_ready(&self, status: &str) {
        let mut state = self.state.lock();
        state.status = status_message(status);
        send(&["READY=1", &state.status]);
        if let Some(timeout) = watchdog_timeout() {
            tokio::spawn(keep_alive(timeout));
        }
    }

    /// A reload begins.
    pub(super) fn notify_reloading(&self) {
        let mut state = self.state.lock();
        state.running_reloads += 1;
        if !state.is_stopping {
            send(&["RELOADING=1", &monotonic_time(), "STATUS=Reloading the configuration"]);
        }
    }

    /// A reload has ended. The process is ready when no other one runs.
    pub(super) fn notify_reloaded(&self) {
        let mut state = self.state.lock();
        state.running_reloads = state.running_reloads.saturating_sub(1);
        if state.running_reloads == 0 && !state.is_stopping {
            send(&["READY=1", &state.status]);
        }
    }

    /// The shutdown begins.
    pub(super) fn notify_stopping(&self) {
        let mut state = self.state.lock();
        state.is_stopping = true;
        send(&["STOPPING=1", "STATUS=Finishing the running calls"]);
    }
}

/// The message with a status, which is one line.
fn status_message(status: &str) -> String {
    format!("STATUS={}", status.replace('\n', "; "))
}

/// Reports twice per timeout that the runtime works. It ends with the runtime.
async fn keep_alive(timeout: Duration) {
    let mut interval = tokio::time::interval(timeout / 2);
    loop {
        interval.tick().await;
        send(&["WATCHDOG=1"]);
    }
}

/// The timeout of the watchdog, if the unit has one for this process.
#[cfg(unix)]
fn watchdog_timeout() -> Option<Duration> {
    // An interval of zero is invalid.
    sd_notify::watchdog_enabled().filter(|timeout| *timeout >= Duration::from_millis(2))
}

#[cfg(not(unix))]
fn watchdog_timeout() -> Option<Duration> {
    None
}

/// The message with the current time, which systemd orders reloads by.
#[cfg(unix)]
fn monotonic_time() -> String {
    sd_notify::NotifyState::monotonic_usec_now().map(|now| now.to_string()).unwrap_or_default()
}

#[cfg(not(unix))]
fn monotonic_time() -> String {
    String::new()
}

/// Sends messages in one datagram, if the variable `NOTIFY_SOCKET` names a socket.
#[cfg(unix)]
fn send(messages: &[&str]) {
    let messages: Vec<_> = messages.iter().copied().map(sd_notify::NotifyState::Custom).collect();
    if let Err(error) = sd_notify::notify(&messages) {
        tracing::warn!(target: "creole", %error, "cannot notify systemd; check `NotifyAccess=` and `RestrictAddressFamilies=` of the unit");
    }
}

#[cfg(not(unix))]
fn send(_: &[&str]) {}
