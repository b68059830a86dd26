//! One running child: its pipes, its last words and its end.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use creole_proto::fault::{Fault, FaultKind};
use creole_proto::wire::Raw;
use tokio::process;
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::group::ProcessGroup;
use super::stderr::StderrTail;
use super::{GracePeriods, Program, Reaper, descriptors, stderr};
use crate::stream::stdio::{Input, Output};

/// What the child reads.
pub type ChildInput = Output;

/// What the child writes.
pub type ChildOutput = Input;

/// How long the last words of a child that has ended may take to arrive.
const STDERR_TIMEOUT: Duration = Duration::from_millis(100);

/// How long those may take to vanish who were killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Nobody knows.
    Unknown,
}

impl Exit {
    /// What to tell those whose calls the end of this program broke off.
    pub fn fault(self, name: &str) -> Fault {
        let how = match self {
            Self::Code(code) => format!("ended with code {code}"),
            Self::Signal(signal) => format!("was ended by signal {signal}"),
            Self::Unknown => "ended".to_owned(),
        };
        unavailable_fault(name, format!("`{name}` {how}"), "upstream_ended")
    }
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        let signal = || status.signal().map_or(Self::Unknown, Self::Signal);
        status.code().map_or_else(signal, Self::Code)
    }
}

/// A running child. When this is dropped, the child is stopped in the background, with all that it started.
#[derive(Debug)]
pub struct Child {
    tail: StderrTail,
    logs: bool,
    exit: watch::Receiver<Option<Exit>>,
    /// Dropped to have the child stopped.
    stop: Option<oneshot::Sender<()>>,
    gone: watch::Receiver<bool>,
}

impl Child {
    /// Starts a program; to be called within a tokio runtime.
    ///
    /// # Errors
    /// When it cannot be started; the fault names it and not its command line.
    pub async fn start(program: &Program) -> Result<(Self, ChildInput, ChildOutput), Fault> {
        let refused = |error: io::Error| start_fault(program, &error);
        if let Some(folder) = &program.folder
            && !folder.is_dir()
        {
            let detail = format!("the folder that `{}` is to run in does not exist", program.name);
            return Err(unavailable_fault(&program.name, detail, "not_started"));
        }
        descriptors::set_close_on_exec();
        let mut child = program.command().spawn().map_err(refused)?;
        let (stdin, stdout, stderr) = pipes(&mut child).map_err(refused)?;
        let tail = StderrTail::default();
        let log_name = program.log_stderr.then(|| program.name.clone());
        let draining = tokio::spawn(stderr::drain(stderr, log_name, tail.clone()));
        let (stop, stopped) = oneshot::channel();
        let (told, exit) = watch::channel(None);
        let (left, gone) = watch::channel(false);
        let group = child.id().and_then(ProcessGroup::led_by);
        let guardian = program.reaper.clone();
        if let (Some(guardian), Some(group)) = (&guardian, group) {
            guardian.watch(group);
        }
        let keeper = ChildSupervisor {
            group,
            reaper: guardian,
            child,
            draining: draining.abort_handle(),
            grace_periods: program.grace_periods,
            exit: told,
            is_over: false,
        };
        tokio::spawn(async move {
            keeper.run(stopped, draining).await;
            left.send_replace(true);
        });
        let child = Self { tail, logs: program.log_stderr, exit, stop: Some(stop), gone };
        Ok((child, stdin, stdout))
    }

    /// What it wrote to its standard error last.
    pub fn tail(&self) -> &StderrTail {
        &self.tail
    }

    /// Whether its end is logged, with its last words; otherwise whoever started it tells of it.
    pub(crate) fn logs(&self) -> bool {
        self.logs
    }

    /// Resolves when the child itself has ended; what it started may live a little longer.
    pub fn wait_for_exit(&self) -> impl Future<Output = Exit> + Send + use<> {
        let mut exit = self.exit.clone();
        async move {
            let told = exit.wait_for(Option::is_some).await.ok().and_then(|exit| *exit);
            told.unwrap_or(Exit::Unknown)
        }
    }

    /// Stops the child and all that it started, and resolves when nobody is left. Whoever has its input should
    /// drop that first: most servers end then.
    pub async fn stop(mut self) {
        self.stop = None;
        // The sender may be gone with its runtime, which is an end as well.
        let _ = self.gone.wait_for(|gone| *gone).await;
    }
}

