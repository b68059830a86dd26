//! Scripts: JavaScript of whoever runs the server, bounded and without a way out.
//!
//! A script is one file with functions. Each call of a caller gets an engine of its own, made for it and gone with it: what
//! one caller leaves behind, no other can find, and what must be kept is the business of the layers that keep. Scripts run
//! on threads of their own; one that waits for a call that it passed on holds none of them.

mod engine;
mod meter;
mod pass;
mod thrown;
mod workers;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::files::Problem;
use engine::Engine;
use pass::Pass;
pub use thrown::Thrown;
use workers::{Message, Start};

/// The largest script, in bytes.
const MOST_BYTES: u64 = 256 * 1024;
/// How often one call may be passed on.
const MOST_NEXTS: u32 = 100;
/// The stack of a thread that answers at once.
const STACK: usize = 2 * 1024 * 1024;

/// What a script may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long one call may compute, in time of the processor; waiting does not count.
    pub compute: Duration,
    /// How much memory one call may have, in bytes.
    pub memory: usize,
    /// How many calls may be under way at the same time; others wait.
    pub at_once: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { compute: Duration::from_millis(500), memory: 32 << 20, at_once: 100 }
    }
}

/// The functions that a script may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// `metadata(definition, kind)` changes what is listed.
    Metadata,
    /// `request(call, next)` stands around calls.
    Request,
    /// `tool(arguments)` is a tool.
    Tool,
}

impl Function {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Metadata, Self::Request, Self::Tool];

    /// What it is called in a script.
    pub fn name(self) -> &'static str {
        match self {
            Self::Metadata => "metadata",
            Self::Request => "request",
            Self::Tool => "tool",
        }
    }
}

/// A script as it was read.
#[derive(Debug, PartialEq, Eq)]
struct Source {
    /// The whole path of its file.
    file: PathBuf,
    /// The last part of that, which is all that callers are told.
    name: String,
    text: String,
    limits: Limits,
    functions: Vec<Function>,
}

/// A script that was read and found right; clones are the same.
#[derive(Clone, Debug)]
pub struct Script {
    source: Arc<Source>,
    places: Arc<Semaphore>,
    pass: Arc<Pass>,
}

/// Scripts are the same if their files say the same.
impl PartialEq for Script {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Script {
    /// Reads a script and tries whether it can be loaded.
    ///
    /// # Errors
    /// When the file cannot be read, or what is in it is no script; with the place.
    pub fn load(file: &Path, limits: Limits) -> Result<Self, Problem> {
        let text = read(file).map_err(|what| Problem::new(file, what))?;
        let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
        let mut source =
            Source { file: file.to_owned(), name, text, limits, functions: Vec::new() };
        let tried = Arc::new(source.clone_for_trial());
        let found = apart(move || {
            let engine = Engine::load(&tried, Arc::default())?;
            Ok(Function::ALL.into_iter().filter(|it| engine.has(*it)).collect::<Vec<_>>())
        });
        source.functions = found.map_err(|thrown: Box<Thrown>| Problem {
            line: thrown.line,
            column: thrown.column,
            ..Problem::new(file, thrown.to_string())
        })?;
        if source.functions.is_empty() {
            let help = "write `function metadata(definition)`, `async function request(call, next)` or `function tool(arguments)`";
            return Err(Problem::new(
                file,
                "this script has none of the functions that are called",
            )
            .help(help));
        }
        let places = Arc::new(Semaphore::new(limits.at_once));
        Ok(Self { source: Arc::new(source), places, pass: Arc::default() })
    }

    /// The file that it was read from.
    pub fn file(&self) -> &Path {
        &self.source.file
    }

    /// The name of the file without its folder.
    pub fn name(&self) -> &str {
        &self.source.name
    }

    /// Whether it has this function.
    pub fn has(&self, function: Function) -> bool {
        self.source.functions.contains(&function)
    }

