//! The worker threads of scripts. A script that waits for a forwarded call occupies no thread.

use creole::internal::sync::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedSender;

use super::engine::{Engine, EngineEvent};
use super::script_error::ScriptError;
use super::{Function, ScriptSource, ScriptStep};

/// Maximum number of worker threads.
const MAX_WORKERS: usize = 4;
/// The stack size of a worker, larger than any script may use.
const WORKER_STACK: usize = 4 * 1024 * 1024;
/// The time on one step beyond the CPU limit after which a worker counts as lost. Some operations of the language
/// cannot be interrupted.
const LOST_AFTER: Duration = Duration::from_secs(10);
/// The time beyond the limit after which other workers are preferred.
const BUSY_AFTER: Duration = Duration::from_secs(1);
/// Maximum number of lost workers before no more scripts are run.
const MAX_LOST_WORKERS: u64 = 16;
/// Maximum number of log lines of one call.
const MAX_LOG_LINES: usize = 100;

/// A message to a worker.
pub(super) enum WorkerMessage {
    /// A new call.
    Start(Box<StartCall>),
    /// The outcome of a forwarded call.
    Resume(u64, u32, Result<String, String>),
    /// The call was dropped.
    End(u64),
}

/// A new call.
pub(super) struct StartCall {
    pub(super) session: u64,
    pub(super) source: Arc<ScriptSource>,
    pub(super) function: Function,
    pub(super) arguments: Vec<String>,
    pub(super) steps: UnboundedSender<ScriptStep>,
    pub(super) cancelled: Arc<AtomicBool>,
}

/// One worker, and the start time of its current step.
#[derive(Clone)]
struct Worker {
    messages: Sender<WorkerMessage>,
    busy: Arc<Mutex<Option<Instant>>>,
}

struct Workers {
    all: Mutex<Vec<Worker>>,
    turn: AtomicU64,
    lost: AtomicU64,
}

/// The workers of this process; each is started on first use.
fn workers() -> &'static Workers {
    static WORKERS: OnceLock<Workers> = OnceLock::new();
    WORKERS.get_or_init(|| Workers {
        all: Mutex::default(),
        turn: AtomicU64::new(0),
        lost: AtomicU64::new(0),
    })
}

/// Starts a call on one of the workers. Returns the channel for further messages.
pub(super) fn start(start: StartCall) -> Result<Sender<WorkerMessage>, Box<ScriptError>> {
    let none = || ScriptError::limit_exceeded("cannot start a thread for scripts");
    let worker = workers().pick_worker(start.source.limits.cpu_time).ok_or_else(none)?;
    worker.messages.send(WorkerMessage::Start(Box::new(start))).map_err(|_| none())?;
    Ok(worker.messages)
}

impl Workers {
    fn pick_worker(&self, compute: Duration) -> Option<Worker> {
        let max = thread::available_parallelism().map_or(1, usize::from).min(MAX_WORKERS);
        let mut all = self.all.lock();
        if all.len() < max {
            all.push(spawn()?);
        }
        let turn = usize::try_from(self.turn.fetch_add(1, Ordering::Relaxed)).unwrap_or_default();
        let mut places = (0..all.len()).map(|step| (turn + step) % all.len());
        // A late worker may be stuck forever, so others are preferred.
        let index = places.find(|index| !all[*index].is_late(compute * 2 + BUSY_AFTER));
        let index = index.unwrap_or(turn % all.len());
        if all[index].is_late(compute * 4 + LOST_AFTER) {
            if self.lost.fetch_add(1, Ordering::Relaxed) >= MAX_LOST_WORKERS {
                return None;
            }
            tracing::error!(
                "a script blocks its thread and cannot be interrupted; a new thread replaces it"
            );
            all[index] = spawn()?;
        }
        Some(all[index].clone())
    }
}

impl Worker {
    /// Whether it has been busy with one step for longer than this.
    fn is_late(&self, time: Duration) -> bool {
        let busy = *self.busy.lock();
        busy.is_some_and(|since| since.elapsed() > time)
    }
}

fn spawn() -> Option<Worker> {
    let (sender, receiver) = mpsc::channel();
    let busy = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&busy);
    let thread = thread::Builder::new().name("script".to_owned()).stack_size(WORKER_STACK);
    thread.spawn(move || run_worker(&receiver, &seen)).ok()?;
    Some(Worker { messages: sender, busy })
}

/// A running call.
struct RunningCall {
    engine: Engine,
    name: String,
    steps: UnboundedSender<ScriptStep>,
    /// Number of forwarded calls without an outcome.
    open_calls: usize,
    lines: usize,
}

fn run_worker(messages: &Receiver<WorkerMessage>, busy: &Mutex<Option<Instant>>) {
    let mut sessions: HashMap<u64, RunningCall> = HashMap::new();
    let mark = |since| *busy.lock() = since;
    while let Ok(message) = messages.recv() {
        mark(Some(Instant::now()));
        match message {
            WorkerMessage::Start(start) => {
                let session = start.session;
                if let Some(running) = begin(*start) {
                    sessions.insert(session, running);
                }
            }
            WorkerMessage::Resume(session, next, answer) => {
                if let Some(mut running) = sessions.remove(&session) {
                    running.open_calls -= 1;
                    let events = running.engine.resume(next, &answer);
                    if running.handle_events(events) {
                        sessions.insert(session, running);
                    }
                }
            }
            WorkerMessage::End(session) => drop(sessions.remove(&session)),
        }
        mark(None);
    }
}

fn begin(start: StartCall) -> Option<RunningCall> {
    let StartCall { source, function, arguments, steps, cancelled, .. } = start;
    let engine = match Engine::load(&source, cancelled) {
        Ok(engine) => engine,
        Err(error) => {
            // A dropped call needs no result.
            _ = steps.send(ScriptStep::Done(Err(error)));
            return None;
        }
    };
    let name = source.name.clone();
    let events = engine.begin(function, &arguments);
    let mut running = RunningCall { engine, name, steps, open_calls: 0, lines: 0 };
    running.handle_events(events).then_some(running)
}

impl RunningCall {
    /// Forwards the events of the script. Returns whether it continues.
    fn handle_events(&mut self, events: Vec<EngineEvent>) -> bool {
        for event in events {
            let done = match event {
                EngineEvent::Next(number, call) => {
                    self.open_calls += 1;
                    _ = self.steps.send(ScriptStep::Next(number, call));
                    continue;
                }
                EngineEvent::Log { is_warning, line } => {
                    self.log(is_warning, &line);
                    continue;
                }
                EngineEvent::Done(value) => Ok(value),
                EngineEvent::Thrown(error) => Err(error),
            };
            _ = self.steps.send(ScriptStep::Done(done));
            return false;
        }
        if self.open_calls > 0 {
            return true;
        }
        let description = "the script did not finish: it waits for a promise that is never resolved, or \
            its memory limit is reached";
        _ = self.steps.send(ScriptStep::Done(Err(ScriptError::limit_exceeded(description))));
        false
    }

    fn log(&mut self, is_warning: bool, line: &str) {
        self.lines += 1;
        let line = super::script_error::shorten(line);
        match (self.lines > MAX_LOG_LINES, is_warning) {
            (true, _) => {}
            (false, true) => tracing::warn!("{}: {line}", self.name),
            (false, false) => tracing::info!("{}: {line}", self.name),
        }
    }
}
