//! Starting a program: from one thread that lives as long as the process, and so that the kernel can end it.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::{Program, environment};

/// The command of a program, with pipes and a group of its own.
pub(super) fn command(program: &Program) -> Command {
    let mut words = program.launcher.iter().chain([&program.command]).chain(&program.args);
    // There is always the command itself.
    let mut command = Command::new(words.next().unwrap_or(&program.command));
    command
        .args(words)
        .env_clear()
        .envs(environment::of_child(std::env::vars_os(), &program.env))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    if let Some(folder) = &program.folder {
        command.current_dir(folder);
    }
    command
}

type Job = Box<dyn FnOnce() + Send>;

/// Starts a command on the one thread that does so. A death signal is sent when the *thread* ends that started
/// the child (prctl(2), `PR_SET_PDEATHSIG`), and threads of a runtime come and go; besides, the start blocks.
pub(super) async fn start(mut command: Command) -> io::Result<Child> {
    let (done, started) = oneshot::channel();
    let runtime = Handle::current();
    let job: Job = Box::new(move || {
        let _inside = runtime.enter();
        // Whoever gave up waiting does not want the child: dropping it ends it.
        let _ = done.send(command.spawn());
    });
    starter()?.send(job).map_err(|_| gone())?;
    started.await.map_err(|_| gone())?
}

fn starter() -> io::Result<Sender<Job>> {
    static STARTER: OnceLock<Mutex<Option<Sender<Job>>>> = OnceLock::new();
    let slot = STARTER.get_or_init(Mutex::default);
    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(sender) = &*slot {
        return Ok(sender.clone());
    }
    let (sender, jobs) = channel::<Job>();
    thread::Builder::new()
        .name("starter".into())
        .spawn(move || jobs.iter().for_each(|job| job()))?;
    Ok(slot.insert(sender).clone())
}

fn gone() -> io::Error {
    io::Error::other("the thread that starts programs is gone")
}

/// Becomes the program `command`, to be ended by the kernel as soon as the process that started this one dies.
/// For the `main` of a [launcher](Program::launcher); comes back only with an error. Outside of Linux it
/// becomes the program and nothing more.
pub fn exec_with_death_signal(
    command: &OsString,
    args: impl IntoIterator<Item = OsString>,
) -> io::Result<Infallible> {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Signal, getppid, set_parent_process_death_signal};
        let parent = getppid();
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // A parent that died before the line above sends nothing any more.
        if getppid() != parent {
            return Err(io::Error::other("the process that started this one is gone"));
        }
    }
    Err(std::process::Command::new(command).args(args).exec())
}
