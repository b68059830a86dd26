//! Batches of engine calls: consecutive calls of a function on the items of a list share an engine.
//!
//! Creating an engine takes longer than most functions. Definitions contain no data of callers, so no isolation is
//! needed. State that a function leaves behind may or may not exist for the next item.

use creole::internal::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use std::{fmt, thread};

use super::engine::{Engine, EngineEvent};
use super::script_error::ScriptError;
use super::{BLOCKING_STACK, Function, ScriptSource};

/// The time for which an engine is kept for the next item.
const IDLE_TIMEOUT: Duration = Duration::from_millis(50);

/// The result of a function, as JSON, if any.
type ScriptResult = Result<Option<String>, Box<ScriptError>>;

/// A thread with an engine, if there is one.
#[derive(Default)]
pub(super) struct EngineBatch(Mutex<Option<Sender<BatchJob>>>);

struct BatchJob {
    function: Function,
    arguments: Vec<String>,
    reply: Sender<ScriptResult>,
}

impl EngineBatch {
    /// Runs a function that does not wait. The caller blocks.
    pub(super) fn call(
        &self,
        source: &Arc<ScriptSource>,
        function: Function,
        arguments: &[String],
    ) -> ScriptResult {
        let mut thread = self.0.lock();
        // A thread that has just ended does not accept the job, and another is started.
        for _ in 0..2 {
            let jobs = match thread.take() {
                Some(jobs) => jobs,
                None => spawn(source).ok_or_else(|| {
                    ScriptError::limit_exceeded("no thread is available for the script")
                })?,
            };
            let (answer, answered) = mpsc::channel();
            let job = BatchJob { function, arguments: arguments.to_vec(), reply: answer };
            // A rejected job holds the sender of its result, on which the caller must not wait.
            if jobs.send(job).is_ok()
                && let Ok(returned) = answered.recv()
            {
                *thread = Some(jobs);
                return returned;
            }
        }
        Err(ScriptError::limit_exceeded("the script engine panicked"))
    }
}

fn spawn(source: &Arc<ScriptSource>) -> Option<Sender<BatchJob>> {
    let (sender, jobs) = mpsc::channel();
    let source = Arc::clone(source);
    let thread = thread::Builder::new().name("script".to_owned()).stack_size(BLOCKING_STACK);
    thread.spawn(move || run_jobs(&source, &jobs)).ok()?;
    Some(sender)
}

/// Runs jobs until none arrives within the timeout.
fn run_jobs(source: &Arc<ScriptSource>, jobs: &Receiver<BatchJob>) {
    let mut kept = None;
    while let Ok(job) = jobs.recv_timeout(IDLE_TIMEOUT) {
        let returned = match kept.take() {
            Some(engine) => match run_on_engine(engine, &job) {
                // State of earlier items may have caused the failure.
                (Err(_), _) => run_on_new_engine(source, &job),
                done => done,
            },
            None => run_on_new_engine(source, &job),
        };
        kept = returned.1;
        // The caller waits for it.
        _ = job.reply.send(returned.0);
    }
}

fn run_on_new_engine(source: &Arc<ScriptSource>, job: &BatchJob) -> (ScriptResult, Option<Engine>) {
    match Engine::load(source, Arc::default()) {
        Ok(engine) => run_on_engine(engine, job),
        Err(error) => (Err(error), None),
    }
}

/// The result of the function, and the engine if it is usable for another item.
fn run_on_engine(engine: Engine, job: &BatchJob) -> (ScriptResult, Option<Engine>) {
    engine.reset_cpu_time();
    let events = engine.begin(job.function, &job.arguments);
    let ends = events.into_iter().find_map(|event| match event {
        EngineEvent::Done(value) => Some(Ok(value)),
        EngineEvent::Thrown(error) => Some(Err(error)),
        EngineEvent::Next(..) | EngineEvent::Log { .. } => None,
    });
    match ends {
        Some(Ok(value)) => (Ok(value), Some(engine)),
        Some(Err(error)) => (Err(error), None),
        None => (
            Err(ScriptError::limit_exceeded(
                "the function returned a promise that is not resolved; it must not wait",
            )),
            None,
        ),
    }
}

impl fmt::Debug for EngineBatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Pass").finish_non_exhaustive()
    }
}
