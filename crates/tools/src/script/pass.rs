//! Items of a list come together: calls of a function that follow each other at once share an engine.
//!
//! Making an engine takes longer than most functions do. No caller has a part in what is listed, so there is nobody to keep
//! apart; what a function leaves behind may be gone by the next item, or not.

use std::fmt;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::engine::{Engine, Told};
use super::thrown::Thrown;
use super::{Function, STACK, Source};

/// How long an engine is kept for the next item.
const KEPT: Duration = Duration::from_millis(50);

/// What a function returned, as JSON, or nothing.
type Returned = Result<Option<String>, Box<Thrown>>;

/// A thread with an engine, if there is one.
#[derive(Default)]
pub(super) struct Pass(Mutex<Option<Sender<Job>>>);

struct Job {
    function: Function,
    arguments: Vec<String>,
    answer: Sender<Returned>,
}

impl Pass {
    /// What a function that waits for nobody returns; the caller waits.
    pub(super) fn call(
        &self,
        source: &Arc<Source>,
        function: Function,
        arguments: &[String],
    ) -> Returned {
        let mut thread = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // One that has just ended does not take the job, and another is started.
        for _ in 0..2 {
            let jobs = match thread.take() {
                Some(jobs) => jobs,
                None => spawn(source).ok_or_else(|| Thrown::limit("there is no thread for it"))?,
            };
            let (answer, answered) = mpsc::channel();
            let job = Job { function, arguments: arguments.to_vec(), answer };
            // A job that was not taken holds the sender of its answer, which nobody must wait for.
            if jobs.send(job).is_ok()
                && let Ok(returned) = answered.recv()
            {
                *thread = Some(jobs);
                return returned;
            }
        }
        Err(Thrown::limit("the engine broke down"))
    }
}

fn spawn(source: &Arc<Source>) -> Option<Sender<Job>> {
    let (sender, jobs) = mpsc::channel();
    let source = Arc::clone(source);
    let thread = thread::Builder::new().name("script".to_owned()).stack_size(STACK);
    thread.spawn(move || work(&source, &jobs)).ok()?;
    Some(sender)
}

/// Does what comes until nothing comes any more.
fn work(source: &Arc<Source>, jobs: &Receiver<Job>) {
    let mut kept = None;
    while let Ok(job) = jobs.recv_timeout(KEPT) {
        let returned = match kept.take() {
            Some(engine) => match run(engine, &job) {
                // It may be what others left behind that it stumbled over.
                (Err(_), _) => fresh(source, &job),
                done => done,
            },
            None => fresh(source, &job),
        };
        kept = returned.1;
        // Whoever asked waits for it.
        _ = job.answer.send(returned.0);
    }
}

fn fresh(source: &Arc<Source>, job: &Job) -> (Returned, Option<Engine>) {
    match Engine::load(source, Arc::default()) {
        Ok(engine) => run(engine, job),
        Err(thrown) => (Err(thrown), None),
    }
}

/// What the function returned, and the engine if it is fit for another item.
fn run(engine: Engine, job: &Job) -> (Returned, Option<Engine>) {
    engine.renew();
    let told = engine.begin(job.function, &job.arguments);
    let ends = told.into_iter().find_map(|told| match told {
        Told::Done(value) => Some(Ok(value)),
        Told::Thrown(thrown) => Some(Err(thrown)),
        Told::Next(..) | Told::Log { .. } => None,
    });
    match ends {
        Some(Ok(value)) => (Ok(value), Some(engine)),
        Some(Err(thrown)) => (Err(thrown), None),
        None => (Err(Thrown::limit("it did not return at once")), None),
    }
}

impl fmt::Debug for Pass {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Pass").finish_non_exhaustive()
    }
}