    /// What callers are told of what it threw. What is no refusal is a mistake of the script, which the log tells too.
    pub fn blame(&self, thrown: &Thrown) -> String {
        if thrown.is_meant() {
            return thrown.message.clone();
        }
        let line = thrown.line.map(|line| format!(" in line {line}")).unwrap_or_default();
        tracing::warn!("{}{line}: {thrown}\n{}", self.file().display(), thrown.stack.trim_end());
        format!("the script {} failed{line}: {thrown}", self.name())
    }

    /// What a function that waits for nobody returns, as JSON, on a thread of its own: the caller waits. It is for what no
    /// caller has a part in, because calls that follow each other may share an engine.
    ///
    /// # Errors
    /// When it throws, takes too long or waits after all.
    pub fn at_once(
        &self,
        function: Function,
        arguments: &[String],
    ) -> Result<Option<String>, Box<Thrown>> {
        self.pass.call(&self.source, function, arguments)
    }

    /// Begins a call of a function, with its arguments as JSON.
    ///
    /// # Errors
    /// When there is no thread for it.
    pub async fn begin(
        &self,
        function: Function,
        arguments: Vec<String>,
    ) -> Result<Session, Box<Thrown>> {
        static SESSIONS: AtomicU64 = AtomicU64::new(0);
        let ended = |_| Thrown::limit("scripts are not run any more");
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(ended)?;
        let (steps, told) = mpsc::unbounded_channel();
        let cancelled = Arc::new(AtomicBool::new(false));
        let number = SESSIONS.fetch_add(1, Ordering::Relaxed);
        let messages = workers::start(Start {
            session: number,
            source: Arc::clone(&self.source),
            function,
            arguments,
            steps,
            cancelled: Arc::clone(&cancelled),
        })?;
        Ok(Session { number, messages, told, cancelled, _place: place })
    }
}

impl Source {
    fn clone_for_trial(&self) -> Self {
        let (file, name, text) = (self.file.clone(), self.name.clone(), self.text.clone());
        Self { file, name, text, limits: self.limits, functions: Vec::new() }
    }
}

/// What a call of a script comes to next.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// It passes this call on, under this number.
    Next(u32, String),
    /// It returned this as JSON, or nothing; or threw.
    Done(Result<Option<String>, Box<Thrown>>),
}

/// A call of a script that is under way. Dropping it ends the script.
#[derive(Debug)]
pub struct Session {
    number: u64,
    messages: Sender<Message>,
    told: UnboundedReceiver<Step>,
    cancelled: Arc<AtomicBool>,
    _place: OwnedSemaphorePermit,
}

impl Session {
    /// What comes next.
    pub async fn step(&mut self) -> Step {
        let lost = || Step::Done(Err(Thrown::limit("its thread was lost")));
        self.told.recv().await.unwrap_or_else(lost)
    }

    /// Tells what became of a call that was passed on: a result as JSON, or an object with a `message`.
    pub fn answer(&self, next: u32, answer: Result<String, String>) {
        // A thread that is lost needs no answer.
        _ = self.messages.send(Message::Answer(self.number, next, answer));
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
        _ = self.messages.send(Message::End(self.number));
    }
}

/// Does something on a thread whose stack is known, and waits for it.
fn apart<T: Send>(work: impl FnOnce() -> Result<T, Box<Thrown>> + Send) -> Result<T, Box<Thrown>> {
    let lost = |_| Thrown::limit("there is no thread for it");
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("script".to_owned()).stack_size(STACK);
        let started = thread.spawn_scoped(scope, work).map_err(lost)?;
        started.join().unwrap_or_else(|_| Err(Thrown::limit("the engine broke down")))
    })
}

fn read(file: &Path) -> Result<String, String> {
    let unreadable = |error: std::io::Error| format!("this file cannot be read: {error}");
    if !std::fs::metadata(file).map_err(unreadable)?.is_file() {
        return Err("this is no file".to_owned());
    }
    let mut text = String::new();
    let read = File::open(file).and_then(|it| it.take(MOST_BYTES + 1).read_to_string(&mut text));
    read.map_err(unreadable)?;
    if text.len() as u64 > MOST_BYTES {
        return Err(format!("this script has more than {MOST_BYTES} bytes"));
    }
    Ok(text)
}
