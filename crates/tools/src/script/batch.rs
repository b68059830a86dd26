//! Items of a list come together: calls of a function that follow each other at once share an engine.
//!
//! Making an engine takes longer than most functions do. No caller has a part in what is listed, so there is nobody to keep
//! apart; what a function leaves behind may be gone by the next item, or not.

use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;
use std::{fmt, thread};

use super::engine::{Engine, EngineEvent};
use super::script_error::ScriptError;
use super::{BLOCKING_STACK, Function, ScriptSource};

/// How long an engine is kept for the next item.
const IDLE_TIMEOUT: Duration = Duration::from_millis(50);

/// What a function returned, as JSON, or nothing.
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
    /// What a function that waits for nobody returns; the caller waits.
    pub(super) fn call(
        &self,
        source: &Arc<ScriptSource>,
        function: Function,
        arguments: &[String],
    ) -> ScriptResult {
        let mut thread = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // One that has just ended does not take the job, and another is started.
        for _ in 0..2 {
            let jobs = match thread.take() {
                Some(jobs) => jobs,
                None => spawn(source)
                    .ok_or_else(|| ScriptError::limit_exceeded("there is no thread for it"))?,
            };
            let (answer, answered) = mpsc::channel();
            let job = BatchJob { function, arguments: arguments.to_vec(), reply: answer };
            // A job that was not taken holds the sender of its answer, which nobody must wait for.
            if jobs.send(job).is_ok()
                && let Ok(returned) = answered.recv()
            {
                *thread = Some(jobs);
                return returned;
            }
        }
        Err(ScriptError::limit_exceeded("the engine broke down"))
    }
}

fn spawn(source: &Arc<ScriptSource>) -> Option<Sender<BatchJob>> {
    let (sender, jobs) = mpsc::channel();
    let source = Arc::clone(source);
    let thread = thread::Builder::new().name("script".to_owned()).stack_size(BLOCKING_STACK);
    thread.spawn(move || run_jobs(&source, &jobs)).ok()?;
    Some(sender)
}

/// Does what comes until nothing comes any more.
fn run_jobs(source: &Arc<ScriptSource>, jobs: &Receiver<BatchJob>) {
    let mut kept = None;
    while let Ok(job) = jobs.recv_timeout(IDLE_TIMEOUT) {
        let returned = match kept.take() {
            Some(engine) => match run_on_engine(engine, &job) {
                // It may be what others left behind that it stumbled over.
                (Err(_), _) => run_on_new_engine(source, &job),
                done => done,
            },
            None => run_on_new_engine(source, &job),
        };
        kept = returned.1;
        // Whoever asked waits for it.
        _ = job.reply.send(returned.0);
    }
}

fn run_on_new_engine(source: &Arc<ScriptSource>, job: &BatchJob) -> (ScriptResult, Option<Engine>) {
    match Engine::load(source, Arc::default()) {
        Ok(engine) => run_on_engine(engine, job),
        Err(thrown) => (Err(thrown), None),
    }
}

/// What the function returned, and the engine if it is fit for another item.
fn run_on_engine(engine: Engine, job: &BatchJob) -> (ScriptResult, Option<Engine>) {
    engine.reset_cpu_time();
    let told = engine.begin(job.function, &job.arguments);
    let ends = told.into_iter().find_map(|told| match told {
        EngineEvent::Done(value) => Some(Ok(value)),
        EngineEvent::Thrown(thrown) => Some(Err(thrown)),
        EngineEvent::Next(..) | EngineEvent::Log { .. } => None,
    });
    match ends {
        Some(Ok(value)) => (Ok(value), Some(engine)),
        Some(Err(thrown)) => (Err(thrown), None),
        None => (Err(ScriptError::limit_exceeded("it did not return at once")), None),
    }
}

impl fmt::Debug for EngineBatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Pass").finish_non_exhaustive()
    }
}