fn pipes(child: &mut process::Child) -> io::Result<(ChildInput, ChildOutput, Input)> {
    let missing = || io::Error::other("a pipe is missing");
    let stdin: OwnedFd = child.stdin.take().ok_or_else(missing)?.into_owned_fd()?;
    let stdout: OwnedFd = child.stdout.take().ok_or_else(missing)?.into_owned_fd()?;
    let stderr: OwnedFd = child.stderr.take().ok_or_else(missing)?.into_owned_fd()?;
    Ok((Output::from_fd(stdin)?, Input::from_fd(stdout)?, Input::from_fd(stderr)?))
}

fn start_fault(program: &Program, error: &io::Error) -> Fault {
    let name = &program.name;
    let detail = match error.kind() {
        io::ErrorKind::NotFound => format!("the program of `{name}` was not found"),
        io::ErrorKind::PermissionDenied => format!("the program of `{name}` may not be run"),
        _ => format!("the program of `{name}` could not be started: {error}"),
    };
    unavailable_fault(name, detail, "not_started")
}

/// The fault of a server behind us that cannot be reached.
pub(crate) fn unavailable_fault(upstream: &str, detail: String, reason: &str) -> Fault {
    let data = Raw::from_value(&serde_json::json!({"reason": reason, "upstream": upstream}));
    Fault::new(FaultKind::BackendUnavailable, detail).with_subject(upstream).with_data(data)
}

/// Owns the process: the only one who waits for it, and who makes sure that nobody is left of its group.
struct ChildSupervisor {
    child: process::Child,
    group: Option<ProcessGroup>,
    reaper: Option<Reaper>,
    draining: AbortHandle,
    grace_periods: GracePeriods,
    exit: watch::Sender<Option<Exit>>,
    /// Whether nobody is left.
    is_over: bool,
}

impl ChildSupervisor {
    async fn run(
        mut self,
        stopped: oneshot::Receiver<()>,
        mut draining: tokio::task::JoinHandle<()>,
    ) {
        let ended_by_itself = tokio::select! {
            status = self.child.wait() => Some(status),
            _ = stopped => None,
        };
        let patience = self.grace_periods;
        let status = match ended_by_itself {
            Some(status) => Some(status),
            None => timeout(patience.after_close, self.child.wait()).await.ok(),
        };
        if let Some(status) = status {
            self.report_exit(status);
        }
        self.end_group().await;
        // Whoever escaped from the group may keep the pipe open for ever.
        if timeout(STDERR_TIMEOUT, &mut draining).await.is_err() {
            draining.abort();
        }
    }

    fn report_exit(&self, status: io::Result<ExitStatus>) {
        let exit = status.map_or(Exit::Unknown, Exit::from);
        self.exit.send_if_modified(|told| told.is_none() && told.replace(exit).is_none());
    }

    /// Ends whoever is left: by asking, by waiting, by force.
    async fn end_group(&mut self) {
        let Some(group) = self.group else { return };
        if !group.is_empty() {
            group.terminate();
            let (asked, child) = (self.grace_periods.after_signal, &mut self.child);
            // The leader is waited for all the while: as a zombie it would stay in its group.
            let end = async {
                let is_led = || self.exit.borrow().is_none();
                if !group.wait_until_empty(asked, is_led).await {
                    group.kill();
                    // Only who is stuck in the kernel is left after that.
                    group.wait_until_empty(KILL_TIMEOUT, is_led).await;
                }
            };
            tokio::select! {
                () = end => {}
                never = reap(child, &self.exit) => match never {},
            }
        }
        self.is_over = true;
    }
}

/// Waits for the leader, tells its end, and then for ever.
async fn reap(
    child: &mut process::Child,
    told: &watch::Sender<Option<Exit>>,
) -> std::convert::Infallible {
    let exit = child.wait().await.map_or(Exit::Unknown, Exit::from);
    told.send_if_modified(|told| told.is_none() && told.replace(exit).is_none());
    std::future::pending().await
}

impl Drop for ChildSupervisor {
    /// The runtime ends while the child is running: there is no time for patience.
    fn drop(&mut self) {
        self.draining.abort();
        if !self.is_over
            && let Some(group) = self.group
        {
            group.kill();
            // Soon after that there is something to wait for; who is stuck in the kernel is left to it.
            for _ in 0..20 {
                if !matches!(self.child.try_wait(), Ok(None)) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        if let (Some(guardian), Some(group)) = (&self.reaper, self.group) {
            guardian.forget(group);
        }
    }
}
