//! Scripts: the operator's JavaScript, sandboxed and with bounded resources.
//!
//! A script is one file with functions. Each call runs in its own engine, which is dropped after the call: no state of
//! one caller is visible to another, and persistent state is kept by the layers that provide it. Scripts run on their
//! own threads. A script that waits for a forwarded call occupies none of them.

mod batch;
mod cpu_time;
mod engine;
mod script_error;
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

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::files::FileError;
use batch::EngineBatch;
use engine::Engine;
pub use script_error::ScriptError;
use workers::{StartCall, WorkerMessage};

/// Maximum size of a script, in bytes.
const MAX_SCRIPT_BYTES: u64 = 256 * 1024;
/// Maximum number of times that one call may be forwarded.
const MAX_FORWARDED_CALLS: u32 = 100;
/// The stack size of a thread for blocking calls.
const BLOCKING_STACK: usize = 2 * 1024 * 1024;

/// Resource limits of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptLimits {
    /// Maximum CPU time of one call; waiting does not count.
    pub cpu_time: Duration,
    /// Maximum memory of one call, in bytes.
    pub memory: usize,
    /// Maximum number of concurrent calls; others wait.
    pub max_concurrent: usize,
}

impl Default for ScriptLimits {
    fn default() -> Self {
        Self { cpu_time: Duration::from_millis(500), memory: 32 << 20, max_concurrent: 100 }
    }
}

/// The functions that a script may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// `metadata(definition, kind)` changes definitions.
    Metadata,
    /// `request(call, next)` wraps calls.
    Request,
    /// `tool(arguments)` is a tool.
    Tool,
}

impl Function {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Metadata, Self::Request, Self::Tool];

    /// Its name in a script.
    pub fn name(self) -> &'static str {
        match self {
            Self::Metadata => "metadata",
            Self::Request => "request",
            Self::Tool => "tool",
        }
    }
}

/// The source of a script.
#[derive(Debug, PartialEq, Eq)]
struct ScriptSource {
    /// The full path of its file.
    file: PathBuf,
    /// The file name, which is all that callers see.
    name: String,
    text: String,
    limits: ScriptLimits,
    functions: Vec<Function>,
}

/// A script that was loaded and checked; clones share it.
#[derive(Clone, Debug)]
pub struct Script {
    source: Arc<ScriptSource>,
    permits: Arc<Semaphore>,
    batch: Arc<EngineBatch>,
}

/// Scripts are equal if the contents of their files are equal.
impl PartialEq for Script {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Script {
    /// Reads a script and checks that it loads.
    ///
    /// # Errors
    /// When the file is unreadable or not a valid script; with the position.
    pub fn load(file: &Path, limits: ScriptLimits) -> Result<Self, FileError> {
        let text = read_script(file).map_err(|message| FileError::new(file, message))?;
        let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
        let mut source =
            ScriptSource { file: file.to_owned(), name, text, limits, functions: Vec::new() };
        let tried = Arc::new(source.clone_for_trial());
        let found = run_on_thread(move || {
            let engine = Engine::load(&tried, Arc::default())?;
            Ok(Function::ALL
                .into_iter()
                .filter(|function| engine.has(*function))
                .collect::<Vec<_>>())
        });
        source.functions = found.map_err(|error: Box<ScriptError>| FileError {
            line: error.line,
            column: error.column,
            ..FileError::new(file, error.to_string())
        })?;
        if source.functions.is_empty() {
            let help = "define `function metadata(definition)`, `async function request(call, \
                next)` or `function tool(arguments)`";
            return Err(
                FileError::new(file, "the script defines none of the known functions").help(help)
            );
        }
        let permits = Arc::new(Semaphore::new(limits.max_concurrent));
        Ok(Self { source: Arc::new(source), permits, batch: Arc::default() })
    }

    /// Its file.
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

    /// The message for callers about an exception. An exception that is not a deliberate refusal is a bug of the script
    /// and is logged too.
    pub fn explain_error(&self, error: &ScriptError) -> String {
        if error.is_deliberate() {
            return error.message.clone();
        }
        let line = error.line.map(|line| format!(" in line {line}")).unwrap_or_default();
        tracing::warn!("{}{line}: {error}\n{}", self.file().display(), error.stack.trim_end());
        format!("the script {} failed{line}: {error}", self.name())
    }

