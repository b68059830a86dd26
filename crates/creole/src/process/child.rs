//! A running child process: its pipes, its standard error and its termination.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use creole_proto::fault::{Fault, FaultKind};
use creole_proto::wire::Raw;
use tokio::process;
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::group::ProcessGroup;
use super::program_meter::MeasuredGroup;
use super::stderr::StderrTail;
use super::{GracePeriods, Program, Reaper, set_close_on_exec, stderr};
use crate::stream::stdio::{Input, Output};

/// The child's standard input.
pub type ChildInput = Output;

/// The child's standard output.
pub type ChildOutput = Input;

/// How long the last standard error output of a child that has ended may take to arrive.
const STDERR_TIMEOUT: Duration = Duration::from_millis(100);

/// How long killed processes may take to vanish.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// The exit status is not known.
    Unknown,
}

impl Exit {
    /// The fault for calls that the end of this program interrupted.
    pub fn fault(self, name: &str) -> Fault {
        let how = match self {
            Self::Code(code) => format!("exited with code {code}"),
            Self::Signal(signal) => format!("was killed by signal {signal}"),
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

/// A running child. Dropping it stops the child in the background, with all its descendants.
#[derive(Debug)]
pub struct Child {
    tail: StderrTail,
    logs: bool,
    exit: watch::Receiver<Option<Exit>>,
    /// Dropped to stop the child.
    stop: Option<oneshot::Sender<()>>,
    gone: watch::Receiver<bool>,
}

impl Child {
    /// Starts a program. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When it cannot be started; the fault names it and not its command line.
    pub async fn start(program: &Program) -> Result<(Self, ChildInput, ChildOutput), Fault> {
        let refused = |error: io::Error| start_fault(program, &error);
        if let Some(folder) = &program.folder
            && !folder.is_dir()
        {
            let detail =
                format!("upstream `{}`: the working directory does not exist", program.name);
            return Err(unavailable_fault(&program.name, detail, "not_started"));
        }
        set_close_on_exec();
        let mut child = program.command().spawn().map_err(refused)?;
        let (stdin, stdout, stderr) = pipes(&mut child).map_err(refused)?;
        let tail = StderrTail::default();
        let log_name = program.log_stderr.then(|| program.name.clone());
        let meter = program.meter.clone();
        if let Some(meter) = &meter {
            let tail = tail.clone();
            meter.keep_tail(Box::new(move |max| tail.lines(max)));
        }
        let draining = tokio::spawn(stderr::drain(stderr, log_name, meter, tail.clone()));
        let (stop, stopped) = oneshot::channel();
        let (sender, exit) = watch::channel(None);
        let (left, gone) = watch::channel(false);
        let group = child.id().and_then(ProcessGroup::led_by);
        let reaper = program.reaper.clone();
        if let (Some(reaper), Some(group)) = (&reaper, group) {
            reaper.watch(group);
        }
        let supervisor = ChildSupervisor {
            group,
            reaper,
            child,
            draining: draining.abort_handle(),
            grace_periods: program.grace_periods,
            exit: sender,
            is_over: false,
            _measured: program.meter.as_ref().zip(group).map(|(meter, group)| meter.measure(group)),
        };
        tokio::spawn(async move {
            supervisor.run(stopped, draining).await;
            left.send_replace(true);
        });
        let child = Self { tail, logs: program.log_stderr, exit, stop: Some(stop), gone };
        Ok((child, stdin, stdout))
    }

    /// The end of its standard error.
    pub fn tail(&self) -> &StderrTail {
        &self.tail
    }

    /// Whether its end is logged, with the end of its standard error; otherwise the code that started it reports it.
    pub(crate) fn logs(&self) -> bool {
        self.logs
    }

    /// Resolves when the child itself has ended; its descendants may live a little longer.
    pub fn wait_for_exit(&self) -> impl Future<Output = Exit> + Send + use<> {
        let mut exit = self.exit.clone();
        async move {
            let told = exit.wait_for(Option::is_some).await.ok().and_then(|exit| *exit);
            told.unwrap_or(Exit::Unknown)
        }
    }

    /// Stops the child and all its descendants, and resolves when none is left. Drop the child's input first: most
    /// servers end then.
    pub async fn stop(mut self) {
        self.stop = None;
        // The sender may be dropped with its runtime, which also means the end.
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
    // Only the file name: callers see this text, and the path is for the operator.
    let file_name = Path::new(&program.command).file_name().unwrap_or(&program.command);
    let (path, command) = (program.command.to_string_lossy(), file_name.to_string_lossy());
    let message = match error.kind() {
        io::ErrorKind::NotFound if path.contains('/') => "does not exist".to_owned(),
        io::ErrorKind::NotFound => "was not found in PATH".to_owned(),
        io::ErrorKind::PermissionDenied => "is not executable".to_owned(),
        _ => format!("could not be started: {error}"),
    };
    let is_named_after_program = file_name == OsStr::new(name);
    let detail = match is_named_after_program {
        true => format!("the program `{command}` {message}"),
        false => format!("upstream `{name}`: the program `{command}` {message}"),
    };
    unavailable_fault(name, detail, "not_started")
}

/// The fault of an upstream that cannot be reached.
pub(crate) fn unavailable_fault(upstream: &str, detail: String, reason: &str) -> Fault {
    let data = Raw::from_value(&serde_json::json!({"reason": reason, "upstream": upstream}));
    Fault::new(FaultKind::BackendUnavailable, detail).with_subject(upstream).with_data(data)
}

/// Owns the process: the only task that waits for it, and that makes sure that its group is empty in the end.
struct ChildSupervisor {
    child: process::Child,
    group: Option<ProcessGroup>,
    reaper: Option<Reaper>,
    draining: AbortHandle,
    grace_periods: GracePeriods,
    exit: watch::Sender<Option<Exit>>,
    /// Whether the group is empty.
    is_over: bool,
    _measured: Option<MeasuredGroup>,
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
        let grace = self.grace_periods;
        let status = match ended_by_itself {
            Some(status) => Some(status),
            None => timeout(grace.after_close, self.child.wait()).await.ok(),
        };
        if let Some(status) = status {
            self.report_exit(status);
        }
        self.end_group().await;
        // A process that escaped from the group may keep the pipe open forever.
        if timeout(STDERR_TIMEOUT, &mut draining).await.is_err() {
            draining.abort();
        }
    }

    fn report_exit(&self, status: io::Result<ExitStatus>) {
        let exit = status.map_or(Exit::Unknown, Exit::from);
        self.exit.send_if_modified(|told| told.is_none() && told.replace(exit).is_none());
    }

    /// Ends the remaining processes: by a signal, a wait, and a kill.
    async fn end_group(&mut self) {
        let Some(group) = self.group else { return };
        if !group.is_empty() {
            group.terminate();
            let (asked, child) = (self.grace_periods.after_signal, &mut self.child);
            // The leader is reaped meanwhile: as a zombie it would stay in its group.
            let end = async {
                let is_led = || self.exit.borrow().is_none();
                if !group.wait_until_empty(asked, is_led).await {
                    group.kill();
                    // After that, only processes that are stuck in the kernel are left.
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

/// Waits for the leader, reports its exit, and then never resolves.
async fn reap(
    child: &mut process::Child,
    sender: &watch::Sender<Option<Exit>>,
) -> std::convert::Infallible {
    let exit = child.wait().await.map_or(Exit::Unknown, Exit::from);
    sender.send_if_modified(|told| told.is_none() && told.replace(exit).is_none());
    std::future::pending().await
}

impl Drop for ChildSupervisor {
    /// The runtime ends while the child is running: there is no time for grace periods.
    fn drop(&mut self) {
        self.draining.abort();
        if !self.is_over
            && let Some(group) = self.group
        {
            group.kill();
            // The leader can be reaped soon after that; a process that is stuck in the kernel is left to it.
            for _ in 0..20 {
                if !matches!(self.child.try_wait(), Ok(None)) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        if let (Some(reaper), Some(group)) = (&self.reaper, self.group) {
            reaper.forget(group);
        }
    }
}