    /// Runs a function that does not wait and returns its result as JSON. The function runs on its own thread while the
    /// caller blocks. Consecutive calls may share an engine, so this must not be used for data of callers.
    ///
    /// # Errors
    /// When it throws, takes too long or waits.
    pub fn call_blocking(
        &self,
        function: Function,
        arguments: &[String],
    ) -> Result<Option<String>, Box<ScriptError>> {
        self.batch.call(&self.source, function, arguments)
    }

    /// Starts a call of a function, with its arguments as JSON.
    ///
    /// # Errors
    /// When no thread is available.
    pub async fn begin(
        &self,
        function: Function,
        arguments: Vec<String>,
    ) -> Result<ScriptCall, Box<ScriptError>> {
        static SESSIONS: AtomicU64 = AtomicU64::new(0);
        let ended = |_| ScriptError::limit_exceeded("the script engine is shutting down");
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(ended)?;
        let (steps, receiver) = mpsc::unbounded_channel();
        let cancelled = Arc::new(AtomicBool::new(false));
        let number = SESSIONS.fetch_add(1, Ordering::Relaxed);
        let messages = workers::start(StartCall {
            session: number,
            source: Arc::clone(&self.source),
            function,
            arguments,
            steps,
            cancelled: Arc::clone(&cancelled),
        })?;
        Ok(ScriptCall { number, messages, steps: receiver, cancelled, _place: permit })
    }
}

impl ScriptSource {
    fn clone_for_trial(&self) -> Self {
        let (file, name, text) = (self.file.clone(), self.name.clone(), self.text.clone());
        Self { file, name, text, limits: self.limits, functions: Vec::new() }
    }
}

/// The next step of a script call.
#[derive(Debug, PartialEq)]
pub enum ScriptStep {
    /// It forwards this call, under this number.
    Next(u32, String),
    /// It returned this as JSON, or nothing, or it threw.
    Done(Result<Option<String>, Box<ScriptError>>),
}

/// A running script call. Dropping it ends the script.
#[derive(Debug)]
pub struct ScriptCall {
    number: u64,
    messages: Sender<WorkerMessage>,
    steps: UnboundedReceiver<ScriptStep>,
    cancelled: Arc<AtomicBool>,
    _place: OwnedSemaphorePermit,
}

impl ScriptCall {
    /// Waits for the next step.
    pub async fn next_step(&mut self) -> ScriptStep {
        let lost =
            || ScriptStep::Done(Err(ScriptError::limit_exceeded("the thread of the script ended")));
        self.steps.recv().await.unwrap_or_else(lost)
    }

    /// Delivers the outcome of a forwarded call: a result as JSON, or an object with a `message`.
    pub fn resume(&self, next: u32, answer: Result<String, String>) {
        // A lost thread needs no outcome.
        _ = self.messages.send(WorkerMessage::Resume(self.number, next, answer));
    }
}

impl Drop for ScriptCall {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
        _ = self.messages.send(WorkerMessage::End(self.number));
    }
}

/// Runs a closure on a thread with a known stack size, and waits for it.
fn run_on_thread<T: Send>(
    work: impl FnOnce() -> Result<T, Box<ScriptError>> + Send,
) -> Result<T, Box<ScriptError>> {
    let lost = |_| ScriptError::limit_exceeded("no thread is available for the script");
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("script".to_owned()).stack_size(BLOCKING_STACK);
        let started = thread.spawn_scoped(scope, work).map_err(lost)?;
        started
            .join()
            .unwrap_or_else(|_| Err(ScriptError::limit_exceeded("the script engine panicked")))
    })
}

fn read_script(file: &Path) -> Result<String, String> {
    let unreadable = |error: std::io::Error| format!("cannot read the file: {error}");
    if !std::fs::metadata(file).map_err(unreadable)?.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let mut text = String::new();
    let read =
        File::open(file).and_then(|it| it.take(MAX_SCRIPT_BYTES + 1).read_to_string(&mut text));
    read.map_err(unreadable)?;
    if text.len() as u64 > MAX_SCRIPT_BYTES {
        return Err(format!("the script has more than {MAX_SCRIPT_BYTES} bytes"));
    }
    Ok(text)
}
